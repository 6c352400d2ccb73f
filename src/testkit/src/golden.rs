//! Expected texts in files, updated with `RPERF_BLESS=1`.

use std::fs;
use std::path::Path;

/// Compares `actual` with the file at `path`; with `RPERF_BLESS` set, writes the file instead.
///
/// # Panics
///
/// If they differ, or the file cannot be read or written.
#[expect(clippy::panic, reason = "this is how a test fails")]
pub fn assert_golden(path: &Path, actual: &str) {
    let file = path.display();
    if std::env::var_os("RPERF_BLESS").is_some() {
        let written = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(path, actual));
        if let Err(error) = written {
            panic!("cannot write {file}: {error}");
        }
        return;
    }
    let expected = match fs::read_to_string(path) {
        Ok(expected) => expected,
        Err(error) => panic!("cannot read {file}: {error}; RPERF_BLESS=1 writes it"),
    };
    if let Some(lines) = difference(&expected, actual) {
        panic!(
            "{file} differs at {lines}\nRPERF_BLESS=1 accepts the new text; look at the diff before you commit it"
        );
    }
}

/// Returns the number of the first line in which two texts differ, and that line of each; `None` if the texts are equal.
pub fn difference(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let mut expected_lines = expected.split('\n');
    let mut actual_lines = actual.split('\n');
    let mut number = 1;
    loop {
        match (expected_lines.next(), actual_lines.next()) {
            (Some(expected), Some(actual)) if expected == actual => number += 1,
            (expected, actual) => {
                let show = |line: Option<&str>| {
                    line.map_or("(the text ends)".to_owned(), |line| format!("{line:?}"))
                };
                return Some(format!(
                    "line {number}:\n  expected {}\n  actual   {}",
                    show(expected),
                    show(actual)
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    #[test]
    fn the_first_different_line_is_shown() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let text = difference("a\nb\n", "a\nc\n").unwrap_or_default();
        assert_eq!(text, "line 2:\n  expected \"b\"\n  actual   \"c\"");
        assert!(
            difference("a", "a\n")
                .unwrap_or_default()
                .contains("(the text ends)")
        );
    }

    #[test]
    fn equal_text_passes_and_different_text_fails() -> std::io::Result<()> {
        // With `RPERF_BLESS`, different text is written instead of failing.
        if std::env::var_os("RPERF_BLESS").is_some() {
            return Ok(());
        }
        let scratch = Scratch::new();
        let path = scratch.write("text", "one\n")?;
        assert_golden(&path, "one\n");
        assert!(std::panic::catch_unwind(|| assert_golden(&path, "two\n")).is_err());
        Ok(())
    }
}
