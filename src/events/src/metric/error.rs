//! Errors in metrics.

use std::fmt;
use std::ops::Range;

use crate::error::write_block;

/// A metric that cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// A syntax error in a formula, displayed with an arrow at its position.
    Syntax {
        /// The metric; empty for a formula without a metric.
        metric: String,
        /// The formula.
        formula: String,
        /// Byte range of the error in the formula; if the formula is incomplete, an empty range at its end.
        position: Range<usize>,
        /// Description in one line.
        reason: String,
    },
    /// Metrics that depend on each other.
    Circular {
        /// The names of the metrics, each of which refers to the next; the last is the same as the first.
        chain: Vec<String>,
    },
    /// No metric or group has this name.
    Unknown {
        /// The word of `-M`.
        word: String,
        /// The closest name, as a suggestion.
        near: Option<String>,
    },
}

impl fmt::Display for MetricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax {
                metric,
                formula,
                position,
                reason,
            } => {
                let title = match metric.is_empty() {
                    true => "metric syntax error: ".to_owned(),
                    false => format!("syntax error in metric {metric}: "),
                };
                write_block(f, &title, formula, position, reason)
            }
            Self::Circular { chain } => {
                write!(f, "metrics refer to each other: {}", chain.join(" -> "))
            }
            Self::Unknown { word, near } => {
                write!(f, "Cannot find metric or group `{word}'")?;
                match near {
                    Some(near) => write!(f, ", did you mean `{near}'?"),
                    None => Ok(()),
                }
            }
        }
    }
}
