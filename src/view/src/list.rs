//! The events and metrics of `list`, as text and as JSON.

use std::io::{self, Write};

use rperf_events::list::{EventKind, ListedEvent};
use rperf_events::vendor::{UnitScale, VendorMetric, metric_groups};

/// Width of a name in columns; a longer one shifts the rest of the line.
const NAME: usize = 50;
/// The maximum width of a line of a description in columns, without the closing bracket, unless a single word is longer.
const WIDTH: usize = 78;
/// Number of columns before the text of a description, including the bracket.
const INDENT: usize = 8;

/// An event with its details.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRow {
    /// The event.
    pub event: ListedEvent,
    /// The vendor's description as shown: the short or the long text of `event.description`, and the PMU unless it is a core PMU.
    /// `None` if the event's kind is shown instead.
    pub description: Option<String>,
    /// Lines below the event: what `-v` and `--details` add.
    pub details: Vec<String>,
}

/// How metrics are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricListing {
    /// Each metric once.
    Alone,
    /// Each metric in all its groups.
    InGroups,
    /// Only the names of the groups.
    Groups,
}

/// Writes each event with its kind or its description, and its details below. The topic of a description is a heading above its
/// event, unless the previous description has the same topic.
///
/// # Errors
/// Errors of `out`.
pub fn write_text(out: &mut dyn Write, events: &[EventRow]) -> io::Result<()> {
    let mut last_topic = None;
    for row in events {
        let EventRow { event, details, .. } = row;
        let with_alias = event
            .alias
            .as_ref()
            .map(|alias| format!("{} OR {alias}", event.name));
        let name = with_alias.as_deref().unwrap_or(&event.name);
        match &row.description {
            Some(description) => {
                let topic = event
                    .description
                    .as_ref()
                    .map(|vendor_entry| &vendor_entry.topic);
                if let Some(heading) = topic.filter(|_| topic != last_topic) {
                    writeln!(out, "\n{heading}:")?;
                }
                last_topic = topic;
                writeln!(out, "  {name:<NAME$}")?;
                writeln!(out, "       [{}]", wrapped(description))?;
            }
            None => writeln!(out, "  {name:<NAME$} [{}]", event.kind)?,
        }
        for line in details {
            writeln!(out, "       {line}")?;
        }
    }
    Ok(())
}

