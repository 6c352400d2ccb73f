//! The events of this machine: its PMUs and tracepoints.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rperf_events::{Catalogue, EventSources, Tracepoints};
use rperf_sys::{Proc, Sysfs, Tracefs, kernel_text};
use rperf_tracepoint::{Abi, Tracepoint};

/// Sysfs and tracefs of this machine.
#[derive(Debug)]
pub(crate) struct LocalEvents {
    sysfs: Sysfs,
    tracefs: Tracefs,
}

impl LocalEvents {
    pub(crate) fn find() -> Self {
        let mounts = kernel_text("/proc/self/mounts").unwrap_or_default();
        Self {
            sysfs: Sysfs::new("/sys"),
            tracefs: Tracefs::find(&mounts),
        }
    }

    /// All sources of event names.
    pub(crate) fn catalogue(&self) -> Catalogue<'_> {
        Catalogue {
            // Empty without sysfs.
            pmus: self.sysfs.pmu_types().unwrap_or_default(),
            only: None,
            machine: self,
            tracepoints: self,
        }
    }

    /// The format of a tracepoint.
    pub(crate) fn tracepoint(&self, system: &str, name: &str) -> Option<Arc<Tracepoint>> {
        let text = self.tracefs.format(system, name).ok()?;
        let parsed = Tracepoint::parse(system, &text, Abi::NATIVE).ok()?;
        Some(Arc::new(parsed))
    }

    /// The format of the tracepoint with this id.
    pub(crate) fn tracepoint_of_id(&self, id: u64) -> Option<Arc<Tracepoint>> {
        for system in self.tracefs.systems().ok()? {
            for name in self.tracefs.names(&system).unwrap_or_default() {
                if self.tracefs.id(&system, &name).is_ok_and(|own| own == id) {
                    return self.tracepoint(&system, &name);
                }
            }
        }
        None
    }
}

impl EventSources for LocalEvents {
    fn format(&self, pmu: &str, term: &str) -> Option<String> {
        self.sysfs.pmu_file(pmu, "format", term)
    }

    fn event(&self, pmu: &str, name: &str) -> Option<String> {
        self.sysfs.pmu_file(pmu, "events", name)
    }

    fn formats(&self, pmu: &str) -> Vec<String> {
        self.sysfs.pmu_files(pmu, "format")
    }

    fn events(&self, pmu: &str) -> Vec<String> {
        self.sysfs.pmu_files(pmu, "events")
    }

    fn kernel_symbol(&self, name: &str) -> Option<u64> {
        Proc::new("/proc").kernel_symbol(name).ok().flatten()
    }

    /// On hybrid machines and on Arm, PMUs of the cores list their CPUs in `cpus`.
    fn is_core(&self, pmu: &str) -> bool {
        pmu == "cpu" || self.sysfs.pmu_file(pmu, "", "cpus").is_some()
    }
}

impl Tracepoints for LocalEvents {
    fn folder(&self) -> &Path {
        self.tracefs.events()
    }

    fn systems(&self) -> io::Result<Vec<String>> {
        self.tracefs.systems()
    }

    fn names(&self, system: &str) -> io::Result<Vec<String>> {
        self.tracefs.names(system)
    }

    fn id(&self, system: &str, name: &str) -> io::Result<u64> {
        self.tracefs.id(system, name)
    }
}
