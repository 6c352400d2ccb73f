//! The search of one unit after the other.

use std::collections::{BTreeMap, BTreeSet};

use rperf_events::{is_pattern, matches_pattern};
use rperf_symbol::demangle::demangle;

use super::argument::{self, Scope, Slot};
use super::source::{SourceText, is_path_end};
use super::symbols::check_offset;
use super::{Candidate, Found, Note, Options, Probe};
use crate::definition::{Definition, Place, Point, SourcePlace};
use crate::dwarf::{Die, Functions, Instances, World};
use crate::error::Error;
use crate::object::{Object, SymbolRange};

/// How many lines with code are proposed instead of one without.
const PROPOSALS: usize = 4;

/// Whether a function's name is the wanted one, or matches that pattern. Names with paths are compared with the readable
/// form of linker names.
pub(crate) fn is_wanted(wanted: &str, name: &str) -> bool {
    if is_pattern(wanted) {
        return matches_pattern(wanted, name);
    }
    // All instances of a generic function go by its name.
    let generic = name.split_once('<').map(|(generic, _)| generic);
    if name == wanted || generic == Some(wanted) {
        return true;
    }
    wanted.contains("::")
        && demangle(name).is_some_and(|readable| {
            let bare = readable.strip_suffix(wanted);
            bare.is_some_and(|before| before.is_empty() || before.ends_with("::"))
        })
}

/// The addresses of source lines: where statements begin, where functions are declared, and where inlined ones are called.
pub(crate) fn line_places(
    world: &World<'_>,
    functions: &Functions<'_, '_>,
    is_file: &dyn Fn(&str) -> bool,
) -> Vec<(u32, u64)> {
    let table = world.lines();
    let wanted = table.positions(is_file);
    let mut found = Vec::new();
    if wanted.is_empty() {
        return found;
    }
    let rows = table.rows().iter();
    let rows = rows.filter(|row| row.is_statement && !row.is_end && row.line > 0);
    found.extend(
        rows.filter(|row| wanted.contains(&row.file))
            .map(|row| (row.line, row.address)),
    );
    let mut add = |file: Option<String>, line: Option<u32>, address: Option<u64>| {
        if let (Some(file), Some(line), Some(address)) = (file, line, address)
            && is_file(&file)
        {
            found.push((line, address));
        }
    };
    for function in functions.with_code() {
        let entry = function.entry_address();
        add(function.declared_file(), function.declared_line(), entry);
        function.walk(&mut |die| {
            if die.tag() == gimli::DW_TAG_inlined_subroutine {
                let entry = die.entry_address();
                add(die.call_file(), die.call_line(), entry);
                add(die.declared_file(), die.declared_line(), entry);
            }
            true
        });
    }
    found
}

/// What was found so far.
pub(super) struct UnitSearch<'s> {
    object: &'s Object<'s>,
    definition: &'s Definition,
    options: &'s Options,
    candidates: Vec<Candidate>,
    notes: Vec<Note>,
    /// What kept a place from being probed, where others may do.
    passed_over: Option<Error>,
    /// Lines that have code of their own, in the function or file that was asked for.
    lines: BTreeSet<u32>,
}

/// A place in a function.
pub(crate) struct Spot<'w, 'u> {
    /// The function whose code it is.
    pub(crate) function: Die<'w, 'u>,
    /// The function that was asked for.
    pub(crate) scope: Die<'w, 'u>,
    pub(crate) address: u64,
}

impl<'w, 'u> Spot<'w, 'u> {
    /// The place at `address` in the function, inlined or not, of this name; in the innermost where none has it.
    pub(crate) fn around(world: &'w World<'u>, address: u64, name: &str) -> Option<Self> {
        let function = Functions::read(world).around(address)?;
        let is_named = |die: &Die<'w, 'u>| die.name().as_deref() == Some(name);
        let at = Instances::at(&function, address);
        let mut named = at.iter().find(|die| is_named(die)).cloned();
        // The entry of a copy need not be among the addresses that it covers.
        function.walk(&mut |die| {
            let is_copy = die.tag() == gimli::DW_TAG_inlined_subroutine;
            if named.is_none() && is_copy && die.entry_address() == Some(address) && is_named(die) {
                named = Some(die.clone());
            }
            named.is_none()
        });
        let scope = named.or_else(|| at.last().cloned())?;
        Some(Self {
            function,
            scope,
            address,
        })
    }
}

