//! A kernel's memory in the cache.
//!
//! ```text
//! DIR/[kernel.kcore]/ID/TIME/     a copy: `kernel_copy` says what is in it
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use rperf_sys::{make_whole, unused_name};

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
    let copies = root.join(FOLDER).join(&kernel.id);
    if !again && let Some(known) = kernel.known(&copies) {
        return Ok(Kept::Before(known));
    }
    let folder = unused_name(|time| copies.join(time));
    fs::create_dir_all(&copies).map_err(|error| reason(&error))?;
    let ranges = kernel.ranges()?;
    let made = make_whole(&folder, |temporary| kernel.copy(&ranges, temporary));
    made.map_err(|error| reason(&error))?;
    Ok(Kept::New(folder))
}
