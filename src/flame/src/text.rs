//! Text in pictures.

use std::fmt::{self, Display};

/// Displays text escaped for XML, with control characters and non-characters replaced.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\t' => f.write_str(" ")?,
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                    f.write_str("\u{fffd}")?;
                }
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

/// A number with thousands separators.
pub(crate) struct Grouped(pub(crate) u64);

impl Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.char_indices() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}
