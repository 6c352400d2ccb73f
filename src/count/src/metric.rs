//! Metrics computed from counts.

use std::borrow::Cow;

/// A metric with its unit.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricValue {
    /// The number.
    pub value: f64,
    /// Its unit: `GHz`, `K/sec`, `of all branches`.
    pub unit: Cow<'static, str>,
    /// Its number format.
    pub format: NumberFormat,
}

/// Number format of a metric. In tables, formats with the same decimals are padded differently; in JSON, values have neither
/// padding nor percent sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberFormat {
    /// Three decimals: rates, frequencies and CPU utilization.
    Rate,
    /// Two decimals: ratio of two events.
    Ratio,
    /// Two decimals and a percent sign.
    Percent,
    /// Three decimals, a blank and a percent sign.
    FinePercent,
    /// Two decimals: value of a formula.
    Formula,
    /// One decimal: value of a formula with a unit.
    Scaled,
}

impl MetricValue {
    /// Creates a metric with a constant unit.
    #[must_use]
    pub(crate) fn new(value: f64, format: NumberFormat, unit: &'static str) -> Self {
        Self {
            value,
            format,
            unit: Cow::Borrowed(unit),
        }
    }

    /// Events per second, with the first unit for which the number is at most 1000, otherwise in G/sec.
    #[must_use]
    pub(crate) fn per_second(events: f64, nanoseconds: f64) -> Self {
        let mut value = 1e9 * events / nanoseconds;
        let mut unit = "/sec";
        for larger in ["K/sec", "M/sec", "G/sec"] {
            if value <= 1000.0 {
                break;
            }
            value /= 1000.0;
            unit = larger;
        }
        Self::new(value, NumberFormat::Rate, unit)
    }
}
