//! The event tables of a processor, by default this machine's: from a folder, or built in.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rperf_events::vendor::{
    BuiltIn, LoadedTables, TableFinding, TableFolder, VendorTables, default_metrics, load,
};
use rperf_safefs::FoundFile;

/// The default folder of tables.
pub const EVENT_TABLES_FOLDER: &str = "/usr/share/rperf/events";

/// The tables of one processor (this machine's, unless another is selected), which are read on first use.
#[derive(Debug)]
pub struct MachineTables {
    folder: PathBuf,
    /// The processor's name in tables; `None` if unknown.
    cpuid: Option<String>,
    loaded: OnceLock<LoadedTables>,
}

impl MachineTables {
    /// The tables in `folder` for the processor whose name in tables is `cpuid`. `None` selects this machine's processor; on some
    /// architectures, its name is read from `sysfs`.
    #[must_use]
    pub fn new(folder: PathBuf, cpuid: Option<String>, sysfs: &Path) -> Self {
        Self {
            folder,
            cpuid: cpuid.or_else(|| rperf_sys::cpuid(sysfs).map(|id| table_name(&id))),
            loaded: OnceLock::new(),
        }
    }

    /// Returns the processor's tables from the folder, or the few built-in events if the folder has no tables of the processor.
    /// In both cases, the default metrics (of software and generic hardware events) that the tables lack are added.
    #[must_use]
    pub fn get(&self) -> &VendorTables {
        let loaded = self.loaded.get_or_init(|| {
            let cpuid = self.cpuid();
            let from_folder = load(&DiskFolder(&self.folder), cpuid);
            let loaded = match from_folder.tables.is_empty() {
                true => LoadedTables {
                    findings: from_folder.findings,
                    ..load(&BuiltIn, cpuid)
                },
                false => from_folder,
            };
            LoadedTables {
                tables: loaded.tables.with_missing_metrics(default_metrics()),
                ..loaded
            }
        });
        &loaded.tables
    }

    /// Returns the processor's name in tables; empty if unknown.
    #[must_use]
    pub fn cpuid(&self) -> &str {
        self.cpuid.as_deref().unwrap_or_default()
    }

    /// The folder of the tables.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Unusable parts of the folder's tables; empty before the first [`Self::get`].
    #[must_use]
    pub fn findings(&self) -> &[TableFinding] {
        let loaded = self.loaded.get();
        loaded.map_or(&[], |loaded| &loaded.findings)
    }
}

/// Returns the processor's name in tables: `GenuineIntel-6-55-4` for perf's `GenuineIntel,6,85,4`. Model and stepping become
/// hexadecimal. Other forms are returned unchanged.
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

/// The maximum size of a file with tables, in bytes.
const MAX_TABLE: u64 = 256 << 20;

/// A folder of tables on disk: paths are relative to it.
#[derive(Debug)]
struct DiskFolder<'a>(&'a Path);

impl TableFolder for DiskFolder<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        let bytes = rperf_safefs::read(&self.0.join(path), MAX_TABLE)?;
        String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let Ok(folder) = rperf_safefs::Folder::open(&self.0.join(path)) else {
            return Vec::new();
        };
        let names = folder.names().unwrap_or_default().into_iter();
        let entries = names.filter_map(|name| {
            // Follows links, unlike `Folder::kind`.
            let found = FoundFile::find(&folder.path().join(&name)).ok()?;
            let name = name.into_string().ok()?;
            // Hidden files, such as those of a repository, are not tables.
            let is_hidden = name.starts_with('.');
            let slash = if found.metadata().is_dir() { "/" } else { "" };
            (!is_hidden).then(|| format!("{name}{slash}"))
        });
        let mut names: Vec<String> = entries.collect();
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
