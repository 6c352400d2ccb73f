//! The events of this machine: its PMUs and tracepoints.

use std::sync::Arc;

use rperf_events::Catalogue;
use rperf_input::{EVENT_TABLES_FOLDER, MachinePmus, MachineTables, MachineTracepoints};
use rperf_sys::Sysfs;
use rperf_tracepoint::{Abi, Tracepoint};

/// PMUs with their event tables, and tracepoints.
#[derive(Debug)]
pub(crate) struct LocalEvents {
    pub(crate) pmus: MachinePmus,
    pub(crate) tracepoints: MachineTracepoints,
}

impl LocalEvents {
    pub(crate) fn find() -> Self {
        let sysfs = Sysfs::new("/sys");
        let of_this_processor = None;
        let tables =
            MachineTables::new(EVENT_TABLES_FOLDER.into(), of_this_processor, sysfs.root());
        // Python has no equivalent of `--debugfs-dir`: tracefs is found at its mount point.
        let at_mount_point = None;
        Self {
            pmus: MachinePmus::new(sysfs, tables),
            tracepoints: MachineTracepoints::find(at_mount_point),
        }
    }

    /// All sources of event names.
    pub(crate) fn catalogue(&self) -> Catalogue<'_> {
        self.pmus.catalogue(&self.tracepoints)
    }

    /// The format of a tracepoint.
    pub(crate) fn tracepoint(&self, system: &str, name: &str) -> Option<Arc<Tracepoint>> {
        let text = self.tracepoints.tracefs.format(system, name).ok()?;
        let parsed = Tracepoint::parse(system, &text, Abi::NATIVE).ok()?;
        Some(Arc::new(parsed))
    }

    /// The format of the tracepoint with this id.
    pub(crate) fn tracepoint_of_id(&self, id: u64) -> Option<Arc<Tracepoint>> {
        let tracefs = &self.tracepoints.tracefs;
        for system in tracefs.systems().ok()? {
            for name in tracefs.event_names(&system).unwrap_or_default() {
                if tracefs.id(&system, &name).is_ok_and(|own| own == id) {
                    return self.tracepoint(&system, &name);
                }
            }
        }
        None
    }
}
