//! `-e`, and the filters that follow it.

use clap::ArgMatches;
use rperf_events::{
    Catalogue, EventFilter, EventSpec, GroupPosition, ParseError, PrivilegeLevel, SampleFilter,
    TracepointName, parse,
};
use rperf_sys::Tracefs;

use super::probes;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;
use crate::cli::pmus::MachinePmus;
use crate::cli::shared::probing::ParserEvents;
use crate::cli::tracefs::{MachineTracepoints, describe};
use crate::cli::vendor::report_problems;

/// perf's exit status for a filter that cannot be set.
const FAILED: u8 = 255;

/// The events of one `-e` or `--probe` option.
#[derive(Debug)]
pub(crate) struct ListedEvents {
    /// The index that clap gives to the option's value (`ArgMatches::indices_of`).
    pub(crate) index: usize,
    pub(crate) events: Vec<EventSpec>,
}

/// Returns the events of all `-e` and `--probe` options with their filters; `None` if there are none. The syntax errors and
/// unknown names of all event lists are reported at once, but if a probe event cannot be created, only that is reported.
pub(crate) fn events(
    matches: &ArgMatches,
    context: &Context,
    pmus: &MachinePmus,
    machine: &MachineTracepoints,
) -> Result<Option<Vec<EventSpec>>, CliError> {
    let catalogue = pmus.catalogue(machine);
    let mut lists = Vec::new();
    let mut errors = Vec::new();
    // This returns all values of `-e` and `--probe`, also those for which no probe event is created.
    for (index, value) in probes::create_probe_events(matches, context, &machine.tracefs)? {
        let events = match value {
            ParserEvents::Text(text) => parse(&text, &catalogue),
            ParserEvents::Events(events) => Ok(events),
        };
        match events {
            Ok(events) => lists.push(ListedEvents { index, events }),
            Err(error) => errors.push(error),
        }
    }
    report_problems(&pmus.tables, context);
    if !errors.is_empty() {
        return Err(of_parse_errors(&errors));
    }
    attach_filters(matches, &mut lists, &machine.tracefs)?;
    let events = lists.into_iter().flat_map(|list| list.events);
    let events: Vec<EventSpec> = events.collect();
    Ok((!events.is_empty()).then_some(events))
}

/// Returns the events of all lists of option `id`; none without the option.
pub(crate) fn listed(
    matches: &ArgMatches,
    id: &str,
    catalogue: &Catalogue<'_>,
) -> Result<Vec<EventSpec>, CliError> {
    let mut events = Vec::new();
    for text in matches.get_many::<String>(id).into_iter().flatten() {
        events.extend(parsed(text, catalogue)?);
    }
    Ok(events)
}

/// Returns the events that a text names.
pub(crate) fn parsed(text: &str, catalogue: &Catalogue<'_>) -> Result<Vec<EventSpec>, CliError> {
    parse(text, catalogue).map_err(|error| of_parse_errors(&[error]))
}

/// Parses `--all-user` and `--all-kernel`.
pub(crate) fn privilege_level(matches: &ArgMatches) -> Result<Option<PrivilegeLevel>, CliError> {
    let on = |id| flag(matches, id) == Some(true);
    match (on("all-user"), on("all-kernel")) {
        (true, true) => Err(CliError::usage(
            " Error: option `all-kernel' cannot be used with all-user",
        )),
        (true, false) => Ok(Some(PrivilegeLevel::User)),
        (false, true) => Ok(Some(PrivilegeLevel::Kernel)),
        (false, false) => Ok(None),
    }
}

/// Makes one group of all events.
pub(crate) fn grouped(mut events: Vec<EventSpec>) -> Vec<EventSpec> {
    for (index, event) in events.iter_mut().enumerate() {
        event.group = match index {
            0 => GroupPosition::Leader {
                name: String::new(),
            },
            _ => GroupPosition::Member,
        };
    }
    events
}

/// Returns the events' names, joined.
pub(crate) fn names(events: &[EventSpec]) -> String {
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    names.join(",")
}

/// The error for event lists that cannot be parsed, with each hint once.
fn of_parse_errors(errors: &[ParseError]) -> CliError {
    let mut hints: Vec<&String> = Vec::new();
    for error in errors {
        for hint in error.faults.iter().filter_map(|fault| fault.hint.as_ref()) {
            if !hints.contains(&hint) {
                hints.push(hint);
            }
        }
    }
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let text = texts.join("\n");
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let cli = CliError::usage(first).details(rest);
    hints.into_iter().fold(cli, CliError::hint)
}

