//! The folder of event tables, and problems with them.

use std::path::{Path, PathBuf};

use rperf_input::{EVENT_TABLES_FOLDER, MachineTables};
use rperf_names::counted;

use crate::cli::context::Context;

const FOLDER_VARIABLE: &str = "RPERF_EVENTS";
/// Overrides this machine's processor, as in perf.
const CPUID_VARIABLE: &str = "PERF_CPUID";
/// Number of problems that are reported one by one; of the others only the number is reported.
const MAX_REPORTED: usize = 3;

/// Returns the tables, loaded on first use, for the processor that `PERF_CPUID` names, by default that of this machine. On some
/// architectures, the id of this machine's processor is read from sysfs.
pub(super) fn machine_tables(context: &Context, sysfs: &Path) -> MachineTables {
    let folder = context.var(FOLDER_VARIABLE).map(PathBuf::from);
    let cpuid = context.var(CPUID_VARIABLE);
    let cpuid = cpuid.and_then(|id| id.into_string().ok());
    MachineTables::new(
        folder.unwrap_or_else(|| EVENT_TABLES_FOLDER.into()),
        cpuid,
        sysfs,
    )
}

/// Reports problems with the tables (the findings), if they have been loaded. A finding's text begins with the table's file name.
pub(crate) fn report_problems(tables: &MachineTables, context: &Context) {
    let findings = tables.findings();
    let folder = tables.folder().display();
    for finding in findings.iter().take(MAX_REPORTED) {
        context.warn(format_args!("event tables: {folder}/{finding}"));
    }
    if let Some(more) = findings
        .len()
        .checked_sub(MAX_REPORTED)
        .filter(|more| *more > 0)
    {
        context.warn(format_args!(
            "event tables: {} cannot be used",
            counted(more as u64, "more entry")
        ));
    }
}
