//! `--hist`: counts of a tracepoint by ranges of a field, with a kernel filter for each range.

use clap::ArgMatches;
use rperf_analysis::{ValueHistogram, ValueRange, power_edges};
use rperf_events::{EventFilter, EventSpec, GroupPosition};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::shared::numeric_field::numeric_field_of;
use crate::cli::tracefs::{MachineTracepoints, describe};

/// The default ranges begin at powers of this number.
const BASE: u64 = 4;
/// The lowest value of the last default range.
const LAST: u64 = 1 << 20;
/// The maximum number of edges between ranges. It is limited because each range needs a counter on each CPU.
const MAX_EDGES: usize = 64;

/// A field and the ranges of its values.
struct FieldRanges {
    field: String,
    ranges: Vec<ValueRange>,
}

/// Replaces each event by one for each range of the field in `--hist`; without the option, returns the events unchanged.
///
/// # Errors
///
/// Status 129: an event is not a tracepoint with this field, or is in a group; no events; edges that are not numbers, or too
/// many of them. Otherwise, errors of reading or parsing the tracepoint's format.
pub(super) fn in_ranges(
    specs: Vec<EventSpec>,
    matches: &ArgMatches,
    context: &Context,
) -> Result<Vec<EventSpec>, CliError> {
    let Some(field_ranges) = FieldRanges::new(matches)? else {
        return Ok(specs);
    };
    if specs.is_empty() {
        let error = CliError::usage("--hist needs a tracepoint");
        return Err(error.hint("name it with -e: -e syscalls:sys_exit_read --hist ret"));
    }
    let tracepoints = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let mut copies = Vec::new();
    for spec in specs {
        field_ranges.check(&spec, &tracepoints)?;
        copies.extend(
            field_ranges
                .ranges
                .iter()
                .map(|range| field_ranges.copy(&spec, *range)),
        );
    }
    Ok(copies)
}

impl FieldRanges {
    /// Parses `--hist FIELD[:N,...]`.
    fn new(matches: &ArgMatches) -> Result<Option<Self>, CliError> {
        let Some(text) = matches.get_one::<String>("hist") else {
            return Ok(None);
        };
        let (field, edges) = match text.split_once(':') {
            Some((field, edges)) => (field, given_edges(edges)?),
            None => (&**text, power_edges(BASE, LAST)),
        };
        Ok(Some(Self {
            field: field.to_owned(),
            ranges: ValueHistogram::new(edges).ranges().collect(),
        }))
    }

    /// Checks that an event can be counted by ranges.
    fn check(&self, spec: &EventSpec, tracepoints: &MachineTracepoints) -> Result<(), CliError> {
        let (name, field) = (&spec.name, &self.field);
        let Some(tracepoint) = &spec.tracepoint else {
            return Err(CliError::usage(format!(
                "--hist {field}: {name} is not a tracepoint"
            )));
        };
        if spec.group != GroupPosition::None {
            return Err(CliError::usage(format!(
                "--hist and groups of events exclude each other: {name}"
            )));
        }
        let description = describe(&tracepoints.tracefs, &tracepoint.system, &tracepoint.name)?;
        let reader = numeric_field_of(&description, field);
        // Only whether there is such a field matters here.
        reader.map(drop).map_err(|numeric_fields| {
            let message = format!("--hist: {name} has no field '{field}' with a number");
            CliError::usage(message).hint(format!(
                "its fields with numbers, most similar first: {numeric_fields}"
            ))
        })
    }

    /// The event with a filter for a range, and the range in its name.
    fn copy(&self, spec: &EventSpec, range: ValueRange) -> EventSpec {
        let field = &self.field;
        let filter = match (range.from, range.to) {
            // `to + 1` is the edge as given. Not `<= to`, which does not fit in an `i64` if the edge is `i64::MIN`.
            (None, Some(to)) => format!("{field} < {}", to + 1),
            (Some(from), Some(to)) if from == to => format!("{field} == {from}"),
            (Some(from), Some(to)) => format!("{field} >= {from} && {field} <= {to}"),
            (Some(from), None) => format!("{field} >= {from}"),
            // Only without edges, which does not occur here.
            (None, None) => return spec.clone(),
        };
        // The filter that the event already has, if any.
        let given: Vec<&str> = spec.filter.iter().map(String::as_str).collect();
        let mut copy = spec.clone();
        copy.name = format!("{} {field} {range}", spec.name);
        copy.filter = Some(EventFilter::join(&[&given[..], &[&filter]].concat()));
        copy
    }
}

/// Parses the edges after the colon of `--hist`: the lowest values of all ranges but the first.
fn given_edges(list: &str) -> Result<Vec<i128>, CliError> {
    let edge = |word: &str| word.trim().parse::<i64>().ok().map(i128::from);
    let edges: Option<Vec<i128>> = list.split(',').map(edge).collect();
    edges
        .filter(|edges| edges.len() <= MAX_EDGES)
        .ok_or_else(|| {
            CliError::usage(format!(
                "--hist: '{list}' is not a list of at most {MAX_EDGES} numbers"
            ))
            .hint("give the lowest values of the ranges: --hist len:64,512,1500")
        })
}
