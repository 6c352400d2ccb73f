//! One function's instructions with the samples that fell on them, as text.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rperf_disasm::{Function, Hit, Line, Listing, Site};

/// What stands before each instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Column {
    /// Shares of what [`Annotation::total`] has.
    #[default]
    Percent,
    /// Numbers of samples.
    Samples,
    /// Sums of periods.
    Period,
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::Percent => " Percent",
            Self::Samples => " Samples",
            Self::Period => " Period     ",
        }
    }

    /// Characters of its numbers.
    fn width(self) -> usize {
        match self {
            Self::Percent | Self::Samples => 8,
            Self::Period => 12,
        }
    }
}

/// How an annotated function looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnnotateOptions {
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
}

/// Lines of source files, from 1; `None` where the file is not at hand or has none of that number.
pub trait SourceText {
    /// The text of a line, without its end.
    fn line(&self, path: &str, line: u32) -> Option<&str>;
}

/// One function of one event.
pub struct Annotation<'a> {
    /// The path of the object.
    pub object: &'a str,
    /// The function's name.
    pub name: &'a str,
    /// The event's name.
    pub event: &'a str,
    /// What fell on it.
    pub function: &'a Function,
    /// Its instructions.
    pub listing: &'a Listing<'a>,
    /// What shares are of.
    pub total: Hit,
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
        summary(out, shown, options)?;
    }
    let title = options.column.title();
    let object = base(shown.object);
    let samples = shown.function.sum.samples;
    let text = format!(
        "Source code & Disassembly of {object} for {} ({samples} samples, percent: {})",
        shown.event, shown.share
    );
    writeln!(out, "{title} |\t{text}")?;
    writeln!(out, "{}", "-".repeat(title.len() + 8 + text.len()))?;
    let mut page = Page {
        out,
        shown,
        options,
        digits: digits(shown),
        site: None,
    };
    page.heading()?;
    shown
        .listing
        .lines
        .iter()
        .try_for_each(|line| page.line(line))?;
    writeln!(page.out)
}

fn base(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Characters of the highest line number, two at least.
fn digits(shown: &Annotation<'_>) -> usize {
    let sites = shown.listing.lines.iter();
    let sites = sites.filter_map(|line| line.site?.line);
    let most = sites.map(|(_, number)| number).max().unwrap_or_default();
    most.to_string().len().max(2)
}

/// The share of a hit in percent.
fn percent(hit: Hit, shown: &Annotation<'_>, options: &AnnotateOptions) -> f64 {
    let (part, whole) = match options.by_samples {
        true => (hit.samples, shown.total.samples),
        false => (hit.period, shown.total.period),
    };
    match whole {
        0 => 0.0,
        whole => part as f64 * 100.0 / whole as f64,
    }
}

/// The smallest share that the summary shows, and behind which a line is named.
const WORTH: f64 = 0.5;

/// Lines by what fell on them, most first.
fn summary(
    out: &mut dyn Write,
    shown: &Annotation<'_>,
    options: &AnnotateOptions,
) -> io::Result<()> {
    let mut sums: BTreeMap<(&str, u32), Hit> = BTreeMap::new();
    for line in &shown.listing.lines {
        if let Some(place) = line.site.and_then(|site| site.line) {
            sums.entry(place).or_default().add(line.hit);
        }
    }
    let shares = sums.iter().map(|(place, hit)| {
        let share = percent(*hit, shown, options);
        (share, *place)
    });
    let mut shares: Vec<_> = shares.filter(|(share, _)| *share > WORTH).collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let title = format!("\nSorted summary for file {}", shown.object);
    writeln!(out, "{title}\n{}\n", "-".repeat(46))?;
    if shares.is_empty() {
        return writeln!(out, " Nothing higher than {WORTH}%");
    }
    for (share, (path, number)) in shares {
        let path = place(path, options);
        writeln!(out, "{share:>8.2} {path}:{number}")?;
    }
    Ok(())
}

fn place<'p>(path: &'p str, options: &AnnotateOptions) -> &'p str {
    match options.full_paths {
        true => path,
        false => base(path),
    }
}

