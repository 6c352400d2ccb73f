//! From a request to a table: which file is read, and what is said about it.

mod run_time;
mod user;

pub use run_time::jit_dump;
pub use user::Located;

use std::io;
use std::path::{Path, PathBuf};

use crate::dwarf::DebugSource;
use crate::files::Files;
use crate::finding::Finding;
use crate::jit_dump::JitCode;
use crate::kallsyms::ModuleSymbols;
use crate::kernel;
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
    /// With [`ObjectKind::PerfMap`] out of a dump: what it has of its functions besides their names.
    pub code: Option<JitCode>,
}

impl Loaded {
    pub(crate) fn nothing(space: AddressSpace, findings: Vec<Finding>) -> Self {
        Self {
            table: SymbolTable::empty(space),
            source: PathBuf::new(),
            findings,
            debug: None,
            modules: Vec::new(),
            code: None,
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
        ObjectKind::PerfMap => run_time::load(files, request),
        ObjectKind::Other => Loaded::nothing(AddressSpace::FileOffset, Vec::new()),
    }
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Finding {
    Finding::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod served;
#[cfg(test)]
mod tests;
