//! Which characters are escaped, and what they look like then.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Bytes that are looked at together.
const CHUNK: usize = 32;

/// Whether a character is shown instead of sent. Newlines and tabs are not.
pub(super) fn is_hidden(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // C0, DEL and C1.
        letter => letter.is_control(),
    }
}

/// Whether a byte that is no part of UTF-8 is one that terminals with 8 bits obey.
pub(super) fn is_hidden_byte(byte: u8) -> bool {
    (0x80..=0x9f).contains(&byte)
}

/// How many bytes at the beginning are printable ASCII, newlines or tabs.
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    // No branch for each byte, so that many are compared at once.
    let all_plain = |chunk: &&[u8]| chunk.iter().fold(true, |all, byte| all & is_plain(byte));
    let whole = bytes.chunks_exact(CHUNK).take_while(all_plain).count() * CHUNK;
    let rest = bytes.iter().skip(whole);
    whole + rest.take_while(|byte| is_plain(byte)).count()
}

/// What a character is shown as: `\x1b`, `\u{9b}`.
pub(super) fn push_escape(out: &mut String, letter: char) {
    // A String takes every write.
    let _ = match letter.is_ascii() {
        true => write!(out, "\\x{:02x}", u32::from(letter)),
        false => write!(out, "\\u{{{:x}}}", u32::from(letter)),
    };
}

/// Text as a terminal shows it, all of one line or several: control characters are escaped, but newlines and tabs.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    escaped_where(text, is_hidden)
}

/// The same of what is shown in one line: newlines are escaped, too.
#[must_use]
pub fn escaped_line(text: &str) -> Cow<'_, str> {
    escaped_where(text, |letter| letter == '\n' || is_hidden(letter))
}

/// Text that cannot begin a new line: newlines are escaped, and nothing else.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    match text.contains('\n') {
        true => escaped_where(text, |letter| letter == '\n'),
        false => text.into(),
    }
}

fn escaped_where(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_hidden) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match is_hidden(letter) {
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
    fn control_characters_are_shown() {
        let shown = escaped("a\x1b[31m\r\x07\u{9b}\x7f\u{202e}\u{2066}\n\tä…");
        assert_eq!(
            shown,
            "a\\x1b[31m\\x0d\\x07\\u{9b}\\x7f\\u{202e}\\u{2066}\n\tä…"
        );
        assert!(matches!(escaped("plain ä\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(one_line("a\nhint: b\r"), "a\\x0ahint: b\r");
        assert_eq!(escaped_line("a\nhint: b\r\t"), "a\\x0ahint: b\\x0d\t");
        assert!(matches!(one_line("a\x1b"), Cow::Borrowed(_)));
    }

    #[test]
    fn runs_end_before_what_needs_a_look() {
        let long = "x".repeat(100);
        for (tail, expected) in [("", 100), ("\x1b", 100), ("\n\t~ \x7f", 104), ("ä", 100)] {
            assert_eq!(plain_run(format!("{long}{tail}").as_bytes()), expected);
        }
        assert_eq!(plain_run(b"\0"), 0);
    }
}
