//! A function with addresses, in objdump's layout.

use std::io::{self, Write};

use rperf_disasm::{InstructionLine, LineSite};

use super::columns::{largest, painted, shares};
use super::{
    AnnotateColumn, AnnotateOptions, Annotation, BYTES_PER_LINE, LineChange, MIN_PERCENT, base,
    file_name, hex, hottest_instructions,
};
use crate::padding::{Blanks, LeftAligned};
use crate::terminal::Sgr;

/// Prints the function.
pub(super) fn write(
    out: &mut dyn Write,
    annotation: &Annotation<'_>,
    options: &AnnotateOptions,
) -> io::Result<()> {
    let numbers_width = options.column.width() * annotation.function.sums.len();
    let title = format!(
        " {}",
        LeftAligned(options.column.title(), numbers_width - 1)
    );
    let object = base(annotation.object);
    // The samples of the first event.
    let samples = annotation
        .function
        .sums
        .first()
        .map_or(0, |sum| sum.samples);
    let text = format!(
        "Source code & Disassembly of {object} for {} ({samples} samples, percent: {})",
        annotation.events.name, annotation.percent_type
    );
    writeln!(out, "{title} |\t{text}")?;
    // As in perf, 4 characters more than the line above, in which the tab and the newline count as one character each.
    writeln!(out, "{}", "-".repeat(title.len() + 8 + text.len()))?;
    let mut printer = FunctionPrinter {
        out,
        annotation,
        options,
        numbers_width,
        line_digits: line_digits(annotation),
        address_digits: annotation
            .listing
            .lines
            .last()
            .map_or(0, |last| format!("{:x}", last.address).len()),
        previous_site: None,
    };
    printer.heading()?;
    for line in hottest_instructions::lines(annotation, options) {
        match line {
            Some(line) => printer.line(line)?,
            // Hidden instructions.
            None => printer.note("", "...")?,
        }
    }
    writeln!(printer.out)
}

/// Digits of the highest line number, at least two.
fn line_digits(annotation: &Annotation<'_>) -> usize {
    let instructions = annotation.listing.lines.iter();
    let source_lines = instructions.filter_map(|line| line.site?.line);
    let highest = source_lines.map(|(_, number)| number).max();
    highest.unwrap_or_default().to_string().len().max(2)
}

/// State while printing a function.
struct FunctionPrinter<'p, 'a> {
    out: &'p mut dyn Write,
    annotation: &'p Annotation<'a>,
    options: &'p AnnotateOptions,
    /// Width of the numbers of all events before an instruction.
    numbers_width: usize,
    /// Digits of the highest line number, at least two.
    line_digits: usize,
    /// Digits of the last address.
    address_digits: usize,
    /// Source location of the previous instruction.
    previous_site: Option<LineSite<'a>>,
}

impl<'a> FunctionPrinter<'_, 'a> {
    fn heading(&mut self) -> io::Result<()> {
        let (start, name) = (self.annotation.listing.start, self.annotation.name);
        self.note("", "")?;
        self.note("", &format!("{start:016x} <{name}>:"))
    }

    /// Prints a line without an instruction; `number` is a source line number or empty.
    fn note(&mut self, number: &str, text: &str) -> io::Result<()> {
        let (blanks, line_width) = (Blanks(self.numbers_width), self.line_digits + 2);
        let line = format!("{blanks} : {number:<line_width$} {text}");
        writeln!(self.out, "{}", line.trim_end())
    }

    fn line(&mut self, line: &InstructionLine<'a>) -> io::Result<()> {
        self.site_change(line.site)?;
        let width = self.options.column.width();
        let shares = shares(&line.hits, self.annotation, self.options);
        for (hit, share) in line.hits.iter().zip(&shares) {
            let number = self.options.column.number(*hit, share.value());
            let text = format!("{number:>width$}");
            write!(self.out, "{}", painted(&text, *share, self.options))?;
        }
        self.instruction(line)?;
        let source_line = line.site.and_then(|site| site.line);
        let largest_share = largest(&shares);
        if self.options.print_line
            && largest_share.value() > MIN_PERCENT
            && let Some((path, number)) = source_line
        {
            let place = format!(" // {}:{number}", file_name(path, self.options));
            write!(self.out, "{}", painted(&place, largest_share, self.options))?;
        }
        writeln!(self.out)?;
        self.further_bytes(line)
    }

    /// Prints the name of the source function if it differs from that of the previous instruction. If source lines are shown,
    /// also prints the source line if it differs.
    fn site_change(&mut self, site: Option<LineSite<'a>>) -> io::Result<()> {
        let previous = std::mem::replace(&mut self.previous_site, site);
        let change = LineChange::of(previous, site);
        if let Some(heading) = change.heading {
            self.note("", &heading)?;
        }
        let Some((path, number)) = change.line.filter(|_| self.options.source) else {
            return Ok(());
        };
        match self.annotation.source.line(path, number) {
            Some(text) => self.note(&number.to_string(), text.trim()),
            None => {
                let place = format!("{}:{number}", file_name(path, self.options));
                self.note(&number.to_string(), &place)
            }
        }
    }

    /// Prints the address, the bytes if requested, and the text of an instruction.
    fn instruction(&mut self, line: &InstructionLine<'_>) -> io::Result<()> {
        let (address, blanks) = self.address(line.address);
        let mut code = " ".repeat(blanks);
        if self.options.raw {
            let first = &line.bytes[..line.bytes.len().min(BYTES_PER_LINE)];
            // 24: the width of the bytes in objdump, with the tab after them.
            code.push_str(&format!("{:<24}", hex(first)));
        }
        code.push_str(&line.full_text());
        let color = |sgr_code| Sgr::new(self.options.colors, sgr_code);
        let (magenta, blue, plain) = (color(Sgr::MAGENTA), color(Sgr::BLUE), color(Sgr::RESET));
        write!(
            self.out,
            " : {magenta}  {address}{plain}{blue}{code}{plain}"
        )
    }

    /// Returns an address with a colon, right-aligned to the width of the last one, and the number of blanks after it: as many as
    /// a tab would take if the address were not right-aligned.
    fn address(&self, address: u64) -> (String, usize) {
        let text = format!("{address:x}:");
        let blanks = (text.len() + 1).next_multiple_of(8) - text.len();
        (
            format!("{text:>width$}", width = self.address_digits + 1),
            blanks,
        )
    }

    /// Prints the remaining bytes of a long instruction, on lines with 0 as the numbers of all events, as in perf.
    fn further_bytes(&mut self, line: &InstructionLine<'_>) -> io::Result<()> {
        if !self.options.raw {
            return Ok(());
        }
        let width = self.options.column.width();
        let zero = match self.options.column {
            AnnotateColumn::Percent => "0.00",
            AnnotateColumn::Samples | AnnotateColumn::Period => "0",
        };
        for (index, bytes) in line.bytes.chunks(BYTES_PER_LINE).enumerate().skip(1) {
            let (address, blanks) = self.address(line.address + (index * BYTES_PER_LINE) as u64);
            for _ in &line.hits {
                write!(self.out, "{zero:>width$}")?;
            }
            writeln!(self.out, " :   {address}{:blanks$}{}", "", hex(bytes))?;
        }
        Ok(())
    }
}
