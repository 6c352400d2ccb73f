//! Temporary directories for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory for one test, removed when the value is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates a directory below the system's temporary one.
    ///
    /// # Panics
    ///
    /// If it cannot be created.
    #[expect(
        clippy::new_without_default,
        reason = "creates a directory, which a default value should not"
    )]
    #[expect(clippy::panic, reason = "a test needs its directory")]
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rperf-test-{}-{number}", process::id()));
        match fs::create_dir_all(&path) {
            Ok(()) => Self { path },
            Err(error) => panic!("cannot make {}: {error}", path.display()),
        }
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file into it and returns its path.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> std::io::Result<PathBuf> {
        let path = self.path.join(name);
        fs::write(&path, bytes)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Leftovers in the temporary directory are harmless.
        let _ = fs::remove_dir_all(&self.path);
    }
}
