//! Source lines and inlined functions from DWARF 2 to 5.
//!
//! [`LineIndex`] is the debug information of one object, shared by all threads: an index of its
//! compilation units, built once; the units, parsed when the first address in them is looked up and
//! freed to keep within the [`Budget`]; and a cache of results.
//!
//! **Invariant.** Nested entries are read without recursion, so they can't exhaust the stack.

mod abbreviations;
mod budget;
mod die_scanner;
mod frame_cache;
mod function_entries;
mod functions;
mod index;
mod info;
mod interner;
mod leb;
mod name;
mod name_cache;
mod name_search;
mod open;
mod ranges;
mod relocate;
mod rows;
mod sections;
mod source;
mod split;
mod unit;
mod unit_prefilter;
mod units;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashSet;

pub use budget::Budget;
pub use die_scanner::{DieReference, DieScanner, InlinedCall, ScannedDie, StringLocation};
pub use function_entries::{CachedNames, FunctionEntries, MAX_ORIGINS, WantedNames};
pub use info::{DebugInfo, DebugUnit};
pub use sections::{Slice, section_content};
pub use source::DebugSource;
pub use unit_prefilter::{FunctionQuery, UnitPrefilter};

use budget::UnitSlots;
use frame_cache::FrameCache;
use interner::Interner;
use unit::{ReadUnit, StringInterners};
use units::{DebugObject, Units};

use crate::files::Files;
use crate::finding::SymbolFinding;
pub(crate) use source::AddressMap;

/// The number of a function's name in a [`LineIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionId(u32);

impl FunctionId {
    /// The number itself; the names of one object are numbered from 0.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The number of a source file's path in a [`LineIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(u32);

/// A function at an address, with its source location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFrame {
    /// The function, if it has a name.
    pub function: Option<FunctionId>,
    /// The source file; `None` if it is unknown.
    pub file: Option<FileId>,
    /// The line, from 1; 0 for code without a line.
    pub line: u32,
}

/// The lines and inlined functions of one object.
#[derive(Debug)]
pub struct LineIndex {
    object: DebugObject,
    addresses: AddressMap,
    units: Arc<UnitSlots>,
    functions: Interner,
    files: Interner,
    demangle: bool,
    frame_cache: FrameCache,
    findings: Mutex<LookupFindings>,
}

/// Problems found when the object is opened, and during lookups.
#[derive(Debug, Default)]
struct LookupFindings {
    /// Found when the object is opened.
    damage: Option<SymbolFinding>,
    /// The first `.dwo` file that is missing, damaged, or of another build.
    missing: Option<PathBuf>,
    /// The units with such a `.dwo` file.
    missing_units: FxHashSet<u32>,
}

impl LineIndex {
    /// Appends the functions at `address`, innermost first, each with its source location; the location of
    /// a caller is the call site. The last one is the function that the others are inlined into.
    /// Appends nothing if there is no debug information for the address.
    ///
    /// `address` is in the address space of the object's symbol table; `files` provides the `.dwo`
    /// files of split DWARF.
    pub fn frames(&self, files: &dyn Files, address: u64, frames: &mut Vec<SourceFrame>) {
        let address = self.addresses.in_file(address);
        self.frame_cache
            .append_frames_at(address, frames, |frames| {
                self.add_frames(files, address, frames)
            });
    }

    /// A function's displayed name, demangled unless disabled.
    #[must_use]
    pub fn function_name(&self, function: FunctionId) -> &str {
        self.functions.displayed(function.0).unwrap_or_default()
    }

    /// A function's name in the debug information.
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

    /// Problems found so far.
    #[must_use]
    pub fn findings(&self) -> Vec<SymbolFinding> {
        let findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = findings
            .missing
            .clone()
            .map(|path| SymbolFinding::MissingSplit {
                path,
                count: findings.missing_units.len(),
            });
        findings.damage.iter().cloned().chain(missing).collect()
    }

    fn add_frames(&self, files: &dyn Files, address: u64, frames: &mut Vec<SourceFrame>) {
        let interners = StringInterners {
            functions: &self.functions,
            files: &self.files,
            demangle: self.demangle,
        };
        // Only called for the first address, to build the index of address ranges.
        let dwarf = || Units::new(&self.object).main;
        for number in self.object.index.covering(address, dwarf) {
            let read = || self.read(files, number, &interners);
            let Some(unit) = self.units.get(number, read) else {
                continue;
            };
            // Ranges of units may overlap: the first unit with frames counts.
            if unit.frames(&self.object, number, &interners, address, frames) {
                return;
            }
        }
    }

    fn read(&self, files: &dyn Files, number: u32, interners: &StringInterners<'_>) -> ReadUnit {
        let (unit, missing) = ReadUnit::read(files, &self.object, number, interners);
        if let Some(path) = missing {
            let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
            // A unit that was freed and is read again counts once: `missing_units` is a set.
            findings.missing_units.insert(number);
            findings.missing.get_or_insert(path);
        }
        unit
    }
}

#[cfg(test)]
mod tests;
