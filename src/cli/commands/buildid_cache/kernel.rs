//! A kernel's memory in the cache.
//!
//! ```text
//! DIR/[kernel.kcore]/ID/TIME/     a copy: `kernel_copy` says what is in it
//! ```

use std::io;
use std::path::{Path, PathBuf};

use rperf_safefs::Folder;
use rperf_sys::unused_name;

use crate::cli::kernel_copy::Kernel;
use crate::cli::live::explain::reason;

const FOLDER: &str = "[kernel.kcore]";

/// What became of a memory that was to be kept.
pub(super) enum Kept {
    /// It is in this folder now.
    New(PathBuf),
    /// It was there before.
    Before(PathBuf),
}

/// Keeps `memory` (`/proc/kcore`, or one in a folder like it) in the cache at `root`: where it isn't there yet, or `again`.
///
/// # Errors
///
/// What is missing, in words.
pub(super) fn keep(root: &Path, memory: &Path, again: bool) -> Result<Kept, String> {
    let kernel = Kernel::read(memory)?;
    let copies = Path::new(FOLDER).join(&kernel.id);
    let place = |error: io::Error| reason(&error);
    let root = Folder::open_own_or_create(root, 0o777).map_err(place)?;
    let copies = root.create_below(&copies, 0o777).map_err(place)?;
    if !again && let Some(known) = kernel.known(&copies) {
        return Ok(Kept::Before(known));
    }
    let folder = unused_name(|time| copies.path().join(time));
    let name = folder.file_name().unwrap_or_default();
    let ranges = kernel.ranges()?;
    let made = copies.replace_folder(name, |folder| kernel.copy(&ranges, folder));
    made.map_err(place)?;
    Ok(Kept::New(folder))
}
