//! What can be wrong with a request for a report.

/// Why no report was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A word of `--sort` that names no key.
    #[error("Unknown --sort key: `{0}'")]
    UnknownKey(String),
}
