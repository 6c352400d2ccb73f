//! This machine's PMUs, event tables and kernel symbols, for the parser of event names.

use std::path::PathBuf;

use rperf_events::vendor::VendorTables;
use rperf_events::{Catalogue, EventSources};
use rperf_sys::{Proc, Sysfs};

use crate::cli::context::Context;
use crate::cli::tracefs::MachineTracepoints;
use crate::cli::vendor::MachineTables;

/// The mount point of sysfs, unless overridden by the environment, as in perf.
pub(super) const SYSFS: &str = "/sys";
const SYSFS_VARIABLE: &str = "SYSFS_PATH";

/// The PMUs of a sysfs, and the vendor's event tables.
#[derive(Debug)]
pub(crate) struct MachinePmus {
    pub(crate) sysfs: Sysfs,
    pub(crate) tables: MachineTables,
    /// Of several identical PMUs, the one whose events are used (`stat --pmu-filter`); `None` for all of them.
    pub(crate) only: Option<String>,
}

/// Returns the mount point of sysfs.
pub(crate) fn sysfs_root(context: &Context) -> PathBuf {
    let given = context.var(SYSFS_VARIABLE).map(PathBuf::from);
    given.unwrap_or_else(|| SYSFS.into())
}

impl MachinePmus {
    /// Finds this machine's PMUs.
    pub(crate) fn find(context: &Context) -> Self {
        let sysfs = Sysfs::new(sysfs_root(context));
        Self {
            tables: MachineTables::find(context, sysfs.root()),
            sysfs,
            only: None,
        }
    }

    /// Returns all sources of event names of this machine.
    pub(crate) fn catalogue<'a>(&'a self, tracepoints: &'a MachineTracepoints) -> Catalogue<'a> {
        Catalogue {
            // Empty without sysfs.
            pmus: self.sysfs.pmu_types().unwrap_or_default(),
            only: self.only.clone(),
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
        pmu == "cpu" || self.sysfs.pmu_file(pmu, "", "cpus").is_some()
    }

    fn vendor(&self) -> &VendorTables {
        self.tables.get()
    }
}
