//! Syntax errors in a definition.

use thiserror::Error;

/// A syntax error with its position.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// Offset in the definition in bytes.
    pub position: usize,
    /// The message.
    pub message: String,
}

impl SyntaxError {
    pub(crate) fn new(position: usize, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { position, message }
    }

    /// Returns two lines: the definition, and a marker below the error.
    #[must_use]
    pub fn with_marker(&self, definition: &str) -> [String; 2] {
        let before = definition.get(..self.position).unwrap_or(definition);
        let blanks = " ".repeat(before.chars().count());
        [format!("  {definition}"), format!("  {blanks}^")]
    }
}
