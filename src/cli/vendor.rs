//! This machine's tables of events: which processor it is, and the folder that they are read from.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rperf_events::vendor::{BuiltIn, Folder, Loaded, Tables, load};
use rperf_safefs::Opened;

use crate::cli::context::Context;

/// Where tables are, unless the environment says otherwise.
const FOLDER: &str = "/usr/share/rperf/events";
const FOLDER_VARIABLE: &str = "RPERF_EVENTS";
/// Names another processor than this machine's, as it can to perf.
const CPUID_VARIABLE: &str = "PERF_CPUID";
/// Findings that are told; the rest is counted.
const TOLD: usize = 3;

/// Tables that are read when they are first asked for.
#[derive(Debug)]
pub(crate) struct MachineTables {
    folder: PathBuf,
    cpuid: Option<String>,
    loaded: OnceLock<Loaded>,
}

impl MachineTables {
    /// Those for this machine's processor, of which sysfs tells on some architectures.
    pub(crate) fn find(context: &Context, sysfs: &Path) -> Self {
        let folder = context.var(FOLDER_VARIABLE).map(PathBuf::from);
        let given = context.var(CPUID_VARIABLE);
        let given = given.and_then(|id| id.into_string().ok());
        Self {
            folder: folder.unwrap_or_else(|| FOLDER.into()),
            cpuid: given.or_else(|| rperf_sys::cpuid(sysfs).map(|id| table_name(&id))),
            loaded: OnceLock::new(),
        }
    }

    /// What is known of the processor: from the folder, or the program's own few events where that has nothing.
    pub(crate) fn get(&self) -> &Tables {
        let loaded = self.loaded.get_or_init(|| {
            let cpuid = self.cpuid();
            let found = load(&DiskFolder(&self.folder), cpuid);
            match found.tables.is_empty() {
                true => Loaded {
                    findings: found.findings,
                    ..load(&BuiltIn, cpuid)
                },
                false => found,
            }
        });
        &loaded.tables
    }

    /// The processor as tables call it; empty where it isn't known.
    pub(crate) fn cpuid(&self) -> &str {
        self.cpuid.as_deref().unwrap_or_default()
    }

    /// Says what could not be used of the tables, if they were read.
    pub(crate) fn tell(&self, context: &Context) {
        let findings = self.loaded.get().map(|loaded| &loaded.findings);
        let findings = findings.map(Vec::as_slice).unwrap_or_default();
        let folder = self.folder.display();
        for finding in findings.iter().take(TOLD) {
            context.warn(format_args!("event tables: {folder}/{finding}"));
        }
        if let Some(more) = findings.len().checked_sub(TOLD).filter(|more| *more > 0) {
            context.warn(format_args!(
                "event tables: {more} more entries cannot be used"
            ));
        }
    }
}

/// A processor as tables call it: `GenuineIntel-6-55-4` for the header's `GenuineIntel,6,85,4`.
fn table_name(cpuid: &str) -> String {
    let fields: Vec<&str> = cpuid.split(',').collect();
    let hex = |text: &str| text.parse::<u32>().ok().map(|number| format!("{number:X}"));
    match fields.as_slice() {
        [vendor, family, model, stepping] => match (hex(model), hex(stepping)) {
            (Some(model), Some(stepping)) => format!("{vendor}-{family}-{model}-{stepping}"),
            _ => cpuid.to_owned(),
        },
        _ => cpuid.to_owned(),
    }
}

/// The largest table that is read, in bytes.
const MAX_TABLE: u64 = 256 << 20;

#[derive(Debug)]
struct DiskFolder<'a>(&'a Path);

impl Folder for DiskFolder<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        let bytes = rperf_safefs::read(&self.0.join(path), MAX_TABLE)?;
        String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let Ok(folder) = rperf_safefs::Folder::open(&self.0.join(path)) else {
            return Vec::new();
        };
        let names = folder.names().unwrap_or_default().into_iter();
        let named = names.filter_map(|name| {
            let found = Opened::find(&folder.path().join(&name)).ok()?;
            let name = name.into_string().ok()?;
            // What begins with a dot is no table: a repository's own files.
            let is_hidden = name.starts_with('.');
            let slash = if found.metadata().is_dir() { "/" } else { "" };
            (!is_hidden).then(|| format!("{name}{slash}"))
        });
        let mut names: Vec<String> = named.collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_called_as_in_tables() {
        assert_eq!(table_name("GenuineIntel,6,85,4"), "GenuineIntel-6-55-4");
        assert_eq!(table_name("AuthenticAMD,25,33,10"), "AuthenticAMD-25-21-A");
        assert_eq!(table_name("0x00000000410fd0c0"), "0x00000000410fd0c0");
    }
}
