//! What stands around the tables.

use std::io::{self, Write};

use rperf_hist::{BlockTable, BranchCounts, Histogram};

use super::blocks;
use super::table::{Layout, write_rows, write_titles};
use crate::percent::Rough;

/// One event's part of a report.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The event's name, `cpu-clock:u`, or that of its group, `anon group { cpu-clock, page-faults }`.
    pub name: &'a str,
    /// Whether perf speaks of events: of a group, or of its leader alone.
    pub plural: bool,
    /// The stretches of time that were asked for.
    pub times: Option<&'a str>,
    /// The socket that was asked for.
    pub socket: Option<i32>,
    /// The sort keys, where costs of memory accesses are counted instead of events.
    pub costs_by: Option<&'a str>,
    /// Its rows.
    pub histogram: &'a Histogram,
    /// Stretches of code, where these are shown instead.
    pub blocks: Option<&'a BlockTable>,
}

/// Writes the line that stands in the place of the file's header.
pub fn write_banner(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(
        b"# To display the perf.data header info, please use --header/--header-only options.\n#\n",
    )
}

/// Writes the one value that each of these columns is left with, instead of the columns.
pub fn write_values(out: &mut dyn Write, columns: &[(&str, &str)]) -> io::Result<()> {
    columns
        .iter()
        .try_for_each(|(column, value)| writeln!(out, "# {column}: {value}"))
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
        let whole = histogram.whole();
        let plural = if event.plural { "s" } else { "" };
        let samples = Rough(whole.samples);
        let name = event.name;
        write!(out, "# Samples: {samples} of event{plural} '{name}'")?;
        if histogram.lent_graphs {
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
        match event.costs_by {
            Some(keys) => writeln!(
                out,
                "# Total weight : {}\n# Sort order   : {keys}\n{socket}#",
                whole.period
            )?,
            None => writeln!(out, "# Event count (approx.): {}\n{socket}#", whole.period)?,
        }
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

/// Writes how many branches of each kind there are, if their kinds are known.
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

/// Writes the advice at the end.
pub fn write_tip(out: &mut dyn Write, tip: &str) -> io::Result<()> {
    writeln!(out, "#\n# (Tip: {tip})\n#")
}
