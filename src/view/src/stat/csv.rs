//! Counts as fields with a separator (`stat -x`).

use std::io::{self, Write};

use rperf_count::CountState;

use super::number::{decimals, plain_number};
use super::{StatLine, StatPrefix, seconds};

/// Writes a row, with the fields in brackets if it has them: \[time or `summary`,\] \[aggregation unit, \[number of merged
/// counters,\]\] value, unit of measure, event, \[cgroup,\] \[deviation,\] nanoseconds running, percent running, metric, its
/// unit. Each further metric has its own row, in which the fields of the count are empty.
pub(super) fn write_row(
    out: &mut dyn Write,
    line: &StatLine<'_>,
    separator: &str,
) -> io::Result<()> {
    let leading = leading_fields(line);
    let count = count_fields(line);
    let metrics = &line.row.metrics;
    for index in 0..metrics.len().max(1) {
        let mut fields = leading.clone();
        match index {
            0 => fields.extend(count.iter().cloned()),
            _ => fields.extend(count.iter().map(|_| String::new())),
        }
        let metric = metrics.get(index);
        fields.push(metric.map(plain_number).unwrap_or_default());
        fields.push(
            metric
                .map(|metric| metric.unit.to_string())
                .unwrap_or_default(),
        );
        writeln!(out, "{}", fields.join(separator))?;
    }
    Ok(())
}

/// Returns the fields before the count: the prefix of the row, its aggregation unit and the number of merged counters, as far as
/// it has them.
pub(super) fn leading_fields(line: &StatLine<'_>) -> Vec<String> {
    let mut fields = Vec::new();
    match line.style.prefix {
        StatPrefix::None => {}
        StatPrefix::Time(time) => fields.push(seconds(time)),
        // Padded to the width of a time, as in perf.
        StatPrefix::Summary => fields.push(format!("{:>16}", "summary")),
    }
    let unit = line.unit();
    if !unit.is_empty() {
        fields.push(unit);
    }
    fields.extend(line.merged().map(|merged| merged.to_string()));
    fields
}

/// Returns the fields of the count, from the value to the percentage of time that the counter ran.
fn count_fields(line: &StatLine<'_>) -> Vec<String> {
    let event = line.event;
    // As in perf, the percentage of a counter that has not run at all is 100.
    let (number, deviation, running, percent) = match line.row.state {
        CountState::NotSupported => ("<not supported>".to_owned(), 0.0, 0.0, 100.0),
        CountState::NotCounted => ("<not counted>".to_owned(), 0.0, 0.0, 100.0),
        CountState::Counted(value) => (
            format!("{:.*}", decimals(event), value.value),
            value.error_percent,
            value.running,
            value.percent_running(),
        ),
    };
    let mut fields = vec![number, event.unit.clone(), event.name.clone()];
    fields.extend(event.cgroup.clone());
    if line.runs > 1 {
        fields.push(format!("{deviation:.2}%"));
    }
    fields.push(format!("{running:.0}"));
    fields.push(format!("{percent:.2}"));
    fields
}
