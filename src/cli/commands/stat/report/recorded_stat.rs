//! Counts of a recording.

use std::collections::BTreeMap;

use rperf_count::{
    Aggregation, AggregationRules, CountedEvent, IntervalCounts, RecordedCounts, Role,
};
use rperf_events::Tool;
use rperf_perfdata::{EventDesc, EventProperty, EventUpdate, PerfData, RecordAt};
use rperf_wire::{Attr, RecordKind, StatConfig, UserRecord};

use super::super::grouping::{at_last_level, is_of_cpus};
use super::super::tables::TableSubject;
use super::machine;
use crate::cli::context::Context;

/// The counts of a recording, and the data shown with them.
pub(super) struct RecordedStat<'d> {
    data: &'d PerfData<'d>,
    title: String,
    rounds: RecordedCounts,
    events: Vec<CountedEvent>,
    threads: BTreeMap<u32, String>,
    /// The configuration of counting.
    config: Option<StatConfig>,
    /// The requested aggregation; `Global` means that of the recording.
    requested: Aggregation,
}

impl<'d> RecordedStat<'d> {
    pub(super) fn new(data: &'d PerfData<'d>, requested: Aggregation) -> Self {
        let described = data.events();
        let mut events: Vec<CountedEvent> = Vec::with_capacity(described.len());
        for (index, event) in described.iter().enumerate() {
            let mut counted = named(&event.name, &event.attr);
            counted.supported = !event.ids.is_empty();
            // Uncore PMUs of one kind are recorded as several events of one name.
            let same = described
                .iter()
                .take(index)
                .position(|other| other.name == event.name && other.attr.kind != event.attr.kind);
            counted.merged_into = same;
            events.push(counted);
        }
        let words = match data.header().is_pipe() {
            true => None,
            false => data.features().cmdline(),
        };
        let words = words.map_or("pipe".to_owned(), |words| words.join(" "));
        Self {
            data,
            title: format!("'{words}'"),
            rounds: RecordedCounts::new(described.iter().map(|event| event.ids.as_slice())),
            events,
            threads: BTreeMap::new(),
            config: None,
            requested,
        }
    }

    /// Processes the next record; returns the counts of a round at its end.
    pub(super) fn take(
        &mut self,
        record: &RecordAt<'_>,
        decoded: &UserRecord<'_>,
    ) -> Option<IntervalCounts> {
        match decoded {
            UserRecord::StatConfig(config) => self.config = Some(config.clone()),
            UserRecord::ThreadMap(map) => {
                let named = map.threads.iter().filter_map(|thread| {
                    let name = String::from_utf8_lossy(&thread.comm).into_owned();
                    Some((u32::try_from(thread.pid).ok()?, name))
                });
                self.threads = named.collect();
            }
            UserRecord::Other(RecordKind::EVENT_UPDATE) => {
                let update = EventUpdate::decode(record.raw.body, self.data.endian());
                if let Ok(update) = update {
                    self.update(update);
                }
            }
            _ => {}
        }
        self.rounds.process(decoded)
    }

    fn update(&mut self, update: EventUpdate) {
        let Some(index) = self.rounds.event(update.id) else {
            return;
        };
        let Some(event) = self.events.get_mut(index) else {
            return;
        };
        match update.update {
            EventProperty::Unit(unit) => event.unit = unit,
            EventProperty::Scale(scale) => event.scale = scale,
            EventProperty::Name(name) => {
                let described = self.data.events().get(index);
                if let Some(EventDesc { attr, .. }) = described {
                    let named = named(&name, attr);
                    (event.name, event.cgroup, event.role) = (named.name, named.cgroup, named.role);
                }
            }
            EventProperty::Cpus(cpus) => self.rounds.set_cpus(index, cpus),
            _ => {}
        }
    }

    pub(super) fn events(&self) -> Vec<CountedEvent> {
        self.events.clone()
    }

    /// The subject of tables that are aggregated `by`.
    pub(super) fn subject(&self, by: Aggregation) -> TableSubject<'_> {
        TableSubject {
            title: &self.title,
            by,
            threads: &self.threads,
            in_intervals: false,
        }
    }

    /// The aggregation: as requested, otherwise as recorded. Known from the first round on.
    pub(super) fn grouping(&self, context: &Context) -> AggregationRules {
        let setting = |number| self.config.as_ref().and_then(|config| config.term(number));
        let counted = setting(StatConfig::AGGREGATION);
        let counted = counted.map(Aggregation::of_number).unwrap_or_default();
        let mut by = match self.requested {
            Aggregation::Global => counted,
            requested => requested,
        };
        if is_of_cpus(by) && !self.rounds.is_per_cpu() {
            context.note("warning: processing task data, aggregation mode not set");
            by = match is_of_cpus(counted) {
                true => Aggregation::Global,
                false => counted,
            };
        }
        let topology = machine::topology(self.data.features());
        AggregationRules {
            by: at_last_level(by, &topology),
            topology,
            unscaled: setting(StatConfig::SCALE) == Some(0),
        }
    }
}

/// The event of a recording called `name`, in which a tab precedes the cgroup.
fn named(name: &str, attr: &Attr) -> CountedEvent {
    let (name, cgroup) = match name.split_once('\t') {
        Some((name, cgroup)) => (name, Some(cgroup.to_owned())),
        None => (name, None),
    };
    let mut event = CountedEvent::new(name, attr);
    event.cgroup = cgroup;
    if Tool::of_recorded(name, attr).is_some() {
        event.role = Role::Time;
    }
    event
}
