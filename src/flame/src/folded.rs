//! Folded text: one stack per line, `program;outermost;...;innermost weight`.

use std::io::{self, BufRead, Write};

use crate::error::Error;
use crate::kind::FrameKind;
use crate::stacks::{Label, Stacks};

/// Maximum number of characters of an invalid line in errors.
const MAX_SHOWN: usize = 60;

/// Parses folded text. Empty lines and lines that begin with `#` are ignored. If a line ends with two numbers, as in
/// differential text, the last one is used.
///
/// # Errors
///
/// Outer result: read errors. Inner result: a line without a non-negative number at its end ([`Error::NoCount`]), or no stacks
/// ([`Error::Empty`]).
pub fn read(text: impl BufRead) -> io::Result<Result<Stacks, Error>> {
    let mut stacks = Stacks::default();
    let mut frames = Vec::new();
    for (index, line) in text.split(b'\n').enumerate() {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((stack, weight)) = split(line) else {
            return Ok(Err(Error::NoCount {
                line: index + 1,
                text: line.chars().take(MAX_SHOWN).collect(),
            }));
        };
        frames.clear();
        for frame in stack.split(';') {
            let (name, kind) = FrameKind::split(frame);
            frames.push(stacks.label(name, kind));
        }
        stacks.add(&frames, weight);
    }
    Ok(if stacks.is_empty() {
        Err(Error::Empty)
    } else {
        Ok(stacks)
    })
}

/// Splits a line into stack and weight; `None` without a non-negative weight. Fractions, which some tools write, are rounded.
fn split(line: &str) -> Option<(&str, u64)> {
    let (stack, word) = line.rsplit_once(char::is_whitespace)?;
    let weight = weight(word)?;
    let stack = stack.trim_end();
    // Differential text has two weights; the first one is not part of the stack.
    match stack.rsplit_once(char::is_whitespace) {
        Some((frames, earlier)) if self::weight(earlier).is_some() => {
            Some((frames.trim_end(), weight))
        }
        _ => Some((stack, weight)),
    }
}

/// Parses a weight; `None` unless it is a non-negative number.
fn weight(word: &str) -> Option<u64> {
    let number: f64 = word.parse().ok()?;
    let number = (number.is_finite() && number >= 0.0).then_some(number)?;
    // Integers are parsed again, as `u64`: large ones are not exact as `f64`.
    Some(word.parse().unwrap_or(number.round() as u64))
}

/// Writes the stacks sorted by their text; weights of equal text are summed up. A line that would begin with `#`, also
/// after blanks, gets the prefix `_`. With `marks`, names have suffixes for kernel, inlined and JIT code.
///
/// # Errors
///
/// Write errors.
pub fn write(stacks: &Stacks, marks: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut lines: Vec<(String, u64)> = Vec::new();
    for (frames, weight) in stacks.iter() {
        let mut line = String::new();
        let outermost = frames
            .first()
            .and_then(|frame| stacks.labels().get(*frame as usize));
        if outermost.is_some_and(|label| label.name.trim_start().starts_with('#')) {
            // Readers take lines that begin with `#`, also after blanks, for comments.
            line.push('_');
        }
        for (index, frame) in frames.iter().enumerate() {
            if index > 0 {
                line.push(';');
            }
            if let Some(label) = stacks.labels().get(*frame as usize) {
                push(label, marks, &mut line);
            }
        }
        lines.push((line, weight));
    }
    lines.sort_unstable();
    // Without `marks`, stacks that differ only in the kinds of their frames have equal text.
    let mut lines = lines.into_iter().peekable();
    while let Some((line, mut weight)) = lines.next() {
        while let Some((_, more)) = lines.next_if(|(next, _)| *next == line) {
            weight = weight.saturating_add(more);
        }
        writeln!(out, "{line} {weight}")?;
    }
    Ok(())
}

/// Appends a name. Semicolons, which would start a frame, become colons; line ends, which would start a stack, become spaces.
fn push(label: &Label, marks: bool, line: &mut String) {
    let clean = |c| match c {
        ';' => ':',
        '\n' | '\r' => ' ',
        c => c,
    };
    line.extend(label.name.chars().map(clean));
    if marks {
        line.push_str(label.kind.mark());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `marks`.
    const WITH_MARKS: bool = true;
    const WITHOUT_MARKS: bool = false;

    fn text(stacks: &Stacks, marks: bool) -> String {
        let mut out = Vec::new();
        write(stacks, marks, &mut out).expect("writing to memory succeeds");
        String::from_utf8(out).expect("text")
    }

    fn parse(text: &str) -> Result<Stacks, Error> {
        read(text.as_bytes()).expect("memory can be read")
    }

    #[test]
    fn text_that_was_read_is_written_unchanged_with_marks() {
        let folded =
            "bash;main;[unknown] 3\nload;main;std::sort<int, 2>_[i] 12\nswapper;do_idle_[k] 1\n";
        let stacks = parse(folded).expect("folded text");
        assert_eq!(text(&stacks, WITH_MARKS), folded);
        let plain = folded.replace("_[i]", "").replace("_[k]", "");
        assert_eq!(text(&stacks, WITHOUT_MARKS), plain);
    }

    #[test]
    fn comments_fractions_and_lines_with_two_weights_are_read() {
        let stacks = parse("# comment\n\n a;b 2.6 \r\na;b 1 5\na;b 1.5 2.4\na;c x 4\n")
            .expect("folded text");
        assert_eq!(text(&stacks, WITH_MARKS), "a;b 10\na;c x 4\n");
    }

    #[test]
    fn lines_without_a_weight_and_empty_input_are_errors() {
        let error = parse("a;b 1\na;b\n").expect_err("no count");
        assert!(error.to_string().starts_with("line 2: "), "{error}");
        assert_eq!(parse("# nothing\n").err(), Some(Error::Empty));
    }

    #[test]
    fn names_cannot_break_lines() {
        let mut stacks = Stacks::default();
        let frame = stacks.label("a;b\nc", FrameKind::User);
        stacks.add(&[frame], 1);
        assert_eq!(text(&stacks, WITHOUT_MARKS), "a:b c 1\n");
    }

    #[test]
    fn a_stack_that_begins_with_a_hash_is_not_written_as_a_comment() {
        for name in ["#1 worker", " #1 worker"] {
            let mut stacks = Stacks::default();
            let frame = stacks.label(name, FrameKind::User);
            stacks.add(&[frame], 3);
            let written = text(&stacks, WITHOUT_MARKS);
            assert_eq!(written, format!("_{name} 3\n"));
            assert_eq!(
                text(&parse(&written).expect("folded text"), WITHOUT_MARKS),
                written
            );
        }
    }
}