/// A function while it is printed.
struct Page<'p, 'a> {
    out: &'p mut dyn Write,
    shown: &'p Annotation<'a>,
    options: &'p AnnotateOptions,
    digits: usize,
    /// Where the instruction before was.
    site: Option<Site<'a>>,
}

impl<'a> Page<'_, 'a> {
    fn heading(&mut self) -> io::Result<()> {
        let (start, name) = (self.shown.listing.start, self.shown.name);
        self.note("", "")?;
        self.note("", &format!("{start:016x} <{name}>:"))
    }

    /// A line that is no instruction, with a number of the source or without.
    fn note(&mut self, number: &str, text: &str) -> io::Result<()> {
        let (width, digits) = (self.options.column.width(), self.digits + 2);
        let line = format!("{:width$} : {number:<digits$} {text}", "");
        writeln!(self.out, "{}", line.trim_end())
    }

    fn line(&mut self, line: &Line<'a>) -> io::Result<()> {
        self.site(line.site)?;
        let width = self.options.column.width();
        let share = percent(line.hit, self.shown, self.options);
        match self.options.column {
            Column::Percent => write!(self.out, "{share:>width$.2}")?,
            Column::Samples => write!(self.out, "{:>width$}", line.hit.samples)?,
            Column::Period => write!(self.out, "{:>width$}", line.hit.period)?,
        }
        self.instruction(line)?;
        let named = line.site.and_then(|site| site.line);
        if self.options.lines
            && share > WORTH
            && let Some((path, number)) = named
        {
            let path = place(path, self.options);
            write!(self.out, " // {path}:{number}")?;
        }
        writeln!(self.out)?;
        self.further_bytes(line)
    }

    /// What changed since the instruction before: the function, the line.
    fn site(&mut self, site: Option<Site<'a>>) -> io::Result<()> {
        let before = std::mem::replace(&mut self.site, site);
        let Some(site) = site else {
            return Ok(());
        };
        let function = |site: Site<'a>| (site.function, site.is_inlined);
        if before.map(function) != Some(function(site)) {
            let kind = if site.is_inlined { " (inlined)" } else { "" };
            // Names of C++ end in their parameters.
            let call = if site.function.contains('(') {
                ""
            } else {
                "()"
            };
            self.note("", &format!("{}{call}{kind}:", site.function))?;
        }
        let Some((path, number)) = site.line.filter(|_| self.options.source) else {
            return Ok(());
        };
        if before.and_then(|site| site.line) == site.line {
            return Ok(());
        }
        match self.shown.source.line(path, number) {
            Some(text) => self.note(&number.to_string(), text.trim()),
            None => {
                let place = format!("{}:{number}", place(path, self.options));
                self.note(&number.to_string(), &place)
            }
        }
    }

    /// Address, bytes if they are wanted, and text.
    fn instruction(&mut self, line: &Line<'_>) -> io::Result<()> {
        write!(self.out, " :   {}", self.address(line.address))?;
        if self.options.raw {
            let first = &line.bytes[..line.bytes.len().min(BYTES)];
            write!(self.out, "{:<24}", hex(first))?;
        }
        write!(self.out, "{}", line.text)
    }

    /// An address, up to the next stop of a tab.
    fn address(&self, address: u64) -> String {
        let text = format!("{address:x}:");
        let width = (text.len() + 1).next_multiple_of(8);
        format!("{text:<width$}")
    }

    /// The bytes of a long instruction that had no place in its line.
    fn further_bytes(&mut self, line: &Line<'_>) -> io::Result<()> {
        if !self.options.raw {
            return Ok(());
        }
        let width = self.options.column.width();
        for (index, bytes) in line.bytes.chunks(BYTES).enumerate().skip(1) {
            let address = self.address(line.address + (index * BYTES) as u64);
            let none = match self.options.column {
                Column::Percent => "0.00",
                Column::Samples | Column::Period => "0",
            };
            writeln!(self.out, "{none:>width$} :   {address}{}", hex(bytes))?;
        }
        Ok(())
    }
}

/// Bytes of an instruction in one line.
const BYTES: usize = 7;

