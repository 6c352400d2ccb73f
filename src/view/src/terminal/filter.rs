//! The output filter for terminals.

use std::io::{self, Write};

use super::csi::{Csi, SequenceStart};
use super::escape::{byte_needs_escape, needs_escape, plain_run, push_escape};

/// Bytes of the longest character in UTF-8.
const MAX_CHARACTER_BYTES: usize = 4;

/// Writes text to a terminal. Escapes characters that change the text direction, and control characters except newlines, tabs
/// and rperf's own sequences, which have the mark of a [`Csi`] in their introducer (`ESC [`); the mark is removed.
///
/// A write is passed on in one piece, and unchanged if it has nothing to escape and no marks. If a write ends within a
/// character or introducer, the bytes of this character or introducer are held back until a later write shows whether it is
/// complete; a flush writes them, with control characters escaped.
#[derive(Debug)]
pub struct TerminalFilter<W> {
    inner: W,
    csi: Csi,
    /// An incomplete character or marked introducer.
    pending: Vec<u8>,
}

impl<W: Write> TerminalFilter<W> {
    /// Writes to `inner`; control sequences with the mark of `csi` pass.
    pub fn new(inner: W, csi: Csi) -> Self {
        Self {
            inner,
            csi,
            pending: Vec::new(),
        }
    }
}

impl<W: Write> Write for TerminalFilter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.pending.is_empty() && plain_run(bytes) == bytes.len() {
            self.inner.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let mut input = std::mem::take(&mut self.pending);
        input.extend_from_slice(bytes);
        let mut escaped = Vec::with_capacity(input.len() + input.len() / 8);
        let rest = push_escaped(&mut escaped, &input, self.csi);
        self.pending = rest.to_vec();
        self.inner.write_all(&escaped)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        for byte in std::mem::take(&mut self.pending) {
            let mut escaped = Vec::new();
            push_byte(&mut escaped, byte);
            self.inner.write_all(&escaped)?;
        }
        self.inner.flush()
    }
}

/// The kind of the first bytes of a text.
enum LeadingBytes {
    /// A marked introducer of this many bytes.
    Own(usize),
    /// A character.
    Letter(char),
    /// A byte that is not part of UTF-8.
    Byte(u8),
    /// An incomplete character or introducer, or no bytes at all.
    Truncated,
}

/// Appends the escaped `bytes`. Returns an incomplete character or introducer at their end; empty if there is none.
fn push_escaped<'b>(out: &mut Vec<u8>, mut bytes: &'b [u8], csi: Csi) -> &'b [u8] {
    loop {
        let (plain, rest) = bytes.split_at(plain_run(bytes));
        out.extend_from_slice(plain);
        let taken = match classify(rest, csi) {
            LeadingBytes::Truncated => return rest,
            LeadingBytes::Own(length) => {
                out.extend_from_slice(b"\x1b[");
                length
            }
            LeadingBytes::Letter(letter) => {
                push_letter(out, letter);
                letter.len_utf8()
            }
            LeadingBytes::Byte(byte) => {
                push_byte(out, byte);
                1
            }
        };
        bytes = rest.get(taken..).unwrap_or_default();
    }
}

fn classify(bytes: &[u8], csi: Csi) -> LeadingBytes {
    match csi.sequence_start(bytes) {
        SequenceStart::Own(length) => return LeadingBytes::Own(length),
        SequenceStart::Truncated => return LeadingBytes::Truncated,
        SequenceStart::Foreign => {}
    }
    // Enough to decode the first character.
    let start = bytes.get(..MAX_CHARACTER_BYTES).unwrap_or(bytes);
    let (text, error) = match str::from_utf8(start) {
        Ok(text) => (text, None),
        Err(error) => {
            let valid = start.get(..error.valid_up_to()).unwrap_or_default();
            (str::from_utf8(valid).unwrap_or_default(), Some(error))
        }
    };
    match (text.chars().next(), bytes.first(), error) {
        (Some(letter), ..) => LeadingBytes::Letter(letter),
        (None, Some(byte), Some(error)) if error.error_len().is_some() => LeadingBytes::Byte(*byte),
        // No bytes, or `error` without a length: the bytes end within the first character.
        _ => LeadingBytes::Truncated,
    }
}

fn push_letter(out: &mut Vec<u8>, letter: char) {
    if needs_escape(letter) {
        let mut escape = String::new();
        push_escape(&mut escape, letter);
        out.extend_from_slice(escape.as_bytes());
    } else {
        out.extend_from_slice(letter.encode_utf8(&mut [0; MAX_CHARACTER_BYTES]).as_bytes());
    }
}

