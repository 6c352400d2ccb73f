//! BPF programs without a compiler: an instruction builder with labels and maps, programs as Rust functions that return
//! instructions, and summaries of system calls and of waits for locks that are kept in the kernel.
//!
//! Everything in the kernel depends on file descriptors, so nothing stays loaded when the process ends, however it ends.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod builder;
mod capture;
mod contention;
mod error;
mod instruction;
mod loaded;
mod registers;
mod summary;
mod tasks;

pub use builder::{BuildError, Label, MapId, ProgramBuilder};
pub use capture::{ArgumentCapture, CaptureOptions};
pub use contention::{
    ContentionKey, ContentionLosses, ContentionOptions, ContentionSummary, OwnerLayout,
    UNKNOWN_OWNER, WaitKey, WaitSummary,
};
pub use error::Error;
pub use instruction::{Condition, Helper, Instruction, Operand, Operation, Register, Width};
pub use summary::{
    CallKey, CallSummary, SUMMARY_BUCKETS, SummaryLosses, SummaryOptions, SyscallSummary,
    bucket_start,
};
pub use tasks::TaskSet;
