//! Records of a recording, transformed before they are written.
//!
//! While recording, a [`rperf_perfdata::Rewriter`] receives complete records and appends their replacement to a buffer.
//! `record` runs it on a separate thread. [`chain()`] combines several rewriters into one.
//!
//! When a recording is copied (`inject`), its records pass through the transforms of a [`Pipeline`].

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod addresses;
mod build_ids;
mod chain;
mod context_mode;
mod copying;
mod fields;
mod filter;
mod jit;
mod off_cpu;
mod off_cpu_sums;
mod pipeline;
mod redact;
mod sched_stat;
mod strip;
mod unwind;

pub use addresses::AddressShifter;
pub use build_ids::{
    BuildIdInjector, BuildIdSource, InjectedObjects, MappedBuildIds, ObjectName, used_objects,
};
pub use chain::chain;
pub use copying::{CopyError, CopySummary, StreamCopy, copy_to_file, copy_to_stream};
pub use fields::FieldDropper;
pub use filter::FilterRewriter;
pub use jit::{DumpConverter, DumpedCode, DumpedObject, JitInjector, has_record_times};
pub use off_cpu::OffCpu;
pub use off_cpu_sums::{KernelWait, OffCpuSums, WaitSource, describe_waits};
pub use pipeline::{Piece, PieceOutput, Pipeline, Transform};
pub use redact::Redactor;
pub use sched_stat::SchedStatMerger;
pub use strip::StripSamples;
pub use unwind::{LiveUnwinder, UnwindOptions};
