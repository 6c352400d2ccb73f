//! Searches compilation units for probe points in functions given by name. Searches by lines are in [`super::lines`].

use std::cell::LazyCell;
use std::collections::BTreeSet;

use super::argument::{self, FetchedValue, ProbeContext};
use super::point_in_function::PointInFunction;
use super::source::is_path_end;
use super::symbols::check_offset;
use super::{Candidate, Probe, ProbePoints, SearchNote, SearchOptions, is_wanted};
use crate::definition::{Definition, FunctionPlace, Point, SourcePlace};
use crate::dwarf::{CompileUnit, Die, FunctionInstances, Functions};
use crate::error::Error;
use crate::object::{ProbeObject, SymbolRange};

/// A search of compilation units, with the results so far.
pub(super) struct UnitSearch<'s> {
    pub(super) object: &'s ProbeObject<'s>,
    pub(super) definition: &'s Definition,
    pub(super) options: &'s SearchOptions,
    candidates: Vec<Candidate>,
    notes: Vec<SearchNote>,
    /// Why the first skipped probe point was skipped; reported if no probe point is found.
    pub(super) skipped: Option<Error>,
    /// The lines with code nearest to the requested line, as users write them: relative to the function's declaration, if a
    /// function was requested.
    pub(super) nearest: BTreeSet<u32>,
}

impl<'s> UnitSearch<'s> {
    pub(super) fn new(
        object: &'s ProbeObject<'s>,
        definition: &'s Definition,
        options: &'s SearchOptions,
    ) -> Self {
        Self {
            object,
            definition,
            options,
            candidates: Vec::new(),
            notes: Vec::new(),
            skipped: None,
            nearest: BTreeSet::new(),
        }
    }

    /// Searches one unit.
    pub(super) fn visit(&mut self, compile_unit: &CompileUnit<'_>) -> Result<(), Error> {
        match &self.definition.point {
            Point::Function { name, file, place } => {
                let file = file.as_deref();
                let has_file = |file| {
                    let mut files = compile_unit.lines().files();
                    files.any(|path| is_path_end(path, file))
                };
                match file.is_none_or(has_file) {
                    true => self.by_name(compile_unit, name, file, place),
                    false => Ok(()),
                }
            }
            Point::File { file, place } => self.in_file(compile_unit, file, place),
            Point::Address { .. } | Point::Marker { .. } => Ok(()),
        }
    }

