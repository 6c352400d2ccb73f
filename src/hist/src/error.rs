//! Errors in the fields of a report.

/// Why a report can't be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An unknown number or sort key.
    #[error("unknown number or sort key `{0}'")]
    UnknownField(String),
}
