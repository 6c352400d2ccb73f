//! This machine's PMUs, tables of events and kernel symbols, for the parser of event names.

use std::path::PathBuf;

use rperf_events::vendor::Tables;
use rperf_events::{Catalogue, Machine};
use rperf_sys::{Proc, Sysfs};

use crate::cli::context::Context;
use crate::cli::tracefs::MachineTracepoints;
use crate::cli::vendor::MachineTables;

/// Where sysfs is mounted unless the environment says otherwise, as it can to perf.
pub(super) const SYSFS: &str = "/sys";
const SYSFS_VARIABLE: &str = "SYSFS_PATH";

/// The PMUs of a sysfs, and what vendors tell of them.
#[derive(Debug)]
pub(crate) struct MachinePmus {
    pub(crate) sysfs: Sysfs,
    pub(crate) tables: MachineTables,
    /// Of several PMUs alike, the one whose events alone are meant.
    pub(crate) only: Option<String>,
}

impl MachinePmus {
    /// Those of this machine.
    pub(crate) fn find(context: &Context) -> Self {
        let given = context.var(SYSFS_VARIABLE).map(PathBuf::from);
        let sysfs = Sysfs::new(given.unwrap_or_else(|| SYSFS.into()));
        Self {
            tables: MachineTables::find(context, sysfs.root()),
            sysfs,
            only: None,
        }
    }

    /// All that events of this machine are named by.
    pub(crate) fn catalogue<'a>(&'a self, tracepoints: &'a MachineTracepoints) -> Catalogue<'a> {
        Catalogue {
            // None where there is no sysfs.
            pmus: self.sysfs.pmu_types().unwrap_or_default(),
            only: self.only.clone(),
            machine: self,
            tracepoints,
        }
    }
}

impl Machine for MachinePmus {
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

    /// Where a machine has several kinds of cores, or on Arm, `cpus` lists those of the PMU.
    fn is_core(&self, pmu: &str) -> bool {
        pmu == "cpu" || self.sysfs.pmu_file(pmu, "", "cpus").is_some()
    }

    fn vendor(&self) -> &Tables {
        self.tables.get()
    }
}
