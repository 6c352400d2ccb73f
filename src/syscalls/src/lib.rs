//! System calls by number: names, arguments, and their text as `perf trace` prints it.
//!
//! ```text
//! calls.txt --> SyscallTable --> Syscall --+
//! arguments, results, captured memory -----+--> write_arguments, write_result --> text
//! TaskNames: paths of fds, names of tasks -+
//! ```
//!
//! Nothing here opens a file or reads another process. Callers implement [`TaskNames`] to resolve ids and descriptors,
//! [`ProcessMemory`] to read memory, and [`StructureTexts`] to format the kernel's structures. They pass the content of
//! captured memory as [`CapturedBytes`].

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod arguments;
mod capture;
mod captured;
pub mod captured_record;
mod constants;
mod errno;
mod exceptions;
mod ioctl;
mod kernel_structures;
mod kind;
mod late_memory;
mod messages;
mod mode;
mod result;
mod structures;
mod table;
#[cfg(test)]
mod tests;

pub use arguments::{
    ArgumentOptions, ArgumentText, CallArguments, TaskNames, argument_texts, write_arguments,
};
pub use capture::{
    Capture, CaptureLength, CaptureLimit, CapturePlan, CaptureSource, MAX_CAPTURES, SizedMemory,
};
pub use captured::{CapturedBytes, write_buffer, write_name, write_quoted};
pub use captured_record::CapturedRecord;
pub use errno::{error_name, error_text};
pub use kernel_structures::StructureTexts;
pub use kind::ArgumentKind;
pub use late_memory::{LateMemory, ProcessMemory};
pub use result::{error_number, write_result};
pub use table::{Abi, Argument, Syscall, SyscallTable, group_members};
