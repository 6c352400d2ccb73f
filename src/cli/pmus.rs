//! This machine's PMUs and event tables, as the environment selects them.

use std::path::PathBuf;

pub(crate) use rperf_input::MachinePmus;
use rperf_sys::Sysfs;

use crate::cli::context::Context;
use crate::cli::vendor::machine_tables;

/// The mount point of sysfs, unless overridden by the environment, as in perf.
pub(super) const SYSFS: &str = "/sys";
const SYSFS_VARIABLE: &str = "SYSFS_PATH";

/// Returns the mount point of sysfs.
pub(crate) fn sysfs_root(context: &Context) -> PathBuf {
    let given = context.var(SYSFS_VARIABLE).map(PathBuf::from);
    given.unwrap_or_else(|| SYSFS.into())
}

/// Finds this machine's PMUs.
pub(crate) fn machine_pmus(context: &Context) -> MachinePmus {
    let sysfs = Sysfs::new(sysfs_root(context));
    let tables = machine_tables(context, sysfs.root());
    MachinePmus::new(sysfs, tables)
}
