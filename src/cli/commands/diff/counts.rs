//! Compares the counts of files of `stat record`.

use std::collections::BTreeSet;
use std::io::Write;

use clap::ArgMatches;
use rperf_count::{AggregationRules, Aggregator, CountRow, CountState, IntervalCounts};
use rperf_perfdata::PerfData;
use rperf_view::diff::{ComparedCount, CountObservation, CountsView, EventValues, compare_counts};
use rperf_wire::StatConfig;

use super::check_growth;
use super::settings::DiffSettings;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::findings::conclude;
use crate::cli::input::Input;
use crate::cli::options::is_given;
use crate::cli::shared::recorded_stat::RecordedStat;

/// Options for samples: they are refused for files with counts.
const SAMPLE_OPTIONS: [&str; 23] = [
    "baseline-only",
    "compute",
    "period",
    "formula",
    "cycles-hist",
    "stream",
    "dump-raw-trace",
    "order",
    "percentage",
    "sort",
    "comms",
    "dsos",
    "symbols",
    "time",
    "cpu",
    "pid",
    "tid",
    "vmlinux",
    "kallsyms",
    "symfs",
    "debuginfod",
    "modules",
    "ignore-vmlinux",
];

/// The counts of a recording.
pub(super) struct CountsFile {
    /// The file as the user named it.
    pub(super) name: String,
    /// Total counts: one value for each event that was counted, none for others.
    totals: Vec<EventValues>,
    /// Counts per second in each interval.
    rates: Vec<EventValues>,
    /// The error if not all records could be read, reported after the comparison.
    pub(super) damage: Result<(), CliError>,
}

