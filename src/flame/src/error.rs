//! What can be wrong with input.

/// What can be wrong with folded text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line does not end in a number.
    #[error(
        "line {line}: folded stacks are 'frame;frame;frame count', and this ends in no count: '{text}'"
    )]
    NoCount {
        /// Counted from 1.
        line: usize,
        /// Its first characters.
        text: String,
    },
    /// There is no stack at all.
    #[error("there are no stacks")]
    Empty,
}
