//! Entry points of functions and inlined instances, with the lines of their declarations and calls.
//!
//! The *wanted* files are the source files in which the search looks for lines.

use gimli::UnitOffset;
use rperf_symbol::dwarf::{DieReference, DieScanner, ScannedDie};
use rustc_hash::FxHashMap;

use super::compile_unit::CompileUnit;
use super::function::is_function_or_instance;

/// The entry point of a function with code, or of an inlined instance.
pub(crate) struct EntryPoint<'w, 'u> {
    compile_unit: &'w CompileUnit<'u>,
    offset: UnitOffset,
    /// The line of the call, if the call is in a wanted file.
    pub(crate) call_line: Option<u32>,
    /// The line of the declaration, if the declaration is in a wanted file.
    pub(crate) declared_line: Option<u32>,
}

impl EntryPoint<'_, '_> {
    /// Returns the entry address.
    pub(crate) fn address(&self) -> Option<u64> {
        self.compile_unit.at(self.offset)?.entry_address()
    }
}

/// The declaration of a DIE.
#[derive(Clone, Copy)]
struct Declaration {
    /// Whether it is in a wanted file.
    is_wanted: bool,
    line: Option<u32>,
}

/// An iterator over the entry points of a unit whose declaration or call is in a wanted file, in the order of their DIEs.
pub(crate) struct EntryPoints<'p, 'w, 'u> {
    compile_unit: &'w CompileUnit<'u>,
    /// The DIEs of functions and instances: in this type, an entry is a DIE, not an entry point. `None` if the unit is damaged.
    entries: Option<DieScanner<'u, 'u>>,
    is_wanted_file: &'p dyn Fn(u64) -> bool,
    is_wanted_path: &'p dyn Fn(&str) -> bool,
    /// The depth of the DIE of the outermost enclosing function with code; `None` outside of such functions.
    function_depth: Option<isize>,
    /// Cached declarations of origins, which many inlined instances share.
    origins: FxHashMap<UnitOffset, Declaration>,
}

impl<'p, 'w, 'u> EntryPoints<'p, 'w, 'u> {
    /// Creates the iterator. Both conditions select the same files: `is_wanted_file` by index in the line table,
    /// `is_wanted_path` by path.
    pub(crate) fn new(
        compile_unit: &'w CompileUnit<'u>,
        is_wanted_file: &'p dyn Fn(u64) -> bool,
        is_wanted_path: &'p dyn Fn(&str) -> bool,
    ) -> Self {
        Self {
            compile_unit,
            entries: compile_unit.scanner(&is_function_or_instance),
            is_wanted_file,
            is_wanted_path,
            function_depth: None,
            origins: FxHashMap::default(),
        }
    }

    fn next_in(&mut self, entries: &mut DieScanner<'u, 'u>) -> Option<EntryPoint<'w, 'u>> {
        loop {
            // Only to save work: this skips most instances of which neither the call nor the declaration is in a wanted file.
            // The others are checked below.
            let entry = entries.next_unless(&mut |call| {
                !(self.is_wanted_file)(call.file)
                    && !self.declaration_of_origin(call.origin).is_wanted
            })?;
            if !self.has_code(&entry) {
                continue;
            }
            let call_line = entry
                .call_line
                .filter(|_| entry.call_file.is_some_and(self.is_wanted_file));
            let call_line = call_line.and_then(|line| u32::try_from(line).ok());
            let declared_line = self.declared_line(&entry);
            if call_line.is_some() || declared_line.is_some() {
                return Some(EntryPoint {
                    compile_unit: self.compile_unit,
                    offset: entry.offset,
                    call_line,
                    declared_line,
                });
            }
        }
    }

    /// Whether a DIE is a function with code, or an inlined instance within one. Tracks the enclosing function, so the DIEs must
    /// be passed in order.
    fn has_code(&mut self, entry: &ScannedDie) -> bool {
        self.function_depth = self.function_depth.filter(|depth| entry.depth > *depth);
        match entry.tag {
            gimli::DW_TAG_inlined_subroutine => self.function_depth.is_some(),
            gimli::DW_TAG_subprogram if !entry.is_declaration && entry.has_addresses => {
                let die = self.compile_unit.at(entry.offset);
                let has_code = die.is_some_and(|die| die.entry_address().is_some());
                if has_code {
                    self.function_depth.get_or_insert(entry.depth);
                }
                has_code
            }
            _ => false,
        }
    }

    /// Returns the line of the declaration, if the declaration is in a wanted file.
    fn declared_line(&mut self, entry: &ScannedDie) -> Option<u32> {
        let line = entry
            .declared_line
            .and_then(|line| u32::try_from(line).ok());
        // The scanner reads only the attributes of the DIE itself. Those that the DIE lacks are taken from its origin.
        let declaration = match (entry.declared_file, line, entry.origin) {
            (Some(file), Some(line), _) => Declaration {
                is_wanted: (self.is_wanted_file)(file),
                line: Some(line),
            },
            (file, line, Some(DieReference::SameUnit(origin))) => {
                let of_origin = self.declaration_of_origin(origin);
                Declaration {
                    is_wanted: file.map_or(of_origin.is_wanted, self.is_wanted_file),
                    line: line.or(of_origin.line),
                }
            }
            // The origin is in another unit, or there is none: reads the whole DIE, and follows references to other units.
            _ => self.declaration_at(entry.offset),
        };
        declaration.line.filter(|_| declaration.is_wanted)
    }

    fn declaration_of_origin(&mut self, origin: UnitOffset) -> Declaration {
        if let Some(known) = self.origins.get(&origin) {
            return *known;
        }
        let declaration = self.declaration_at(origin);
        self.origins.insert(origin, declaration);
        declaration
    }

    fn declaration_at(&self, offset: UnitOffset) -> Declaration {
        let Some(die) = self.compile_unit.at(offset) else {
            return Declaration {
                is_wanted: false,
                line: None,
            };
        };
        let file = die.declared_file();
        Declaration {
            is_wanted: file.is_some_and(|file| (self.is_wanted_path)(&file)),
            line: die.declared_line(),
        }
    }
}

impl<'w, 'u> Iterator for EntryPoints<'_, 'w, 'u> {
    type Item = EntryPoint<'w, 'u>;

    fn next(&mut self) -> Option<Self::Item> {
        // Taken out, so that `next_in` can borrow both the scanner and `self`.
        let mut entries = self.entries.take()?;
        let found = self.next_in(&mut entries);
        self.entries = Some(entries);
        found
    }
}
