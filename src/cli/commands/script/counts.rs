//! The counts of `stat record`: a table of all counters at the end of each interval.

use std::io::{self, Write};

use clap::ArgMatches;
use rperf_count::{CounterCounts, CounterReading, IntervalCounts, RecordedCounts};
use rperf_perfdata::{EventDesc, EventProperty, EventUpdate, PerfData};
use rperf_replay::{BadRecord, DecodeErrors, STAT_RECORD_KINDS};
use rperf_resolve::SampleCriteria;
use rperf_view::script::{write_count, write_count_titles};
use rperf_wire::{Endian, RawRecord, RecordKind, StatConfig, UserRecord};

use super::settings::ScriptSettings;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Options that select samples and do not apply to counts.
const SAMPLE_FILTERS: [&str; 6] = ["comms", "dsos", "pid", "symbols", "tid", "time"];

/// The value of [`StatConfig::AGGREGATION`] if `stat` aggregated the counts of all CPUs and threads: perf's `AGGR_GLOBAL`. STAT
/// records have the count of each counter nevertheless.
const AGGR_GLOBAL: u64 = 1;

/// The options in [`SAMPLE_FILTERS`] that were given.
pub(super) fn sample_filter_ids(matches: &ArgMatches) -> Vec<&'static str> {
    let filters = SAMPLE_FILTERS.into_iter();
    filters.filter(|id| matches.contains_id(id)).collect()
}

/// Whether all events are counted and none is sampled.
pub(super) fn are_counted(events: &[EventDesc]) -> bool {
    !events.is_empty() && events.iter().all(|event| event.attr.sample_period == 0)
}

/// Refuses options that cannot print counts, and reports filters that do not apply to counts.
pub(super) fn check(settings: &ScriptSettings, context: &Context) -> Result<(), CliError> {
    let refused = [
        (settings.is_structured, settings.format_option()),
        (settings.per_event_dump, "--per-event-dump"),
        (settings.checks_order, "--debug-mode"),
    ];
    if let Some((_, option)) = refused.iter().find(|(is_given, _)| *is_given) {
        let message = format!("{option}: the recording has counts, no samples");
        return Err(CliError::message(255, message)
            .hint("'stat report' shows counts, with '-j' as JSON, with '-x ,' as CSV"));
    }
    for filter in &settings.sample_filter_ids {
        context.warn(format_args!(
            "--{filter} selects samples and does not apply to counts"
        ));
    }
    Ok(())
}

/// Collects counts from records, and writes them at the end of each interval.
#[derive(Default)]
pub(super) struct CountTable {
    counts: Option<RecordedCounts>,
    names: Vec<String>,
    config: Option<StatConfig>,
    is_titled: bool,
    /// Records that could not be decoded.
    pub(super) decode_errors: DecodeErrors,
}

impl CountTable {
    /// Writes the counts of a complete recording.
    pub(super) fn print(
        &mut self,
        data: &PerfData<'_>,
        filter: &SampleCriteria,
        out: &mut impl Write,
    ) -> io::Result<()> {
        // Stops at the first record that cannot be read. The replay reports the error.
        for record in data.records().map_while(Result::ok) {
            let count_record = CountRecord {
                raw: &record.raw,
                position: record.position,
                endian: data.endian(),
                events: data.events(),
            };
            self.process_and_write(&count_record, filter, out)?;
        }
        Ok(())
    }

    /// Processes the next record; at the end of an interval, writes its rows.
    pub(super) fn process_and_write(
        &mut self,
        record: &CountRecord<'_>,
        filter: &SampleCriteria,
        out: &mut impl Write,
    ) -> io::Result<()> {
        match self.process(record) {
            Some(interval) => self.write(interval, filter, out),
            None => Ok(()),
        }
    }