impl CountsFile {
    /// Reads the counts of a recording of `stat record`.
    ///
    /// # Errors
    ///
    /// Status 255: no counts could be read. Other errors of reading are in [`Self::damage`].
    pub(super) fn read(
        name: String,
        input: &Input,
        data: &PerfData<'_>,
        context: &Context,
    ) -> Result<Self, CliError> {
        let (mut totals, mut intervals, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        let undivided = 1.0;
        // A round has the counts of one interval, or those since the start (`is_total`).
        let diagnostics = RecordedStat::new(data).read(&mut |recorded, round| {
            let seconds = round.duration.as_secs_f64();
            if round.is_total {
                // Totals count from the start: of several, the last one applies.
                totals.clear();
                add(&mut totals, recorded, round, undivided);
            } else if seconds > 0.0 {
                add(&mut intervals, recorded, round, undivided);
                add(&mut rates, recorded, round, seconds);
            }
            Ok(())
        })?;
        if totals.is_empty() {
            totals = intervals.into_iter().map(summed).collect();
        }
        if totals.is_empty() {
            return Err(CliError::message(
                255,
                format!("{name}: the file contains no counts"),
            ));
        }
        Ok(Self {
            totals,
            rates,
            damage: conclude(&input.path, data.is_truncated(), &diagnostics, context),
            name,
        })
    }
}

/// Returns an event with the sum of its intervals as its only value.
fn summed(event: EventValues) -> EventValues {
    let sum = event.values.iter().sum();
    let is_counted = !event.values.is_empty();
    EventValues {
        values: is_counted.then_some(sum).into_iter().collect(),
        ..event
    }
}

/// Appends the count of each event in a round, divided by `divisor`, to the values of the event. Of several events with one
/// name, the first is used. An event that was not counted gets no value.
fn add(
    events: &mut Vec<EventValues>,
    recorded: &RecordedStat<'_>,
    round: &IntervalCounts,
    divisor: f64,
) {
    let rules = AggregationRules {
        unscaled: recorded.setting(StatConfig::SCALE) == Some(0),
        ..AggregationRules::default()
    };
    let mut aggregator = Aggregator::new(recorded.events(), &rules);
    aggregator.add(round.duration, &round.readings);
    let table = aggregator.table();
    let mut seen = BTreeSet::new();
    for CountRow { event, state, .. } in &table.rows {
        let Some(event) = table.events.get(*event) else {
            continue;
        };
        let name = match &event.cgroup {
            Some(cgroup) => format!("{} {cgroup}", event.name),
            None => event.name.clone(),
        };
        if !seen.insert(name.clone()) {
            continue;
        }
        let index = events.iter().position(|known| known.event == name);
        let index = index.unwrap_or_else(|| {
            events.push(EventValues {
                event: name,
                unit: event.unit.clone(),
                values: Vec::new(),
            });
            events.len() - 1
        });
        if let (CountState::Counted(count), Some(known)) = (state, events.get_mut(index)) {
            known.values.push(count.value / divisor);
        }
    }
}

/// Prints the comparison, and checks `--fail-above`, the maximum growth in percent of the baseline.
pub(super) fn print(
    files: &[CountsFile],
    settings: &DiffSettings,
    matches: &ArgMatches,
    context: &Context,
) -> Result<(), CliError> {
    if let Some(option) = SAMPLE_OPTIONS.into_iter().find(|id| is_given(matches, id)) {
        let message = format!("--{option} is for samples; the files have counts (stat record)");
        // The status is not 129 (usage), because the options are valid for other files.
        return Err(CliError::message(255, message));
    }
    let baseline_files = match &settings.runs {
        Some(runs) => runs.baseline_files,
        None if files.len() == 2 => 1,
        None => {
            let error = CliError::message(
                255,
                "more than two files with counts can only be compared as groups",
            );
            return Err(error.hint("name them as --runs OLD... -- NEW..."));
        }
    };
    let (before, after) = files.split_at(baseline_files.min(files.len()));
    let kind = observation(files, settings);
    let groups = [before, after].map(|group| values(group, kind));
    let rows = compare_counts(&groups[0], &groups[1]);
    warn_of_missing(&groups, &rows, context);
    if rows.is_empty() {
        return Err(CliError::message(
            255,
            "nothing to compare: the files have no counted event in common",
        ));
    }
    let names = [before, after].map(|group| {
        group
            .iter()
            .map(|file| file.name.clone())
            .collect::<Vec<_>>()
    });
    let view = CountsView {
        files: [&names[0], &names[1]],
        kind,
        rows: &rows,
        only_significant: settings.runs.as_ref().is_some_and(|runs| !runs.shows_all),
    };
    let out = &mut context.stdout();
    match settings.json {
        true => view.write_json(out)?,
        false => view.write_text(out, &settings.layout)?,
    }
    out.flush()?;
    // Rows without a confidence interval, because a group has a single value, are checked, too.
    let checked = rows
        .iter()
        .filter(|row| row.is_significant() != Some(false));
    let changes = checked.filter_map(|row| Some((row.percent()?, row.baseline.event.clone())));
    check_growth(changes, settings.fail_above, "%")
}

/// Returns the kind of the compared values: rates of intervals if `--runs` is not given and each file has an event that was
/// counted in at least two intervals, otherwise total counts.
fn observation(files: &[CountsFile], settings: &DiffSettings) -> CountObservation {
    let has_intervals = |file: &CountsFile| file.rates.iter().any(|event| event.values.len() > 1);
    match settings.runs.is_none() && files.iter().all(has_intervals) {
        true => CountObservation::Interval,
        false => CountObservation::Run,
    }
}

/// The values of each event in a group of files.
fn values(group: &[CountsFile], kind: CountObservation) -> Vec<EventValues> {
    let mut all: Vec<EventValues> = Vec::new();
    for file in group {
        let file_events = match kind {
            CountObservation::Interval => &file.rates,
            CountObservation::Run => &file.totals,
        };
        for event in file_events {
            match all.iter_mut().find(|known| known.event == event.event) {
                Some(known) => known.values.extend(&event.values),
                None => all.push(event.clone()),
            }
        }
    }
    all
}

/// Warns of each event without a value in one of the groups: such events are not among `rows`.
fn warn_of_missing(groups: &[Vec<EventValues>; 2], rows: &[ComparedCount], context: &Context) {
    let names = [["baseline", "new files"], ["new files", "baseline"]];
    for (group, [own, other]) in groups.iter().zip(names) {
        for event in group {
            if !rows.iter().any(|row| row.baseline.event == event.event) {
                let missing = match event.values.is_empty() {
                    true => format!("was not counted in the {own}"),
                    false => format!("has no count in the {other}"),
                };
                context.warn(format_args!("'{}' {missing}", event.event));
            }
        }
    }
}
