//! Copies of a kernel's code (kcore) in the cache.
//!
//! ```text
//! DIR/[kernel.kcore]/ID/TIME/     a copy, whose files `kernel_copy` describes; DIR is the cache, ID the kernel's build-id,
//!                                 TIME the time of copying
//! ```

use std::io;
use std::path::{Path, PathBuf};

use rperf_safefs::Folder;
use rperf_sys::unused_path_with_time;

use crate::cli::kernel_copy::KernelFiles;
use crate::cli::live::explain::reason;

/// The directory of the copies in the cache.
const FOLDER: &str = "[kernel.kcore]";

/// The result of copying.
pub(super) enum KcoreCopy {
    /// A new copy in this directory.
    New(PathBuf),
    /// The directory of an existing copy of the same kernel.
    Existing(PathBuf),
}

/// Copies `kcore` (`/proc/kcore`, or a file of that name in another directory) into the cache at `root`. If the cache already
/// has a copy with the same build-id and the same addresses of kernel and modules, returns that one instead, unless
/// `even_if_cached` is set.
///
/// # Errors
///
/// The reason, as text.
pub(super) fn copy_kcore(
    root: &Path,
    kcore: &Path,
    even_if_cached: bool,
) -> Result<KcoreCopy, String> {
    let kernel = KernelFiles::read(kcore)?;
    let copies = Path::new(FOLDER).join(&kernel.build_id);
    let to_reason = |error: io::Error| reason(&error);
    let root = Folder::open_own_or_create(root, 0o777).map_err(to_reason)?;
    let copies = root.create_below(&copies, 0o777).map_err(to_reason)?;
    if !even_if_cached && let Some(existing) = kernel.existing_copy(&copies) {
        return Ok(KcoreCopy::Existing(existing));
    }
    let folder = unused_path_with_time(|time| copies.path().join(time));
    let name = folder.file_name().unwrap_or_default();
    let ranges = kernel.code_ranges()?;
    // The path is unused: nothing is replaced. In the closure, `folder` is the new directory while it is filled. Its mode differs
    // from that of the directories above: a copy has the code and addresses of the kernel, which are not for other users.
    let copied = copies.replace_folder(name, 0o700, |folder| kernel.copy(&ranges, folder));
    copied.map_err(to_reason)?;
    Ok(KcoreCopy::New(folder))
}
