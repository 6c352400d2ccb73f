//! Counts as tables: text for people, CSV and JSON for programs.

mod csv;
mod footer;
mod json;
mod metrics;
mod number;
mod text;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use rperf_count::{Aggregation, Row, Table, Unit};

pub use footer::{Footer, Times, write_footer, write_started, write_title};
pub use metrics::write_metrics;
pub use text::write_heading;

/// How counts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format<'a> {
    /// In columns; between groups of three digits stands this.
    Text {
        /// Nothing in most locales of programs.
        thousands: &'a str,
    },
    /// One row a line, its fields separated by this.
    Csv {
        /// Usually a comma.
        separator: &'a str,
    },
    /// One object a line.
    Json,
}

/// What stands before each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// Nothing.
    None,
    /// The end of the interval, from the start on.
    Time(Duration),
    /// In CSV the word `summary`, in the place of times.
    Summary,
}

/// Everything that decides how a table looks.
#[derive(Debug, Clone, Copy)]
pub struct Style<'a> {
    /// The format.
    pub format: Format<'a>,
    /// What rows are of.
    pub by: Aggregation,
    /// Names of threads.
    pub threads: &'a BTreeMap<u32, String>,
    /// What stands before each row.
    pub prefix: Prefix,
}

/// Writes the rows of a table.
///
/// # Errors
/// Those of `out`.
pub fn write_table(out: &mut dyn Write, table: &Table, style: &Style<'_>) -> io::Result<()> {
    let unit_width = unit_width(table);
    for row in &table.rows {
        let Some(event) = table.events.get(row.event) else {
            continue;
        };
        let line = Line {
            row,
            event,
            runs: table.runs,
            style,
        };
        match style.format {
            Format::Text { thousands } => text::write_row(out, &line, (unit_width, thousands))?,
            Format::Csv { separator } => csv::write_row(out, &line, separator)?,
            Format::Json => json::write_row(out, &line)?,
        }
    }
    Ok(())
}

/// A row with what belongs to it.
struct Line<'a> {
    row: &'a Row,
    event: &'a rperf_count::Event,
    runs: u32,
    style: &'a Style<'a>,
}

impl Line<'_> {
    /// The name of the unit that the row is of, without padding; empty for the row of everything.
    fn unit(&self) -> String {
        match self.row.unit {
            Unit::All => String::new(),
            Unit::Cpu(cpu) => format!("CPU{cpu}"),
            Unit::Core { socket, die, core } => format!("S{socket}-D{die}-C{core}"),
            Unit::Cluster {
                socket,
                die,
                cluster,
            } => format!("S{socket}-D{die}-CLS{cluster}"),
            Unit::Cache {
                socket,
                die,
                level,
                first,
            } => format!("S{socket}-D{die}-L{level}-ID{first}"),
            Unit::Die { socket, die } => format!("S{socket}-D{die}"),
            Unit::Socket(socket) => format!("S{socket}"),
            Unit::Node(node) => format!("N{node}"),
            Unit::Thread(thread) => {
                let name = self.style.threads.get(&thread).map_or("", String::as_str);
                format!("{name}-{thread}")
            }
        }
    }

    /// How many CPUs are in the row, where it is of a part of the machine that has several; not among rows of CPUs.
    fn merged(&self) -> Option<usize> {
        let single = matches!(self.row.unit, Unit::All | Unit::Cpu(_) | Unit::Thread(_));
        (!single && self.style.by != Aggregation::Cpu).then_some(self.row.merged)
    }
}

/// Columns for units of measure.
fn unit_width(table: &Table) -> usize {
    let widths = table.events.iter().map(|event| event.unit.chars().count());
    widths.fold("unit".len(), usize::max)
}

/// A moment in seconds with all its decimals.
fn seconds(time: Duration) -> String {
    format!("{:6}.{:09}", time.as_secs(), time.subsec_nanos())
}

#[cfg(test)]
mod tests;
