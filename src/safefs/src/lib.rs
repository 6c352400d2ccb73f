//! Files under paths, and in folders, that another user may control.
//!
//! A profiler often runs as root in folders that others may write, and opens files named in
//! recordings, archives and maps. All such paths go through this crate, which follows these rules:
//!
//! - **Type and owner are known before a file is opened.** [`FoundFile`] holds an `O_PATH`
//!   descriptor (open(2)): a FIFO can't block, a device isn't touched, and the file that was
//!   checked is the file that is read, even if it is renamed meanwhile.
//! - **Replacing, moving and removing don't follow links.** [`Folder`] holds the folder open and
//!   uses `*at` system calls on single names, with `O_NOFOLLOW` and `AT_SYMLINK_NOFOLLOW`.
//! - **Temporary names are random and created with `O_EXCL`**, or the file is unnamed
//!   (`O_TMPFILE`).
//! - **Sizes are bounded**: [`read`] and [`Folder::read`] take a limit.
//! - **FIFOs and devices of other users are written only if the user gave their path or this process has them open.**
//!   [`find_in_place`] has the exact conditions; [`open_output`] follows them, too.
//!
//! The kernel's `fs.protected_*` settings (sysctl) enforce part of this; the rules apply even if
//! all of them are 0.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod atomic;
mod folder;
mod found_file;
mod in_place;
mod refusal;
mod temporary;

#[cfg(test)]
mod tests;

pub use atomic::{replace, write_atomic};
pub use folder::{FileKind, Folder};
pub use found_file::{FoundFile, open_regular, read, read_all};
pub use in_place::{PathOrigin, WriteMode, find_in_place, open_output};
pub use refusal::Refusal;
pub use temporary::{temporary_name, unnamed_file};

/// Whether `owner` is root or the effective user, so that the file is trusted.
#[must_use]
pub fn is_trusted_owner(owner: u32) -> bool {
    owner == 0 || owner == rustix::process::geteuid().as_raw()
}
