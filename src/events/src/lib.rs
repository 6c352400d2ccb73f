//! Event selectors: the grammar of `-e`, and the attrs opened for them; also filters, metrics, vendor tables, and the rows of
//! `list`.
//!
//! The crate reads no files and no environment variables. Properties of the machine (PMUs, tracepoints) are passed
//! as a [`Catalogue`], options of the command as [`RecordOptions`] or [`CountOptions`].

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod branch_filter;
mod breakpoint;
mod cache_event;
mod catalogue;
mod count_attr;
mod details;
mod error;
mod filter;
mod group;
mod hybrid;
pub mod list;
pub mod metric;
mod modifier;
mod names;
mod number;
mod off_cpu;
mod parse;
mod pmu_event;
mod pmu_format;
mod record_attr;
mod sample_filter;
mod select;
mod settings;
mod spec;
mod terms;
mod tool;
mod uprobe;
pub mod vendor;

pub use branch_filter::{UnknownBranchFilter, branch_filter, branch_names};
pub use catalogue::{Catalogue, EventSources, Tracepoints};
pub use count_attr::{CountOptions, count_attr};
pub use details::{
    CallGraph, CounterReads, PrivilegeLevel, RecordDetails, SampleFields, SideBand, StackSize,
    TaskScope, USER_REGISTERS,
};
pub use error::{ParseError, SelectorFault};
pub use filter::{EventFilter, FilterError};
pub use group::GroupPosition;
pub use hybrid::on_each_core_pmu;
pub use modifier::split_modifiers;
pub use off_cpu::{OFF_CPU, describe_off_cpu, off_cpu_bpf_output, off_cpu_event};
pub use parse::parse;
pub use record_attr::{
    DEFAULT_FREQUENCY, RecordEvent, RecordOptions, Sampling, SamplingTarget, record_events,
    trigger_events,
};
pub use sample_filter::{BpfComparison, Operator, SampleFilter, SampleFilterError};
pub use settings::{EventSettings, SamplingRate};
pub use spec::{
    EventSpec, TracePmu, TracepointName, default_event, fallback_to_cpu_clock,
    fires_only_in_kernel, user_only,
};
pub use tool::Tool;
pub use uprobe::Uprobe;
