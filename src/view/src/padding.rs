//! Text padded with blanks to a width.
//!
//! The standard library's formatting panics on widths above 65535. Column widths come from names in
//! files, which may be longer.

use std::fmt;

/// Blanks written at once.
const BLANK_CHUNK: &str = "                                                                ";

/// This many blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blanks(pub usize);

impl fmt::Display for Blanks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(remaining) = rest.checked_sub(BLANK_CHUNK.len()) {
            f.write_str(BLANK_CHUNK)?;
            rest = remaining;
        }
        f.write_str(BLANK_CHUNK.get(..rest).unwrap_or_default())
    }
}

/// Text padded on the right to a width in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftAligned<'a>(pub &'a str, pub usize);

impl fmt::Display for LeftAligned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)?;
        padding(self.0, self.1).fmt(f)
    }
}

/// Text padded on the left to a width in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RightAligned<'a>(pub &'a str, pub usize);

impl fmt::Display for RightAligned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        padding(self.0, self.1).fmt(f)?;
        f.write_str(self.0)
    }
}

/// The padding that a text needs to reach a width.
fn padding(text: &str, width: usize) -> Blanks {
    Blanks(width.saturating_sub(text.chars().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_padded_to_any_width() {
        assert_eq!(LeftAligned("é", 3).to_string(), "é  ");
        assert_eq!(RightAligned("é", 3).to_string(), "  é");
        assert_eq!(LeftAligned("long", 3).to_string(), "long");
        for width in [0, 1, 63, 64, 65, 65535, 65536, 200_000] {
            assert_eq!(Blanks(width).to_string(), " ".repeat(width));
            let text = RightAligned("a", width).to_string();
            assert_eq!(text.len(), width.max(1));
        }
    }
}
