//! The search of one unit after the other, by functions; that by lines is in [`super::lines`].

use std::cell::LazyCell;
use std::collections::BTreeSet;

use super::argument::{self, Scope, Slot};
use super::source::is_path_end;
use super::spot::Spot;
use super::symbols::check_offset;
use super::{Candidate, Found, Note, Options, Probe, is_wanted};
use crate::definition::{Definition, Place, Point, SourcePlace};
use crate::dwarf::{Copies, Die, Functions, World};
use crate::error::Error;
use crate::object::{Object, SymbolRange};

/// What was found so far.
pub(super) struct UnitSearch<'s> {
    pub(super) object: &'s Object<'s>,
    pub(super) definition: &'s Definition,
    pub(super) options: &'s Options,
    candidates: Vec<Candidate>,
    notes: Vec<Note>,
    /// What kept a place from being probed, where others may do.
    pub(super) passed_over: Option<Error>,
    /// Lines that have code of their own, in the function or file that was asked for.
    pub(super) lines: BTreeSet<u32>,
}

impl<'s> UnitSearch<'s> {
    pub(super) fn new(
        object: &'s Object<'s>,
        definition: &'s Definition,
        options: &'s Options,
    ) -> Self {
        Self {
            object,
            definition,
            options,
            candidates: Vec::new(),
            notes: Vec::new(),
            passed_over: None,
            lines: BTreeSet::new(),
        }
    }

    /// Searches one unit.
    pub(super) fn visit(&mut self, world: &World<'_>) -> Result<(), Error> {
        match &self.definition.point {
            Point::Function { name, file, place } => {
                let file = file.as_deref();
                let is_there = |file| {
                    let mut files = world.lines().files();
                    files.any(|path| is_path_end(path, file))
                };
                match file.is_none_or(is_there) {
                    true => self.functions(world, name, file, place),
                    false => Ok(()),
                }
            }
            Point::File { file, place } => self.in_file(world, file, place),
            Point::Address { .. } | Point::Marker { .. } => Ok(()),
        }
    }

    fn functions(
        &mut self,
        world: &World<'_>,
        name: &str,
        file: Option<&str>,
        place: &Place,
    ) -> Result<(), Error> {
        let functions = Functions::with_names(world, &|other| is_wanted(name, other));
        let mut roots: Vec<Die<'_, '_>> = Vec::new();
        for die in functions.named() {
            let root = root(&die);
            if roots.iter().any(|other| other.is_same(&root)) {
                continue;
            }
            let declared = file.map(|file| (file, root.declared_file()));
            let is_there = declared.is_none_or(|(file, declared)| {
                declared.is_some_and(|declared| is_path_end(&declared, file))
            });
            if is_there {
                roots.push(root);
            }
        }
        let copies = LazyCell::new(|| Copies::of(world, &roots));
        for (at, root) in roots.iter().enumerate() {
            match place {
                Place::Source(place) => self.by_source(world, &functions, root, place)?,
                Place::Offset(_) | Place::Return => {
                    self.by_entry(world, &functions, root, &|| copies.at(at).collect())?;
                }
            }
        }
        Ok(())
    }

    /// Counted from the entry of the function, or of each of its `copies`.
    fn by_entry<'w, 'u>(
        &mut self,
        world: &'w World<'u>,
        functions: &Functions<'w, 'u>,
        root: &Die<'w, 'u>,
        copies: &dyn Fn() -> Vec<Die<'w, 'u>>,
    ) -> Result<(), Error> {
        let offset = match &self.definition.point {
            Point::Function {
                place: Place::Offset(offset),
                ..
            } => *offset,
            _ => 0,
        };
        if let Some(entry) = root.entry_address() {
            let entry = self.behind_prologue(world, root, entry);
            return self.add(
                world,
                Spot {
                    function: root.clone(),
                    scope: root.clone(),
                    address: entry.wrapping_add(offset),
                },
            );
        }
        for copy in copies() {
            let is_own = copy.tag() == gimli::DW_TAG_subprogram;
            let Some(entry) = copy.entry_address() else {
                continue;
            };
            if !is_own && !self.options.inlines {
                continue;
            }
            let around = if is_own {
                Some(copy.clone())
            } else {
                functions.around(entry)
            };
            let Some(function) = around else {
                continue;
            };
            self.add(
                world,
                Spot {
                    function,
                    scope: copy,
                    address: entry.wrapping_add(offset),
                },
            )?;
        }
        Ok(())
    }