/// Wraps text into lines, of which all but the first are indented.
fn wrapped(text: &str) -> String {
    let (mut lines, mut column) = (String::new(), INDENT);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > INDENT && column + length >= WIDTH {
            lines.push('\n');
            lines.push_str(&" ".repeat(INDENT));
            column = INDENT;
        } else if column > INDENT {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines
}

/// Writes metrics, each with the lines that `describe` returns, or only the names of their groups.
///
/// # Errors
/// Errors of `out`.
pub fn write_metrics(
    out: &mut dyn Write,
    metrics: &[&VendorMetric],
    listing: MetricListing,
    describe: &dyn Fn(&VendorMetric) -> Vec<String>,
) -> io::Result<()> {
    if metrics.is_empty() {
        return Ok(());
    }
    let write_each = |out: &mut dyn Write, metrics: &[&VendorMetric]| {
        metrics.iter().try_for_each(|metric| {
            writeln!(out, "  {}", metric.name)?;
            let mut lines = describe(metric).into_iter();
            lines.try_for_each(|line| writeln!(out, "       [{line}]"))
        })
    };
    if listing == MetricListing::Alone {
        writeln!(out, "\nMetrics:\n")?;
        return write_each(out, metrics);
    }
    writeln!(out, "\nMetric Groups:\n")?;
    for (group, members) in metric_groups(metrics.iter().copied()) {
        match listing {
            MetricListing::Groups => writeln!(out, "{group}")?,
            _ => {
                writeln!(out, "{group}:")?;
                write_each(out, &members)?;
            }
        }
    }
    Ok(())
}

/// Writes names on one line, each followed by a blank: those of the events, then, as `listing` says, those of the metrics, of
/// their groups, or of each group followed by its metrics. Raw events and breakpoints, which are listed as patterns (`rNNN`), are
/// skipped.
///
/// # Errors
/// Errors of `out`.
pub fn write_names(
    out: &mut dyn Write,
    events: &[EventRow],
    metrics: &[&VendorMetric],
    listing: MetricListing,
) -> io::Result<()> {
    let mut events = events.iter().map(|row| &row.event);
    events.try_for_each(|event| match event.kind {
        EventKind::Raw | EventKind::Breakpoint => Ok(()),
        // If there is an alias, it is the name with the PMU, which is unambiguous.
        EventKind::Pmu => write!(out, "{} ", event.alias.as_ref().unwrap_or(&event.name)),
        _ => write!(out, "{} ", event.name),
    })?;
    if listing == MetricListing::Groups {
        let mut groups = metric_groups(metrics.iter().copied()).into_keys();
        return groups.try_for_each(|group| write!(out, "{group} "));
    }
    if listing == MetricListing::InGroups {
        for (group, members) in metric_groups(metrics.iter().copied()) {
            write!(out, "{group} ")?;
            members
                .iter()
                .try_for_each(|metric| write!(out, "{} ", metric.name))?;
        }
        return Ok(());
    }
    let mut names = metrics.iter();
    names.try_for_each(|metric| write!(out, "{} ", metric.name))
}

/// Writes an array with an object for each event and metric, with the keys of newer perf releases (perf 6.1 has no `list -j`).
///
/// # Errors
/// Errors of `out`.
pub fn write_json(
    out: &mut dyn Write,
    events: &[EventRow],
    metrics: &[&VendorMetric],
) -> io::Result<()> {
    let events = events.iter().map(event_json);
    let metrics = metrics.iter().map(|metric| metric_json(metric));
    let objects: Vec<String> = events.chain(metrics).collect();
    writeln!(out, "[")?;
    if !objects.is_empty() {
        writeln!(out, "{}", objects.join(",\n"))?;
    }
    writeln!(out, "]")
}

fn event_json(EventRow { event, details, .. }: &EventRow) -> String {
    let vendor_entry = event.description.as_ref();
    let encoding = event.terms.clone().map(|terms| match vendor_entry {
        Some(vendor_entry) => format!("{}/{terms}/", vendor_entry.pmu),
        // An event of sysfs, whose name or alias has the PMU.
        None => terms,
    });
    let encoding = encoding.or_else(|| {
        let (kind, config) = event.config?;
        Some(format!("type={},config={config:#x}", kind.0))
    });
    // Used as the public description of an event without a long one.
    let details = (!details.is_empty()).then(|| details.join("\n"));
    let long = vendor_entry.and_then(|vendor_entry| vendor_entry.long.clone());
    object([
        (
            "Unit",
            vendor_entry.map(|vendor_entry| vendor_entry.pmu.clone()),
        ),
        (
            "Topic",
            vendor_entry.map(|vendor_entry| vendor_entry.topic.clone()),
        ),
        ("EventName", Some(event.name.clone())),
        ("EventAlias", event.alias.clone()),
        ("EventType", Some(event.kind.to_string())),
        ("Encoding", encoding),
        (
            "ScaleUnit",
            vendor_entry.and_then(|vendor_entry| scale(vendor_entry.scale.as_ref())),
        ),
        (
            "BriefDescription",
            vendor_entry.and_then(|vendor_entry| vendor_entry.brief.clone()),
        ),
        ("PublicDescription", long.or(details)),
        (
            "Deprecated",
            vendor_entry
                .filter(|vendor_entry| vendor_entry.deprecated)
                .map(|_| "1".to_owned()),
        ),
    ])
}

fn metric_json(metric: &VendorMetric) -> String {
    object([
        ("MetricGroup", Some(metric.groups.join(";"))),
        ("MetricName", Some(metric.name.clone())),
        ("MetricExpr", Some(metric.formula.clone())),
        ("MetricThreshold", metric.threshold.clone()),
        ("ScaleUnit", scale(metric.scale.as_ref())),
        ("BriefDescription", metric.brief.clone()),
        ("PublicDescription", metric.long.clone()),
    ])
}

fn scale(scale: Option<&UnitScale>) -> Option<String> {
    scale.map(|scale| format!("{}{}", scale.factor, scale.unit))
}

/// Returns a JSON object of the pairs that have a value.
fn object<const N: usize>(pairs: [(&str, Option<String>); N]) -> String {
    let pairs = pairs.into_iter().filter_map(|(key, value)| {
        let value = value?;
        Some(format!("\t\"{key}\": {}", serde_json::Value::from(&*value)))
    });
    let pairs: Vec<String> = pairs.collect();
    format!("{{\n{}\n}}", pairs.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_wrapped_before_the_edge() {
        let word = "a".repeat(30);
        let text = format!("{word} {word} {word}\n {word}");
        let lines = format!("{word} {word}\n        {word} {word}");
        assert_eq!(wrapped(&text), lines);
        let long = "b".repeat(100);
        assert_eq!(wrapped(&long), long);
    }
}
