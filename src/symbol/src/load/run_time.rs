//! Code made at run time: the lists that runtimes write of it.

use std::io;
use std::path::{Path, PathBuf};

use super::{Loaded, unreadable};
use crate::files::{FileBytes, Files};
use crate::finding::Finding;
use crate::jit_dump;
use crate::perf_map;
use crate::request::{ObjectRequest, seen_by};
use crate::table::{AddressSpace, SymbolTable};

/// Reads the perf map of a process, on this machine or where the process sees it, else its `jit-PID.dump`.
pub(super) fn load(files: &dyn Files, request: &ObjectRequest<'_>) -> Loaded {
    let mut findings = Vec::new();
    let in_namespace = request.pid.map(|pid| {
        let inner = inner_pid(files, pid).unwrap_or(pid);
        seen_by(pid, Path::new(&format!("/tmp/perf-{inner}.map")))
    });
    for path in [Some(request.path.to_owned()), in_namespace]
        .into_iter()
        .flatten()
    {
        let Some(bytes) = read(files, &path, &mut findings) else {
            continue;
        };
        let map = perf_map::parse(&bytes);
        if map.bad_lines > 0 {
            findings.push(Finding::BadLines {
                path: path.clone(),
                count: map.bad_lines,
            });
        }
        return loaded(map.table, path, findings);
    }
    let dumps = request.jit_dump.into_iter().flat_map(|path| {
        let seen = request.pid.map(|pid| seen_by(pid, path));
        [Some(path.to_owned()), seen].into_iter().flatten()
    });
    for path in dumps {
        let Some(bytes) = read(files, &path, &mut findings) else {
            continue;
        };
        match jit_dump::parse(&bytes) {
            Some(dump) => return loaded(dump.table, path, findings),
            None => findings.push(Finding::Damaged {
                path,
                reason: "not a jitdump file".to_owned(),
            }),
        }
    }
    Loaded::nothing(AddressSpace::Runtime, findings)
}

/// The file at `path`, if it is there and may be believed. Most processes with anonymous code have none; that is no news.
fn read(files: &dyn Files, path: &Path, findings: &mut Vec<Finding>) -> Option<FileBytes> {
    let bytes = match files.read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            findings.extend((!missing).then(|| unreadable(path, &error)));
            return None;
        }
    };
    if !files.is_trusted(path) {
        findings.push(Finding::Untrusted {
            path: path.to_owned(),
        });
        return None;
    }
    Some(bytes)
}

fn loaded(table: SymbolTable, source: PathBuf, findings: Vec<Finding>) -> Loaded {
    Loaded {
        table,
        source,
        findings,
        debug: None,
        modules: Vec::new(),
    }
}

/// What a process calls itself in its own PID namespace: the last number of `NSpid:` in `/proc/PID/status`.
fn inner_pid(files: &dyn Files, pid: u32) -> Option<u32> {
    let status = files.read(Path::new(&format!("/proc/{pid}/status"))).ok()?;
    let status = String::from_utf8_lossy(&status);
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}
