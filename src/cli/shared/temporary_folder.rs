//! A private folder for a recording. Both are deleted when the command that created them ends.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use rperf_safefs::Folder;

use crate::cli::error::CliError;

/// The name of the recording in its folder.
const FILE: &str = "perf.data";
/// The maximum number of names that are tried.
const ATTEMPTS: u32 = 100;

/// A folder in the temporary directory that is removed with its contents when dropped.
pub(crate) struct TemporaryFolder {
    parent: Folder,
    name: OsString,
}

impl TemporaryFolder {
    /// Creates a folder with the command in its name.
    ///
    /// # Errors
    ///
    /// Status 255: the folder cannot be created.
    pub(crate) fn create(command: &str) -> Result<Self, CliError> {
        let path = std::env::temp_dir();
        let failed = |error: &io::Error| {
            let message = format!(
                "{}: cannot create a temporary recording: {error}",
                path.display()
            );
            CliError::message(255, message).hint("set TMPDIR to another directory")
        };
        let parent = Folder::open(&path).map_err(|error| failed(&error))?;
        let process = std::process::id();
        for attempt in 0..ATTEMPTS {
            let name = OsString::from(format!("rperf-{command}-{process}-{attempt}"));
            match parent.create_folder(&name, 0o700) {
                Ok(_) => return Ok(Self { parent, name }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Err(failed(&io::ErrorKind::AlreadyExists.into()))
    }

    /// Returns the path of the recording.
    pub(crate) fn recording(&self) -> PathBuf {
        self.parent.path().join(&self.name).join(FILE)
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A folder that cannot be removed stays in the temporary directory.
        let _ = self.parent.remove_tree(&self.name);
    }
}
