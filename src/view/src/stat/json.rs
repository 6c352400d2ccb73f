//! Counts as JSON objects, one per line.

use std::fmt::Write as _;
use std::io::{self, Write};

use rperf_count::{AggregationUnit, CountState, MetricValue};

use super::number::plain_number;
use super::{StatLine, StatPrefix};

/// Writes a row with its first metric as an object, and an object for each further metric.
pub(super) fn write_row(out: &mut dyn Write, line: &StatLine<'_>) -> io::Result<()> {
    let leading = leading_members(line);
    let mut object = leading.clone();
    add_count(&mut object, line);
    let mut metrics = line.row.metrics.iter();
    match metrics.next() {
        Some(first) => add_metric(&mut object, first),
        // A row without metrics has the members of a metric, too, as in perf 6.1.
        None => add_missing_metric(&mut object),
    }
    writeln!(out, "{{{}}}", object.members)?;
    for further in metrics {
        let mut object = leading.clone();
        add_metric(&mut object, further);
        writeln!(out, "{{{}}}", object.members)?;
    }
    Ok(())
}

/// Writes the metrics of one aggregation unit as an object, in the format of perf releases after 6.1. A metric that the unit
/// does not have (`None`) has no member.
pub(super) fn write_metrics<'m>(
    out: &mut dyn Write,
    line: &StatLine<'_>,
    metrics: impl Iterator<Item = (&'m String, Option<&'m MetricValue>)>,
) -> io::Result<()> {
    let mut object = leading_members(line);
    for (name, metric) in metrics {
        if let Some(metric) = metric {
            object.text(name, &plain_number(metric));
        }
    }
    writeln!(out, "{{{}}}", object.members)
}

/// Returns an object with the time, the aggregation unit and the number of merged counters of a row, as far as it has them.
fn leading_members(line: &StatLine<'_>) -> StatObject {
    let mut object = StatObject::default();
    if let StatPrefix::Time(time) = line.style.prefix {
        let seconds = format!("{}.{:09}", time.as_secs(), time.subsec_nanos());
        object.plain("interval", seconds);
    }
    let key = match line.row.unit {
        AggregationUnit::All => None,
        AggregationUnit::Cpu(_) => Some("cpu"),
        AggregationUnit::Core { .. } => Some("core"),
        AggregationUnit::Cluster { .. } => Some("cluster"),
        AggregationUnit::Cache { .. } => Some("cache"),
        AggregationUnit::Die { .. } => Some("die"),
        AggregationUnit::Socket(_) => Some("socket"),
        AggregationUnit::Node(_) => Some("node"),
        AggregationUnit::Thread(_) => Some("thread"),
    };
    if let Some(key) = key {
        let unit = line.unit();
        // The member `cpu` is the number alone.
        let number = unit.strip_prefix("CPU").filter(|_| key == "cpu");
        object.text(key, number.unwrap_or(&unit));
    }
    if let Some(merged) = line.merged() {
        object.plain("aggregate-number", merged.to_string());
    }
    object
}

/// Adds the members of the count.
fn add_count(object: &mut StatObject, line: &StatLine<'_>) {
    // As in perf, the percentage of a counter that has not run at all is 100.
    let (number, deviation, running, percent) = match line.row.state {
        CountState::NotSupported => ("<not supported>".to_owned(), 0.0, 0.0, 100.0),
        CountState::NotCounted => ("<not counted>".to_owned(), 0.0, 0.0, 100.0),
        CountState::Counted(value) => (
            format!("{:.6}", value.value),
            value.error_percent,
            value.running,
            value.percent_running(),
        ),
    };
    object.text("counter-value", &number);
    // The unit of the count, such as `msec`; `line.unit()` is the aggregation unit.
    object.text("unit", &line.event.unit);
    object.text("event", &line.event.name);
    if let Some(cgroup) = &line.event.cgroup {
        object.text("cgroup", cgroup);
    }
    if line.runs > 1 {
        // perf's key for the deviation, which is in percent.
        object.plain("variance", format!("{deviation:.2}"));
    }
    object.plain("event-runtime", format!("{running:.0}"));
    object.plain("pcnt-running", format!("{percent:.2}"));
}

fn add_metric(object: &mut StatObject, metric: &MetricValue) {
    object.plain("metric-value", format!("{:.6}", metric.value));
    object.text("metric-unit", &metric.unit);
}

/// Adds the members of a missing metric: value 0 and an empty unit.
fn add_missing_metric(object: &mut StatObject) {
    object.plain("metric-value", format!("{:.6}", 0.0));
    object.text("metric-unit", "");
}

/// The members of an object, with perf's spacing.
#[derive(Debug, Clone, Default)]
struct StatObject {
    /// The members, without the braces of the object.
    members: String,
}

impl StatObject {
    /// Adds a member whose value is JSON.
    fn plain(&mut self, key: &str, value: String) {
        let comma = if self.members.is_empty() { "" } else { ", " };
        // The name of an event or metric can contain characters that JSON escapes.
        let key = serde_json::Value::from(key);
        // Writing to a String cannot fail.
        let _ = write!(self.members, "{comma}{key} : {value}");
    }

    /// Adds a member whose value is a string.
    fn text(&mut self, key: &str, value: &str) {
        self.plain(key, serde_json::Value::from(value).to_string());
    }
}
