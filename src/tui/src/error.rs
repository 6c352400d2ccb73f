//! Errors of this crate.

use std::io;

/// The reason why the browser cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A terminal operation failed.
    #[error("failed to {operation} the terminal")]
    Terminal {
        /// The operation: `read`, `write to` or `set up`.
        operation: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// Returns a closure for `map_err` that adds the attempted operation.
    pub(crate) fn terminal(operation: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Terminal { operation, source }
    }
}
