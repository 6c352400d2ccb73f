//! Finds probe points by source lines.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use super::point_in_function::PointInFunction;
use super::source::{SourceText, is_path_end};
use super::unit::{UnitSearch, abstract_origin};
use crate::definition::SourcePlace;
use crate::dwarf::{CompileUnit, Die, EntryPoints, Functions, InlinedInstances};
use crate::error::Error;

/// The maximum number of lines with code that are suggested for a line without code.
const MAX_SUGGESTIONS: usize = 4;

/// Returns lines of the files that `is_file` accepts, each with an address. A line may occur several times:
/// - with each address at which a statement of the line starts;
/// - if it declares a function, with the entries of the function and of its inlined instances;
/// - if it calls an inlined function, with the entry of the inlined instance.
pub(crate) fn line_places(
    compile_unit: &CompileUnit<'_>,
    is_file: &dyn Fn(&str) -> bool,
) -> Vec<(u32, u64)> {
    let table = compile_unit.lines();
    let files = table.file_indices(is_file);
    let mut places = Vec::new();
    if files.is_empty() {
        return places;
    }
    let rows = table.rows().iter();
    let rows = rows.filter(|row| row.is_statement && !row.ends_sequence && row.line > 0);
    places.extend(
        rows.filter(|row| files.contains(&row.file))
            .map(|row| (row.line, row.address)),
    );
    let is_file_index = |index: u64| files.contains(&index);
    for entry in EntryPoints::new(compile_unit, &is_file_index, is_file) {
        let lines = [entry.call_line, entry.declared_line];
        if let Some(address) = entry.address() {
            places.extend(lines.into_iter().flatten().map(|line| (line, address)));
        }
    }
    places
}

/// The parameters of a search by lines.
struct LineSearch<'p, 'w, 'u> {
    /// Whether a path is that of the file with the lines.
    is_file: &'p dyn Fn(&str) -> bool,
    /// The requested function, which must contain the lines; `None` if a file was requested.
    function: Option<&'p Die<'w, 'u>>,
    /// The requested lines, counted from 1 in the file.
    lines: &'p [u32],
    /// Whether the user gave the number of a line, and not a pattern. If it is a number, the line is skipped at addresses that
    /// another line represents (see [`representative`]).
    is_number: bool,
}

