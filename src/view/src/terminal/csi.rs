//! Introducers of rperf's own control sequences.

use std::fmt::{self, Write as _};
use std::hash::{BuildHasher as _, RandomState};

const ESCAPE: u8 = 0x1b;
/// Hexadecimal digits of a mark, which has 128 bits.
const DIGITS: usize = 32;
/// Bytes of a marked introducer: ESC, the mark, `[`.
const MARKED: usize = DIGITS + 2;

/// The introducer of a control sequence (ECMA-48, CSI), printed as `ESC [`.
///
/// A marked introducer contains 128 random bits in hexadecimal: [`TerminalFilter`](super::TerminalFilter) removes
/// them and lets the sequence pass, and escapes every other ESC. The mark is generated at program
/// start and never leaves the process, so that no recording can contain it. Text with marks must
/// pass through the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Csi {
    mark: Option<[u8; DIGITS]>,
}

/// The classification of the start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequenceStart {
    /// A marked introducer of this many bytes.
    Own(usize),
    /// An incomplete marked introducer up to the end of the text, or an empty text.
    Truncated,
    /// Any other start.
    Foreign,
}

impl Csi {
    /// The plain introducer, for text that is not filtered. A filter escapes it.
    pub const PLAIN: Self = Self { mark: None };

    /// An introducer with a new mark.
    #[must_use]
    pub fn marked() -> Self {
        // The standard library's only source of random bytes: a `RandomState` has a key for SipHash from random bytes, and
        // the next one has a different key.
        let word = |_| RandomState::new().hash_one(ESCAPE);
        let [high, low] = [0, 1].map(word);
        let digits = format!("{high:016x}{low:016x}");
        Self {
            // Never `None`: there are always 32 digits.
            mark: digits.into_bytes().try_into().ok(),
        }
    }

    /// Classifies the start of `bytes`. For [`Self::PLAIN`] every start is foreign.
    pub(super) fn sequence_start(self, bytes: &[u8]) -> SequenceStart {
        let Some(mark) = self.mark else {
            return SequenceStart::Foreign;
        };
        let introducer = [ESCAPE].into_iter().chain(mark).chain(*b"[");
        let equal_bytes = introducer
            .zip(bytes)
            .take_while(|(expected, byte)| expected == *byte);
        match equal_bytes.count() {
            MARKED => SequenceStart::Own(MARKED),
            equal if equal == bytes.len() => SequenceStart::Truncated,
            _ => SequenceStart::Foreign,
        }
    }

    /// The text after a leading control sequence; `None` if `text` does not begin with one. The sequence ends with its first
    /// letter. If the introducer is marked, only sequences with its mark count; for [`Self::PLAIN`], those without a mark.
    pub(crate) fn after_sequence(self, text: &str) -> Option<&str> {
        let rest = match self.mark {
            None => text.strip_prefix("\x1b[")?,
            Some(_) => match self.sequence_start(text.as_bytes()) {
                SequenceStart::Own(length) => text.get(length..)?,
                SequenceStart::Truncated | SequenceStart::Foreign => return None,
            },
        };
        let end = rest.find(|letter: char| letter.is_ascii_alphabetic())?;
        rest.get(end + 1..)
    }
}

impl fmt::Display for Csi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\x1b")?;
        if let Some(mark) = &self.mark {
            f.write_str(str::from_utf8(mark).unwrap_or_default())?;
        }
        f.write_str("[")
    }
}

/// A colour, or its end (ECMA-48, SGR); empty without colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sgr(Option<(Csi, &'static str)>);

impl Sgr {
    pub(crate) const RED: &'static str = "31";
    pub(crate) const GREEN: &'static str = "32";
    pub(crate) const BLUE: &'static str = "34";
    pub(crate) const MAGENTA: &'static str = "35";
    /// Ends all colours: the sequence is `ESC [ m`, without a code.
    pub(crate) const RESET: &'static str = "";

    /// Prints nothing, not even the introducer.
    pub(crate) const NONE: Self = Self(None);

    /// The sequence with `code`, such as [`Self::RED`] or [`Self::RESET`]; empty if `colors` is `None`.
    pub(crate) fn new(colors: Option<Csi>, code: &'static str) -> Self {
        Self(colors.map(|csi| (csi, code)))
    }

    /// Appends the sequence.
    pub(crate) fn push_to(self, out: &mut String) {
        if self.0.is_some() {
            // Writing to a String cannot fail.
            let _ = write!(out, "{self}");
        }
    }
}

impl fmt::Display for Sgr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((csi, code)) => write!(f, "{csi}{code}m"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_differ_and_are_recognized() {
        let (one, other) = (Csi::marked(), Csi::marked());
        assert_ne!(one, other);
        let text = one.to_string();
        assert_eq!(text.len(), MARKED);
        assert_eq!(
            one.sequence_start(text.as_bytes()),
            SequenceStart::Own(MARKED)
        );
        assert_eq!(
            other.sequence_start(text.as_bytes()),
            SequenceStart::Foreign
        );
        for end in 1..MARKED {
            assert_eq!(
                one.sequence_start(&text.as_bytes()[..end]),
                SequenceStart::Truncated
            );
        }
        assert_eq!(one.sequence_start(b"\x1b[31m"), SequenceStart::Foreign);
        assert_eq!(
            Csi::PLAIN.sequence_start(b"\x1b[31m"),
            SequenceStart::Foreign
        );
        assert_eq!(Csi::PLAIN.to_string(), "\x1b[");
    }

    #[test]
    fn a_sequence_ends_with_its_letter() {
        let csi = Csi::marked();
        assert_eq!(csi.after_sequence(&format!("{csi}31mred")), Some("red"));
        assert_eq!(csi.after_sequence("\x1b[31mred"), None);
        assert_eq!(Csi::PLAIN.after_sequence("\x1b[mred"), Some("red"));
    }
}
