//! What is wrong with a metric.

use std::fmt;
use std::ops::Range;

use crate::error::write_block;

/// A metric that cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// A formula that is none: an arrow points at the place.
    Syntax {
        /// The metric, or nothing for a formula that stands alone.
        metric: String,
        /// The formula.
        formula: String,
        /// Its bytes that are wrong; empty at the end.
        position: Range<usize>,
        /// What is wrong, in one line.
        reason: String,
    },
    /// Metrics that are computed from each other.
    Circular {
        /// Their names, the first one again at the end.
        chain: Vec<String>,
    },
    /// Neither a metric nor a group has this name.
    Unknown {
        /// The word.
        word: String,
        /// The name that was probably meant.
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