impl UnitSearch<'_> {
    /// Searches lines of the function `root`. Line numbers in `place` are relative to the function's declaration.
    pub(super) fn by_source<'w, 'u>(
        &mut self,
        compile_unit: &'w CompileUnit<'u>,
        functions: &Functions<'w, 'u>,
        root: &Die<'w, 'u>,
        place: &SourcePlace,
    ) -> Result<(), Error> {
        let (Some(path), Some(declared)) = (root.declared_file(), root.declared_line()) else {
            return Ok(());
        };
        let lines = self.requested_lines(place, &path, declared)?;
        let search = LineSearch {
            is_file: &|other: &str| other == path,
            function: Some(root),
            lines: &lines,
            is_number: matches!(place, SourcePlace::Line(_)),
        };
        self.by_lines(
            compile_unit,
            &|address| functions.containing(address),
            &search,
        )
    }

    /// Searches lines of the files whose path is `file` or ends in it.
    pub(super) fn in_file(
        &mut self,
        compile_unit: &CompileUnit<'_>,
        file: &str,
        place: &SourcePlace,
    ) -> Result<(), Error> {
        let mut files = compile_unit.lines().files();
        let Some(path) = files.find(|path| is_path_end(path, file)) else {
            return Ok(());
        };
        let file_base = 0;
        let lines = self.requested_lines(place, path, file_base)?;
        let search = LineSearch {
            is_file: &|path| is_path_end(path, file),
            function: None,
            lines: &lines,
            is_number: matches!(place, SourcePlace::Line(_)),
        };
        // Computed on demand: most units that have the file have no code of these lines.
        let functions = LazyCell::new(|| Functions::read(compile_unit));
        self.by_lines(
            compile_unit,
            &|address| functions.containing(address),
            &search,
        )
    }

    /// Returns the requested lines of the file at `path`, counted from 1. A line number in `place` is relative to `base`: the
    /// line of the function's declaration, or 0 for a file.
    fn requested_lines(
        &self,
        place: &SourcePlace,
        path: &str,
        base: u32,
    ) -> Result<Vec<u32>, Error> {
        match place {
            SourcePlace::Line(line) => Ok(vec![base.saturating_add(*line)]),
            SourcePlace::Pattern(pattern) => {
                Ok(SourceText::read(self.object, self.options, path)?.matching(pattern))
            }
        }
    }

    /// Searches by lines; `function_around` returns the function whose code contains an address.
    fn by_lines<'w, 'u>(
        &mut self,
        compile_unit: &'w CompileUnit<'u>,
        function_around: &dyn Fn(u64) -> Option<Die<'w, 'u>>,
        search: &LineSearch<'_, 'w, 'u>,
    ) -> Result<(), Error> {
        // Each address is looked up only once: several lines may have it.
        let mut function_by_address: BTreeMap<u64, Option<Die<'w, 'u>>> = BTreeMap::new();
        let mut places = line_places(compile_unit, search.is_file);
        let nearest = self.nearest_lines(&places, search);
        places.retain(|(line, _)| search.lines.contains(line));
        for (line, address) in places {
            let function = function_by_address
                .entry(address)
                .or_insert_with(|| function_around(address));
            let Some(function) = function.clone() else {
                continue;
            };
            let Some(scope) = scope(&function, search, line, address) else {
                continue;
            };
            if search.is_number
                && let Some((main_file, main_line)) =
                    representative(compile_unit, &scope, &function, line, address)
            {
                let declared = search.function.and_then(Die::declared_line);
                let relative = declared.and_then(|declared| main_line.checked_sub(declared));
                let instead = match relative {
                    Some(relative) => format!("{}:{relative}", scope.name().unwrap_or_default()),
                    None => format!("{main_file}:{main_line}"),
                };
                self.skipped.get_or_insert(Error::SharedLine { instead });
                continue;
            }
            self.add(
                compile_unit,
                PointInFunction {
                    function,
                    scope,
                    address,
                },
            )?;
        }
        self.nearest.extend(nearest);
        Ok(())
    }

    /// Returns the lines with code nearest to the requested line, as users write them: relative to the function's declaration,
    /// if a function was requested. Empty for a pattern.
    fn nearest_lines(&self, places: &[(u32, u64)], search: &LineSearch<'_, '_, '_>) -> Vec<u32> {
        let Some(requested) = search.lines.first().filter(|_| search.is_number) else {
            return Vec::new();
        };
        let base = search.function.and_then(Die::declared_line).unwrap_or(0);
        let inside = places.iter().filter(|(line, address)| {
            *line >= base
                && search
                    .function
                    .is_none_or(|function| function.covers(*address))
        });
        let mut lines: Vec<u32> = inside.map(|(line, _)| *line).collect();
        lines.sort_unstable_by_key(|line| (line.abs_diff(*requested), *line));
        lines.dedup();
        lines.truncate(MAX_SUGGESTIONS);
        lines.iter().map(|line| line - base).collect()
    }
}

/// Returns the function to which a line belongs at `address`: `function`, which contains the code, or one inlined there.
/// - If a function was requested: the requested one, or `None` if it is not at `address`.
/// - If a file was requested: the one declared nearest above the line in that file or, if there is none, the innermost one.
fn scope<'w, 'u>(
    function: &Die<'w, 'u>,
    search: &LineSearch<'_, 'w, 'u>,
    line: u32,
    address: u64,
) -> Option<Die<'w, 'u>> {
    // From `function` itself to the innermost inlined function.
    let nested = InlinedInstances::at(function, address);
    if let Some(requested) = search.function {
        let requested = abstract_origin(requested);
        return nested
            .into_iter()
            .find(|die| abstract_origin(die).is_same(&requested));
    }
    let distance = |die: &Die<'w, 'u>| {
        let declared = die.declared_line()?;
        let path = die.declared_file()?;
        (declared <= line && (search.is_file)(&path)).then(|| line - declared)
    };
    let nearest = nested
        .iter()
        .filter_map(|die| Some((distance(die)?, die)))
        .min_by_key(|(distance, _)| *distance);
    nearest
        .map(|(_, die)| die.clone())
        .or_else(|| nested.last().cloned())
}

/// Returns the file and line that represent `address` instead of `line`: at the entry of `function` its declaration, otherwise
/// the first line for the address in the line table. `None` if `line` itself represents the address, or if the representative is
/// unknown or in another file than the declaration of `scope`.
fn representative(
    compile_unit: &CompileUnit<'_>,
    scope: &Die<'_, '_>,
    function: &Die<'_, '_>,
    line: u32,
    address: u64,
) -> Option<(String, u32)> {
    let declared_path = scope.declared_file()?;
    let (path, main_line) = if function.entry_address() == Some(address) {
        (function.declared_file()?, function.declared_line()?)
    } else {
        let row = compile_unit.lines().at(address)?;
        (compile_unit.lines().file(row.file)?.to_owned(), row.line)
    };
    (path == declared_path && main_line != line).then_some((path, main_line))
}
