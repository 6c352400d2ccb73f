//! Recordings to read: the project's own, and those of other projects if present.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files below tests/fixtures and ../shared/corpus (seen from the root of the project) whose size is at most
/// `max_bytes`, sorted; not all of them are recordings.
pub fn recording_candidates(max_bytes: u64) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("tests/fixtures"), root.join("../shared/corpus")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_small = entry.metadata().is_ok_and(|file| file.len() <= max_bytes);
            if path.is_dir() {
                folders.push(path);
            } else if is_small {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
