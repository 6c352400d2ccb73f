//! The counts of `stat record`: a table of all counters at the end of each interval.

use std::io::{self, Write};
use std::time::Duration;

use clap::ArgMatches;
use rperf_count::RecordedCounts;
use rperf_perfdata::{EventDesc, EventProperty, EventUpdate, PerfData};
use rperf_replay::{BadRecord, COUNT_RECORDS, DecodeErrors};
use rperf_resolve::SampleCriteria;
use rperf_view::script::{write_count, write_count_titles};
use rperf_wire::{Endian, RawRecord, RecordKind, UserRecord};

use super::settings::ScriptSettings;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Options that select samples by properties that counts do not have.
const SAMPLE_FILTERS: [&str; 6] = ["comms", "dsos", "pid", "symbols", "tid", "time"];

/// The options in [`SAMPLE_FILTERS`] that were given.
pub(super) fn sample_filters(matches: &ArgMatches) -> Vec<&'static str> {
    let filters = SAMPLE_FILTERS.into_iter();
    filters.filter(|id| matches.contains_id(id)).collect()
}

/// Whether the events are counted only: none is sampled.
pub(super) fn are_counted(events: &[EventDesc]) -> bool {
    !events.is_empty() && events.iter().all(|event| event.attr.sample_period == 0)
}

/// Refuses forms that counts do not have, and reports filters that do not apply to them.
pub(super) fn check(settings: &ScriptSettings, context: &Context) -> Result<(), CliError> {
    let form = match (settings.objects, settings.per_event, settings.checks) {
        (true, _, _) => settings.form(),
        (_, true, _) => "--per-event-dump",
        (_, _, true) => "--debug-mode",
        _ => "",
    };
    if !form.is_empty() {
        let message = format!("{form}: the recording has counts, no samples");
        return Err(CliError::message(255, message)
            .hint("'stat report' shows counts, as JSON with -j, as CSV with -x,"));
    }
    for filter in &settings.sample_filters {
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
    is_titled: bool,
    /// Records that could not be decoded.
    pub(super) bad: DecodeErrors,
}

impl CountTable {
    /// Whether any record was processed.
    pub(super) fn has_begun(&self) -> bool {
        self.counts.is_some()
    }

    /// Writes the counts of a complete recording.
    pub(super) fn print(
        &mut self,
        data: &PerfData<'_>,
        filter: &SampleCriteria,
        out: &mut impl Write,
    ) -> io::Result<()> {
        // The replay reports where records end early.
        for record in data.records().map_while(Result::ok) {
            let at = CountRecord {
                raw: &record.raw,
                position: record.position,
                endian: data.endian(),
                events: data.events(),
            };
            self.take(&at, filter, out)?;
        }
        Ok(())
    }

    /// Processes the next record; at the end of an interval, writes its rows.
    pub(super) fn take(
        &mut self,
        record: &CountRecord<'_>,
        filter: &SampleCriteria,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let raw = record.raw;
        if !COUNT_RECORDS.contains(&raw.kind) {
            return Ok(());
        }
        let decoded = match UserRecord::decode(raw, record.endian) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.bad.add(BadRecord {
                    offset: record.position,
                    kind: raw.kind,
                    error,
                });
                return Ok(());
            }
        };
        let described = || {
            let ids = record.events.iter().map(|event| event.ids.as_slice());
            RecordedCounts::new(ids)
        };
        let counts = self.counts.get_or_insert_with(described);
        if self.names.is_empty() {
            let names = record.events.iter().map(|event| event.name.clone());
            self.names = names.collect();
        }
        if raw.kind == RecordKind::EVENT_UPDATE
            && let Ok(update) = EventUpdate::decode(raw.body, record.endian)
            && let Some(event) = counts.event(update.id)
        {
            match (update.update, self.names.get_mut(event)) {
                (EventProperty::Cpus(cpus), _) => counts.set_cpus(event, cpus),
                (EventProperty::Name(name), Some(known)) => *known = name,
                _ => {}
            }
        }
        match counts.process(&decoded) {
            Some(interval) => self.write(interval.at, filter, out),
            None => Ok(()),
        }
    }

    fn write(
        &mut self,
        at: Duration,
        filter: &SampleCriteria,
        out: &mut impl Write,
    ) -> io::Result<()> {
        if !self.is_titled {
            write_count_titles(out)?;
            self.is_titled = true;
        }
        let counts = self.counts.iter();
        let rows = counts.flat_map(|counts| self.names.iter().zip((0..).map(|n| counts.totals(n))));
        for (name, readings) in rows {
            let shown = readings
                .iter()
                .filter(|reading| filter.accepts_cpu(reading.cpu.unwrap_or(u32::MAX)));
            for reading in shown {
                write_count(out, reading, at, name)?;
            }
        }
        Ok(())
    }
}

/// A record, and the events of its recording.
pub(super) struct CountRecord<'r> {
    pub(super) raw: &'r RawRecord<'r>,
    pub(super) position: u64,
    pub(super) endian: Endian,
    pub(super) events: &'r [EventDesc],
}
