//! This machine's PMUs, event tables, kernel symbols and tracepoints, for the parser of event names.

use std::io;
use std::path::Path;

use rperf_events::vendor::VendorTables;
use rperf_events::{Catalogue, EventSources, Tracepoints};
use rperf_safefs::Folder;
use rperf_sys::{Proc, Sysfs, Tracefs, read_pseudo_file_text};

use crate::MachineTables;

/// The PMUs of a sysfs, and the vendor's event tables.
#[derive(Debug)]
pub struct MachinePmus {
    /// The sysfs.
    pub sysfs: Sysfs,
    /// The tables.
    pub tables: MachineTables,
    /// The PMU to select if an event's name matches several PMUs (`stat --pmu-filter`); `None` for all of them.
    pub preferred_pmu: Option<String>,
}

impl MachinePmus {
    /// The PMUs of `sysfs`, none preferred, and the events in `tables`.
    #[must_use]
    pub fn new(sysfs: Sysfs, tables: MachineTables) -> Self {
        Self {
            sysfs,
            tables,
            preferred_pmu: None,
        }
    }

    /// Returns all sources of event names of this machine.
    #[must_use]
    pub fn catalogue<'a>(&'a self, tracepoints: &'a MachineTracepoints) -> Catalogue<'a> {
        Catalogue {
            // Empty without sysfs.
            pmus: self.sysfs.pmu_types().unwrap_or_default(),
            preferred_pmu: self.preferred_pmu.clone(),
            machine: self,
            tracepoints,
        }
    }
}

impl EventSources for MachinePmus {
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

    /// Whether `pmu` is a PMU of the cores. On hybrid machines and on Arm, such PMUs list their CPUs in `cpus`.
    fn is_core(&self, pmu: &str) -> bool {
        // `cpus` is in the PMU's own folder, not in a subfolder.
        let no_subfolder = "";
        pmu == "cpu" || self.sysfs.pmu_file(pmu, no_subfolder, "cpus").is_some()
    }

    fn vendor(&self) -> &VendorTables {
        self.tables.get()
    }
}

/// Tracefs at its mount point according to `/proc`, or as given by the user.
#[derive(Debug)]
pub struct MachineTracepoints {
    /// The file system.
    pub tracefs: Tracefs,
}

impl MachineTracepoints {
    /// If `debugfs` is given (`--debugfs-dir`), returns its subfolder `tracing`, or if it has none, the folder itself: the user
    /// may give a debugfs, a tracefs, or a copy of either. Otherwise returns tracefs at its mount point.
    #[must_use]
    pub fn find(debugfs: Option<&Path>) -> Self {
        if let Some(folder) = debugfs {
            let tracing = folder.join("tracing");
            let root = match Folder::open(&tracing) {
                Ok(_) => tracing,
                Err(_) => folder.to_owned(),
            };
            return Self {
                tracefs: Tracefs::new(root),
            };
        }
        let mounts = read_pseudo_file_text("/proc/self/mounts").unwrap_or_default();
        Self {
            tracefs: Tracefs::find(&mounts),
        }
    }
}

impl Tracepoints for MachineTracepoints {
    fn folder(&self) -> &Path {
        self.tracefs.events_folder()
    }

    fn systems(&self) -> io::Result<Vec<String>> {
        self.tracefs.systems()
    }

    fn names(&self, system: &str) -> io::Result<Vec<String>> {
        self.tracefs.event_names(system)
    }

    fn id(&self, system: &str, name: &str) -> io::Result<u64> {
        self.tracefs.id(system, name)
    }
}
