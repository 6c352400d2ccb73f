//! This machine's tracepoints, for the parser of event names.

use std::io;
use std::path::Path;

use rperf_events::Tracepoints;
use rperf_safefs::Folder;
use rperf_sys::{Tracefs, kernel_text};
use rperf_tracepoint::{Abi, Tracepoint};

/// Tracefs at its mount point according to `/proc`, or as given by the user.
#[derive(Debug)]
pub(crate) struct MachineTracepoints(pub(crate) Tracefs);

impl MachineTracepoints {
    /// Returns tracefs below `debugfs` if given (`--debugfs-dir`): a mounted debugfs, a tracefs, or a copy of one.
    pub(crate) fn find(debugfs: Option<&Path>) -> Self {
        if let Some(folder) = debugfs {
            let tracing = folder.join("tracing");
            let root = match Folder::open(&tracing) {
                Ok(_) => tracing,
                Err(_) => folder.to_owned(),
            };
            return Self(Tracefs::new(root));
        }
        let mounts = kernel_text("/proc/self/mounts").unwrap_or_default();
        Self(Tracefs::find(&mounts))
    }
}

impl Tracepoints for MachineTracepoints {
    fn folder(&self) -> &Path {
        self.0.events()
    }

    fn systems(&self) -> io::Result<Vec<String>> {
        self.0.systems()
    }

    fn names(&self, system: &str) -> io::Result<Vec<String>> {
        self.0.names(system)
    }

    fn id(&self, system: &str, name: &str) -> io::Result<u64> {
        self.0.id(system, name)
    }
}

/// Returns the format of a tracepoint of this machine.
///
/// # Errors
///
/// Errors of reading or parsing the format file.
pub(crate) fn describe(
    tracefs: &Tracefs,
    system: &str,
    name: &str,
) -> Result<Tracepoint, anyhow::Error> {
    let text = tracefs.format(system, name)?;
    Ok(Tracepoint::parse(system, &text, Abi::NATIVE)?)
}
