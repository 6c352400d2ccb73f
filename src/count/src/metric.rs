//! A number that follows from counts.

use std::borrow::Cow;

/// A metric with its unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The number.
    pub value: f64,
    /// What it is of: `GHz`, `K/sec`, `of all branches`.
    pub unit: Cow<'static, str>,
    /// How it is written.
    pub form: Form,
}

/// How a metric's number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Three decimals: rates and frequencies.
    Rate,
    /// Two decimals: events for each other event.
    Ratio,
    /// Two decimals and a percent sign.
    Percent,
    /// Three decimals, a blank and a percent sign.
    FinePercent,
    /// Two decimals: what a formula gives.
    Formula,
    /// One decimal: what a formula gives in a unit of its own.
    Scaled,
}

impl Metric {
    /// A metric whose unit is known beforehand.
    #[must_use]
    pub(crate) fn new(value: f64, form: Form, unit: &'static str) -> Self {
        Self {
            value,
            form,
            unit: Cow::Borrowed(unit),
        }
    }

    /// Events each second, in the unit that leaves up to three digits before the point.
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
        Self::new(value, Form::Rate, unit)
    }
}
