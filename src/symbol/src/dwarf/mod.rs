//! Source lines and inlined functions out of DWARF 2 to 5.
//!
//! [`Lines`] is the debug information of one object, shared by all threads: an index of its compilation units, made once;
//! the units themselves, each read when the first address falls into it, and forgotten again when [`Budget`] says so; and
//! the answers that were given already.
//!
//! **Invariants.** Nothing is walked recursively, so no nesting of entries exhausts a stack. Damage costs what is behind it
//! in its own unit, and no more.

mod answers;
mod budget;
mod defined;
mod functions;
mod index;
mod info;
mod interner;
mod known;
mod leb;
mod mentions;
mod name;
mod open;
mod plan;
mod ranges;
mod relocate;
mod rows;
mod sections;
mod sift;
mod skim;
mod source;
mod split;
mod unit;
mod units;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

pub use budget::Budget;
pub use defined::{FunctionEntries, KnownNames, MAX_ORIGINS, WantedNames};
pub use info::{DebugInfo, DebugUnit};
pub use sections::Slice;
pub use sift::{Sift, Sought};
pub use skim::{InlinedCall, Origin, Skim, Skimmed, Text};
pub use source::DebugSource;

use answers::Answers;
use budget::Slots;
use interner::Interner;
use unit::{ReadUnit, Texts};
use units::{Object, Units};

use crate::files::Files;
use crate::finding::Finding;
pub(crate) use source::AddressMap;

/// The name of a function in its [`Lines`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionId(u32);

impl FunctionId {
    /// The names of one object are numbered from 0.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The path of a source file in its [`Lines`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(u32);

/// One of the functions at an address, and the place in its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFrame {
    /// The function, if it has a name.
    pub function: Option<FunctionId>,
    /// The source file.
    pub file: Option<FileId>,
    /// The line, from 1; 0 for code that belongs to none.
    pub line: u32,
}

/// The lines and inlined functions of one object.
#[derive(Debug)]
pub struct Lines {
    object: Object,
    addresses: AddressMap,
    units: Arc<Slots>,
    functions: Interner,
    files: Interner,
    demangle: bool,
    answers: Answers,
    findings: Mutex<Findings>,
}

/// What there is to say, gathered while looking.
#[derive(Debug, Default)]
struct Findings {
    damage: Option<Finding>,
    missing: Option<PathBuf>,
    missing_count: usize,
}

impl Lines {
    /// Appends the functions whose code is at `address`, innermost first, each with the place where it is; that of a caller
    /// is the line of the call. The last one is the function that the others are inlined into. Appends nothing where the
    /// debug information knows nothing.
    ///
    /// `address` is one of the object's symbol table; `files` gives the `.dwo` files of split DWARF.
    pub fn frames(&self, files: &dyn Files, address: u64, frames: &mut Vec<SourceFrame>) {
        let address = self.addresses.in_file(address);
        self.answers
            .append(address, frames, |frames| self.look(files, address, frames));
    }

    /// A function's name as it is shown, demangled unless that is switched off.
    #[must_use]
    pub fn function_name(&self, function: FunctionId) -> &str {
        self.functions.shown(function.0).unwrap_or_default()
    }

    /// A function's name as it stands in the debug information.
    #[must_use]
    pub fn raw_function_name(&self, function: FunctionId) -> &str {
        self.functions.raw(function.0).unwrap_or_default()
    }

    /// A source file's path.
    #[must_use]
    pub fn file(&self, file: FileId) -> &str {
        self.files.raw(file.0).unwrap_or_default()
    }

    /// The file with the debug information.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        &self.object.main.path
    }

    /// What went less than well so far.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let found = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = found.missing.clone().map(|path| Finding::MissingSplit {
            path,
            count: found.missing_count,
        });
        found.damage.iter().cloned().chain(missing).collect()
    }

    fn look(&self, files: &dyn Files, address: u64, frames: &mut Vec<SourceFrame>) {
        let texts = Texts {
            functions: &self.functions,
            files: &self.files,
            demangle: self.demangle,
        };
        let dwarf = || Units::new(&self.object).main;
        for number in self.object.index.covering(address, dwarf) {
            let read = || self.read(files, number, &texts);
            let Some(unit) = self.units.get(number, read) else {
                continue;
            };
            if unit.frames(&self.object, number, &texts, address, frames) {
                return;
            }
        }
    }

    fn read(&self, files: &dyn Files, number: u32, texts: &Texts<'_>) -> ReadUnit {
        let (unit, missing) = ReadUnit::read(files, &self.object, number, texts);
        if let Some(path) = missing {
            let mut found = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
            found.missing_count += 1;
            found.missing.get_or_insert(path);
        }
        unit
    }
}

#[cfg(test)]
mod tests;
