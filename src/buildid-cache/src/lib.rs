//! The build-id cache (`~/.debug`), shared with Linux perf: copies of recorded programs, of
//! kallsyms and of the vdso. Without a copy, the symbols of a kernel are lost after the next boot.
//!
//! ```text
//! DIR/[kernel.kallsyms]/ID/kallsyms      copy of /proc/kallsyms
//! DIR/[vdso]/ID/vdso                     copy of the vdso's pages
//! DIR/usr/bin/ls/ID/elf                  the file
//!                  /debug                its debug file, if separate
//!                  /probes               its USDT probes
//! DIR/.build-id/xx/yyyy…                 link to ../../[kernel.kallsyms]/ID
//! ```

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod objects;
mod special;

pub use self::objects::{Cache, Cached, DEBUG_FILES, NewObject, debug_file};
pub use self::special::{KERNEL_OBJECT, SpecialObject};

/// Permissions of new folders, further restricted by the umask.
const FOLDERS: u32 = 0o777;
/// Permissions of new files, further restricted by the umask; copies of programs keep the original's.
const FILES: u32 = 0o666;

/// A build-id in hexadecimal, as in file names.
#[must_use]
pub fn hexadecimal(build_id: &[u8]) -> String {
    build_id.iter().map(|byte| format!("{byte:02x}")).collect()
}
