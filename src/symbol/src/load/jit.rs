//! JIT-compiled code: perf maps and dumps written by runtimes.

use std::io;
use std::path::{Path, PathBuf};

use super::{LoadedSymbols, unreadable};
use crate::files::{FileBytes, Files};
use crate::finding::SymbolFinding;
use crate::jit_dump::{self, JitCode, JitDump};
use crate::perf_map;
use crate::request::{ObjectRequest, seen_by};
use crate::table::{AddressKind, SymbolTable};

/// Loads the perf map of a process, from this mount namespace, otherwise from that of the process. If there is no map, loads the
/// jitdump file of the request in the same way.
pub(super) fn load(files: &dyn Files, request: &ObjectRequest<'_>) -> LoadedSymbols {
    let mut findings = Vec::new();
    if let Some((path, bytes)) = perf_map_of(files, request, &mut findings) {
        let map = perf_map::parse(&bytes);
        if map.bad_lines > 0 {
            findings.push(SymbolFinding::BadLines {
                path: path.clone(),
                count: map.bad_lines,
            });
        }
        let no_code = None;
        return loaded(map.table, no_code, path, findings);
    }
    match dump_of(files, request, &mut findings) {
        Some((path, dump)) => {
            // Functions by number: the table has all functions of the dump. By address: only those that exist at its end.
            let (table, code) = match request.by_number {
                true => dump.into_numbered(),
                false => dump.last_functions(),
            };
            loaded(table, Some(code), path, findings)
        }
        None => LoadedSymbols::empty(AddressKind::Runtime, findings),
    }
}

/// The jitdump file of `request`; `None` if there is none to read, or if the process has a perf map, which has precedence.
pub fn jit_dump(files: &dyn Files, request: &ObjectRequest<'_>) -> Option<JitDump> {
    let mut findings = Vec::new();
    if perf_map_of(files, request, &mut findings).is_some() {
        return None;
    }
    let (_, dump) = dump_of(files, request, &mut findings)?;
    Some(dump)
}

fn perf_map_of(
    files: &dyn Files,
    request: &ObjectRequest<'_>,
    findings: &mut Vec<SymbolFinding>,
) -> Option<(PathBuf, FileBytes)> {
    let in_namespace = request.pid.map(|pid| {
        let inner = inner_pid(files, pid).unwrap_or(pid);
        seen_by(pid, Path::new(&format!("/tmp/perf-{inner}.map")))
    });
    let mut places = [Some(request.path.to_owned()), in_namespace]
        .into_iter()
        .flatten();
    places.find_map(|path| {
        let bytes = read(files, &path, findings)?;
        Some((path, bytes))
    })
}

fn dump_of(
    files: &dyn Files,
    request: &ObjectRequest<'_>,
    findings: &mut Vec<SymbolFinding>,
) -> Option<(PathBuf, JitDump)> {
    let path = request.jit_dump?;
    let in_namespace = request.pid.map(|pid| seen_by(pid, path));
    let mut places = [Some(path.to_owned()), in_namespace].into_iter().flatten();
    places.find_map(|path| {
        let bytes = read(files, &path, findings)?;
        let dump = jit_dump::parse(&bytes);
        if dump.is_none() {
            findings.push(SymbolFinding::Damaged {
                path: path.clone(),
                reason: "not a jitdump file".to_owned(),
            });
        }
        Some((path, dump?))
    })
}

/// Reads the file at `path` if it exists and is trusted. Adds no finding for a missing file.
fn read(files: &dyn Files, path: &Path, findings: &mut Vec<SymbolFinding>) -> Option<FileBytes> {
    match files.read_trusted(path) {
        // The file belongs neither to root nor to the current user.
        Ok(None) => {
            findings.push(SymbolFinding::Untrusted {
                path: path.to_owned(),
            });
            None
        }
        Ok(bytes) => bytes,
        Err(error) => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            findings.extend((!missing).then(|| unreadable(path, &error)));
            None
        }
    }
}

fn loaded(
    table: SymbolTable,
    code: Option<JitCode>,
    source: PathBuf,
    findings: Vec<SymbolFinding>,
) -> LoadedSymbols {
    LoadedSymbols {
        table,
        source,
        code,
        ..LoadedSymbols::empty(AddressKind::Runtime, findings)
    }
}

/// The pid of a process in its own PID namespace: the last number of `NSpid:` in
/// `/proc/PID/status`.
fn inner_pid(files: &dyn Files, pid: u32) -> Option<u32> {
    let status = files.read(Path::new(&format!("/proc/{pid}/status"))).ok()?;
    let status = String::from_utf8_lossy(&status);
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}
