//! One function's instructions with their samples, as text.

mod columns;
mod full_listing;
mod hottest_instructions;
mod short_listing;
mod summary;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

pub use self::columns::percent;

use rperf_disasm::{HitCount, LineSite, Listing, SampledFunction};

use crate::terminal::Csi;

/// The kind of numbers before each instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnnotateColumn {
    /// Percentages of [`Annotation::totals`].
    #[default]
    Percent,
    /// Numbers of samples.
    Samples,
    /// Sums of periods.
    Period,
}

/// The layout of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnnotateLayout {
    /// Addresses and objdump's text: perf's `--stdio`.
    #[default]
    Full,
    /// Labels, arrows and names; instructions without samples have no numbers: perf's `--stdio2`.
    Brief,
}

/// Settings of an annotated function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnnotateOptions {
    /// The layout.
    pub layout: AnnotateLayout,
    /// The kind of numbers before each instruction.
    pub column: AnnotateColumn,
    /// Whether percentages are of samples instead of periods.
    pub by_samples: bool,
    /// Whether instruction bytes are shown.
    pub raw: bool,
    /// Whether source lines are shown between instructions.
    pub source: bool,
    /// `--print-line`: whether to print a summary by source line first, and in the full layout the source location after hot
    /// instructions. In the browser, whether source lines have line numbers.
    pub print_line: bool,
    /// Whether files are shown with full paths.
    pub full_paths: bool,
    /// The colour sequences of percentages, addresses and instructions; `None` without colours.
    pub colors: Option<Csi>,
    /// Shows only this many of the hottest instructions, with context.
    pub hottest: Option<usize>,
    /// Shows only instructions with at least this percentage, with context.
    pub min_percent: Option<u8>,
}

/// Lines of source files, numbered from 1.
pub trait SourceText {
    /// The text of a line, without its terminator; `None` if the file is unavailable or has no such line.
    fn line(&self, path: &str, line: u32) -> Option<&str>;
}

/// The events shown side by side.
#[derive(Debug, Clone, Copy)]
pub struct AnnotatedEvents<'a> {
    /// The name of the event or the group.
    pub name: &'a str,
    /// Whether the heading says "events": for a group, and for its leader even if shown alone; never in `top`.
    pub plural: bool,
    /// The sampling frequency of the first event, if one was requested.
    pub frequency: Option<u64>,
    /// For the heading: the samples of all events, but the period of the first event only (in `top`, of all events). If a single
    /// function was requested, only its samples are counted.
    pub total: HitCount,
}

/// One function with the samples of some events.
pub struct Annotation<'a> {
    /// The path of the object.
    pub object: &'a str,
    /// The function's name.
    pub name: &'a str,
    /// The events.
    pub events: AnnotatedEvents<'a>,
    /// The function's samples.
    pub function: &'a SampledFunction,
    /// The function's instructions.
    pub listing: &'a Listing<'a>,
    /// The total that percentages refer to, for each event.
    pub totals: &'a [HitCount],
    /// The kind of total, as in `--percent-type`.
    pub percent_type: &'a str,
    /// The source files of the function.
    pub source: &'a dyn SourceText,
}

/// Prints a function.
///
/// # Errors
///
/// Write errors.
pub fn write_annotation(
    out: &mut dyn Write,
    annotation: &Annotation<'_>,
    options: &AnnotateOptions,
) -> io::Result<()> {
    if options.print_line {
        summary::write(out, annotation, options)?;
    }
    match options.layout {
        AnnotateLayout::Full => full_listing::write(out, annotation, options),
        AnnotateLayout::Brief => short_listing::write(out, annotation, options),
    }
}

/// Columns between tab stops.
const TAB: usize = 8;

/// Expands the tabs of a source line to blanks.
#[must_use]
pub fn expand_tabs(text: &str) -> String {
    let mut expanded = String::new();
    let mut column = 0;
    for letter in text.chars() {
        let width = match letter {
            '\t' => TAB - column % TAB,
            _ => 1,
        };
        match letter {
            '\t' => expanded.push_str(&" ".repeat(width)),
            letter => expanded.push(letter),
        }
        column += width;
    }
    expanded
}

fn base(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The name of a source file, with its path if requested.
#[must_use]
pub fn file_name<'p>(path: &'p str, options: &AnnotateOptions) -> &'p str {
    match options.full_paths {
        true => path,
        false => base(path),
    }
}

/// For [`AnnotateOptions::print_line`]: only source lines above this percentage are in the summary, and only instructions above
/// it are printed with their source location. Independent of [`AnnotateOptions::min_percent`].
const MIN_PERCENT: f64 = 0.5;

/// The maximum number of instruction bytes in a line of output, as in objdump for x86.
const BYTES_PER_LINE: usize = 7;

/// Bytes in hexadecimal, separated by blanks.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let bytes = bytes.iter().map(|byte| format!("{byte:02x}"));
    bytes.collect::<Vec<_>>().join(" ")
}

/// How an instruction's source location differs from that of the previous instruction.
struct LineChange<'a> {
    /// The heading, if the function changed.
    heading: Option<String>,
    /// File path and line number, if the line changed.
    line: Option<(&'a str, u32)>,
}

impl<'a> LineChange<'a> {
    fn of(before: Option<LineSite<'a>>, site: Option<LineSite<'a>>) -> Self {
        let function = |site: LineSite<'a>| (site.function, site.is_inlined);
        let changed_function = site.filter(|site| before.map(function) != Some(function(*site)));
        let line = site.and_then(|site| site.line);
        Self {
            heading: changed_function.map(|site| function_heading(site.function, site.is_inlined)),
            line: line.filter(|line| before.and_then(|site| site.line) != Some(*line)),
        }
    }
}

/// The name of a function, as shown before its lines.
#[must_use]
pub fn function_heading(function: &str, is_inlined: bool) -> String {
    let kind = if is_inlined { " (inlined)" } else { "" };
    // C++ names already end with parameters.
    let call = if function.contains('(') { "" } else { "()" };
    format!("{function}{call}{kind}:")
}
