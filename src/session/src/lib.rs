//! Recording: events are opened for the target, rings drained into a perf.data file, and records
//! synthesized for the initial state.
//!
//! One call, [`record`], makes a recording. It prints nothing: notices are passed to a [`SessionObserver`], statistics at the
//! end are in a [`Summary`].
//!
//! An [`Observation`] is the same without a file: records are passed to the caller. [`count`] reads counters instead of
//! sampling, and [`observe_schedstat`] reads `/proc/schedstat`.
//!
//! **Invariants.** Ring data are written directly from the rings, with one write per run of complete records. The exceptions are
//! overwrite rings, records that are rewritten, compressed or corrected (`build_id_mappings`), and a record that wraps around the
//! end of the ring: it is copied. An existing output file is not touched before all events are open and the workload runs.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod aux;
mod bpf_programs;
mod build_id_mappings;
mod build_ids;
mod checkpoint;
mod code_pages;
mod completion;
mod compressor;
mod control;
mod counted_output;
mod counting;
mod deleted_files;
mod drain;
mod error;
mod growth_warning;
mod header;
mod initial_records;
mod kernel;
mod lanes;
mod losses;
mod observation;
mod open;
mod opened;
mod output;
mod output_rotation;
mod output_stream;
mod poll_set;
mod record_stats;
mod recording;
mod recording_folder;
mod refused_part;
mod request;
mod rewriting;
mod rings;
mod schedstat;
mod schedule;
mod summary;
mod synthesize;
mod task_synthesis;
mod tasks;
mod thread_layout;
mod tracing_data;
mod triggers;
mod unlinked;

pub use control::{Control, ListedDetail};
pub use counting::{
    BpfCounting, CountEvent, CountObserver, CountOutput, CountRequest, CountStart, CountSummary,
    EventReadings, IntervalOptions, count,
};
pub use error::{Error, NotOpened};
pub use losses::{EventLosses, SampledRate};
pub use observation::{Observation, WakeReason};
pub use open::may_profile_kernel;
pub use recording::record;
pub use request::{
    BuildIds, DrainAffinity, DrainThreads, KernelCodeReader, KernelRoots, ObserveOptions,
    OutputOptions, OutputPrograms, RecordRequest, RingOptions, RotationOptions, RotationTrigger,
    SessionNotice, SessionObserver, SnapshotOptions, SynthesisOptions, SynthesizedRecords, Target,
    TimedSwitch, TraceOptions,
};
pub use schedstat::{
    CpuReading, DomainReading, SchedstatError, SchedstatOutput, SchedstatReading, SchedstatRequest,
    SchedstatSummary, observe_schedstat,
};
pub use summary::{Summary, TraceStats};
pub use task_synthesis::TaskSynthesis;
