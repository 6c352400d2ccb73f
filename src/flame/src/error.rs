//! Errors in input.

/// Why folded text is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line does not end with a non-negative number, its weight (`count` in the message).
    #[error(
        "line {line}: folded stacks are 'frame;frame;frame count', this line has no count: '{text}'"
    )]
    NoCount {
        /// Line number, from 1.
        line: usize,
        /// The first characters of the line.
        text: String,
    },
    /// There are no stacks.
    #[error("no stacks in the input")]
    Empty,
}
