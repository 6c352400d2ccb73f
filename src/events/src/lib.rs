//! Event selectors: what `-e` says, and the attrs that a recording opens for it.
//!
//! A pure parser. What depends on the machine (PMUs, tracepoints) comes in as a [`Catalogue`]; what
//! depends on the command comes in as [`RecordOptions`]. No file is opened and no environment read.

mod branch_filter;
mod breakpoint;
mod cache_event;
mod catalogue;
mod count_attr;
mod details;
mod error;
mod filter;
mod glob;
mod group;
mod hybrid;
pub mod list;
pub mod metric;
mod modifier;
mod names;
mod nearest;
mod number;
mod off_cpu;
mod own;
mod parse;
mod pmu_event;
mod pmu_format;
mod record_attr;
mod sample_filter;
mod select;
mod spec;
mod terms;
mod tool;
mod uprobe;
pub mod vendor;

pub use branch_filter::{UnknownBranches, branch_filter, branch_names};
pub use catalogue::{Catalogue, Machine, Tracepoints};
pub use count_attr::{CountOptions, count_attr};
pub use details::{CallGraph, Details, Side, StackSize, USER_REGISTERS};
pub use error::{Fault, ParseError};
pub use filter::{Filter, FilterError};
pub use glob::{is_pattern, matches as matches_pattern};
pub use group::Group;
pub use hybrid::on_all_cores;
pub use nearest::{by_distance, nearest};
pub use off_cpu::{OFF_CPU, describe_off_cpu, off_cpu_event};
pub use own::{Own, Rate};
pub use parse::parse;
pub use record_attr::{
    DEFAULT_FREQUENCY, RecordEvent, RecordOptions, Sampling, Target, record_events, trigger_events,
};
pub use sample_filter::{SampleFilter, SampleFilterError};
pub use spec::{
    EventSpec, TracepointName, Tracer, default_event, fallback_to_cpu_clock, user_only,
};
pub use tool::Tool;
pub use uprobe::Uprobe;
