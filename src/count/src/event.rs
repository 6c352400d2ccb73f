//! A counted event.

use rperf_wire::Attr;

use crate::{CountingMode, Role};

/// Properties of an event for rows and metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedEvent {
    /// Its name.
    pub name: String,
    /// The unit of its counts; may be empty.
    pub unit: String,
    /// Factor to convert counts to that unit.
    pub scale: f64,
    /// Its role in metrics.
    pub role: Role,
    /// What it excludes, such as privilege levels, and its PMU on hybrid machines.
    pub mode: CountingMode,
    /// Path of the cgroup whose tasks are counted; `None` for all tasks.
    pub cgroup: Option<String>,
    /// Whether the kernel and the machine support it.
    pub supported: bool,
    /// Index of the earlier event to which its counts are added, for example the same event of another uncore PMU; `None` if it
    /// has its own rows.
    pub merged_into: Option<usize>,
    /// Whether the counts of a core's CPUs are summed up when other events have a row for each CPU (`-A`).
    pub per_core: bool,
}

impl CountedEvent {
    /// Creates an event from its name and attr. Clocks count nanoseconds and are shown in milliseconds.
    #[must_use]
    pub fn new(name: impl Into<String>, attr: &Attr) -> Self {
        let role = Role::of(attr);
        let (unit, scale) = match role {
            Role::Clock => ("msec", 1e-6),
            _ => ("", 1.0),
        };
        Self {
            name: name.into(),
            unit: unit.to_owned(),
            scale,
            role,
            mode: CountingMode::of(attr),
            cgroup: None,
            supported: true,
            merged_into: None,
            per_core: false,
        }
    }
}
