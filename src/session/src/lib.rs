//! The live side of a recording: whom to observe, events opened everywhere, rings drained into a
//! perf.data file, and records for what ran before.
//!
//! One call, [`record`], goes from the first system call to the closed file. It prints nothing: what is
//! worth a line while it runs goes to a [`Watch`], what is known at the end into a [`Summary`].
//!
//! An [`Observation`] is the same without a file: whoever looks at records at once gets them out of the rings.
//! [`count`] does the same for counters that are only read.
//!
//! **Invariants.** Ring chunks go to the file as they are, with one write per run of whole records;
//! only headers are walked on the way. The old output is not touched before everything that can fail
//! has been tried.

mod aux;
mod blame;
mod build_ids;
mod checkpoint;
mod control;
mod counting;
mod drain;
mod error;
mod finish;
mod header;
mod hits;
mod kernel;
mod lanes;
mod layout;
mod losses;
mod medium;
mod mismarked;
mod observing;
mod open;
mod opened;
mod output;
mod pace;
mod recording;
mod recording_folder;
mod request;
mod rewriting;
mod rings;
mod rotate;
mod schedule;
mod sink;
mod squeeze;
mod start;
mod summary;
mod synthesize;
mod tally;
mod tasks;
mod tracing_data;
mod triggers;
mod unlinked;
mod waiting;

pub use control::{Control, Listing};
pub use counting::{
    CountEvent, CountRequest, CountWatch, Counted, Interval, Keep, Readings, Start, count,
};
pub use error::{Error, NotOpened};
pub use losses::{Missed, Sampled};
pub use observing::{Observation, Woken};
pub use open::may_profile_kernel;
pub use recording::record;
pub use request::{
    Affinity, BuildIds, Happened, KernelCode, Request, Roots, Rotation, Snapshots, Switch,
    Synthesized, Target, Threads, Traces, Turn, Watch,
};
pub use rewriting::{Rewriter, Rewriting};
pub use summary::{CutTraces, Summary};
