//! System calls by thread: entries and returns joined, printed in order of time, and summed up.
//!
//! ```text
//! raw_syscalls:sys_enter, sys_exit, other events --> TraceSamples --> TraceObserver --> TraceSink (lines)
//!                                                                         +-----------> CallSummary
//! ```

mod observer;
mod samples;
mod summary;

pub use observer::{CallText, TraceLine, TraceObserver, TraceOptions, TraceSink};
pub use samples::{CapturedArgument, TraceRecord, TraceSamples};
pub use summary::{CallStatistics, CallSummary, ThreadCalls};
