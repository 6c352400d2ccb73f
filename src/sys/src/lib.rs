//! What the kernel offers, as safe functions: `perf_event_open(2)`, ring memory, `/proc`, sysfs,
//! sysctls, mapped files. Reads and calls; parsing of formats with a home elsewhere stays there.
#![expect(unsafe_code, reason = "system calls and shared memory; nothing else here is unsafe")]

mod map_file;

pub use map_file::{MappedFile, map, map_file};
