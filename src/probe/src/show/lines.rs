//! Source text annotated with the lines that can be probed.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::definition::{SyntaxError, number};
use crate::dwarf::{CompileUnit, Die, FunctionInstances, Functions};
use crate::error::Error;
use crate::object::ProbeObject;
use crate::search::{SearchOptions, SourceText, UnitQuery, is_path_end, is_wanted, line_places};

/// Lines shown after the end of a function.
const LINES_AFTER_END: u32 = 3;

/// Lines to show: `FUNC[@SRC][:FIRST[-LAST|+COUNT]]`, `SRC[:FIRST[-LAST|+COUNT]]`. A name with a `.` or `/` but without `::` is a
/// SRC, unless it is that of a C++ operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineRange {
    function: Option<String>,
    file: Option<String>,
    /// Relative to the line of the function's declaration, or counted from 1 in a file; `None` for the declaration or the
    /// beginning of the file.
    first: Option<u32>,
    /// Counted like `first`; `None` for [`LINES_AFTER_END`] lines after the end of the function, or for the end of the
    /// file.
    last: Option<u32>,
}

/// A line of source text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownLine {
    /// Its number if it can be probed: relative to the line of the function's declaration, or counted from 1 in a file.
    pub number: Option<u32>,
    /// Its text.
    pub text: String,
}

/// The lines of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRange {
    /// The function, unless a file was requested.
    pub function: Option<String>,
    /// The path of the file that was read.
    pub file: String,
    /// The number of the first line, counted like [`ShownLine::number`].
    pub first: u32,
    /// The lines.
    pub lines: Vec<ShownLine>,
}

impl LineRange {
    /// Parses a range.
    ///
    /// # Errors
    ///
    /// The cause and its position.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        // The `::` of C++ and Rust names does not begin a range.
        let colon = text.rfind(':').filter(|at| !text[..*at].ends_with(':'));
        let (name, range) = match colon {
            Some(at) => (&text[..at], text.get(at + 1..).unwrap_or_default()),
            None => (text, ""),
        };
        let (name, file) = match name.split_once('@') {
            Some((name, file)) => (name, Some(file.to_owned())),
            None => (name, None),
        };
        if name.is_empty() {
            return Err(SyntaxError::new(0, "no function or file given"));
        }
        // The position of the range, for errors in it.
        let at = text.len() - range.len();
        let line = |text: &str| {
            let line = number(text).and_then(|line| u32::try_from(line).ok());
            line.ok_or_else(|| {
                SyntaxError::new(at, format!("'{text}' is not the number of a line"))
            })
        };
        let (first, last) = match range {
            "" => (None, None),
            range => match range.split_once(['-', '+']) {
                Some((first, end)) => {
                    let (first, end) = (line(first)?, line(end)?);
                    let is_count = range.contains('+');
                    let last = if is_count {
                        first.saturating_add(end).saturating_sub(1)
                    } else {
                        end
                    };
                    (Some(first), Some(last))
                }
                None => (Some(line(range)?), None),
            },
        };
        if last.is_some_and(|last| Some(last) < first) {
            return Err(SyntaxError::new(at, "the last line is before the first"));
        }
        let is_function = name.contains("::") || name.starts_with("operator/");
        let is_file = file.is_none() && name.contains(['.', '/']) && !is_function;
        Ok(match is_file {
            true => Self {
                function: None,
                file: Some(name.to_owned()),
                first,
                last,
            },
            false => Self {
                function: Some(name.to_owned()),
                file,
                first,
                last,
            },
        })
    }
}

/// A [`LineRange`] as lines of one source file: of the file that declares the function, or of the requested file.
struct MatchedRange {
    function: Option<String>,
    file: String,
    /// The line of the function's declaration, to which numbers are relative; 0 for a file.
    base: u32,
    /// The first line, counted from 1 in the file, like the other lines here.
    first: u32,
    last: u32,
    /// The lines that can be probed, including lines outside of the range.
    probed: BTreeSet<u32>,
}

