//! Unusable parts of an event table.

use std::fmt;

/// A part of an event table that was ignored, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFinding {
    /// The path of the file in its [`super::TableFolder`].
    pub file: String,
    /// The line of a mapfile (`line 3`) or the name of an event; `None` for the whole file.
    pub place: Option<String>,
    /// Description in one line.
    pub reason: String,
}

impl TableFinding {
    pub(super) fn new(file: &str, place: Option<String>, reason: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            place,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for TableFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.reason)
    }
}
