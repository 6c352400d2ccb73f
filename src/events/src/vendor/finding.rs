//! What could not be used of a table.

use std::fmt;

/// Something that was left out: where it stands and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, as [`super::Folder`] knows it.
    pub file: String,
    /// The line of a text or the name of an event; nothing for the whole file.
    pub place: Option<String>,
    /// What is wrong, in one line.
    pub reason: String,
}

impl Finding {
    pub(super) fn new(file: &str, place: Option<String>, reason: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            place,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.reason)
    }
}
