//! The report of one event (a table with its headings), and the text before and after the tables.

use std::io::{self, Write};

use rperf_hist::{BlockTable, BranchCounts, Histogram};

use super::blocks;
use super::table::{ReportLayout, write_rows, write_titles};
use crate::percent::ShortCount;

/// One event's part of a report.
#[derive(Debug, Clone, Copy)]
pub struct ReportEvent<'a> {
    /// The name of the event, `cpu-clock:u`, or of its group,
    /// `anon group { cpu-clock, page-faults }`.
    pub name: &'a str,
    /// Whether the heading says `events` instead of `event`: for a group, as in perf, even if only its leader is shown.
    pub plural: bool,
    /// The argument of `--time`.
    pub times: Option<&'a str>,
    /// The processor socket whose samples are shown, if one was requested.
    pub socket: Option<i32>,
    /// The sort keys, if the rows show weights of memory accesses instead of periods of events.
    pub access_sort_keys: Option<&'a str>,
    /// The rows.
    pub histogram: &'a Histogram,
    /// The basic blocks, if they are shown instead of rows.
    pub blocks: Option<&'a BlockTable>,
}

/// Writes the hint shown in place of the file's header.
pub fn write_banner(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(
        b"# To display the perf.data header info, please use --header/--header-only options.\n#\n",
    )
}

/// Writes the columns that have the same value in all rows.
pub fn write_constant_columns(out: &mut dyn Write, columns: &[(&str, &str)]) -> io::Result<()> {
    columns
        .iter()
        .try_for_each(|(column, value)| writeln!(out, "# {column}: {value}"))
}

/// Writes the number of lost samples.
pub fn write_lost(out: &mut dyn Write, lost: u64) -> io::Result<()> {
    writeln!(out, "#\n# Total Lost Samples: {lost}\n#")
}

/// Writes the report of one event with the trailing empty lines; without headings if `quiet`.
pub fn write_event(
    out: &mut dyn Write,
    event: ReportEvent<'_>,
    layout: &ReportLayout,
    quiet: bool,
) -> io::Result<()> {
    let histogram = event.histogram;
    if !quiet {
        let total = histogram.total();
        let plural = if event.plural { "s" } else { "" };
        let samples = ShortCount(total.samples);
        let name = event.name;
        write!(out, "# Samples: {samples} of event{plural} '{name}'")?;
        if histogram.reference_call_graphs {
            out.write_all(b", show reference callgraph")?;
        }
        if let Some(times) = event.times {
            write!(out, " (time slices: {times})")?;
        }
        out.write_all(b"\n")?;
        let socket = match event.socket {
            Some(socket) => format!("# Processor Socket: {socket}\n"),
            None => String::new(),
        };
        match event.access_sort_keys {
            Some(keys) => writeln!(
                out,
                "# Total weight : {}\n# Sort order   : {keys}\n{socket}#",
                total.period
            )?,
            None => writeln!(out, "# Event count (approx.): {}\n{socket}#", total.period)?,
        }
        // The table of blocks has its own titles.
        if event.blocks.is_none() {
            write_titles(out, histogram, layout)?;
        }
    }
    match event.blocks {
        Some(table) => blocks::write(out, table, layout, quiet)?,
        None => write_rows(out, histogram, layout)?,
    }
    out.write_all(b"\n\n")
}

/// Writes the percentage of branches of each type, if types are known.
pub fn write_branch_counts(out: &mut dyn Write, counts: &BranchCounts) -> io::Result<()> {
    let total = counts.total();
    if total == 0 {
        return Ok(());
    }
    out.write_all(b"\n#\n# Branch Statistics:\n#\n")?;
    for (name, count) in counts.list() {
        let share = count as f64 / total as f64 * 100.0;
        writeln!(out, "{name:>8}: {share:5.1}%")?;
    }
    Ok(())
}

/// Writes the tip at the end of a report. Each line of `tip` begins with `#`.
pub fn write_tip(out: &mut dyn Write, tip: &str) -> io::Result<()> {
    writeln!(out, "#\n{tip}\n#")
}