/// Attaches to the events of each list the filters that stand between it and the next list on the command line. `lists` are in
/// the order of the command line.
pub(crate) fn attach_filters(
    matches: &ArgMatches,
    lists: &mut [ListedEvents],
    tracefs: &Tracefs,
) -> Result<(), CliError> {
    let mut given: Vec<FilterOption> = Vec::new();
    let filters = matches.get_many::<String>("filter").into_iter().flatten();
    let indices = matches.indices_of("filter").into_iter().flatten();
    given.extend(indices.zip(filters).map(|(index, text)| FilterOption {
        index,
        text: Some(text.clone()),
    }));
    if flag(matches, "exclude-perf") == Some(true) {
        let index = matches.index_of("exclude-perf").unwrap_or_default();
        given.push(FilterOption { index, text: None });
    }
    given.sort_by_key(|option| option.index);
    // From the last list to the first: each takes all filters behind it that are left.
    for list in (0..lists.len()).rev() {
        let start = lists[list].index;
        let first = given.partition_point(|option| option.index < start);
        let of_list: Vec<FilterOption> = given.drain(first..).collect();
        for event in &mut lists[list].events {
            match event.tracepoint.clone() {
                _ if of_list.is_empty() => {}
                Some(tracepoint) => {
                    event.filter =
                        Some(kernel_filter(&event.name, &tracepoint, tracefs, &of_list)?);
                }
                None => event.sample_filter = sample_filter(&event.name, &of_list)?,
            }
        }
    }
    // What is left precedes the first list.
    match given.first() {
        Some(option) => Err(CliError::usage(format!(
            "{} option should follow a -e tracepoint or HW tracer option",
            option.name()
        ))),
        None => Ok(()),
    }
}

/// A filter as given: `--filter` with its text, or `--exclude-perf`.
struct FilterOption {
    /// The index that clap gives to the option's value, or to the flag `--exclude-perf`.
    index: usize,
    /// `None` for `--exclude-perf`.
    text: Option<String>,
}

impl FilterOption {
    fn name(&self) -> &'static str {
        match self.text {
            Some(_) => "--filter",
            None => "--exclude-perf",
        }
    }
}

/// The error for a text that is not a valid filter of the event.
fn refused(text: &str, event: &str) -> CliError {
    CliError::message(
        FAILED,
        format!("failed to set filter \"{text}\" on event {event}"),
    )
}

/// Combines the filters of an event that is not a tracepoint; `None` if there are none.
fn sample_filter(event: &str, given: &[FilterOption]) -> Result<Option<SampleFilter>, CliError> {
    let mut combined: Option<SampleFilter> = None;
    for option in given {
        let filter = match &option.text {
            None => SampleFilter::all_but(std::process::id()),
            Some(text) => SampleFilter::parse(text).map_err(|error| {
                refused(text, event)
                    .detail(error.to_string())
                    .hint(error.hint)
            })?,
        };
        combined = Some(match combined {
            Some(combined) => combined.and(filter),
            None => filter,
        });
    }
    Ok(combined)
}

/// Rejects sample filters for commands that do not write samples.
pub(crate) fn refuse_sample_filters(events: &[EventSpec]) -> Result<(), CliError> {
    match events.iter().find(|event| event.sample_filter.is_some()) {
        Some(event) => Err(CliError::usage(format!(
            "event {} takes no filter: only tracepoints have fields",
            event.name
        ))),
        None => Ok(()),
    }
}

/// Rejects events to be counted by BPF programs for commands that do not count.
pub(crate) fn refuse_bpf_counters(events: &[EventSpec]) -> Result<(), CliError> {
    match events.iter().find(|event| event.bpf) {
        Some(event) => Err(CliError::usage(format!(
            "event {}: the modifier `b' is supported by 'stat' only",
            event.name
        ))),
        None => Ok(()),
    }
}

/// Combines the filters of a tracepoint into one for the kernel.
fn kernel_filter(
    event: &str,
    tracepoint: &TracepointName,
    tracefs: &Tracefs,
    given: &[FilterOption],
) -> Result<String, CliError> {
    let format = describe(tracefs, &tracepoint.system, &tracepoint.name)?.format;
    let mut filters = Vec::new();
    for option in given {
        let exclude_perf = || format!("common_pid != {}", std::process::id());
        let text = option.text.clone().unwrap_or_else(exclude_perf);
        let filter = EventFilter::parse(&text, event, &format).map_err(|error| {
            let cli = refused(&text, event).details(&error.to_string());
            error.hint.into_iter().fold(cli, CliError::hint)
        })?;
        filters.push(filter);
    }
    let texts: Vec<&str> = filters.iter().map(EventFilter::as_str).collect();
    Ok(EventFilter::join(&texts))
}
