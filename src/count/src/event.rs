//! An event that is counted.

use rperf_wire::Attr;

use crate::{Role, Side};

/// An event as rows show it and metrics use it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// The unit of its counts, often none.
    pub unit: String,
    /// What a count is multiplied by to be in that unit.
    pub scale: f64,
    /// What metrics know it as.
    pub role: Role,
    /// Where it is counted.
    pub side: Side,
    /// The cgroup whose tasks alone it sees.
    pub cgroup: Option<String>,
    /// Whether the kernel can count it here.
    pub supported: bool,
    /// The earlier event, by index, in whose row its counts are: several PMUs of one kind count one thing together.
    pub merged_into: Option<usize>,
    /// Whether the CPUs of a core are in one row where otherwise each has its own.
    pub per_core: bool,
}

impl Event {
    /// An event by its name and attr. Clocks are shown in milliseconds.
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
            side: Side::of(attr),
            cgroup: None,
            supported: true,
            merged_into: None,
            per_core: false,
        }
    }
}
