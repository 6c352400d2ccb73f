//! Counts in columns.

use std::io::{self, Write};

use rperf_count::{Aggregation, AggregationUnit, CountState, CountValue, MetricValue};

use super::number::{decimals, grouped, padded};
use super::{StatLine, StatPrefix, StatStyle, seconds};
use crate::table::Align;

// Widths and indents are those of perf, also where they do not add up (INDENT is less than NUMBER and NAME together).

/// The width of the column of counts.
const NUMBER: usize = 18;
/// The width of an event's name after a count.
const NAME: usize = 32;
/// The width of an event's name if the count is missing.
const NAME_ALONE: usize = 25;
/// The width of the column of metrics.
const METRIC: usize = 35;
/// Blanks between the leading columns and a further metric of the same row.
const INDENT: usize = 49;
/// Additional blanks before a further metric in the row of a CPU.
const CPU_INDENT: usize = 8;

/// Writes the header before the first interval; `by` is the aggregation of the rows.
///
/// # Errors
/// Those of `out`.
pub fn write_heading(out: &mut dyn Write, by: Aggregation) -> io::Result<()> {
    let unit = match by {
        Aggregation::Global => "",
        Aggregation::Cpu => " CPU       ",
        Aggregation::Core => " core            cpus",
        Aggregation::Cluster => " cluster         cpus",
        Aggregation::Cache(_) => " cache           cpus",
        Aggregation::Die => " die          cpus",
        Aggregation::Socket => " socket cpus",
        Aggregation::Node => " node   cpus",
        Aggregation::Thread => "             comm-pid     ",
    };
    writeln!(out, "#           time{unit}             counts unit events")
}

/// Writes a row, and a line for each metric after the first. `unit_width` is the width of the column of units of measure,
/// `thousands` the separator between groups of three digits.
pub(super) fn write_row(
    out: &mut dyn Write,
    line: &StatLine<'_>,
    unit_width: usize,
    thousands: &str,
) -> io::Result<()> {
    let event = line.event;
    let leading = leading_columns(line);
    let (number, name_width) = match line.row.state {
        CountState::NotSupported => ("<not supported>".to_owned(), NAME_ALONE),
        CountState::NotCounted => ("<not counted>".to_owned(), NAME_ALONE),
        CountState::Counted(value) => {
            let number = format!("{:.*}", decimals(event), value.value);
            (grouped(&number, thousands), NAME)
        }
    };
    let number = Align::Right.fill(&number, NUMBER);
    let unit = Align::Left.fill(&event.unit, unit_width);
    let name = Align::Left.fill(&event.name, name_width);
    write!(out, "{leading}{number} {unit} {name}")?;
    if let Some(cgroup) = &event.cgroup {
        write!(out, " {cgroup}")?;
    }
    let mut metrics = line.row.metrics.iter();
    match metrics.next() {
        Some(metric) => write_metric(out, metric)?,
        None => write!(out, "{:METRIC$}", "")?,
    }
    for metric in metrics {
        let cpu_indent = match line.row.unit {
            AggregationUnit::Cpu(_) => CPU_INDENT,
            _ => 0,
        };
        write!(out, "\n{leading}{:1$}", "", INDENT + cpu_indent)?;
        write_metric(out, metric)?;
    }
    if let CountState::Counted(value) = line.row.state {
        write_deviation_and_running(out, line.runs, &value)?;
    }
    writeln!(out)
}

/// Returns the columns before the count: time, aggregation unit and number of counters summed up, as far as the row has them.
pub(super) fn leading_columns(line: &StatLine<'_>) -> String {
    let time = match line.style.prefix {
        StatPrefix::Time(time) => format!("{} ", seconds(time)),
        StatPrefix::None | StatPrefix::Summary => String::new(),
    };
    let unit = line.unit();
    let unit_columns = match (line.row.unit, line.merged()) {
        (AggregationUnit::All, _) => String::new(),
        // A core without a number of counters: the row of an event that is counted per core, in a table by CPU.
        (AggregationUnit::Cpu(_), _) | (AggregationUnit::Core { .. }, None) => {
            format!("{unit:10} ")
        }
        (AggregationUnit::Thread(thread), _) => thread_name(line.style, thread),
        (AggregationUnit::Socket(_) | AggregationUnit::Node(_), Some(merged)) => {
            format!("{unit:6} {merged:4} ")
        }
        (AggregationUnit::Die { .. }, Some(merged)) => format!("{unit:12} {merged:4} "),
        (_, merged) => format!("{unit:15} {:4} ", merged.unwrap_or_default()),
    };
    time + &unit_columns
}

/// Returns the name and id of a thread. Names of up to 16 characters end in the same column in all rows.
fn thread_name(style: &StatStyle<'_>, thread: u32) -> String {
    let name = style.threads.get(&thread).map_or("", String::as_str);
    format!("{name:>16}-{thread:<8} ")
}

fn write_metric(out: &mut dyn Write, metric: &MetricValue) -> io::Result<()> {
    let number = format!(" # {}", padded(metric));
    let width = METRIC.saturating_sub(number.len() + 1);
    write!(out, "{number} {:width$}", metric.unit)
}

/// Writes the deviation, if there are several runs and it is not 0, and the percentage of time that the counter ran, if it did
/// not run all the time.
fn write_deviation_and_running(
    out: &mut dyn Write,
    runs: u32,
    value: &CountValue,
) -> io::Result<()> {
    if runs > 1 && value.error_percent != 0.0 {
        write!(out, "  ( +-{:6.2}% )", value.error_percent)?;
    }
    if value.running != value.enabled {
        write!(out, "  ({:.2}%)", value.percent_running())?;
    }
    Ok(())
}
