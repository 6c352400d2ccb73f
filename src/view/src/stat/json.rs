//! Counts as objects, one a line.

use std::fmt::Write as _;
use std::io::{self, Write};

use rperf_count::{Metric, State, Unit};

use super::number::bare;
use super::{Line, Prefix};

/// Writes one row, and an object of its own for each further metric.
pub(super) fn write_row(out: &mut dyn Write, line: &Line<'_>) -> io::Result<()> {
    let first = first(line);
    let mut object = first.clone();
    count(&mut object, line);
    let mut metrics = line.row.metrics.iter();
    if let Some(one) = metrics.next() {
        metric(&mut object, one);
    }
    writeln!(out, "{{{}}}", object.text)?;
    for further in metrics {
        let mut object = first.clone();
        metric(&mut object, further);
        writeln!(out, "{{{}}}", object.text)?;
    }
    Ok(())
}

/// The metrics of one unit, those that there are, as newer releases of perf have them.
pub(super) fn write_metrics<'m>(
    out: &mut dyn Write,
    line: &Line<'_>,
    metrics: impl Iterator<Item = (&'m String, Option<&'m Metric>)>,
) -> io::Result<()> {
    let mut object = first(line);
    for (name, metric) in metrics {
        if let Some(metric) = metric {
            object.text(name, &bare(metric));
        }
    }
    writeln!(out, "{{{}}}", object.text)
}

/// When and of what a row is.
fn first(line: &Line<'_>) -> Object {
    let mut first = Object::default();
    if let Prefix::Time(time) = line.style.prefix {
        let seconds = format!("{}.{:09}", time.as_secs(), time.subsec_nanos());
        first.plain("interval", seconds);
    }
    let key = match line.row.unit {
        Unit::All => None,
        Unit::Cpu(_) => Some("cpu"),
        Unit::Core { .. } => Some("core"),
        Unit::Cluster { .. } => Some("cluster"),
        Unit::Cache { .. } => Some("cache"),
        Unit::Die { .. } => Some("die"),
        Unit::Socket(_) => Some("socket"),
        Unit::Node(_) => Some("node"),
        Unit::Thread(_) => Some("thread"),
    };
    if let Some(key) = key {
        first.text(key, line.unit().trim_start_matches("CPU"));
    }
    if let Some(merged) = line.merged() {
        first.plain("aggregate-number", merged.to_string());
    }
    first
}

fn count(object: &mut Object, line: &Line<'_>) {
    let (number, deviation, running, percent) = match line.row.state {
        State::NotSupported => ("<not supported>".to_owned(), 0.0, 0.0, 100.0),
        State::NotCounted => ("<not counted>".to_owned(), 0.0, 0.0, 100.0),
        State::Counted(value) => (
            format!("{:.6}", value.value),
            value.deviation,
            value.running,
            value.percent_running(),
        ),
    };
    object.text("counter-value", &number);
    object.text("unit", &line.event.unit);
    object.text("event", &line.event.name);
    if let Some(cgroup) = &line.event.cgroup {
        object.text("cgroup", cgroup);
    }
    if line.runs > 1 {
        object.plain("variance", format!("{deviation:.2}"));
    }
    object.plain("event-runtime", format!("{running:.0}"));
    object.plain("pcnt-running", format!("{percent:.2}"));
}

fn metric(object: &mut Object, metric: &Metric) {
    object.plain("metric-value", format!("{:.6}", metric.value));
    object.text("metric-unit", &metric.unit);
}

/// The members of an object, in perf's spacing.
#[derive(Debug, Clone, Default)]
struct Object {
    text: String,
}

impl Object {
    fn plain(&mut self, key: &str, value: String) {
        let comma = if self.text.is_empty() { "" } else { ", " };
        // A String takes every write.
        let _ = write!(self.text, "{comma}\"{key}\" : {value}");
    }

    fn text(&mut self, key: &str, value: &str) {
        self.plain(key, serde_json::Value::from(value).to_string());
    }
}
