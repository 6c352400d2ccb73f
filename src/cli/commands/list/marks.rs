//! The USDT probes of programs in the build-id cache.

use std::fs;

use rperf_session::{Cache, Cached};
use rperf_symbol::{Files as _, build_id_of_elf};

use crate::cli::files::DiskFiles;

/// The USDT probes of the programs in the cache. Where several have one of the same name, each is told with its program.
pub(super) fn marks(cache: &Cache) -> Vec<String> {
    let mut marks: Vec<(String, String, String)> = Vec::new();
    for cached in cache.objects().unwrap_or_default() {
        let text = fs::read_to_string(cached.folder.join("probes")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.strip_prefix('%'));
        let names = lines.filter_map(|line| Some(line.split_once('=')?.0));
        let names: Vec<&str> = names.collect();
        // Of a program that is gone, or another build by now, nothing can be probed.
        if !names.is_empty() && is_installed(&cached) {
            let program = cached.name.display().to_string();
            let named = names.into_iter().map(str::to_owned);
            marks.extend(named.map(|name| (name, cached.id.clone(), program.clone())));
        }
    }
    marks.sort_unstable();
    marks.dedup();
    let shared = marks.chunk_by(|one, next| one.0 == next.0);
    let named = shared.flat_map(|same| {
        same.iter().map(|(name, id, program)| match same.len() {
            1 => name.clone(),
            _ => format!("{name}@{program}({id:.12})"),
        })
    });
    named.collect()
}

fn is_installed(cached: &Cached) -> bool {
    let bytes = DiskFiles.read(&cached.name).ok();
    let found = bytes.and_then(|bytes| build_id_of_elf(&bytes));
    found.is_some_and(|found| found.to_string() == cached.id)
}
