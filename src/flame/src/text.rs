//! Text in pictures.

use std::fmt::{self, Display};

/// Displays text escaped for XML. A tab is replaced by a blank; other control characters, U+FFFE and U+FFFF by
/// U+FFFD.
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

/// Returns a number with its unit: `ns` in a readable unit of time, other numbers with thousands separators. The units `samples`
/// and `latencies` become singular after 1.
#[must_use]
pub fn amount(value: u64, unit: &str) -> String {
    const TIMES: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let time = TIMES
        .iter()
        .find(|(nanos, _)| unit == "ns" && value >= *nanos);
    match (time, value, unit) {
        (Some((nanos, name)), ..) => format!("{:.3} {name}", value as f64 / *nanos as f64),
        (None, 1, "samples") => "1 sample".to_owned(),
        (None, 1, "latencies") => "1 latency".to_owned(),
        (None, ..) => format!("{} {unit}", Grouped(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::amount;

    #[test]
    fn amounts_have_readable_times_and_the_singular() {
        assert_eq!(amount(999, "ns"), "999 ns");
        assert_eq!(amount(200_000, "ns"), "200.000 us");
        assert_eq!(amount(21_655_629, "ns"), "21.656 ms");
        assert_eq!(amount(3_600_000_000_000, "ns"), "3600.000 s");
        assert_eq!(amount(1_234_567, "cycles"), "1,234,567 cycles");
        assert_eq!(amount(1, "samples"), "1 sample");
        assert_eq!(amount(0, "samples"), "0 samples");
        assert_eq!(amount(1, "latencies"), "1 latency");
        assert_eq!(amount(1, "nr_pages"), "1 nr_pages");
    }
}
