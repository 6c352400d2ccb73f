//! Percentages and counts as in reports.

use std::fmt;

use crate::digits;
use crate::terminal::{Csi, Sgr};

/// A percentage, written with two decimals and a percent sign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Percent(f64);

impl Percent {
    /// The percentage of `part` in `total`; 0 if `total` is 0.
    pub(crate) fn of(part: u64, total: u64) -> Self {
        if total == 0 {
            return Self(0.0);
        }
        Self(part as f64 * 100.0 / total as f64)
    }

    /// The absolute value of a number, to colour it like a percentage.
    pub(crate) fn magnitude(value: f64) -> Self {
        Self(value.abs())
    }

    /// In percent.
    pub(crate) fn value(self) -> f64 {
        self.0
    }

    /// Appends what [`fmt::Display`] writes.
    pub(crate) fn push_to(self, out: &mut String) {
        digits::push_two_decimals(out, self.0);
        out.push('%');
    }

    pub(crate) fn below(self, limit: f64) -> bool {
        self.0 < limit
    }
}

impl Percent {
    /// Returns the colour sequences before and after the percentage: red from 5 % on, green above 0.5 %,
    /// otherwise none, as in perf.
    pub(crate) fn paint(self, colors: Option<Csi>) -> (Sgr, Sgr) {
        let color = match self.0 {
            share if share >= 5.0 => Sgr::RED,
            share if share > 0.5 => Sgr::GREEN,
            _ => return (Sgr::NONE, Sgr::NONE),
        };
        (Sgr::new(colors, color), Sgr::new(colors, Sgr::RESET))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}%", self.0)
    }
}

/// A number of samples in thousands, millions or billions, rounded down: `452 `, `12K`, `3M`. As in perf, exactly 1000 of a unit
/// is not converted to the next: `1000 `, not `1K`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShortCount(pub(crate) u64);

impl fmt::Display for ShortCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0;
        let mut unit = ' ';
        for larger in ['K', 'M', 'G'] {
            if value <= 1000 {
                break;
            }
            value /= 1000;
            unit = larger;
        }
        write!(f, "{value}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_two_decimals() {
        assert_eq!(Percent::of(1, 3).to_string(), "33.33%");
        assert_eq!(Percent::of(0, 0).to_string(), "0.00%");
        assert_eq!(Percent::of(u64::MAX, u64::MAX).to_string(), "100.00%");
    }

    #[test]
    fn colors_depend_on_the_percentage() {
        let around = |part, colors| {
            let (begin, end) = Percent::of(part, 1000).paint(colors);
            format!("{begin} {end}")
        };
        let colors = Some(Csi::PLAIN);
        assert_eq!(around(50, colors), "\x1b[31m \x1b[m");
        assert_eq!(around(49, colors), "\x1b[32m \x1b[m");
        assert_eq!(around(6, colors), "\x1b[32m \x1b[m");
        assert_eq!(around(5, colors), " ");
        assert_eq!(around(50, None), " ");
    }

    #[test]
    fn short_counts_are_rounded_down() {
        let short_count = |value| ShortCount(value).to_string();
        assert_eq!(short_count(0), "0 ");
        assert_eq!(short_count(1000), "1000 ");
        assert_eq!(short_count(1999), "1K");
        assert_eq!(short_count(1_000_999), "1000K");
        assert_eq!(short_count(3_200_000), "3M");
        assert_eq!(short_count(5_000_000_000_000), "5000G");
    }
}
