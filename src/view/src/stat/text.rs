//! Counts in columns.

use std::io::{self, Write};

use rperf_count::{Aggregation, Metric, State, Unit, Value};

use super::number::{decimals, grouped, padded};
use super::{Line, Prefix, Style, seconds};
use crate::padding::LeftAligned;

/// Columns of a number, of the name beside one and beside none, and of a metric.
const NUMBER: usize = 18;
const NAME: usize = 32;
const NAME_ALONE: usize = 25;
const METRIC: usize = 35;
/// Columns before a further metric of the same row.
const INDENT: usize = 49;
/// The same behind the number of a CPU.
const CPU_INDENT: usize = 8;

/// The line above the first interval; `unit_width` is that of the column of units.
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

/// Writes one row; `columns` are the width of units, and what stands between thousands.
pub(super) fn write_row(
    out: &mut dyn Write,
    line: &Line<'_>,
    (unit_width, thousands): (usize, &str),
) -> io::Result<()> {
    let event = line.event;
    let before = before(line);
    let (number, name) = match line.row.state {
        State::NotSupported => ("<not supported>".to_owned(), NAME_ALONE),
        State::NotCounted => ("<not counted>".to_owned(), NAME_ALONE),
        State::Counted(value) => {
            let number = format!("{:.*}", decimals(event), value.value);
            (grouped(&number, thousands), NAME)
        }
    };
    write!(
        out,
        "{before}{number:>NUMBER$} {} {:name$}",
        LeftAligned(&event.unit, unit_width),
        event.name
    )?;
    if let Some(cgroup) = &event.cgroup {
        write!(out, " {cgroup}")?;
    }
    let mut metrics = line.row.metrics.iter();
    match metrics.next() {
        Some(metric) => write_metric(out, metric)?,
        None => write!(out, "{:METRIC$}", "")?,
    }
    for metric in metrics {
        let more = match line.row.unit {
            Unit::Cpu(_) => CPU_INDENT,
            _ => 0,
        };
        write!(out, "\n{before}{:1$}", "", INDENT + more)?;
        write_metric(out, metric)?;
    }
    if let State::Counted(value) = line.row.state {
        write_reserve(out, line.runs, &value)?;
    }
    writeln!(out)
}

/// Time and unit of a row.
pub(super) fn before(line: &Line<'_>) -> String {
    let time = match line.style.prefix {
        Prefix::Time(time) => format!("{} ", seconds(time)),
        Prefix::None | Prefix::Summary => String::new(),
    };
    let unit = line.unit();
    let unit = match (line.row.unit, line.merged()) {
        (Unit::All, _) => String::new(),
        (Unit::Cpu(_), _) | (Unit::Core { .. }, None) => format!("{unit:10} "),
        (Unit::Thread(thread), _) => thread_name(line.style, thread),
        (Unit::Socket(_) | Unit::Node(_), Some(cpus)) => format!("{unit:6} {cpus:4} "),
        (Unit::Die { .. }, Some(cpus)) => format!("{unit:12} {cpus:4} "),
        (_, merged) => format!("{unit:15} {:4} ", merged.unwrap_or_default()),
    };
    time + &unit
}

/// The name ends and the number begins in the same column in all rows.
fn thread_name(style: &Style<'_>, thread: u32) -> String {
    let name = style.threads.get(&thread).map_or("", String::as_str);
    format!("{name:>16}-{thread:<8} ")
}

fn write_metric(out: &mut dyn Write, metric: &Metric) -> io::Result<()> {
    let number = format!(" # {}", padded(metric));
    let width = METRIC.saturating_sub(number.len() + 1);
    write!(out, "{number} {:width$}", metric.unit)
}

/// How far runs are apart, and for what part of the time the count was taken.
fn write_reserve(out: &mut dyn Write, runs: u32, value: &Value) -> io::Result<()> {
    if runs > 1 && value.deviation != 0.0 {
        write!(out, "  ( +-{:6.2}% )", value.deviation)?;
    }
    if value.running != value.enabled {
        write!(out, "  ({:.2}%)", value.percent_running())?;
    }
    Ok(())
}
