//! A function in the brief layout (`--stdio2`): the browser's view as text.

use std::fmt;
use std::io::{self, Write};

use rperf_disasm::{InstructionLine, Labels, LineSite};

use super::columns::{largest, shares};
use super::{
    AnnotateOptions, AnnotatedEvents, Annotation, BYTES_PER_LINE, LineChange, file_name, hex,
    hottest_instructions,
};
use crate::padding::{Blanks, LeftAligned};
use crate::percent::ShortCount;

/// Prints the function.
pub(super) fn write(
    out: &mut dyn Write,
    annotation: &Annotation<'_>,
    options: &AnnotateOptions,
) -> io::Result<()> {
    title(out, annotation)?;
    let labels = Labels::new(annotation.listing);
    let events = annotation.function.sums.len();
    let mut printer = BriefPrinter {
        out,
        annotation,
        options,
        numbers_width: events * options.column.brief_width(),
        labels: &labels,
        previous_site: None,
    };
    printer.heading()?;
    for line in hottest_instructions::lines(annotation, options) {
        match line {
            Some(line) => printer.line(line)?,
            // Instructions are left out here.
            None => printer.note("...")?,
        }
    }
    Ok(())
}

/// Writes two lines: the event counts and the function.
fn title(out: &mut dyn Write, annotation: &Annotation<'_>) -> io::Result<()> {
    writeln!(
        out,
        "{}, [percent: {}]",
        annotation.events, annotation.percent_type
    )?;
    writeln!(out, "{}() {}", annotation.name, annotation.object)
}

impl fmt::Display for AnnotatedEvents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.plural { "s" } else { "" };
        let (samples, name) = (ShortCount(self.total.samples), self.name);
        write!(f, "Samples: {samples} of event{plural} '{name}',")?;
        if let Some(frequency) = self.frequency {
            write!(f, " {frequency} Hz,")?;
        }
        write!(f, " Event count (approx.): {}", self.total.period)
    }
}

/// State while printing a function.
struct BriefPrinter<'p, 'a> {
    out: &'p mut dyn Write,
    annotation: &'p Annotation<'a>,
    options: &'p AnnotateOptions,
    /// Width of the numbers of all events before an instruction.
    numbers_width: usize,
    labels: &'p Labels<'a>,
    /// Source location of the previous instruction.
    previous_site: Option<LineSite<'a>>,
}

impl<'a> BriefPrinter<'_, 'a> {
    /// Prints the title of the column of numbers, a line of blanks, and the function's address and name as in objdump.
    fn heading(&mut self) -> io::Result<()> {
        let title = LeftAligned(self.options.column.title(), self.numbers_width);
        writeln!(self.out, "{title} {}", Blanks(self.numbers_width))?;
        self.empty()?;
        let (start, name) = (self.annotation.listing.start, self.annotation.name);
        self.note(&format!("{start:016x} <{name}>:"))
    }

    fn empty(&mut self) -> io::Result<()> {
        let blanks = Blanks(self.numbers_width);
        writeln!(self.out, "{blanks} {blanks}")
    }

    /// Prints a line without an instruction.
    fn note(&mut self, text: &str) -> io::Result<()> {
        // `label_width` includes the colon and the blank after a label, unlike in `line`. The text is padded to perf's width.
        let (width, label_width) = (self.numbers_width, self.labels.width() + 2);
        let text = LeftAligned(text, width + label_width - 1);
        writeln!(self.out, "{} {}{text}", Blanks(width), Blanks(label_width))
    }

    fn line(&mut self, line: &InstructionLine<'a>) -> io::Result<()> {
        self.site_change(line.site)?;
        self.numbers(line)?;
        // Here, `label_width` is without the colon and the blank after a label.
        let (width, label_width) = (self.numbers_width, self.labels.width());
        match self.labels.jump_count(line) {
            0 => write!(self.out, " {:label_width$}  ", "")?,
            _ => {
                let offset = line.address - self.annotation.listing.start;
                write!(self.out, " {offset:>label_width$x}: ")?;
            }
        }
        let arrow = self.labels.arrow(line).map_or(' ', |arrow| arrow.sign());
        let mut text = self.labels.text(line);
        if self.options.raw {
            let first = &line.bytes[..line.bytes.len().min(BYTES_PER_LINE)];
            // 24: the width of the bytes in objdump, with the tab after them.
            text = format!("{:<24}{text}", hex(first));
        }
        // Padded to perf's width.
        let text = LeftAligned(&text, width + label_width + 5);
        writeln!(self.out, "{arrow} {text}")?;
        self.further_bytes(line)
    }

    /// Prints the numbers of an instruction; blanks if all percentages are 0.
    fn numbers(&mut self, line: &InstructionLine<'_>) -> io::Result<()> {
        let shares = shares(&line.hits, self.annotation, self.options);
        if largest(&shares).value() == 0.0 {
            return write!(self.out, "{}", Blanks(self.numbers_width));
        }
        let width = self.options.column.brief_width() - 1;
        for (hit, share) in line.hits.iter().zip(shares) {
            let number = self.options.column.number(*hit, share.value());
            write!(self.out, "{number:>width$} ")?;
        }
        Ok(())
    }

    /// Prints the name of the source function if it differs from that of the previous instruction. If source lines are shown,
    /// also prints the source line if it differs.
    fn site_change(&mut self, site: Option<LineSite<'a>>) -> io::Result<()> {
        let previous = std::mem::replace(&mut self.previous_site, site);
        let change = LineChange::of(previous, site);
        if let Some(heading) = change.heading {
            self.note(&heading)?;
        }
        let Some((path, number)) = change.line.filter(|_| self.options.source) else {
            return Ok(());
        };
        match self.annotation.source.line(path, number) {
            Some(text) => self.note(text),
            None => self.note(&format!("{}:{number}", file_name(path, self.options))),
        }
    }

    /// Prints the remaining bytes of a long instruction.
    fn further_bytes(&mut self, line: &InstructionLine<'_>) -> io::Result<()> {
        if !self.options.raw {
            return Ok(());
        }
        // As far as the first bytes: a label has a blank before it, and a colon and a blank after it; then an arrow and a blank.
        let indent = self.numbers_width + self.labels.width() + 5;
        let mut further = line.bytes.chunks(BYTES_PER_LINE).skip(1);
        further.try_for_each(|bytes| writeln!(self.out, "{}{}", Blanks(indent), hex(bytes)))
    }
}
