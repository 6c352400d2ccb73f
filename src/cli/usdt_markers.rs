//! USDT markers of programs in the build-id cache.

use std::path::PathBuf;

use rperf_buildid_cache::{Cache, Cached};
use rperf_probe::{CachedEntry, cached_entries};
use rperf_symbol::{Files as _, build_id_of_elf};

use rperf_input::DiskFiles;

/// A USDT marker of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UsdtMarker {
    /// `sdt_PROVIDER:NAME`.
    pub(crate) name: String,
    /// The build-id of the program.
    pub(crate) build_id: String,
    /// The path of the program. The file there has the build-id `build_id`.
    pub(crate) program: PathBuf,
    /// The uprobe definitions that create the events of the marker, in the syntax of tracefs `uprobe_events`.
    pub(crate) lines: Vec<String>,
}

/// Returns the markers of the installed programs in the cache, sorted by name, without duplicates. Objects whose list of markers
/// cannot be read are skipped.
pub(crate) fn installed_markers(cache: &Cache) -> Vec<UsdtMarker> {
    let mut markers = Vec::new();
    for cached in cache.objects().unwrap_or_default() {
        let entries = cached_entries(&cached.probes().unwrap_or_default());
        let of_markers = entries.iter().filter(|entry| entry.is_marker);
        // The text is `sdt_PROVIDER:NAME=NAME`.
        let named = of_markers.filter_map(|entry| Some((entry.text.split_once('=')?.0, entry)));
        let named: Vec<(&str, &CachedEntry)> = named.collect();
        // A program that was removed or replaced by another build cannot be probed.
        if !named.is_empty() && is_installed(&cached) {
            markers.extend(named.into_iter().map(|(name, entry)| UsdtMarker {
                name: name.to_owned(),
                build_id: cached.id.clone(),
                program: cached.name.clone(),
                lines: entry.lines.clone(),
            }));
        }
    }
    markers.sort_unstable();
    markers.dedup();
    markers
}

/// Whether the file at the object's path is the cached build.
pub(crate) fn is_installed(cached: &Cached) -> bool {
    let bytes = DiskFiles.read(&cached.name).ok();
    let found = bytes.and_then(|bytes| build_id_of_elf(&bytes));
    found.is_some_and(|found| found.to_string() == cached.id)
}
