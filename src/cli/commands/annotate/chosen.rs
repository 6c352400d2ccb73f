//! The functions that are shown, by table.

use rperf_disasm::{Function, Functions, Hit};
use rperf_perfdata::Described;
use rperf_replay::EventIndex;
use rperf_resolve::Resolver;

use super::missing;
use super::request::Request;
use crate::cli::error::CliError;
use crate::cli::groups::tables;
use crate::cli::input::Input;

/// Functions that the same events fell on.
pub(super) struct Chosen {
    /// The events, the leader first.
    pub(super) events: Vec<EventIndex>,
    /// How they are called.
    pub(super) name: String,
    /// Whether perf speaks of events.
    pub(super) plural: bool,
    /// What is shown, the hottest first.
    pub(super) functions: Vec<Function>,
}

/// The functions to show.
///
/// # Errors
///
/// Status 1 or 255: there are none.
pub(super) fn choose(
    request: &Request,
    functions: &Functions,
    resolver: &Resolver<'_>,
    recording: Described<'_>,
    input: &Input,
) -> Result<Vec<Chosen>, CliError> {
    let has_samples = |event: &EventIndex| functions.total(*event).samples > 0;
    let tables = tables(recording, request.group).into_iter().map(|table| {
        let events = table.events.iter();
        let events = events.filter_map(|place| u32::try_from(*place).ok().map(EventIndex));
        let events = events.filter(|event| !request.skip_empty || has_samples(event));
        let events: Vec<EventIndex> = events.collect();
        Chosen {
            functions: functions.of(&events),
            events,
            name: table.name,
            plural: table.plural,
        }
    });
    let mut tables: Vec<Chosen> = tables.collect();
    let name = |function: &Function| resolver.symbol_name(function.symbol);
    if let Some(symbol) = &request.symbol {
        let is_named = |function: &Function| symbol == name(function);
        let functions = tables.iter().flat_map(|table| &table.functions);
        if !functions.clone().any(is_named) {
            return Err(missing::no_samples_in(
                symbol,
                functions.map(name),
                &input.path.display(),
            ));
        }
        for table in &mut tables {
            table.functions.retain(is_named);
        }
    }
    if tables.iter().all(|table| table.functions.is_empty()) {
        return Err(missing::no_samples(
            functions,
            resolver,
            &input.path.display(),
        ));
    }
    for table in &mut tables {
        let events = table.events.iter();
        let totals: Vec<Hit> = events.map(|event| functions.total(*event)).collect();
        let is_hot = |function: &Function| {
            let mut parts = function.sums.iter().zip(&totals);
            parts.any(|(sum, total)| sum.share_of(*total) >= request.limit)
        };
        table.functions.retain(is_hot);
    }
    Ok(tables)
}
