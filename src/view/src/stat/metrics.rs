//! Metrics only (`--metric-only`): one line per aggregation unit, one column per metric.

use std::io::{self, Write};

use rperf_count::{Aggregation, AggregationUnit, CountRow, CountTable, CountedEvent, MetricValue};

use super::{StatFormat, StatLine, StatPrefix, StatStyle, csv, json, number, text};
use crate::table::Align;

/// Minimum width of a metric's column in text.
const COLUMN: usize = 20;

/// Writes the metrics of a table. Text and CSV have a header if the columns differ from `header_columns`, the columns of the
/// previous header; the new columns replace `header_columns`. Rates (`/sec`) and `CPUs utilized` are omitted, and CSV lines end
/// with a separator, as in perf.
///
/// # Errors
/// Those of `out`.
pub fn write_metrics(
    out: &mut dyn Write,
    table: &CountTable,
    style: &StatStyle<'_>,
    header_columns: &mut Vec<String>,
) -> io::Result<()> {
    let columns = columns(table);
    // Units in order of their first rows.
    let mut first_rows: Vec<&CountRow> = Vec::new();
    for row in &table.rows {
        if !first_rows.iter().any(|known| known.unit == row.unit) {
            first_rows.push(row);
        }
    }
    let lines: Vec<StatLine<'_>> = first_rows
        .into_iter()
        .filter_map(|row| {
            Some(StatLine {
                row,
                event: table.events.get(row.event)?,
                runs: table.runs,
                style,
            })
        })
        .collect();
    if *header_columns != columns && style.format != StatFormat::Json {
        write_header(out, &lines, &columns, style)?;
        header_columns.clone_from(&columns);
    }
    for line in &lines {
        let values = columns.iter().map(|name| value(table, line.row.unit, name));
        let values: Vec<Option<&MetricValue>> = values.collect();
        match style.format {
            StatFormat::Text { .. } => {
                write!(out, "{}", text::leading_columns(line))?;
                for (name, value) in columns.iter().zip(values) {
                    // Without the padding for the table of events: the columns are wider here.
                    let value = value.map(|metric| number::padded(metric).trim().to_owned());
                    let width = name.chars().count().max(COLUMN);
                    let value = value.unwrap_or_default();
                    write!(out, "{} ", Align::Right.fill(&value, width))?;
                }
                writeln!(out)?;
            }
            StatFormat::Csv { separator } => {
                let mut fields = csv::leading_fields(line);
                fields.extend(
                    values
                        .iter()
                        .map(|value| value.map(number::plain_number).unwrap_or_default()),
                );
                writeln!(out, "{}{separator}", fields.join(separator))?;
            }
            StatFormat::Json => json::write_metrics(out, line, columns.iter().zip(values))?,
        }
    }
    Ok(())
}

/// Writes the titles of the columns: of those before the metrics, and the names of the metrics.
fn write_header(
    out: &mut dyn Write,
    lines: &[StatLine<'_>],
    columns: &[String],
    style: &StatStyle<'_>,
) -> io::Result<()> {
    if let StatFormat::Csv { separator } = style.format {
        let mut fields: Vec<&str> = Vec::new();
        if let StatPrefix::Time(_) = style.prefix {
            fields.push("time");
        }
        fields.extend(unit_titles(style.by));
        fields.extend(columns.iter().map(String::as_str));
        return writeln!(out, "{}{separator}", fields.join(separator));
    }
    let indent = lines
        .first()
        .map_or(0, |line| text::leading_columns(line).chars().count());
    let head = match style.prefix {
        StatPrefix::Time(_) => "#           time",
        _ => "",
    };
    write!(out, "{}", Align::Left.fill(head, indent))?;
    for name in columns {
        write!(out, "{} ", Align::Right.fill(name, COLUMN))?;
    }
    writeln!(out)
}

/// Returns the columns: the names of the shown metrics of all units, in the order of their events.
fn columns(table: &CountTable) -> Vec<String> {
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

/// Returns the metric of a unit in a column, if it has one.
fn value<'t>(
    table: &'t CountTable,
    unit: AggregationUnit,
    column: &str,
) -> Option<&'t MetricValue> {
    let rows = table.rows.iter().filter(|row| row.unit == unit);
    rows.filter_map(|row| Some((table.events.get(row.event)?, row)))
        .flat_map(|(event, row)| row.metrics.iter().map(move |metric| (event, metric)))
        .find_map(|(event, metric)| (name(event, metric) == column).then_some(metric))
}

/// Returns the name of a metric's column: its unit of measure, after the event's name if the unit is like `of all branches`.
fn name(event: &CountedEvent, metric: &MetricValue) -> String {
    match metric.unit.starts_with("of all") {
        true => format!("{} {}", event.name, metric.unit),
        false => metric.unit.trim().to_owned(),
    }
}

fn is_shown(metric: &MetricValue) -> bool {
    let unit = &metric.unit;
    !unit.is_empty() && !unit.ends_with("/sec") && unit != "CPUs utilized"
}

/// Returns the titles of the CSV fields of an aggregation unit.
fn unit_titles(by: Aggregation) -> &'static [&'static str] {
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
