//! Loading of symbols: selection of the file, and reported findings.

mod jit;
mod user;

pub use jit::jit_dump;
pub use user::ObjectFiles;

use std::io;
use std::path::{Path, PathBuf};

use crate::dwarf::DebugSource;
use crate::files::Files;
use crate::finding::SymbolFinding;
use crate::jit_dump::JitCode;
use crate::kallsyms::ModuleSymbols;
use crate::kernel;
use crate::request::{ObjectKind, ObjectRequest, SearchPaths};
use crate::table::{AddressKind, SymbolTable};

/// The result of [`load`].
#[derive(Debug, Clone)]
pub struct LoadedSymbols {
    /// The symbols; may be empty.
    pub table: SymbolTable,
    /// The file that was read; empty if there was none, or it could not be used.
    pub source: PathBuf,
    /// Problems to report to the user.
    pub findings: Vec<SymbolFinding>,
    /// Where to look for lines and inlined functions, if known.
    pub debug: Option<DebugSource>,
    /// For [`ObjectKind::Kernel`] from kallsyms: the symbols of modules in the same listing.
    pub modules: Vec<ModuleSymbols>,
    /// For [`ObjectKind::PerfMap`] from a jitdump: code, lines and unwind tables of its functions.
    pub code: Option<JitCode>,
}

impl LoadedSymbols {
    pub(crate) fn empty(addresses: AddressKind, findings: Vec<SymbolFinding>) -> Self {
        Self {
            table: SymbolTable::empty(addresses),
            source: PathBuf::new(),
            findings,
            debug: None,
            modules: Vec::new(),
            code: None,
        }
    }
}

/// Loads the symbols of an object, as perf 6.1 does. Never fails: problems are in [`LoadedSymbols::findings`].
pub fn load(files: &dyn Files, paths: &SearchPaths, request: &ObjectRequest<'_>) -> LoadedSymbols {
    match request.kind {
        ObjectKind::Kernel => kernel::load_kernel(files, paths, request),
        ObjectKind::KernelModule => kernel::load_module(files, paths, request),
        ObjectKind::User | ObjectKind::Vdso => user::load(files, paths, request),
        ObjectKind::PerfMap => jit::load(files, request),
        ObjectKind::Other => LoadedSymbols::empty(AddressKind::FileOffset, Vec::new()),
    }
}

pub(crate) fn unreadable(path: &Path, error: &io::Error) -> SymbolFinding {
    SymbolFinding::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod server_tests;
#[cfg(test)]
mod tests;
