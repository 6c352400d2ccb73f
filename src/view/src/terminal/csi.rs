//! What control sequences of our own begin with.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

const ESCAPE: u8 = 0x1b;
/// Hexadecimal digits of a mark, of 128 bits.
const DIGITS: usize = 32;
/// Bytes of a marked introducer: ESC, the mark, `[`.
const MARKED: usize = DIGITS + 2;

/// The introducer of a control sequence (ECMA-48, CSI), printed as `ESC [`.
///
/// A marked one has 128 random bits in between, in hexadecimal: [`Filter`](super::Filter) takes them out and lets the
/// sequence through, and escapes every other ESC. The mark is made when the program starts and never leaves the process, so
/// that no recording can contain it. Text with marks must go through the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Csi {
    mark: Option<[u8; DIGITS]>,
}

/// How bytes that begin with ESC begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// With a marked introducer of so many bytes.
    Own(usize),
    /// They are the beginning of one, and end within it.
    Cut,
    /// Otherwise.
    Foreign,
}

impl Csi {
    /// As terminals know it: for text that is not filtered. A filter lets none of them through.
    pub const PLAIN: Self = Self { mark: None };

    /// One with a new mark.
    #[must_use]
    pub fn marked() -> Self {
        // The standard library's way to the system's random bytes: SipHash under two keys from there.
        let word = |_| RandomState::new().hash_one(ESCAPE);
        let [high, low] = [0, 1].map(word);
        let digits = format!("{high:016x}{low:016x}");
        Self {
            mark: digits.into_bytes().try_into().ok(),
        }
    }

    /// How `bytes` begin, which begin with ESC.
    pub(super) fn begins(self, bytes: &[u8]) -> Beginning {
        let Some(mark) = self.mark else {
            return Beginning::Foreign;
        };
        let own = [ESCAPE].into_iter().chain(mark).chain(*b"[");
        let same = own.zip(bytes).take_while(|(own, byte)| own == *byte);
        match same.count() {
            MARKED => Beginning::Own(MARKED),
            same if same == bytes.len() => Beginning::Cut,
            _ => Beginning::Foreign,
        }
    }

    /// What is behind the control sequence that `text` begins with, if that is one of our own; sequences end with a letter.
    pub(crate) fn behind_sequence(self, text: &str) -> Option<&str> {
        let rest = match self.mark {
            None => text.strip_prefix("\x1b[")?,
            Some(_) => match self.begins(text.as_bytes()) {
                Beginning::Own(length) => text.get(length..)?,
                Beginning::Cut | Beginning::Foreign => return None,
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

/// A colour, or the end of one (ECMA-48, SGR); nothing where there are no colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sgr(Option<(Csi, &'static str)>);

impl Sgr {
    pub(crate) const RED: &'static str = "31";
    pub(crate) const GREEN: &'static str = "32";
    pub(crate) const BLUE: &'static str = "34";
    pub(crate) const MAGENTA: &'static str = "35";
    /// Ends all colours.
    pub(crate) const PLAIN: &'static str = "";

    /// Nothing at all.
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn new(colors: Option<Csi>, code: &'static str) -> Self {
        Self(colors.map(|csi| (csi, code)))
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
    fn marks_differ_and_are_known_again() {
        let (one, other) = (Csi::marked(), Csi::marked());
        assert_ne!(one, other);
        let text = one.to_string();
        assert_eq!(text.len(), MARKED);
        assert_eq!(one.begins(text.as_bytes()), Beginning::Own(MARKED));
        assert_eq!(other.begins(text.as_bytes()), Beginning::Foreign);
        for end in 1..MARKED {
            assert_eq!(one.begins(&text.as_bytes()[..end]), Beginning::Cut);
        }
        assert_eq!(one.begins(b"\x1b[31m"), Beginning::Foreign);
        assert_eq!(Csi::PLAIN.begins(b"\x1b[31m"), Beginning::Foreign);
        assert_eq!(Csi::PLAIN.to_string(), "\x1b[");
    }

    #[test]
    fn a_sequence_ends_with_its_letter() {
        let csi = Csi::marked();
        assert_eq!(csi.behind_sequence(&format!("{csi}31mred")), Some("red"));
        assert_eq!(csi.behind_sequence("\x1b[31mred"), None);
        assert_eq!(Csi::PLAIN.behind_sequence("\x1b[mred"), Some("red"));
    }
}