/// Appends a byte of an invalid character, or of an incomplete character or introducer, escaped if it is a control character.
fn push_byte(out: &mut Vec<u8>, byte: u8) {
    match byte {
        byte if byte.is_ascii() => push_letter(out, char::from(byte)),
        byte if byte_needs_escape(byte) => {
            out.extend_from_slice(format!("\\x{byte:02x}").as_bytes())
        }
        byte => out.push(byte),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The output of these writes.
    fn filtered<'b>(writes: impl IntoIterator<Item = &'b [u8]>, csi: Csi) -> Vec<u8> {
        let mut filter = TerminalFilter::new(Vec::new(), csi);
        for bytes in writes {
            filter.write_all(bytes).expect("writing to memory succeeds");
        }
        filter.flush().expect("writing to memory succeeds");
        filter.inner
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(&filtered([bytes], Csi::marked())).into_owned()
    }

    #[test]
    fn control_characters_are_shown_and_never_sent() {
        let bytes = b"a\x1b]0;title\x07\r\x9b31m\xc2\x9b1m\x7f\0\n\tb";
        assert_eq!(
            text(bytes),
            "a\\x1b]0;title\\x07\\x0d\\x9b31m\\u{9b}1m\\x7f\\x00\n\tb"
        );
        assert_eq!(
            text("\u{202e}ä\u{2066}\u{200b}".as_bytes()),
            "\\u{202e}ä\\u{2066}\u{200b}"
        );
        // An overlong encoding of ESC, which is invalid UTF-8.
        assert_eq!(filtered([&b"\xc0\x9b["[..]], Csi::PLAIN), b"\xc0\\x9b[");
    }

    #[test]
    fn marked_sequences_pass_and_no_others() {
        let csi = Csi::marked();
        let sent = |text: String| {
            let escaped = filtered([text.as_bytes()], csi);
            String::from_utf8(escaped).expect("text")
        };
        assert_eq!(sent(format!("{csi}31ma{csi}m")), "\x1b[31ma\x1b[m");
        assert_eq!(sent("\x1b[31m".to_owned()), "\\x1b[31m");
        let other = Csi::marked();
        let foreign = sent(format!("{other}31m"));
        assert!(foreign.starts_with("\\x1b") && !foreign.contains('\x1b'));
        let introducer = csi.to_string();
        let truncated = &introducer[..introducer.len() - 1];
        assert_eq!(
            sent(truncated.to_owned()),
            truncated.replace('\x1b', "\\x1b")
        );
        assert_eq!(
            sent(format!("{truncated}]")),
            truncated.replace('\x1b', "\\x1b") + "]"
        );
        assert_eq!(sent(format!("\x1b{csi}m")), "\\x1b\x1b[m");
        let plain = filtered([&b"\x1b[31m"[..]], Csi::PLAIN);
        assert_eq!(plain, b"\\x1b[31m");
    }

    #[test]
    fn only_an_incomplete_character_is_held_back() {
        let mut filter = TerminalFilter::new(Vec::new(), Csi::marked());
        filter
            .write_all(b"a\xe2\x80")
            .expect("writing to memory succeeds");
        assert_eq!(filter.inner, b"a");
        filter
            .write_all(b"\xaeb")
            .expect("writing to memory succeeds");
        assert_eq!(filter.inner, b"a\\u{202e}b");
        filter
            .write_all(b"\xc2")
            .expect("writing to memory succeeds");
        filter.flush().expect("writing to memory succeeds");
        assert_eq!(filter.inner, b"a\\u{202e}b\xc2");
        filter
            .write_all(b"\x9b")
            .expect("writing to memory succeeds");
        assert_eq!(filter.inner, b"a\\u{202e}b\xc2\\x9b");
    }

    /// A reference implementation.
    fn oracle(bytes: &[u8], csi: Csi) -> Vec<u8> {
        let introducer = csi.to_string();
        let mut out = Vec::new();
        for chunk in bytes.utf8_chunks() {
            let parts: Vec<String> = chunk.valid().split(&introducer).map(escaped).collect();
            out.extend(parts.join("\x1b[").into_bytes());
            for byte in chunk.invalid() {
                match byte {
                    0x80..=0x9f => out.extend(format!("\\x{byte:02x}").into_bytes()),
                    byte => out.push(*byte),
                }
            }
        }
        out
    }

    fn escaped(text: &str) -> String {
        let letters = text.chars().map(|letter| match u32::from(letter) {
            0x0a | 0x09 => letter.to_string(),
            code @ (0..=0x1f | 0x7f) => format!("\\x{code:02x}"),
            code @ (0x80..=0x9f | 0x202a..=0x202e | 0x2066..=0x2069) => format!("\\u{{{code:x}}}"),
            _ => letter.to_string(),
        });
        letters.collect()
    }

    /// Plain text, control characters in every form, marked introducers, and their beginnings.
    fn bytes(csi: Csi) -> impl Strategy<Value = Vec<u8>> {
        let introducer = csi.to_string().into_bytes();
        let whole = introducer.clone();
        let piece = prop_oneof![
            "[ -~\n\t]{0,80}".prop_map(String::into_bytes),
            "\\PC{0,3}".prop_map(String::into_bytes),
            "[\u{0}-\u{9f}\u{2020}-\u{2070}]{0,4}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..6),
            Just(introducer),
            (0..whole.len()).prop_map(move |end| whole[..end].to_vec()),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_match_the_oracle(
            (csi, bytes) in Just(Csi::marked()).prop_flat_map(|csi| (Just(csi), bytes(csi))),
            size in 1_usize..90,
        ) {
            let expected = oracle(&bytes, csi);
            let controls = |bytes: &[u8]| {
                let text = String::from_utf8_lossy(bytes).replace("\x1b[", "");
                text.chars().any(needs_escape)
            };
            prop_assert!(!controls(&expected));
            prop_assert_eq!(&filtered([&bytes[..]], csi), &expected);
            prop_assert_eq!(&filtered(bytes.chunks(size), csi), &expected);
        }
    }
}
