//! The build-id cache (`~/.debug`), shared with Linux perf: programs as they were when they were recorded, and what exists
//! nowhere on disk, kallsyms and the vdso. Without a copy the names of kernel samples are lost with the next boot.
//!
//! ```text
//! DIR/[kernel.kallsyms]/ID/kallsyms      copy of /proc/kallsyms
//! DIR/[vdso]/ID/vdso                     copy of the vdso's pages
//! DIR/usr/bin/ls/ID/elf                  the file itself
//!                  /debug                its debugging information, if that is a file of its own
//!                  /probes               its USDT probes
//! DIR/.build-id/xx/yyyy…                 link to ../../[kernel.kallsyms]/ID
//! ```

mod objects;
mod special;

pub use self::objects::{Cache, Cached, DEBUG_FILES, NewObject, debug_file};
pub use self::special::{KERNEL_OBJECT, SpecialObject};

/// What new folders and files may be used for by others, as far as the umask allows.
const FOLDERS: u32 = 0o777;
const FILES: u32 = 0o666;

/// A build-id as names of files have it.
#[must_use]
pub fn hexadecimal(build_id: &[u8]) -> String {
    build_id.iter().map(|byte| format!("{byte:02x}")).collect()
}
