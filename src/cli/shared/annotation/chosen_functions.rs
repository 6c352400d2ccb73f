//! The functions to annotate, for each table of a report. The events of a group share a table, except with
//! `--no-group`.

use rperf_disasm::{HitCount, SampledFunction, SampledFunctions};
use rperf_perfdata::Metadata;
use rperf_replay::EventIndex;
use rperf_resolve::Resolver;

use super::missing_code;
use super::request::AnnotationRequest;
use crate::cli::error::CliError;
use crate::cli::event_tables::tables;
use crate::cli::input::Input;

/// The functions of one table.
pub(crate) struct ChosenFunctions {
    /// The events of the table, the leader first; with `--skip-empty` only those that have samples.
    pub(crate) events: Vec<EventIndex>,
    /// The names of the events in the heading.
    pub(crate) name: String,
    /// Whether the heading says "events", not "event".
    pub(crate) plural: bool,
    /// The displayed functions, hottest first.
    pub(crate) functions: Vec<SampledFunction>,
}

/// Returns the functions to show, for each table of a report. A table is empty if its events have no samples in
/// functions with symbols, or none in the requested function, or if all of its functions are below the minimum percentage.
///
/// # Errors
///
/// Status 1: no samples are in the requested function, or in any function with a symbol. Status 255: no function is requested,
/// and the recording has no samples.
pub(crate) fn choose(
    request: &AnnotationRequest,
    functions: &SampledFunctions,
    resolver: &Resolver<'_>,
    recording: Metadata<'_>,
    input: &Input,
) -> Result<Vec<ChosenFunctions>, CliError> {
    let has_samples = |event: &EventIndex| functions.total(*event).samples > 0;
    let tables = tables(recording, request.group).into_iter().map(|table| {
        let events = table.events.iter();
        let events = events.filter_map(|index| u32::try_from(*index).ok().map(EventIndex));
        let events = events.filter(|event| !request.skip_empty || has_samples(event));
        let events: Vec<EventIndex> = events.collect();
        ChosenFunctions {
            functions: functions.of(&events),
            events,
            name: table.name,
            plural: table.plural,
        }
    });
    let mut tables: Vec<ChosenFunctions> = tables.collect();
    let name = |function: &SampledFunction| resolver.symbol_name(function.symbol);
    if let Some(symbol) = &request.symbol {
        let is_named = |function: &SampledFunction| symbol == name(function);
        let mut candidates = tables.iter().flat_map(|table| &table.functions);
        if !candidates.any(is_named) {
            let names = tables
                .iter()
                .map(|table| table.functions.iter().map(name).collect());
            let names: Vec<_> = names.collect();
            return Err(missing_code::no_samples_in(
                symbol,
                &names,
                &input.path.display(),
            ));
        }
        for table in &mut tables {
            table.functions.retain(is_named);
        }
    }
    if tables.iter().all(|table| table.functions.is_empty()) {
        return Err(missing_code::no_samples(
            functions,
            resolver,
            &input.path.display(),
        ));
    }
    for table in &mut tables {
        let events = table.events.iter();
        let totals: Vec<HitCount> = events.map(|event| functions.total(*event)).collect();
        // The sums of a function are in the order of the table's events.
        let is_hot = |function: &SampledFunction| {
            let mut by_event = function.sums.iter().zip(&totals);
            by_event.any(|(sum, total)| sum.share_of(*total) >= request.min_percent)
        };
        table.functions.retain(is_hot);
    }
    Ok(tables)
}