/// Returns the source text of a range; the lines that can be probed have numbers.
///
/// # Errors
///
/// The function or file does not exist, or debug information or source text is missing.
pub fn lines(
    object: &ProbeObject<'_>,
    range: &LineRange,
    options: &SearchOptions,
) -> Result<SourceRange, Error> {
    let info = object.inputs.info.ok_or_else(|| Error::NoDebugInfo {
        path: object.inputs.path.to_owned(),
    })?;
    let is_function = range.function.is_some();
    let mut matched: Option<MatchedRange> = None;
    let query = UnitQuery {
        function: range.function.as_deref(),
        file: range.file.as_deref(),
    };
    query.for_each(info, object, options, &mut |compile_unit| {
        match (&mut matched, in_unit(compile_unit, range)) {
            // Lines of a file may be in several units. Of several files whose path ends in the requested one, the first is shown.
            (Some(matched), Some(other)) if matched.file == other.file => {
                matched.probed.extend(other.probed);
            }
            (None, found) => matched = found,
            _ => {}
        }
        match matched.is_some() && is_function {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let mut matched = matched.ok_or_else(|| {
        let name = range.function.as_deref().or(range.file.as_deref());
        let name = name.unwrap_or_default();
        Error::NoPoint {
            point: name.to_owned(),
            nearest: object.nearest(name),
        }
    })?;
    let text = SourceText::read(object, options, &matched.file)?;
    let count = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    matched.last = matched.last.min(count);
    let numbered = (1..).zip(text.lines());
    let in_range = numbered.filter(|(line, _)| (matched.first..=matched.last).contains(line));
    let lines = in_range.map(|(line, text)| ShownLine {
        number: matched
            .probed
            .contains(&line)
            .then(|| line.wrapping_sub(matched.base)),
        text: String::from_utf8_lossy(text).into_owned(),
    });
    Ok(SourceRange {
        lines: lines.collect(),
        function: matched.function,
        file: text.path,
        first: matched.first.wrapping_sub(matched.base),
    })
}

/// Returns the lines of a range in a unit; `None` if the unit has no such file or function.
fn in_unit(compile_unit: &CompileUnit<'_>, range: &LineRange) -> Option<MatchedRange> {
    let is_wanted_path = |path: &str| match &range.file {
        Some(file) => is_path_end(path, file),
        None => true,
    };
    // For a function, `path` is not used: this only skips units without the `SRC` of `FUNC@SRC`.
    let path = compile_unit
        .lines()
        .files()
        .find(|path| is_wanted_path(path))?;
    let Some(name) = &range.function else {
        let functions = Functions::read(compile_unit);
        let places = line_places(compile_unit, &|other| other == path);
        return Some(MatchedRange {
            function: None,
            file: path.to_owned(),
            base: 0,
            first: range.first.unwrap_or(1).max(1),
            last: range.last.unwrap_or(u32::MAX),
            probed: representatives(compile_unit, &functions, path, &places),
        });
    };
    let functions = Functions::with_names(compile_unit, &|other| is_wanted(name, other));
    let function = functions.with_wanted_name().find(|function| {
        let declared = function.declared_file();
        declared.is_some_and(|path| is_wanted_path(&path))
    })?;
    let file = function.declared_file()?;
    let base = function.declared_line()?;
    let instances = instances(compile_unit, &function);
    // A line before the declaration, such as that of a function inlined here, has no number relative to it.
    let is_inside = |line, address| {
        let covers = |instance: &Die<'_, '_>| instance.covers(address);
        line >= base && instances.iter().any(covers)
    };
    let mut places = line_places(compile_unit, &|other| other == file);
    places.retain(|(line, address)| is_inside(*line, *address));
    let end = places.iter().map(|(line, _)| *line).max().unwrap_or(base);
    Some(MatchedRange {
        function: Some(name.clone()),
        base,
        first: base.saturating_add(range.first.unwrap_or(0)),
        last: match range.last {
            Some(last) => base.saturating_add(last),
            None => end.saturating_add(LINES_AFTER_END),
        },
        probed: representatives(compile_unit, &functions, &file, &places),
        file,
    })
}

/// Returns the function itself if it has code, otherwise its inlined and out-of-line instances.
fn instances<'w, 'u>(
    compile_unit: &'w CompileUnit<'u>,
    function: &Die<'w, 'u>,
) -> Vec<Die<'w, 'u>> {
    match function.entry_address() {
        Some(_) => vec![function.clone()],
        None => {
            let instances = FunctionInstances::of(compile_unit, std::slice::from_ref(function));
            // 0 is the index in the slice, which contains only this function.
            instances.of_function(0).collect()
        }
    }
}

/// Returns the lines of `places` that can be probed: those that represent an address with which they occur in `places`.
/// - The entry of a function is represented by the line of its declaration.
/// - Another address is represented by the line of its first row in the line table.
/// - If there is no such row, or it is in a file other than `file`, all lines that `places` has for the address represent it.
fn representatives(
    compile_unit: &CompileUnit<'_>,
    functions: &Functions<'_, '_>,
    file: &str,
    places: &[(u32, u64)],
) -> BTreeSet<u32> {
    let entries: BTreeSet<(u64, Option<u32>)> = functions
        .with_code()
        .filter_map(|function| Some((function.entry_address()?, function.declared_line())))
        .collect();
    let represents = |line: u32, address: u64| {
        let mut at_address = entries.range((address, None)..=(address, Some(u32::MAX)));
        match at_address.next() {
            Some((_, declared)) => *declared == Some(line),
            None => compile_unit.lines().at(address).is_none_or(|row| {
                row.line == line || compile_unit.lines().file(row.file) != Some(file)
            }),
        }
    };
    let representing = places
        .iter()
        .filter(|(line, address)| represents(*line, *address));
    representing.map(|(line, _)| *line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed() {
        let parse = |text: &str| LineRange::parse(text).unwrap();
        let range = parse("f:10+20");
        assert_eq!((range.first, range.last), (Some(10), Some(29)));
        assert_eq!(range.function.as_deref(), Some("f"));
        let range = parse("a.c:3-5");
        assert_eq!(
            (range.file.as_deref(), range.first, range.last),
            (Some("a.c"), Some(3), Some(5))
        );
        let range = parse("f@a.c");
        assert_eq!(
            (range.function.as_deref(), range.file.as_deref()),
            (Some("f"), Some("a.c"))
        );
        assert_eq!(
            parse("dir/Makefile:3").file.as_deref(),
            Some("dir/Makefile")
        );
        for name in ["a::operator/", "operator/="] {
            assert_eq!(parse(name).function.as_deref(), Some(name));
        }
        assert_eq!(parse("a::b").function.as_deref(), Some("a::b"));
        assert_eq!(parse("a::b:2").first, Some(2));
        for wrong in ["", ":3", "f:x", "f:5-3"] {
            assert!(LineRange::parse(wrong).is_err(), "{wrong}");
        }
    }
}
