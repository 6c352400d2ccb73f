//! One function's instructions with the samples that fell on them, as text.

mod brief;
mod kept;
mod page;
mod shares;
mod summary;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

pub use self::shares::percent;

use rperf_disasm::{Function, Hit, Listing, Site};

use crate::terminal::Csi;

/// What stands before each instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Column {
    /// Shares of what [`Annotation::wholes`] has.
    #[default]
    Percent,
    /// Numbers of samples.
    Samples,
    /// Sums of periods.
    Period,
}

/// How a function is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Addresses and what objdump would print: perf's `--stdio`.
    #[default]
    Full,
    /// Labels, arrows and names, nothing before instructions without samples: perf's `--stdio2`.
    Brief,
}

/// How an annotated function looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnnotateOptions {
    /// How it is laid out.
    pub layout: Layout,
    /// What stands before each instruction.
    pub column: Column,
    /// Whether shares are of numbers of samples rather than of periods.
    pub by_samples: bool,
    /// Whether the bytes of instructions are shown.
    pub raw: bool,
    /// Whether lines of the source stand between the instructions.
    pub source: bool,
    /// Whether a summary by line comes first, and the lines of hot instructions behind them.
    pub lines: bool,
    /// Whether files are named with their paths.
    pub full_paths: bool,
    /// What the colours of shares, addresses and instructions begin with; none without colours.
    pub colors: Option<Csi>,
    /// Show so many of the hottest instructions with what is around them, instead of all.
    pub hottest: Option<usize>,
    /// Show instructions with at least this share, in percent, with what is around them, instead of all.
    pub least: Option<u8>,
}

/// Lines of source files, from 1; `None` where the file is not at hand or has none of that number.
pub trait SourceText {
    /// The text of a line, without its end.
    fn line(&self, path: &str, line: u32) -> Option<&str>;
}

/// The events whose samples stand beside each other.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    /// The event's name, or that of its group.
    pub name: &'a str,
    /// Whether there are several.
    pub plural: bool,
    /// How often the first was sampled in a second, if that was asked for when it was recorded.
    pub frequency: Option<u64>,
    /// The samples of all, and what those of the first stand for.
    pub total: Hit,
}

/// One function as some events saw it.
pub struct Annotation<'a> {
    /// The path of the object.
    pub object: &'a str,
    /// The function's name.
    pub name: &'a str,
    /// The events.
    pub counted: Counted<'a>,
    /// What fell on it.
    pub function: &'a Function,
    /// Its instructions.
    pub listing: &'a Listing<'a>,
    /// What shares are of, for each event.
    pub wholes: &'a [Hit],
    /// What shares are of, in the words of `--percent-type`.
    pub share: &'a str,
    /// Its source.
    pub source: &'a dyn SourceText,
}

/// Prints a function.
///
/// # Errors
///
/// What writing fails with.
pub fn annotation(
    out: &mut dyn Write,
    shown: &Annotation<'_>,
    options: &AnnotateOptions,
) -> io::Result<()> {
    if options.lines {
        summary::write(out, shown, options)?;
    }
    match options.layout {
        Layout::Full => page::write(out, shown, options),
        Layout::Brief => brief::write(out, shown, options),
    }
}

/// Columns from one stop of a tab to the next.
const TAB: usize = 8;

/// A line of a file with blanks for its tabs.
#[must_use]
pub fn spaced(text: &str) -> String {
    let mut spaced = String::new();
    let mut column = 0;
    for letter in text.chars() {
        let width = match letter {
            '\t' => TAB - column % TAB,
            _ => 1,
        };
        match letter {
            '\t' => spaced.push_str(&" ".repeat(width)),
            letter => spaced.push(letter),
        }
        column += width;
    }
    spaced
}

fn base(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The name of a source file, with its path if that is wanted.
#[must_use]
pub fn file_name<'p>(path: &'p str, options: &AnnotateOptions) -> &'p str {
    match options.full_paths {
        true => path,
        false => base(path),
    }
}

/// The smallest share that the summary shows, and behind which a line is named.
const WORTH: f64 = 0.5;

/// Bytes of an instruction in one line.
const BYTES: usize = 7;

/// Bytes as pairs of digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let bytes = bytes.iter().map(|byte| format!("{byte:02x}"));
    bytes.collect::<Vec<_>>().join(" ")
}

/// What changed from one instruction to the next.
struct Change<'a> {
    /// The heading of another function.
    heading: Option<String>,
    /// Another line: the file's path and its number.
    line: Option<(&'a str, u32)>,
}

impl<'a> Change<'a> {
    fn of(before: Option<Site<'a>>, site: Option<Site<'a>>) -> Self {
        let function = |site: Site<'a>| (site.function, site.is_inlined);
        let other = site.filter(|site| before.map(function) != Some(function(*site)));
        let line = site.and_then(|site| site.line);
        Self {
            heading: other.map(|site| function_heading(site.function, site.is_inlined)),
            line: line.filter(|line| before.and_then(|site| site.line) != Some(*line)),
        }
    }
}

/// The name of a function before its lines.
#[must_use]
pub fn function_heading(function: &str, is_inlined: bool) -> String {
    let kind = if is_inlined { " (inlined)" } else { "" };
    // Names of C++ end in their parameters.
    let call = if function.contains('(') { "" } else { "()" };
    format!("{function}{call}{kind}:")
}