/// What is searched by its lines.
struct LineSearch<'p, 'w, 'u> {
    file: &'p dyn Fn(&str) -> bool,
    /// The function that the lines must be in.
    function: Option<&'p Die<'w, 'u>>,
    lines: &'p [u32],
    /// Whether the line must be the one that stands for its address.
    is_exact: bool,
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
                let mut files = world.lines().files();
                if file.is_none_or(|file| files.any(|path| is_path_end(path, file))) {
                    return self.functions(world, name, file, place);
                }
                Ok(())
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
        let functions = Functions::read(world);
        let mut seen: Vec<Die<'_, '_>> = Vec::new();
        for die in functions.named(&|other| is_wanted(name, other)) {
            let root = root(&die);
            if seen.iter().any(|other| other.is_same(&root)) {
                continue;
            }
            seen.push(root.clone());
            let declared = root.declared_file();
            let is_there = |file| {
                declared
                    .as_deref()
                    .is_some_and(|path| is_path_end(path, file))
            };
            if !file.is_none_or(is_there) {
                continue;
            }
            match place {
                Place::Source(place) => self.by_source(world, &functions, &root, place)?,
                Place::Offset(_) | Place::Return => self.by_entry(world, &functions, &root)?,
            }
        }
        Ok(())
    }

    /// Counted from the entry of the function, or of each of its copies.
    fn by_entry<'w, 'u>(
        &mut self,
        world: &'w World<'u>,
        functions: &Functions<'w, 'u>,
        root: &Die<'w, 'u>,
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
        for copy in Instances::of(world, root) {
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

    fn by_source<'w, 'u>(
        &mut self,
        world: &'w World<'u>,
        functions: &Functions<'w, 'u>,
        root: &Die<'w, 'u>,
        place: &SourcePlace,
    ) -> Result<(), Error> {
        let (Some(path), Some(declared)) = (root.declared_file(), root.declared_line()) else {
            return Ok(());
        };
        let lines = self.wanted_lines(place, &path, declared)?;
        let search = LineSearch {
            file: &|other: &str| other == path,
            function: Some(root),
            lines: &lines,
            is_exact: matches!(place, SourcePlace::Line(_)),
        };
        self.by_lines(world, functions, &search)
    }

    fn in_file(&mut self, world: &World<'_>, file: &str, place: &SourcePlace) -> Result<(), Error> {
        let mut files = world.lines().files();
        let Some(path) = files.find(|path| is_path_end(path, file)) else {
            return Ok(());
        };
        let lines = self.wanted_lines(place, path, 0)?;
        let functions = Functions::read(world);
        let search = LineSearch {
            file: &|path| is_path_end(path, file),
            function: None,
            lines: &lines,
            is_exact: matches!(place, SourcePlace::Line(_)),
        };
        self.by_lines(world, &functions, &search)
    }

    /// The lines of the file at `path` that are meant; numbers count from `base`.
    fn wanted_lines(&self, place: &SourcePlace, path: &str, base: u32) -> Result<Vec<u32>, Error> {
        match place {
            SourcePlace::Line(line) => Ok(vec![base.saturating_add(*line)]),
            SourcePlace::Pattern(pattern) => {
                Ok(SourceText::read(self.object, self.options, path)?.matching(pattern))
            }
        }
    }

    fn by_lines<'w, 'u>(
        &mut self,
        world: &'w World<'u>,
        functions: &Functions<'w, 'u>,
        search: &LineSearch<'_, 'w, 'u>,
    ) -> Result<(), Error> {
        let mut around: BTreeMap<u64, Option<Die<'w, 'u>>> = BTreeMap::new();
        let mut places = line_places(world, functions, search.file);
        let nearest = self.nearest_lines(&places, search);
        places.retain(|(line, _)| search.lines.contains(line));
        for (line, address) in places {
            let function = around
                .entry(address)
                .or_insert_with(|| functions.around(address));
            let Some(function) = function.clone() else {
                continue;
            };
            let Some(scope) = scope(&function, search, line, address) else {
                continue;
            };
            if search.is_exact
                && let Some(instead) = representative(world, &scope, &function, line, address)
            {
                let instead = match search.function.and_then(Die::declared_line) {
                    Some(first) => {
                        let name = scope.name().unwrap_or_default();
                        format!("{name}:{}", i64::from(instead.1) - i64::from(first))
                    }
                    None => format!("{}:{}", instead.0, instead.1),
                };
                self.passed_over
                    .get_or_insert(Error::SharedLine { instead });
                continue;
            }
            self.add(
                world,
                Spot {
                    function,
                    scope,
                    address,
                },
            )?;
        }
        self.lines.extend(nearest);
        Ok(())
    }

    /// The lines with code that are nearest to the first one asked for, as a user would write them.
    fn nearest_lines(&self, places: &[(u32, u64)], search: &LineSearch<'_, '_, '_>) -> Vec<u32> {
        let Some(wanted) = search.lines.first().filter(|_| search.is_exact) else {
            return Vec::new();
        };
        let first = search.function.and_then(Die::declared_line).unwrap_or(0);
        let inside = places.iter().filter(|(line, address)| {
            *line >= first
                && search
                    .function
                    .is_none_or(|function| function.covers(*address))
        });
        let mut lines: Vec<u32> = inside.map(|(line, _)| *line).collect();
        lines.sort_unstable_by_key(|line| (line.abs_diff(*wanted), *line));
        lines.dedup();
        lines.truncate(PROPOSALS);
        lines.iter().map(|line| line - first).collect()
    }

    fn has(&self, address: u64) -> bool {
        let offset = self.object.offset_of(address);
        let mut known = self.candidates.iter();
        known.any(|candidate| Some(candidate.probe.file_offset) == offset)
    }

    /// Adds a place, with what is fetched there.
    fn add<'w, 'u>(&mut self, world: &'w World<'u>, spot: Spot<'w, 'u>) -> Result<(), Error> {
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
        if self.candidates.len() > self.options.max_probes {
            return Err(Error::TooMany {
                limit: self.options.max_probes,
            });
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
fn root<'w, 'u>(die: &Die<'w, 'u>) -> Die<'w, 'u> {
    die.reference(gimli::DW_AT_abstract_origin)
        .unwrap_or_else(|| die.clone())
}

/// The function that a line at `address` is in: the one that was asked for, else the one that is declared nearest above it.
fn scope<'w, 'u>(
    function: &Die<'w, 'u>,
    search: &LineSearch<'_, 'w, 'u>,
    line: u32,
    address: u64,
) -> Option<Die<'w, 'u>> {
    let at = Instances::at(function, address);
    if let Some(wanted) = search.function {
        let wanted = root(wanted);
        return at.into_iter().find(|die| root(die).is_same(&wanted));
    }
    let distance = |die: &Die<'w, 'u>| {
        let declared = die.declared_line()?;
        let path = die.declared_file()?;
        (declared <= line && (search.file)(&path)).then(|| line - declared)
    };
    let nearest = at
        .iter()
        .filter_map(|die| Some((distance(die)?, die)))
        .min_by_key(|(distance, _)| *distance);
    nearest
        .map(|(_, die)| die.clone())
        .or_else(|| at.last().cloned())
}

/// File and line that stand for `address` where these are others than `line`: those of the declaration at a function's entry, else the
/// first of the line table.
fn representative(
    world: &World<'_>,
    scope: &Die<'_, '_>,
    function: &Die<'_, '_>,
    line: u32,
    address: u64,
) -> Option<(String, u32)> {
    let own = scope.declared_file()?;
    let (path, found) = if function.entry_address() == Some(address) {
        (function.declared_file()?, function.declared_line()?)
    } else {
        let row = world.lines().at(address)?;
        (world.lines().file(row.file)?.to_owned(), row.line)
    };
    (path == own && found != line).then_some((path, found))
}
