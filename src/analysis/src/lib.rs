//! Analyses over time, in which records in time order drive a state machine, and the parts of such analyses.
//!
//! ```text
//! Replay::ordered --+                     several threads (LiveFeed: one)   one thread, in time order
//!                   +--> ObserverPass --samples--> EventLayouts, PrepareSamples --> Observer --> plain structs
//! rings in rounds --+                --tasks, switches, losses------------------->     |
//!    (LiveFeed)                                                          Spans, TaskStates, LogHistogram
//! ```
//!
//! Such an analysis implements [`Observer`], and keeps its state in parts such as [`Spans`]. [`ObserverPass::run`] feeds it
//! from a recording, [`LiveFeed::deliver`] from live ring buffers; a round is one pass over all of them. Counts that do not
//! depend on the order of samples ([`Completeness`], [`ValueFold`]) are counted by folds over a recording
//! ([`rperf_replay::Fold`]: in parallel, in any order). The results are plain structs: this crate does not print or open files.

mod block;
mod completeness;
mod context;
mod cpu_table;
mod decoder;
mod durations;
mod histogram;
pub mod kmem;
pub mod kwork;
mod layouts;
mod live;
pub mod lock;
mod observer;
mod pass;
mod prepare;
mod running_threads;
mod sample_times;
pub mod sched;
mod spans;
mod task_states;
mod task_tree;
mod thread_counts;
pub mod timechart;
pub mod trace;
pub mod trace_scripts;
mod value_histogram;

pub use completeness::{Completeness, ObjectCounts};
pub use context::{EventContext, TaskId};
pub use durations::{Durations, EventPair, KeyedEvent, TimedSpan};
pub use histogram::{Distribution, HistogramBucket, LogHistogram};
pub use layouts::{EventLayouts, UnreadableTracepoint};
pub use live::LiveFeed;
pub use observer::{ContextSwitch, Loss, Observer, TaskChange};
pub use pass::{DeliveredCounts, ObserverPass};
pub use prepare::{AllSamples, FilteredSamples, PrepareSamples};
pub use running_threads::running_threads;
pub use sample_times::sample_times;
pub use spans::{OpenSpan, RepeatedStart, Span, SpanCounts, Spans};
pub use task_states::{
    CpuSwitch, RunState, Sleep, StateCounts, StateInterval, SwitchedOut, TaskStates, WaitReason,
};
pub use task_tree::{TaskEntry, TaskMapping, task_tree};
pub use thread_counts::{ThreadCount, ThreadCounts};
pub use value_histogram::{
    SampleValue, ValueFold, ValueHistogram, ValueRange, ValueSummary, power_edges,
};