fn hex(bytes: &[u8]) -> String {
    let bytes = bytes.iter().map(|byte| format!("{byte:02x}"));
    bytes.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    use rperf_replay::{DsoId, EventIndex};
    use rperf_resolve::{Frame, Level, SymbolId};
    use rperf_symbol::SymbolIndex;

    /// One file of which only the second line is known.
    struct Known;

    impl SourceText for Known {
        fn line(&self, path: &str, line: u32) -> Option<&str> {
            (path == "/src/a.c" && line == 2).then_some("\tx++;")
        }
    }

    fn hit(samples: u64) -> Hit {
        Hit {
            samples,
            period: samples * 1000,
        }
    }

    fn line(
        address: u64,
        bytes: &[u8],
        text: &str,
        samples: u64,
        site: (&'static str, bool, u32),
    ) -> Line<'static> {
        let (function, is_inlined, number) = site;
        Line {
            address,
            bytes: bytes.to_vec(),
            text: text.to_owned(),
            hit: hit(samples),
            site: Some(Site {
                function,
                is_inlined,
                line: (number > 0).then_some(("/src/a.c", number)),
            }),
        }
    }

    fn shown(options: &AnnotateOptions) -> String {
        let listing = Listing {
            start: 0x1139,
            lines: vec![
                line(0x1139, &[0x55], "push   %rbp", 0, ("leaf", false, 2)),
                line(
                    0x113a,
                    &[0x48; 9],
                    "movq   $0x0,-0x8(%rbp)",
                    3,
                    ("leaf", false, 2),
                ),
                line(0x1143, &[0x90], "nop", 1, ("twist(int)", true, 117)),
                line(0x1144, &[0xc3], "ret", 0, ("leaf", false, 0)),
            ],
        };
        let index = SymbolIndex::new(0).unwrap();
        let function = Function {
            event: EventIndex(0),
            symbol: SymbolId {
                dso: DsoId(0),
                index,
            },
            frame: Frame::unknown(0, Level::User),
            hits: Vec::new(),
            sum: hit(4),
        };
        let mut out = Vec::new();
        let annotated = Annotation {
            object: "/opt/demo/calc",
            name: "leaf",
            event: "cycles",
            function: &function,
            listing: &listing,
            total: hit(4),
            share: "local period",
            source: &Known,
        };
        annotation(&mut out, &annotated, options).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn source_stands_where_it_changes() {
        let options = AnnotateOptions {
            source: true,
            ..AnnotateOptions::default()
        };
        let rule = "-".repeat(8 + 8 + 79);
        let expected = format!(
            "\x20Percent |\tSource code & Disassembly of calc for cycles (4 samples, percent: local period)
{rule}
         :
         :       0000000000001139 <leaf>:
         :       leaf():
         : 2     x++;
    0.00 :   1139:   push   %rbp
   75.00 :   113a:   movq   $0x0,-0x8(%rbp)
         :       twist(int) (inlined):
         : 117   a.c:117
   25.00 :   1143:   nop
         :       leaf():
    0.00 :   1144:   ret

"
        );
        assert_eq!(shown(&options), expected);
    }

    #[test]
    fn bytes_counts_and_a_summary() {
        let options = AnnotateOptions {
            column: Column::Period,
            raw: true,
            lines: true,
            full_paths: true,
            ..AnnotateOptions::default()
        };
        let rule = "-".repeat(12 + 8 + 79);
        let expected = format!(
            "\nSorted summary for file /opt/demo/calc
----------------------------------------------

   75.00 /src/a.c:2
   25.00 /src/a.c:117
 Period      |\tSource code & Disassembly of calc for cycles (4 samples, percent: local period)
{rule}
             :
             :       0000000000001139 <leaf>:
             :       leaf():
           0 :   1139:   55                      push   %rbp
        3000 :   113a:   48 48 48 48 48 48 48    movq   $0x0,-0x8(%rbp) // /src/a.c:2
           0 :   1141:   48 48
             :       twist(int) (inlined):
        1000 :   1143:   90                      nop // /src/a.c:117
             :       leaf():
           0 :   1144:   c3                      ret

"
        );
        assert_eq!(shown(&options), expected);
    }
}
