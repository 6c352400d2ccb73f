//! Metrics alone (`--metric-only`): a line for each unit, a column for each metric.

use std::io::{self, Write};

use rperf_count::{Aggregation, Event, Metric, Row, Table, Unit};

use super::{Format, Line, Prefix, Style, csv, json, number, text};
use crate::padding::{LeftAligned, RightAligned};

/// Least width of a column of text.
const COLUMN: usize = 20;

/// Writes the metrics of a table, and above them their names unless they are those of `shown`, the columns of what stands
/// above already. Rates and `CPUs utilized`, which every row has, are left out as in perf.
///
/// # Errors
/// Those of `out`.
pub fn write_metrics(
    out: &mut dyn Write,
    table: &Table,
    style: &Style<'_>,
    shown: &mut Vec<String>,
) -> io::Result<()> {
    let columns = columns(table);
    let mut units: Vec<&Row> = Vec::new();
    for row in &table.rows {
        if !units.iter().any(|known| known.unit == row.unit) {
            units.push(row);
        }
    }
    let lines: Vec<Line<'_>> = units
        .into_iter()
        .filter_map(|row| {
            Some(Line {
                row,
                event: table.events.get(row.event)?,
                runs: table.runs,
                style,
            })
        })
        .collect();
    if *shown != columns && style.format != Format::Json {
        write_names(out, &lines, &columns, style)?;
        shown.clone_from(&columns);
    }
    for line in &lines {
        let values = columns.iter().map(|name| value(table, line.row.unit, name));
        let values: Vec<Option<&Metric>> = values.collect();
        match style.format {
            Format::Text { .. } => {
                write!(out, "{}", text::before(line))?;
                for (name, value) in columns.iter().zip(values) {
                    let value = value.map(|metric| number::padded(metric).trim().to_owned());
                    let width = name.chars().count().max(COLUMN);
                    let value = value.unwrap_or_default();
                    write!(out, "{} ", RightAligned(&value, width))?;
                }
                writeln!(out)?;
            }
            Format::Csv { separator } => {
                let mut fields = csv::first(line);
                fields.extend(
                    values
                        .iter()
                        .map(|value| value.map(number::bare).unwrap_or_default()),
                );
                writeln!(out, "{}{separator}", fields.join(separator))?;
            }
            Format::Json => json::write_metrics(out, line, columns.iter().zip(values))?,
        }
    }
    Ok(())
}

/// The line above, with what stands before the columns.
fn write_names(
    out: &mut dyn Write,
    lines: &[Line<'_>],
    columns: &[String],
    style: &Style<'_>,
) -> io::Result<()> {
    if let Format::Csv { separator } = style.format {
        let mut fields: Vec<&str> = Vec::new();
        if let Prefix::Time(_) = style.prefix {
            fields.push("time");
        }
        fields.extend(unit_names(style.by));
        fields.extend(columns.iter().map(String::as_str));
        return writeln!(out, "{}{separator}", fields.join(separator));
    }
    let indent = lines
        .first()
        .map_or(0, |line| text::before(line).chars().count());
    let head = match style.prefix {
        Prefix::Time(_) => "#           time",
        _ => "",
    };
    write!(out, "{}", LeftAligned(head, indent))?;
    for name in columns {
        write!(out, "{name:>COLUMN$} ")?;
    }
    writeln!(out)
}

/// The names of all metrics that any unit has, in the order of their events.
fn columns(table: &Table) -> Vec<String> {
    let mut names = Vec::new();
    for (index, event) in table.events.iter().enumerate() {
        let rows = table.rows.iter().filter(|row| row.event == index);
        for metric in rows.flat_map(|row| &row.metrics) {
            let name = name(event, metric);
            if is_shown(metric) && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

fn value<'t>(table: &'t Table, unit: Unit, wanted: &str) -> Option<&'t Metric> {
    let rows = table.rows.iter().filter(|row| row.unit == unit);
    rows.filter_map(|row| Some((table.events.get(row.event)?, row)))
        .flat_map(|(event, row)| row.metrics.iter().map(move |metric| (event, metric)))
        .find_map(|(event, metric)| (name(event, metric) == wanted).then_some(metric))
}

/// A part of all branches needs the name of its event.
fn name(event: &Event, metric: &Metric) -> String {
    match metric.unit.starts_with("of all") {
        true => format!("{} {}", event.name, metric.unit),
        false => metric.unit.trim().to_owned(),
    }
}

fn is_shown(metric: &Metric) -> bool {
    let unit = &metric.unit;
    !unit.is_empty() && !unit.ends_with("/sec") && unit != "CPUs utilized"
}

/// The names of the fields that say what a row of CSV is of.
fn unit_names(by: Aggregation) -> &'static [&'static str] {
    match by {
        Aggregation::Global => &[],
        Aggregation::Cpu => &["cpu"],
        Aggregation::Core => &["core", "cpus"],
        Aggregation::Cluster => &["cluster", "cpus"],
        Aggregation::Cache(_) => &["cache", "cpus"],
        Aggregation::Die => &["die", "cpus"],
        Aggregation::Socket => &["socket", "cpus"],
        Aggregation::Node => &["node", "cpus"],
        Aggregation::Thread => &["comm-pid"],
    }
}

#[cfg(test)]
mod tests;
