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

use rperf_count::{Aggregation, AggregationUnit, CountRow, CountTable};

pub use footer::{Footer, Times, write_footer, write_started, write_title};
pub use metrics::write_metrics;
pub use text::write_heading;

/// The output format of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatFormat<'a> {
    /// Columns.
    Text {
        /// The separator between groups of three digits; may be empty.
        thousands: &'a str,
    },
    /// One row per line, as separated fields.
    Csv {
        /// The separator of fields, usually a comma.
        separator: &'a str,
    },
    /// One JSON object per line.
    Json,
}

/// The prefix of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatPrefix {
    /// No prefix.
    None,
    /// The end of the interval, relative to the start of counting.
    Time(Duration),
    /// The word `summary` in place of a time in CSV, no prefix in other formats.
    Summary,
}

/// Settings of a table.
#[derive(Debug, Clone, Copy)]
pub struct StatStyle<'a> {
    /// The format.
    pub format: StatFormat<'a>,
    /// The aggregation of the rows.
    pub by: Aggregation,
    /// Names of threads by thread id.
    pub threads: &'a BTreeMap<u32, String>,
    /// The prefix of each row.
    pub prefix: StatPrefix,
}

/// Writes the rows of a table.
///
/// # Errors
/// Those of `out`.
pub fn write_table(
    out: &mut dyn Write,
    table: &CountTable,
    style: &StatStyle<'_>,
) -> io::Result<()> {
    let unit_width = unit_width(table);
    for row in &table.rows {
        let Some(event) = table.events.get(row.event) else {
            continue;
        };
        let line = StatLine {
            row,
            event,
            runs: table.runs,
            style,
        };
        match style.format {
            StatFormat::Text { thousands } => text::write_row(out, &line, unit_width, thousands)?,
            StatFormat::Csv { separator } => csv::write_row(out, &line, separator)?,
            StatFormat::Json => json::write_row(out, &line)?,
        }
    }
    Ok(())
}

/// A row with its event and the settings of the table.
struct StatLine<'a> {
    row: &'a CountRow,
    event: &'a rperf_count::CountedEvent,
    runs: u32,
    style: &'a StatStyle<'a>,
}

impl StatLine<'_> {
    /// Returns the name of the row's aggregation unit, without padding; empty for the row of the whole system.
    fn unit(&self) -> String {
        match self.row.unit {
            AggregationUnit::All => String::new(),
            AggregationUnit::Cpu(cpu) => format!("CPU{cpu}"),
            AggregationUnit::Core { socket, die, core } => format!("S{socket}-D{die}-C{core}"),
            AggregationUnit::Cluster {
                socket,
                die,
                cluster,
            } => format!("S{socket}-D{die}-CLS{cluster}"),
            AggregationUnit::Cache {
                socket,
                die,
                level,
                first,
            } => format!("S{socket}-D{die}-L{level}-ID{first}"),
            AggregationUnit::Die { socket, die } => format!("S{socket}-D{die}"),
            AggregationUnit::Socket(socket) => format!("S{socket}"),
            AggregationUnit::Node(node) => format!("N{node}"),
            AggregationUnit::Thread(thread) => {
                let name = self.style.threads.get(&thread).map_or("", String::as_str);
                format!("{name}-{thread}")
            }
        }
    }

    /// Returns the number of counters that the row sums up; only rows of a part of the machine, such as a core or a socket, show
    /// it. `None` for rows of the whole system, a CPU or a thread, and for all rows of a table by CPU, including the rows of
    /// cores (of events that are counted per core).
    fn merged(&self) -> Option<usize> {
        let is_part = !matches!(
            self.row.unit,
            AggregationUnit::All | AggregationUnit::Cpu(_) | AggregationUnit::Thread(_)
        );
        (is_part && self.style.by != Aggregation::Cpu).then_some(self.row.merged_counters)
    }
}

/// Returns the width of the column for units of measure.
fn unit_width(table: &CountTable) -> usize {
    let widths = table.events.iter().map(|event| event.unit.chars().count());
    widths.fold("unit".len(), usize::max)
}

/// Returns a time in seconds with nine decimals, padded to align with others.
fn seconds(time: Duration) -> String {
    format!("{:6}.{:09}", time.as_secs(), time.subsec_nanos())
}

#[cfg(test)]
mod tests;
