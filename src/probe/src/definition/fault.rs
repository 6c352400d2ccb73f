//! What is wrong with a definition.

use thiserror::Error;

/// A mistake at one place of a definition.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Fault {
    /// Bytes of the definition before the mistake.
    pub position: usize,
    /// What is wrong.
    pub message: String,
}

impl Fault {
    pub(crate) fn new(position: usize, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { position, message }
    }

    /// Two lines: the definition, and a mark below the mistake.
    #[must_use]
    pub fn pointed(&self, definition: &str) -> [String; 2] {
        let before = definition.get(..self.position).unwrap_or(definition);
        let blanks = " ".repeat(before.chars().count());
        [format!("  {definition}"), format!("  {blanks}^")]
    }
}
