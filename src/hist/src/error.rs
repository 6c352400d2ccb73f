//! Errors in the fields of a report.

/// Why a report can't be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that is neither that of a number, such as `overhead` or `period`, nor a sort key.
    #[error("unknown number or sort key `{0}'")]
    UnknownField(String),
}