    /// Searches the functions that `name` selects. If `file` is given, functions declared in other files are skipped.
    fn by_name(
        &mut self,
        compile_unit: &CompileUnit<'_>,
        name: &str,
        file: Option<&str>,
        place: &FunctionPlace,
    ) -> Result<(), Error> {
        let functions = Functions::with_names(compile_unit, &|other| is_wanted(name, other));
        let is_in_file = |root: &Die<'_, '_>| {
            file.is_none_or(|file| {
                let declared = root.declared_file();
                declared.is_some_and(|declared| is_path_end(&declared, file))
            })
        };
        // Each function once: the abstract origin of its instances, or the function itself if it has no origin.
        let mut roots: Vec<Die<'_, '_>> = Vec::new();
        for die in functions.with_wanted_name() {
            let root = abstract_origin(&die);
            let is_known = roots.iter().any(|other| other.is_same(&root));
            if !is_known && is_in_file(&root) {
                roots.push(root);
            }
        }
        let instances = LazyCell::new(|| FunctionInstances::of(compile_unit, &roots));
        for (index, root) in roots.iter().enumerate() {
            match place {
                FunctionPlace::Source(place) => {
                    self.by_source(compile_unit, &functions, root, place)?
                }
                FunctionPlace::Offset(_) | FunctionPlace::Return => {
                    self.by_entry(compile_unit, &functions, root, &|| {
                        instances.of_function(index).collect()
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Adds probe points relative to the entry of the function or, if the function has no code itself, of each of its
    /// `instances`.
    fn by_entry<'w, 'u>(
        &mut self,
        compile_unit: &'w CompileUnit<'u>,
        functions: &Functions<'w, 'u>,
        root: &Die<'w, 'u>,
        instances: &dyn Fn() -> Vec<Die<'w, 'u>>,
    ) -> Result<(), Error> {
        let offset = match &self.definition.point {
            Point::Function {
                place: FunctionPlace::Offset(offset),
                ..
            } => *offset,
            _ => 0,
        };
        if let Some(entry) = root.entry_address() {
            let start = self.skip_prologue(compile_unit, root, entry);
            return self.add(
                compile_unit,
                PointInFunction {
                    function: root.clone(),
                    scope: root.clone(),
                    address: start.wrapping_add(offset),
                },
            );
        }
        for instance in instances() {
            let is_out_of_line = instance.tag() == gimli::DW_TAG_subprogram;
            let Some(entry) = instance.entry_address() else {
                continue;
            };
            if !is_out_of_line && !self.options.inlines {
                continue;
            }
            let function = match is_out_of_line {
                true => Some(instance.clone()),
                false => functions.containing(entry),
            };
            let Some(function) = function else {
                continue;
            };
            self.add(
                compile_unit,
                PointInFunction {
                    function,
                    scope: instance,
                    address: entry.wrapping_add(offset),
                },
            )?;
        }
        Ok(())
    }

    /// Returns the end of the prologue if variables are fetched at the entry of unoptimised code, where their locations are valid
    /// only after it; otherwise `entry`.
    fn skip_prologue(
        &mut self,
        compile_unit: &CompileUnit<'_>,
        function: &Die<'_, '_>,
        entry: u64,
    ) -> u64 {
        let is_entry = matches!(
            self.definition.point,
            Point::Function {
                place: FunctionPlace::Offset(0),
                ..
            }
        );
        let mut arguments = self.definition.arguments.iter();
        if !is_entry || !arguments.any(|argument| argument.needs_debug_info()) {
            return entry;
        }
        if compile_unit.is_optimised() {
            return entry;
        }
        let end = function.end_around(entry);
        let after = end.and_then(|end| compile_unit.lines().after_prologue(entry, end));
        match after.filter(|address| *address != entry) {
            Some(address) => {
                self.notes
                    .push(SearchNote::SkippedPrologue { address: entry });
                address
            }
            None => entry,
        }
    }

    /// Whether a probe point at this address is known.
    fn has_probe_at(&self, address: u64) -> bool {
        let file_offset = self.object.offset_of(address);
        let mut known = self.candidates.iter();
        known.any(|candidate| Some(candidate.probe.file_offset) == file_offset)
    }

    /// Adds a probe point with its values. Skips a point that has no file offset or is already known, and a return probe in an
    /// inlined function or not at the function's entry.
    pub(super) fn add<'w, 'u>(
        &mut self,
        compile_unit: &'w CompileUnit<'u>,
        point: PointInFunction<'w, 'u>,
    ) -> Result<(), Error> {
        let PointInFunction {
            function,
            scope,
            address,
        } = point;
        let entry = function.entry_address().unwrap_or(address);
        let symbol = function.name().unwrap_or_default();
        let offset = address.wrapping_sub(entry);
        let is_return = self.definition.point.is_return();
        let is_inlined = scope.tag() == gimli::DW_TAG_inlined_subroutine;
        if is_return && (is_inlined || offset != 0) {
            let function = scope.name().unwrap_or_default();
            self.skipped
                .get_or_insert(Error::InlinedReturn { function });
            return Ok(());
        }
        self.check(&function, &symbol, entry, offset)?;
        // Instances of one function may start at the same address.
        let file_offset = self.object.offset_of(address);
        let Some(file_offset) = file_offset.filter(|_| !self.has_probe_at(address)) else {
            return Ok(());
        };
        // Ends the search early. The final number is checked by [`super::find`].
        let limit = self.options.max_probes;
        if self.candidates.len() > limit {
            return Err(Error::TooMany { limit });
        }
        let context = ProbeContext {
            object: self.object,
            compile_unit,
            function: &function,
            scope: &scope,
            address,
            file_offset,
            is_return,
        };
        let values = argument::values(&context, &self.definition.arguments)?;
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
            values,
        });
        Ok(())
    }

    /// Checks that `offset` is an instruction boundary of the function if the user gave an offset.
    fn check(
        &self,
        function: &Die<'_, '_>,
        symbol: &str,
        entry: u64,
        offset: u64,
    ) -> Result<(), Error> {
        let is_given = matches!(
            &self.definition.point,
            Point::Function { place: FunctionPlace::Offset(given), .. } if *given > 0
        );
        match (function.end_around(entry), self.object.offset_of(entry)) {
            (Some(end), Some(file_offset)) if is_given => {
                let function = SymbolRange {
                    name: symbol.to_owned(),
                    offset: file_offset,
                    size: end - entry,
                };
                check_offset(self.object, &function, offset)
            }
            _ => Ok(()),
        }
    }

    /// Returns the probe points with all their values. If there are none, the error is why the first one was skipped, or else the
    /// nearest lines; the result is empty if neither is known.
    pub(super) fn finish(self) -> Result<ProbePoints, Error> {
        let Self {
            definition,
            mut candidates,
            mut notes,
            skipped,
            nearest,
            ..
        } = self;
        if candidates.is_empty() {
            if let Some(error) = skipped {
                return Err(error);
            }
            if !nearest.is_empty() {
                return Err(Error::NoCodeAtLine {
                    point: definition.point.to_string(),
                    nearest: nearest
                        .iter()
                        .map(|line| at_line(definition, *line))
                        .collect(),
                });
            }
        }
        // If only some of the probe points lack a value, they get a placeholder for it.
        argument::complete(&definition.arguments, &mut candidates, &mut notes)?;
        let probes = candidates.into_iter().map(|candidate| {
            let fields = candidate
                .values
                .into_iter()
                .filter_map(FetchedValue::into_field);
            Probe {
                fields: fields.collect(),
                ..candidate.probe
            }
        });
        Ok(ProbePoints {
            probes: probes.collect(),
            notes,
        })
    }
}

/// Formats the probe point of `definition` with another line.
fn at_line(definition: &Definition, line: u32) -> String {
    let mut point = definition.point.clone();
    match &mut point {
        Point::Function { place, .. } => *place = FunctionPlace::Source(SourcePlace::Line(line)),
        Point::File { place, .. } => *place = SourcePlace::Line(line),
        Point::Address { .. } | Point::Marker { .. } => {}
    }
    point.to_string()
}

/// Returns the abstract origin of an instance of a function; `die` itself if it has none.
pub(super) fn abstract_origin<'w, 'u>(die: &Die<'w, 'u>) -> Die<'w, 'u> {
    die.reference(gimli::DW_AT_abstract_origin)
        .unwrap_or_else(|| die.clone())
}
