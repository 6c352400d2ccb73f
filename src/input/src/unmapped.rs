//! A list of the object files that could not be mapped for lack of memory.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Object files that could not be mapped for lack of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmappedObjects {
    /// The message about the object that failed first: its path and the system's error.
    pub first: String,
    /// The paths of all objects.
    pub paths: BTreeSet<PathBuf>,
}

/// The objects that this process could not map.
static UNMAPPED: Mutex<Option<UnmappedObjects>> = Mutex::new(None);

impl UnmappedObjects {
    /// Records an object, to be reported at the end of the run.
    pub(crate) fn note(path: &Path, error: &io::Error) {
        let mut unmapped = UNMAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        let unmapped = unmapped.get_or_insert_with(|| Self {
            first: format!("{}: {error}", path.display()),
            paths: BTreeSet::new(),
        });
        unmapped.paths.insert(path.to_owned());
    }

    /// The objects that this process could not map so far; `None` if there are none.
    #[must_use]
    pub fn found() -> Option<Self> {
        UNMAPPED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
