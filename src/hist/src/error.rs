//! What can be wrong with a request for a report.

/// Why no report was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A word that names neither a number nor a sort key.
    #[error("no number or sort key is called `{0}'")]
    UnknownField(String),
}
