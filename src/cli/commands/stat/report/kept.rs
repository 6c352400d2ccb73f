//! What a recording tells of its counts.

use std::collections::BTreeMap;

use rperf_count::{Aggregation, Event, Grouping, Role, Round, Rounds};
use rperf_events::Tool;
use rperf_perfdata::{EventDesc, EventUpdate, PerfData, RecordAt, Update};
use rperf_wire::{Attr, RecordKind, StatConfig, UserRecord};

use super::super::grouping::{at_last_level, is_of_cpus};
use super::super::show::Subject;
use super::machine;
use crate::cli::context::Context;

/// The counts of a recording, and all that is shown with them.
pub(super) struct Kept<'d> {
    data: &'d PerfData<'d>,
    title: String,
    rounds: Rounds,
    events: Vec<Event>,
    threads: BTreeMap<u32, String>,
    /// How it was counted.
    config: Option<StatConfig>,
    /// How it is to be shown; all in one for as it was counted.
    asked: Aggregation,
}

impl<'d> Kept<'d> {
    pub(super) fn new(data: &'d PerfData<'d>, asked: Aggregation) -> Self {
        let described = data.events();
        let mut events: Vec<Event> = Vec::with_capacity(described.len());
        for (index, event) in described.iter().enumerate() {
            let mut counted = named(&event.name, &event.attr);
            counted.supported = !event.ids.is_empty();
            // Units of a PMU that counts one thing in several places stand one behind the other.
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
            rounds: Rounds::new(described.iter().map(|event| event.ids.as_slice())),
            events,
            threads: BTreeMap::new(),
            config: None,
            asked,
        }
    }

    /// Takes the next record; what was counted, where it ends a round.
    pub(super) fn take(
        &mut self,
        record: &RecordAt<'_>,
        decoded: &UserRecord<'_>,
    ) -> Option<Round> {
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
        self.rounds.take(decoded)
    }

    fn update(&mut self, update: EventUpdate) {
        let Some(index) = self.rounds.event(update.id) else {
            return;
        };
        let Some(event) = self.events.get_mut(index) else {
            return;
        };
        match update.update {
            Update::Unit(unit) => event.unit = unit,
            Update::Scale(scale) => event.scale = scale,
            Update::Name(name) => {
                let described = self.data.events().get(index);
                if let Some(EventDesc { attr, .. }) = described {
                    let named = named(&name, attr);
                    (event.name, event.cgroup, event.role) = (named.name, named.cgroup, named.role);
                }
            }
            Update::Cpus(cpus) => self.rounds.set_cpus(index, cpus),
            _ => {}
        }
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.events.clone()
    }

    /// What tables are about, their rows being of parts `by`.
    pub(super) fn subject(&self, by: Aggregation) -> Subject<'_> {
        Subject {
            title: &self.title,
            by,
            threads: &self.threads,
            in_intervals: false,
        }
    }

    /// How counts become rows: as the options say, otherwise as it was counted. Known from the first round on.
    pub(super) fn grouping(&self, context: &Context) -> Grouping {
        let setting = |number| self.config.as_ref().and_then(|config| config.term(number));
        let counted = setting(StatConfig::AGGREGATION);
        let counted = counted.map(Aggregation::of_number).unwrap_or_default();
        let mut by = match self.asked {
            Aggregation::Global => counted,
            asked => asked,
        };
        if is_of_cpus(by) && !self.rounds.is_of_cpus() {
            context.note("warning: processing task data, aggregation mode not set");
            by = match is_of_cpus(counted) {
                true => Aggregation::Global,
                false => counted,
            };
        }
        let topology = machine::topology(self.data.features());
        Grouping {
            by: at_last_level(by, &topology),
            topology,
            unscaled: setting(StatConfig::SCALE) == Some(0),
        }
    }
}

/// The event that a recording calls `name`: behind a tab is its cgroup.
fn named(name: &str, attr: &Attr) -> Event {
    let (name, cgroup) = match name.split_once('\t') {
        Some((name, cgroup)) => (name, Some(cgroup.to_owned())),
        None => (name, None),
    };
    let mut event = Event::new(name, attr);
    event.cgroup = cgroup;
    if Tool::kept_as(name, attr).is_some() {
        event.role = Role::Time;
    }
    event
}
