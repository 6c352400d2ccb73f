//! What can go wrong with a terminal.

use std::io;

/// An error of the browser.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The terminal does not do as it is told.
    #[error("failed to {what} the terminal")]
    Terminal {
        /// `read`, `write to`, …
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: what was tried.
    pub(crate) fn terminal(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Terminal { what, source }
    }
}
