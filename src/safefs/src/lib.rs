//! Files under paths, and in folders, that another user may control.
//!
//! A profiler runs as root in folders that others may write, and opens what recordings, archives and maps name. Every such
//! path goes through this crate, which keeps these rules:
//!
//! - **Type and owner are checked before anything is opened.** [`Opened`] holds an `O_PATH` descriptor (open(2)): a FIFO can't
//!   block, a device isn't touched, and what was checked is what is read, whoever renames it meanwhile.
//! - **Nothing follows a link when it replaces, moves or removes.** [`Folder`] holds the folder open and works by the `*at`
//!   system calls on single names, with `O_NOFOLLOW` and `AT_SYMLINK_NOFOLLOW`.
//! - **Temporary names are random and created with `O_EXCL`**, or there is no name at all (`O_TMPFILE`).
//! - **Sizes are bounded**: [`read`] and [`Folder::read`] take a limit.
//! - **FIFOs and devices are written only if they are the user's own**, or named by the user in a folder that others can't
//!   write: [`find_in_place`], [`open_output`].
//!
//! The kernel's `fs.protected_*` settings (sysctl) enforce a part of this; the rules here hold with all of them at 0.

mod folder;
mod in_place;
mod nameless;
mod opened;
mod refusal;
mod whole;

#[cfg(test)]
mod tests;

pub use folder::{Folder, Kind};
pub use in_place::{Naming, Writing, find_in_place, open_output};
pub use nameless::{nameless_file, temporary_name};
pub use opened::{Opened, open_regular, read, read_all};
pub use refusal::Refusal;
pub use whole::{replace, write_whole};

/// Whether files of `owner` may be trusted as the user's own: they belong to root or to the effective user.
#[must_use]
pub fn is_users(owner: u32) -> bool {
    owner == 0 || owner == rustix::process::geteuid().as_raw()
}
