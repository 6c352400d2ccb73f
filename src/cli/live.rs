//! What commands that watch the live system share: whom they watch, which events, and why the kernel refused.

pub(crate) mod cgroups;
pub(crate) mod control;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod probes;
mod refusal;
pub(crate) mod said;
pub(crate) mod target;
mod user;
pub(crate) mod workload;

/// Where the kernel's file systems are mounted.
pub(crate) const PROC: &str = "/proc";