    /// Without optimisation variables are in their places only behind the prologue: probes for them go there.
    fn behind_prologue(&mut self, world: &World<'_>, function: &Die<'_, '_>, entry: u64) -> u64 {
        let is_entry = matches!(
            self.definition.point,
            Point::Function {
                place: Place::Offset(0),
                ..
            }
        );
        let mut arguments = self.definition.arguments.iter();
        if !is_entry || !arguments.any(|argument| argument.needs_debug_info()) {
            return entry;
        }
        if world.is_optimised() {
            return entry;
        }
        let end = function.end_around(entry);
        let behind = end.and_then(|end| world.lines().behind_prologue(entry, end));
        match behind.filter(|address| *address != entry) {
            Some(address) => {
                self.notes.push(Note::SkippedPrologue { address: entry });
                address
            }
            None => entry,
        }
    }

    fn has(&self, address: u64) -> bool {
        let offset = self.object.offset_of(address);
        let mut known = self.candidates.iter();
        known.any(|candidate| Some(candidate.probe.file_offset) == offset)
    }

    /// Adds a place, with what is fetched there.
    pub(super) fn add<'w, 'u>(
        &mut self,
        world: &'w World<'u>,
        spot: Spot<'w, 'u>,
    ) -> Result<(), Error> {
        let Spot {
            function,
            scope,
            address,
        } = spot;
        let entry = function.entry_address().unwrap_or(address);
        let symbol = function.name().unwrap_or_default();
        let offset = address.wrapping_sub(entry);
        let is_return = self.definition.point.is_return();
        let is_inlined = scope.tag() == gimli::DW_TAG_inlined_subroutine;
        if is_return && (is_inlined || offset != 0) {
            let function = scope.name().unwrap_or_default();
            self.passed_over
                .get_or_insert(Error::InlinedReturn { function });
            return Ok(());
        }
        self.check(&function, &symbol, entry, offset)?;
        let Some(file_offset) = self.object.offset_of(address) else {
            return Ok(());
        };
        // Copies of one function may begin at one address.
        if self.has(address) {
            return Ok(());
        }
        let limit = self.options.max_probes;
        if self.candidates.len() > limit {
            return Err(Error::TooMany { limit });
        }
        let found = Scope {
            object: self.object,
            world,
            function: &function,
            scope: &scope,
            address,
            file_offset,
            is_return,
        };
        let slots = argument::slots(&found, &self.definition.arguments)?;
        self.candidates.push(Candidate {
            probe: Probe {
                symbol,
                offset,
                name: scope.name().unwrap_or_default(),
                provider: None,
                file_offset,
                semaphore: None,
                is_return,
                is_inlined,
                fields: Vec::new(),
            },
            slots,
        });
        Ok(())
    }

    /// An offset that the user chose must lead to an instruction of the function.
    fn check(
        &self,
        function: &Die<'_, '_>,
        symbol: &str,
        entry: u64,
        offset: u64,
    ) -> Result<(), Error> {
        let is_chosen = matches!(
            &self.definition.point,
            Point::Function { place: Place::Offset(chosen), .. } if *chosen > 0
        );
        match (function.end_around(entry), self.object.offset_of(entry)) {
            (Some(end), Some(start)) if is_chosen => {
                let function = SymbolRange {
                    name: symbol.to_owned(),
                    offset: start,
                    size: end - entry,
                };
                check_offset(self.object, &function, offset)
            }
            _ => Ok(()),
        }
    }

    /// The places that were found, each with all that is to be fetched.
    pub(super) fn finish(self) -> Result<Found, Error> {
        let Self {
            definition,
            mut candidates,
            mut notes,
            passed_over,
            lines,
            ..
        } = self;
        if candidates.is_empty() {
            if let Some(error) = passed_over {
                return Err(error);
            }
            if !lines.is_empty() {
                return Err(Error::NoPoint {
                    point: definition.point.to_string(),
                    nearest: lines
                        .iter()
                        .map(|line| at_line(definition, *line))
                        .collect(),
                });
            }
        }
        argument::complete(&definition.arguments, &mut candidates, &mut notes)?;
        let probes = candidates.into_iter().map(|candidate| {
            let fields = candidate.slots.into_iter().filter_map(Slot::into_field);
            Probe {
                fields: fields.collect(),
                ..candidate.probe
            }
        });
        Ok(Found {
            probes: probes.collect(),
            notes,
        })
    }
}

/// The same place at another line.
fn at_line(definition: &Definition, line: u32) -> String {
    let mut point = definition.point.clone();
    match &mut point {
        Point::Function { place, .. } => *place = Place::Source(SourcePlace::Line(line)),
        Point::File { place, .. } => *place = SourcePlace::Line(line),
        Point::Address { .. } | Point::Marker { .. } => {}
    }
    point.to_string()
}

/// What a copy is a copy of.
pub(super) fn root<'w, 'u>(die: &Die<'w, 'u>) -> Die<'w, 'u> {
    die.reference(gimli::DW_AT_abstract_origin)
        .unwrap_or_else(|| die.clone())
}
