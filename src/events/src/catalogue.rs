//! What the machine at hand offers beside the events that every kernel knows.

use std::fmt::Debug;
use std::io;
use std::path::Path;

/// What was found on the machine; nothing where nothing could be read.
#[derive(Debug, Clone)]
pub struct Catalogue<'a> {
    /// PMUs by name and `perf_event_attr::type`, from `/sys/bus/event_source/devices`.
    pub pmus: Vec<(String, u32)>,
    /// The tracepoints, asked only when one is named.
    pub tracepoints: &'a dyn Tracepoints,
}

/// The `events` folder of tracefs: systems, and in each of them events. Lists are in the folder's own
/// order, which is the order in which perf opens what a glob matches.
///
/// Every call gives `NotFound` where tracefs is not mounted and `PermissionDenied` to users who may
/// not read it.
pub trait Tracepoints: Debug {
    /// The folder, for messages.
    fn folder(&self) -> &Path;

    /// The names of all systems.
    ///
    /// # Errors
    /// What reading the folder reports.
    fn systems(&self) -> io::Result<Vec<String>>;

    /// The names of the events of a system.
    ///
    /// # Errors
    /// What reading the system's folder reports.
    fn names(&self, system: &str) -> io::Result<Vec<String>>;

    /// The number of an event, `attr.config`.
    ///
    /// # Errors
    /// What reading its `id` file reports; events that only ftrace itself uses have none.
    fn id(&self, system: &str, name: &str) -> io::Result<u64>;
}

/// A machine without tracefs.
#[derive(Debug)]
struct NoTracepoints;

impl Tracepoints for NoTracepoints {
    fn folder(&self) -> &Path {
        Path::new("/sys/kernel/tracing/events")
    }

    fn systems(&self) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn names(&self, _system: &str) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn id(&self, _system: &str, _name: &str) -> io::Result<u64> {
        Err(io::ErrorKind::NotFound.into())
    }
}

impl Default for Catalogue<'_> {
    fn default() -> Self {
        Self {
            pmus: Vec::new(),
            tracepoints: &NoTracepoints,
        }
    }
}

impl Catalogue<'_> {
    /// Whether there is a PMU of this name.
    #[must_use]
    pub fn has_pmu(&self, name: &str) -> bool {
        self.pmus.iter().any(|(pmu, _)| pmu == name)
    }

    /// All tracepoints as `system:name`; none where they can't be read.
    pub(crate) fn all_tracepoints(&self) -> Vec<String> {
        let mut all = Vec::new();
        for system in self.tracepoints.systems().unwrap_or_default() {
            let names = self.tracepoints.names(&system).unwrap_or_default();
            all.extend(names.into_iter().map(|name| format!("{system}:{name}")));
        }
        all
    }
}
