//! BPF programs without a compiler: an instruction builder with labels and maps, and types that build programs with it, load and
//! run them. In the kernel, these programs sum up system calls, waits for locks, waits for CPUs, off-CPU time and counts of
//! events; copy the memory of system call arguments; record owners and names of locks, and each long off-CPU wait; or filter
//! samples.
//!
//! The kernel frees maps and programs with their file descriptors, so nothing stays loaded after the process ends,
//! however it ends.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod buckets;
mod builder;
mod bytes;
mod capture;
mod contention;
mod counters;
mod error;
mod instruction;
#[cfg(test)]
mod interpreter;
mod loaded;
mod off_cpu;
mod registers;
mod run_queue;
mod sample_filter;
mod stacks;
mod summary;
mod tasks;
#[cfg(test)]
mod testing;

pub use builder::{BuildError, Label, MapId, ProgramBuilder};
pub use capture::{ArgumentCapture, CaptureOptions};
pub use contention::{
    ContentionKey, ContentionLosses, ContentionOptions, ContentionSummary, FOREIGN_OWNER, FUTEX,
    FUTEX_PI, FutexCaptureOptions, LockCaptureOptions, LockFilter, LockLayout, LockName,
    NamespaceLayout, NamespacedThread, OwnerLayout, PidLayout, SHARED_OWNER, SlabLayout,
    UNKNOWN_OWNER, WaitCapture, WaitKey, WaitSummary,
};
pub use counters::{
    CgroupPlace, CountSum, CountedScope, CpuCounter, KernelCounters, MAX_COUNTED_EVENTS,
};
pub use error::Error;
pub use instruction::{Condition, Helper, Instruction, Operand, Operation, Register, Width};
pub use off_cpu::{OffCpuLosses, OffCpuOptions, OffCpuPrograms, OffCpuWait, WaitPlace};
pub use run_queue::{
    RunQueueLosses, RunQueueOptions, RunQueueSummary, TaskKey, TaskOffsets, TaskWaits,
};
pub use sample_filter::{SampleFilterCounts, SampleFilterProgram, SampleTest};
pub use summary::{
    CallKey, CallSummary, SUMMARY_BUCKETS, SummaryLosses, SummaryOptions, SyscallSummary,
    bucket_start,
};
pub use tasks::TaskSet;
