//! This machine's PMUs and kernel symbols, for the parser of event names.

use std::path::PathBuf;

use rperf_events::Machine;
use rperf_sys::{Proc, Sysfs};

use crate::cli::context::Context;

/// Where sysfs is mounted unless the environment says otherwise, as it can to perf.
const SYSFS: &str = "/sys";
const SYSFS_VARIABLE: &str = "SYSFS_PATH";

/// The PMUs of a sysfs.
#[derive(Debug)]
pub(crate) struct MachinePmus(pub(crate) Sysfs);

impl MachinePmus {
    /// Those of this machine.
    pub(crate) fn find(context: &Context) -> Self {
        let given = context.var(SYSFS_VARIABLE).map(PathBuf::from);
        Self(Sysfs::new(given.unwrap_or_else(|| SYSFS.into())))
    }

    /// Names and numbers; none where there is no sysfs.
    pub(crate) fn types(&self) -> Vec<(String, u32)> {
        self.0.pmu_types().unwrap_or_default()
    }
}

impl Machine for MachinePmus {
    fn format(&self, pmu: &str, term: &str) -> Option<String> {
        self.0.pmu_file(pmu, "format", term)
    }

    fn event(&self, pmu: &str, name: &str) -> Option<String> {
        self.0.pmu_file(pmu, "events", name)
    }

    fn formats(&self, pmu: &str) -> Vec<String> {
        self.0.pmu_files(pmu, "format")
    }

    fn events(&self, pmu: &str) -> Vec<String> {
        self.0.pmu_files(pmu, "events")
    }

    fn kernel_symbol(&self, name: &str) -> Option<u64> {
        Proc::new("/proc").kernel_symbol(name).ok().flatten()
    }
}
