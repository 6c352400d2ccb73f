//! The build-id cache (`~/.debug`), shared with Linux perf: hard links to object files or copies of them, and copies of
//! kallsyms and of the vdso.
//!
//! ```text
//! DIR/[kernel.kallsyms]/ID/kallsyms      copy of /proc/kallsyms
//! DIR/[vdso]/ID/vdso                     copy of the vdso's pages
//! DIR/usr/bin/ls/ID/elf                  hard link to the file, or copy
//!                  /debug                its debug file, if separate
//!                  /probes               its probe events
//! DIR/.build-id/xx/yyyy…                 symbolic link to the folder of an object: ../../usr/bin/ls/ID
//! ```

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod objects;
mod special;

pub use self::objects::{Cache, Cached, DEBUG_FILES, NewObject, debug_file};
pub use self::special::{KERNEL_OBJECT, SpecialObject};

/// Permissions of new folders before the umask.
const FOLDER_MODE: u32 = 0o777;
/// Permissions of new files before the umask, except those of copied object files, which keep theirs.
const FILE_MODE: u32 = 0o666;

/// A build-id in hexadecimal, as in file names.
#[must_use]
pub fn hexadecimal(build_id: &[u8]) -> String {
    build_id.iter().map(|byte| format!("{byte:02x}")).collect()
}