    /// Processes the next record; returns the counts at the end of an interval.
    pub(super) fn process(&mut self, record: &CountRecord<'_>) -> Option<IntervalCounts> {
        let raw = record.raw;
        if !STAT_RECORD_KINDS.contains(&raw.kind) {
            return None;
        }
        let decoded = match UserRecord::decode(raw, record.endian) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.decode_errors.add(BadRecord {
                    offset: record.position,
                    kind: raw.kind,
                    error,
                });
                return None;
            }
        };
        let new_counts = || {
            let ids = record.events.iter().map(|event| event.ids.as_slice());
            RecordedCounts::new(ids)
        };
        let counts = self.counts.get_or_insert_with(new_counts);
        if self.names.is_empty() {
            let names = record.events.iter().map(|event| event.name.clone());
            self.names = names.collect();
        }
        // `UserRecord` does not decode this kind.
        if raw.kind == RecordKind::EVENT_UPDATE
            && let Ok(update) = EventUpdate::decode(raw.body, record.endian)
            && let Some(event) = counts.event(update.id)
        {
            match (update.property, self.names.get_mut(event)) {
                (EventProperty::Cpus(cpus), _) => counts.set_cpus(event, cpus),
                (EventProperty::Name(name), Some(known)) => *known = name,
                _ => {}
            }
        }
        if let UserRecord::StatConfig(config) = &decoded {
            self.config = Some(config.clone());
        }
        counts.process(&decoded)
    }

    /// Returns the counts of an interval as scripts get them, each with the index of its event. Counts of multiplexed
    /// events are scaled, unless `stat` recorded without scaling. With [`AGGR_GLOBAL`], an event has one sum of all CPUs and
    /// threads.
    pub(super) fn script_readings(
        &self,
        interval: IntervalCounts,
        filter: &SampleCriteria,
    ) -> Vec<(usize, CounterReading)> {
        let is_scaled = self.setting(StatConfig::SCALE) != Some(0);
        let is_global = self.is_global();
        let mut found = Vec::new();
        for (event, readings) in interval.readings.into_iter().enumerate() {
            let counts = self.counts.iter();
            let sorted = counts.flat_map(|counts| counts.sorted(readings.clone()));
            // `u32::MAX`, an unknown CPU, is accepted by any filter.
            let mut readings: Vec<CounterReading> = sorted
                .filter(|reading| filter.accepts_cpu(reading.cpu.unwrap_or(u32::MAX)))
                .collect();
            if is_global {
                readings = vec![sum(&readings)];
            }
            for mut reading in readings {
                if is_scaled {
                    reading.counts.value = reading.counts.scaled().unwrap_or(0);
                }
                found.push((event, reading));
            }
        }
        found
    }

    /// The names of the events.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Writes the rows of an interval, as perf does: the counts of the interval or, with [`AGGR_GLOBAL`], each counter's total
    /// since the start.
    fn write(
        &mut self,
        interval: IntervalCounts,
        filter: &SampleCriteria,
        out: &mut impl Write,
    ) -> io::Result<()> {
        if !self.is_titled {
            write_count_titles(out)?;
            self.is_titled = true;
        }
        let at = interval.at;
        let rows = match self.is_global() {
            true => self.totals(filter),
            false => self.script_readings(interval, filter),
        };
        for (event, reading) in rows {
            let name = self.names.get(event).map_or("", String::as_str);
            write_count(out, &reading, at, name)?;
        }
        Ok(())
    }

    /// The last readings of all events, which are totals since the start, each with the index of its event. As in perf, they are
    /// not scaled.
    fn totals(&self, filter: &SampleCriteria) -> Vec<(usize, CounterReading)> {
        let counts = self.counts.iter();
        let rows = counts.flat_map(|counts| {
            let events = 0..self.names.len();
            events.flat_map(|event| {
                let readings = counts.totals(event).into_iter();
                readings.map(move |reading| (event, reading))
            })
        });
        rows.filter(|(_, reading)| filter.accepts_cpu(reading.cpu.unwrap_or(u32::MAX)))
            .collect()
    }

    /// Whether the aggregation is [`AGGR_GLOBAL`].
    fn is_global(&self) -> bool {
        self.setting(StatConfig::AGGREGATION) == Some(AGGR_GLOBAL)
    }

    fn setting(&self, number: u64) -> Option<u64> {
        self.config.as_ref().and_then(|config| config.term(number))
    }
}

/// The sum of all readings, as a reading of all CPUs and threads.
fn sum(readings: &[CounterReading]) -> CounterReading {
    let mut counts = CounterCounts::default();
    for reading in readings {
        counts.value = counts.value.wrapping_add(reading.counts.value);
        counts.enabled = counts.enabled.wrapping_add(reading.counts.enabled);
        counts.running = counts.running.wrapping_add(reading.counts.running);
    }
    CounterReading {
        cpu: None,
        thread: None,
        counts,
    }
}

/// A record, and the events of its recording.
pub(super) struct CountRecord<'r> {
    pub(super) raw: &'r RawRecord<'r>,
    pub(super) position: u64,
    pub(super) endian: Endian,
    pub(super) events: &'r [EventDesc],
}
