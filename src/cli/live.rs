//! Shared code of the commands that observe the live system, such as targets, events, and explanations of failures.

pub(crate) mod cgroups;
pub(crate) mod control;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod kernel_offsets;
pub(crate) mod kernel_sums;
pub(crate) mod limits;
pub(crate) mod lower_rate;
mod pid_namespace;
pub(crate) mod probes;
pub(crate) mod record_reporter;
mod refusal;
pub(crate) mod target;
pub(crate) mod user;
pub(crate) mod workload;

/// The mount point of procfs.
pub(crate) const PROC: &str = "/proc";
