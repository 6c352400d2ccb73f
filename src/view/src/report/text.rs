//! What stands around the tables.

use std::io::{self, Write};

use rperf_hist::Histogram;

use super::percent::Rough;
use super::table::{Layout, write_rows, write_titles};

/// One event's part of a report.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The event's name, `cpu-clock:u`.
    pub name: &'a str,
    /// Its rows.
    pub histogram: &'a Histogram,
}

/// Writes the line that stands in the place of the file's header.
pub fn write_banner(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(
        b"# To display the perf.data header info, please use --header/--header-only options.\n#\n",
    )
}

/// Writes how many samples the kernel had to drop.
pub fn write_lost(out: &mut dyn Write, lost: u64) -> io::Result<()> {
    writeln!(out, "#\n# Total Lost Samples: {lost}\n#")
}

/// Writes the report of one event with the empty lines behind it; `quiet` leaves the rows alone.
pub fn write_event(
    out: &mut dyn Write,
    event: Event<'_>,
    layout: &Layout,
    quiet: bool,
) -> io::Result<()> {
    let histogram = event.histogram;
    if !quiet {
        let samples = Rough(histogram.samples);
        writeln!(out, "# Samples: {samples} of event '{}'", event.name)?;
        writeln!(out, "# Event count (approx.): {}\n#", histogram.period)?;
        write_titles(out, histogram, layout)?;
    }
    write_rows(out, histogram, layout)?;
    out.write_all(b"\n\n")
}

/// Writes the advice at the end.
pub fn write_tip(out: &mut dyn Write, tip: &str) -> io::Result<()> {
    writeln!(out, "#\n# (Tip: {tip})\n#")
}
