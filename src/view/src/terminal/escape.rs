//! Escaping of control characters.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Bytes checked at once.
const CHUNK: usize = 32;

/// Whether [`escaped`] escapes a character: one that changes the text direction, or a control character except newline and tab.
pub(super) fn needs_escape(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // C0, DEL and C1.
        letter => letter.is_control(),
    }
}

/// Whether a byte that is not part of valid UTF-8 is a control character of 8-bit terminals.
pub(super) fn byte_needs_escape(byte: u8) -> bool {
    (0x80..=0x9f).contains(&byte)
}

/// The number of leading bytes that are printable ASCII, newlines or tabs.
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    // Branch-free, so that many bytes are compared at once.
    let all_plain = |chunk: &&[u8]| chunk.iter().fold(true, |all, byte| all & is_plain(byte));
    let plain_len = bytes.chunks_exact(CHUNK).take_while(all_plain).count() * CHUNK;
    let rest = bytes.iter().skip(plain_len);
    plain_len + rest.take_while(|byte| is_plain(byte)).count()
}

/// Appends the escape of a character: `\x1b`, `\u{9b}`.
pub(super) fn push_escape(out: &mut String, letter: char) {
    // Writing to a String cannot fail.
    let _ = match letter.is_ascii() {
        true => write!(out, "\\x{:02x}", u32::from(letter)),
        false => write!(out, "\\u{{{:x}}}", u32::from(letter)),
    };
}

/// Escapes characters that change the text direction, and control characters except newlines and tabs.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    escaped_where(text, needs_escape)
}

/// Escapes characters that change the text direction, and control characters except tabs.
#[must_use]
pub fn escaped_line(text: &str) -> Cow<'_, str> {
    escaped_where(text, |letter| letter == '\n' || needs_escape(letter))
}

/// Escapes newlines only, so that the text stays on one line.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    match text.contains('\n') {
        true => escaped_where(text, |letter| letter == '\n'),
        false => text.into(),
    }
}

fn escaped_where(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match is_escaped(letter) {
            true => push_escape(&mut out, letter),
            false => out.push(letter),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let shown = escaped("a\x1b[31m\r\x07\u{9b}\x7f\u{202e}\u{2066}\n\tä…");
        assert_eq!(
            shown,
            "a\\x1b[31m\\x0d\\x07\\u{9b}\\x7f\\u{202e}\\u{2066}\n\tä…"
        );
        assert!(matches!(escaped("plain ä\n"), Cow::Borrowed(_)));
    }

    /// A newline in a name (of a file or symbol) must not start a line that looks like a hint of rperf.
    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(one_line("a\nhint: b\r"), "a\\x0ahint: b\r");
        assert_eq!(escaped_line("a\nhint: b\r\t"), "a\\x0ahint: b\\x0d\t");
        assert!(matches!(one_line("a\x1b"), Cow::Borrowed(_)));
    }

    #[test]
    fn plain_runs_end_before_special_bytes() {
        let long = "x".repeat(100);
        for (tail, expected) in [("", 100), ("\x1b", 100), ("\n\t~ \x7f", 104), ("ä", 100)] {
            assert_eq!(plain_run(format!("{long}{tail}").as_bytes()), expected);
        }
        assert_eq!(plain_run(b"\0"), 0);
    }
}
