//! Counts of a recording of `stat record`.

use std::collections::BTreeMap;

use rperf_count::{CountedEvent, IntervalCounts, RecordedCounts, Role};
use rperf_events::Tool;
use rperf_perfdata::{EventDesc, EventProperty, EventUpdate, PerfData, RecordAt};
use rperf_replay::{BadRecord, Diagnostics};
use rperf_wire::{Attr, DecodeError, RecordKind, StatConfig, UserRecord};

use crate::cli::error::CliError;

/// The counts of a recording, and the data shown with them.
pub(crate) struct RecordedStat<'d> {
    data: &'d PerfData<'d>,
    /// Collects the counts up to each STAT_ROUND record.
    rounds: RecordedCounts,
    events: Vec<CountedEvent>,
    threads: BTreeMap<u32, String>,
    /// The content of the STAT_CONFIG record, once it was read.
    config: Option<StatConfig>,
}

impl<'d> RecordedStat<'d> {
    /// Prepares to read the counts of a recording.
    pub(crate) fn new(data: &'d PerfData<'d>) -> Self {
        let described = data.events();
        let mut events: Vec<CountedEvent> = Vec::with_capacity(described.len());
        for (index, event) in described.iter().enumerate() {
            let mut counted = counted_event(&event.name, &event.attr);
            // Without counter ids, no counter of the event was opened.
            counted.supported = !event.ids.is_empty();
            // An event of several uncore PMUs, such as all memory controllers, is recorded as several events of one name, each
            // with the number (`attr.kind`) of its PMU.
            counted.merged_into = described
                .iter()
                .take(index)
                .position(|other| other.name == event.name && other.attr.kind != event.attr.kind);
            events.push(counted);
        }
        Self {
            data,
            rounds: RecordedCounts::new(described.iter().map(|event| event.ids.as_slice())),
            events,
            threads: BTreeMap::new(),
            config: None,
        }
    }

    /// Passes the counts of each round (up to a STAT_ROUND record) to `on_round`, with the metadata read so far. Returns what
    /// could not be read.
    ///
    /// # Errors
    ///
    /// Those of `on_round`.
    pub(crate) fn read(
        &mut self,
        on_round: &mut dyn FnMut(&Self, &IntervalCounts) -> Result<(), CliError>,
    ) -> Result<Diagnostics, CliError> {
        let mut diagnostics = Diagnostics::default();
        for record in self.data.records() {
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    diagnostics.end = Some(error);
                    break;
                }
            };
            match self.process(&record) {
                Ok(Some(round)) => on_round(self, &round)?,
                Ok(None) => {}
                Err(error) => diagnostics.bad_records.add(BadRecord {
                    offset: record.position,
                    kind: record.raw.kind,
                    error,
                }),
            }
        }
        Ok(diagnostics)
    }

    /// Processes the next record; returns the counts of the round that the record ends, if it ends one.
    fn process(&mut self, record: &RecordAt<'_>) -> Result<Option<IntervalCounts>, DecodeError> {
        let decoded = UserRecord::decode(&record.raw, self.data.endian())?;
        match &decoded {
            UserRecord::StatConfig(config) => self.config = Some(config.clone()),
            UserRecord::ThreadMap(map) => {
                // The entry for all threads has no name; its id, -1, is not a `u32`.
                let named = map.threads.iter().filter_map(|thread| {
                    let name = String::from_utf8_lossy(&thread.comm).into_owned();
                    Some((u32::try_from(thread.pid).ok()?, name))
                });
                self.threads = named.collect();
            }
            UserRecord::Other(RecordKind::EVENT_UPDATE) => {
                self.update(EventUpdate::decode(record.raw.body, self.data.endian())?);
            }
            _ => {}
        }
        Ok(self.rounds.process(&decoded))
    }

    fn update(&mut self, update: EventUpdate) {
        let Some(index) = self.rounds.event(update.id) else {
            return;
        };
        let Some(event) = self.events.get_mut(index) else {
            return;
        };
        match update.property {
            EventProperty::Unit(unit) => event.unit = unit,
            EventProperty::Scale(scale) => event.scale = scale,
            EventProperty::Name(name) => {
                let described = self.data.events().get(index);
                if let Some(EventDesc { attr, .. }) = described {
                    let named = counted_event(&name, attr);
                    (event.name, event.cgroup, event.role) = (named.name, named.cgroup, named.role);
                }
            }
            EventProperty::Cpus(cpus) => self.rounds.set_cpus(index, cpus),
            _ => {}
        }
    }

    /// The events.
    pub(crate) fn events(&self) -> Vec<CountedEvent> {
        self.events.clone()
    }

    /// The names in the THREAD_MAP record, by thread id.
    pub(crate) fn threads(&self) -> &BTreeMap<u32, String> {
        &self.threads
    }

    /// Whether CPUs were counted instead of threads.
    pub(crate) fn is_per_cpu(&self) -> bool {
        self.rounds.is_per_cpu()
    }

    /// A value of the STAT_CONFIG record, by the number of its term; `None` before that record, or if it has no such term.
    pub(crate) fn setting(&self, number: u64) -> Option<u64> {
        self.config.as_ref().and_then(|config| config.term(number))
    }
}

/// Returns the event called `name` in a recording, where a tab separates the event's name from its cgroup.
fn counted_event(name: &str, attr: &Attr) -> CountedEvent {
    let (name, cgroup) = match name.split_once('\t') {
        Some((name, cgroup)) => (name, Some(cgroup.to_owned())),
        None => (name, None),
    };
    let mut event = CountedEvent::new(name, attr);
    event.cgroup = cgroup;
    // The attr of a tool event, such as `user_time`, is that of a dummy event and does not determine the role.
    if Tool::of_recorded(name, attr).is_some() {
        event.role = Role::Time;
    }
    event
}
