//! From a request to a table: which file is read, and what is said about it.

mod user;

use std::io;
use std::path::{Path, PathBuf};

use crate::dwarf::DebugSource;
use crate::files::Files;
use crate::finding::Finding;
use crate::kallsyms::ModuleSymbols;
use crate::kernel;
use crate::perf_map;
use crate::request::{ObjectKind, ObjectRequest, SearchPaths};
use crate::table::{AddressSpace, SymbolTable};

/// What [`load`] came back with.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The symbols; empty where there are none.
    pub table: SymbolTable,
    /// The file they were read from; empty where there are none.
    pub source: PathBuf,
    /// What is worth telling the user.
    pub findings: Vec<Finding>,
    /// Where lines and inlined functions may be; `None` for what has no file of its own.
    pub debug: Option<DebugSource>,
    /// With [`ObjectKind::Kernel`] out of kallsyms: the symbols of modules, which the same listing has.
    pub modules: Vec<ModuleSymbols>,
}

impl Loaded {
    pub(crate) fn nothing(space: AddressSpace, findings: Vec<Finding>) -> Self {
        Self {
            table: SymbolTable::empty(space),
            source: PathBuf::new(),
            findings,
            debug: None,
            modules: Vec::new(),
        }
    }
}

/// Finds and reads the symbols of one object as perf 6.1 does. It never fails: what is wrong is told in
/// [`Loaded::findings`].
pub fn load(files: &dyn Files, paths: &SearchPaths, request: &ObjectRequest<'_>) -> Loaded {
    match request.kind {
        ObjectKind::Kernel => kernel::load_kernel(files, paths, request),
        ObjectKind::KernelModule => kernel::load_module(files, paths, request),
        ObjectKind::User | ObjectKind::Vdso => user::load(files, paths, request),
        ObjectKind::PerfMap => load_perf_map(files, request.path),
        ObjectKind::Other => Loaded::nothing(AddressSpace::FileOffset, Vec::new()),
    }
}

fn load_perf_map(files: &dyn Files, path: &Path) -> Loaded {
    let nothing = |finding| Loaded::nothing(AddressSpace::Runtime, Vec::from_iter(finding));
    let bytes = match files.read(path) {
        Ok(bytes) => bytes,
        // Most processes with anonymous code have no map; that is no news.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return nothing(None),
        Err(error) => return nothing(Some(unreadable(path, &error))),
    };
    if !files.is_trusted(path) {
        return nothing(Some(Finding::Untrusted {
            path: path.to_owned(),
        }));
    }
    let map = perf_map::parse(&bytes);
    let bad = (map.bad_lines > 0).then(|| Finding::BadLines {
        path: path.to_owned(),
        count: map.bad_lines,
    });
    Loaded {
        table: map.table,
        source: path.to_owned(),
        findings: Vec::from_iter(bad),
        debug: None,
        modules: Vec::new(),
    }
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Finding {
    Finding::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
