//! Copies of a kernel's memory in the cache.
//!
//! ```text
//! DIR/[kernel.kcore]/ID/TIME/     a copy; `kernel_copy` describes its contents
//! ```

use std::io;
use std::path::{Path, PathBuf};

use rperf_safefs::Folder;
use rperf_sys::unused_path;

use crate::cli::kernel_copy::KernelCopy;
use crate::cli::live::explain::reason;

const FOLDER: &str = "[kernel.kcore]";

/// The result of copying.
pub(super) enum KcoreCopy {
    /// A new copy in this directory.
    New(PathBuf),
    /// An existing copy.
    Existing(PathBuf),
}

/// Copies `memory` (`/proc/kcore`, or a file of that name in another directory) into the cache at `root`. If the cache has a copy
/// already, returns that copy unless `again` is set.
///
/// # Errors
///
/// The reason, as text.
pub(super) fn copy_kcore(root: &Path, memory: &Path, again: bool) -> Result<KcoreCopy, String> {
    let kernel = KernelCopy::read(memory)?;
    let copies = Path::new(FOLDER).join(&kernel.id);
    let to_reason = |error: io::Error| reason(&error);
    let root = Folder::open_own_or_create(root, 0o777).map_err(to_reason)?;
    let copies = root.create_below(&copies, 0o777).map_err(to_reason)?;
    if !again && let Some(known) = kernel.existing_copy(&copies) {
        return Ok(KcoreCopy::Existing(known));
    }
    let folder = unused_path(|time| copies.path().join(time));
    let name = folder.file_name().unwrap_or_default();
    let ranges = kernel.ranges()?;
    let copied = copies.replace_folder(name, 0o700, |folder| kernel.copy(&ranges, folder));
    copied.map_err(to_reason)?;
    Ok(KcoreCopy::New(folder))
}
