//! Where the code of functions begins, their own and that of inlined copies, with the lines that lead there.

use gimli::UnitOffset;
use rperf_symbol::dwarf::{Origin, Skim, Skimmed};
use rustc_hash::FxHashMap;

use super::die::Die;
use super::function::is_function_or_copy;
use super::world::World;

/// The beginning of a function with code of its own, or of a copy within the code of one.
pub(crate) struct Beginning<'w, 'u> {
    world: &'w World<'u>,
    offset: UnitOffset,
    /// The line that the copy is called from, where that is in a wanted file.
    pub(crate) called: Option<u32>,
    /// The line of the declaration, where that is in a wanted file.
    pub(crate) declared: Option<u32>,
}

impl Beginning<'_, '_> {
    /// Where control enters it.
    pub(crate) fn address(&self) -> Option<u64> {
        self.world.at(self.offset)?.entry_address()
    }
}

/// What an entry says of its declaration: whether it is in a wanted file, and the line.
type Declared = (bool, Option<u32>);

/// All beginnings in a unit that have a line in a wanted file, in the order of their entries.
pub(crate) struct Beginnings<'p, 'w, 'u> {
    world: &'w World<'u>,
    entries: Option<Skim<'u, 'u>>,
    is_here: &'p dyn Fn(u64) -> bool,
    is_file: &'p dyn Fn(&str) -> bool,
    /// How deep the function with code is that the entries are below.
    function: Option<isize>,
    /// What copies have from the same entry.
    origins: FxHashMap<UnitOffset, Declared>,
}

impl<'p, 'w, 'u> Beginnings<'p, 'w, 'u> {
    /// `is_here` tells wanted files by their numbers in the line table, `is_file` by their paths.
    pub(crate) fn new(
        world: &'w World<'u>,
        is_here: &'p dyn Fn(u64) -> bool,
        is_file: &'p dyn Fn(&str) -> bool,
    ) -> Self {
        Self {
            world,
            entries: world.skim(&is_function_or_copy),
            is_here,
            is_file,
            function: None,
            origins: FxHashMap::default(),
        }
    }

    fn next_of(&mut self, entries: &mut Skim<'u, 'u>) -> Option<Beginning<'w, 'u>> {
        loop {
            // Nearly all are of other files.
            let entry = entries.next_unless(&mut |call| {
                !(self.is_here)(call.file) && !self.of_origin(call.origin).0
            })?;
            if !self.has_code(&entry) {
                continue;
            }
            let called = entry
                .call_line
                .filter(|_| entry.call_file.is_some_and(self.is_here));
            let called = called.and_then(|line| u32::try_from(line).ok());
            let declared = self.declared(&entry);
            if called.is_some() || declared.is_some() {
                return Some(Beginning {
                    world: self.world,
                    offset: entry.offset,
                    called,
                    declared,
                });
            }
        }
    }

    /// Whether an entry is a function with code, or below one.
    fn has_code(&mut self, entry: &Skimmed) -> bool {
        self.function = self.function.filter(|depth| entry.depth > *depth);
        match entry.tag {
            gimli::DW_TAG_inlined_subroutine => self.function.is_some(),
            gimli::DW_TAG_subprogram if !entry.is_declaration && entry.has_addresses => {
                let die = self.world.at(entry.offset);
                let has_code = die.is_some_and(|die| die.entry_address().is_some());
                if has_code {
                    self.function.get_or_insert(entry.depth);
                }
                has_code
            }
            _ => false,
        }
    }

    /// The line of the declaration, if that is in a wanted file.
    fn declared(&mut self, entry: &Skimmed) -> Option<u32> {
        let line = entry
            .declared_line
            .and_then(|line| u32::try_from(line).ok());
        let (is_here, line) = match (entry.declared_file, line, entry.origin) {
            (Some(file), Some(line), _) => ((self.is_here)(file), Some(line)),
            (file, line, Some(Origin::Here(origin))) => {
                let said = self.of_origin(origin);
                (file.map_or(said.0, self.is_here), line.or(said.1))
            }
            _ => self.of_entry(entry.offset),
        };
        line.filter(|_| is_here)
    }

    fn of_origin(&mut self, origin: UnitOffset) -> Declared {
        if let Some(known) = self.origins.get(&origin) {
            return *known;
        }
        let said = self.of_entry(origin);
        self.origins.insert(origin, said);
        said
    }

    fn of_entry(&self, offset: UnitOffset) -> Declared {
        let Some(die) = self.world.at(offset) else {
            return (false, None);
        };
        let file = die.declared_file();
        (
            file.is_some_and(|file| (self.is_file)(&file)),
            Die::declared_line(&die),
        )
    }
}

impl<'w, 'u> Iterator for Beginnings<'_, 'w, 'u> {
    type Item = Beginning<'w, 'u>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut entries = self.entries.take()?;
        let found = self.next_of(&mut entries);
        self.entries = Some(entries);
        found
    }
}
