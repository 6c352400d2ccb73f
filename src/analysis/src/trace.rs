//! System calls by thread: entries and returns joined, printed in order of time, and summed up.
//!
//! ```text
//! raw_syscalls:sys_enter, sys_exit, other events --> TraceSamples --> TraceObserver --> TraceSink (lines)
//!                                                                         +-----------> CallSummary
//! ```

mod addresses;
mod fds;
mod line;
mod names;
mod observer;
mod samples;
mod summary;

pub use addresses::{AddressNames, AddressOptions, EnumerationNames};
pub use fds::{FILE_CALLS, OpenFile, ProcessFiles};
pub use line::{
    CallText, LineDetails, NamedText, RUN_TIME_EVENT, TraceLine, TraceOptions, TraceSink,
    TraceSwitch,
};
pub use observer::TraceObserver;
pub use samples::{CapturedArgument, TraceRecord, TraceSamples, TracedSample, is_page_fault};
pub use summary::{CallStatistics, CallSummary, ThreadCalls};
