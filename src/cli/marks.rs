//! The USDT probes of programs in the build-id cache.

use std::path::PathBuf;

use rperf_buildid_cache::{Cache, Cached};
use rperf_probe::{CachedEntry, cached_entries};
use rperf_symbol::{Files as _, build_id_of_elf};

use super::files::DiskFiles;

/// A place that the authors of a program marked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    /// `sdt_PROVIDER:NAME`.
    pub(crate) name: String,
    /// The program's build-id.
    pub(crate) id: String,
    /// Where it is installed.
    pub(crate) program: PathBuf,
    /// The lines that create the events of its places.
    pub(crate) lines: Vec<String>,
}

/// Those of all programs in the cache, by name; each program's once.
pub(crate) fn marks(cache: &Cache) -> Vec<Mark> {
    let mut marks = Vec::new();
    for cached in cache.objects().unwrap_or_default() {
        let entries = cached_entries(&cached.probes().unwrap_or_default());
        let marked = entries.iter().filter(|entry| entry.is_marker);
        let named = marked.filter_map(|entry| Some((entry.text.split_once('=')?.0, entry)));
        let named: Vec<(&str, &CachedEntry)> = named.collect();
        // Of a program that is gone, or another build by now, nothing can be probed.
        if !named.is_empty() && is_installed(&cached) {
            marks.extend(named.into_iter().map(|(name, entry)| Mark {
                name: name.to_owned(),
                id: cached.id.clone(),
                program: cached.name.clone(),
                lines: entry.lines.clone(),
            }));
        }
    }
    marks.sort_unstable();
    marks.dedup();
    marks
}

/// Whether the file at the object's path is that build.
pub(crate) fn is_installed(cached: &Cached) -> bool {
    let bytes = DiskFiles.read(&cached.name).ok();
    let found = bytes.and_then(|bytes| build_id_of_elf(&bytes));
    found.is_some_and(|found| found.to_string() == cached.id)
}
