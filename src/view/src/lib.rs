//! Output: reports, scripts, counts, annotations and dumps, as text (in perf's layout if perf has that output) and as JSON.

pub mod annotate;
pub mod diff;
mod digits;
pub mod dump;
pub mod evlist;
mod groups;
pub mod header;
pub mod histogram;
pub mod kmem;
pub mod kwork;
pub mod list;
pub mod lock;
pub mod padding;
mod percent;
pub mod report;
pub mod sched;
pub mod script;
pub mod stat;
pub mod table;
pub mod terminal;
#[cfg(test)]
mod test_recordings;
pub mod top;
pub mod trace;
pub mod trace_scripts;

pub use groups::{EventGroup, EventGroups};
