//! The events of a text.

use std::collections::HashMap;

use rperf_perfdata::EventDesc;
use rperf_wire::{Attr, AttrFlags, EventType, SampleType};

use super::parse::TextSample;
use super::tracepoint::{FieldPattern, TextTracepoint};

/// Ids of tracepoints begin here.
const FIRST_TRACEPOINT: u16 = 1;
/// Maximum number of events: ids of tracepoints have 16 bits, and begin at 1. The highest id stays unused: the range of
/// ids in [`TextEvents::finish`] also computes the id after the last one, which must not overflow.
const MAX_EVENTS: usize = u16::MAX as usize - 1;

/// Configs of events with unknown names (`PERF_TYPE_RAW`) begin here.
const FIRST_RAW: u64 = 0x1_0000;

/// Names of hardware events, and their numbers (`PERF_COUNT_HW_*`).
const HARDWARE: &[(&str, u64)] = &[
    ("cycles", 0),
    ("cpu-cycles", 0),
    ("instructions", 1),
    ("cache-references", 2),
    ("cache-misses", 3),
    ("branches", 4),
    ("branch-instructions", 4),
    ("branch-misses", 5),
    ("bus-cycles", 6),
    ("stalled-cycles-frontend", 7),
    ("stalled-cycles-backend", 8),
    ("ref-cycles", 9),
];
/// Names of software events, and their numbers (`PERF_COUNT_SW_*`).
const SOFTWARE: &[(&str, u64)] = &[
    ("cpu-clock", 0),
    ("task-clock", 1),
    ("page-faults", 2),
    ("faults", 2),
    ("context-switches", 3),
    ("cs", 3),
    ("cpu-migrations", 4),
    ("migrations", 4),
    ("minor-faults", 5),
    ("major-faults", 6),
    ("alignment-faults", 7),
    ("emulation-faults", 8),
    ("dummy", 9),
    ("bpf-output", 10),
];

/// An event that occurs in the text.
#[derive(Debug)]
pub(super) struct TextEvent<'t> {
    /// The name as printed: with the system of a tracepoint, or with modifiers.
    pub(super) name: &'t str,
    /// Number of its samples.
    samples: u64,
    /// Whether all samples have a CPU.
    has_cpu: bool,
    /// Whether any sample has a callchain.
    pub(super) has_chains: bool,
    /// The fields of a tracepoint; `None` for other events.
    pattern: Option<FieldPattern<'t>>,
    /// The tracepoint's description; `None` for other events, and before [`TextEvents::finish`].
    pub(super) tracepoint: Option<TextTracepoint>,
}

/// The events of a text, by name.
#[derive(Debug, Default)]
pub(super) struct TextEvents<'t> {
    /// The events, in order of their first samples.
    pub(super) list: Vec<TextEvent<'t>>,
    /// Indices in `list` by name.
    numbers: HashMap<&'t str, usize>,
}

impl<'t> TextEvents<'t> {
    /// Adds a sample.
    ///
    /// # Errors
    /// The reason why the sample cannot be converted.
    pub(super) fn add(&mut self, sample: &TextSample<'t>) -> Result<(), &'static str> {
        let head = &sample.head;
        let next = self.list.len();
        let number = *self.numbers.entry(head.event).or_insert(next);
        if number == next {
            if next == MAX_EVENTS {
                return Err("the text has more than 65,534 events");
            }
            self.list.push(TextEvent {
                name: head.event,
                samples: 0,
                has_cpu: true,
                has_chains: false,
                pattern: head.fields.map(|_| FieldPattern::new(head.event)),
                tracepoint: None,
            });
        }
        // The event is always found: if it was new, it was added above.
        let Some(event) = self.list.get_mut(number) else {
            return Ok(());
        };
        event.samples += 1;
        event.has_cpu &= head.cpu.is_some();
        event.has_chains |= sample.is_chain;
        match (&mut event.pattern, head.fields) {
            (Some(pattern), Some(fields)) => {
                pattern.add(fields);
                pattern
                    .fits()
                    .then_some(())
                    .ok_or("the text of the event is too long for a sample")
            }
            (None, None) => Ok(()),
            _ => Err(
                "samples of this event differ: some have the fields of a tracepoint, others do not",
            ),
        }
    }

    /// The index of an event in `list`.
    pub(super) fn index_of(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// Number of all samples.
    pub(super) fn samples(&self) -> u64 {
        self.list.iter().map(|event| event.samples).sum()
    }

    /// Describes the tracepoints, and returns descriptions of all events for the perf.data.
    pub(super) fn finish(&mut self) -> Vec<EventDesc> {
        let mut descriptions = Vec::new();
        for ((number, event), tracepoint_id) in (0..).zip(&mut self.list).zip(FIRST_TRACEPOINT..) {
            if let Some(pattern) = &event.pattern {
                let (_, name) = event.name.split_once(':').unwrap_or(("", event.name));
                event.tracepoint = Some(pattern.tracepoint(name, tracepoint_id));
            }
            descriptions.push(EventDesc {
                attr: event.attr(number),
                // The id in samples, unlike that of a tracepoint, which is its `config`.
                ids: vec![number + 1],
                name: event.name.to_owned(),
            });
        }
        descriptions
    }
}

impl TextEvent<'_> {
    /// Returns the event's attribute; `number` is its index in [`TextEvents::list`].
    fn attr(&self, number: u64) -> Attr {
        let sample_type = SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::PERIOD;
        let mut attr = Attr {
            sample_period: 1,
            sample_type,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        if self.has_cpu {
            attr.sample_type |= SampleType::CPU;
        }
        if self.has_chains {
            attr.sample_type |= SampleType::CALLCHAIN;
        }
        if let Some(tracepoint) = &self.tracepoint {
            attr.sample_type |= SampleType::RAW;
            attr.kind = EventType::TRACEPOINT;
            attr.config = tracepoint.id().into();
            return attr;
        }
        let (name, modifiers) = self.name.rsplit_once(':').unwrap_or((self.name, ""));
        let find = |table: &[(&str, u64)]| {
            let known = table.iter().find(|(known, _)| *known == name);
            known.map(|(_, config)| *config)
        };
        (attr.kind, attr.config) = match (find(HARDWARE), find(SOFTWARE)) {
            (Some(config), _) => (EventType::HARDWARE, config),
            (_, Some(config)) => (EventType::SOFTWARE, config),
            _ => (EventType::RAW, FIRST_RAW + number),
        };
        let has_level = modifiers.contains(['u', 'k', 'h']);
        for (level, flag) in [
            ('u', AttrFlags::EXCLUDE_USER),
            ('k', AttrFlags::EXCLUDE_KERNEL),
            ('h', AttrFlags::EXCLUDE_HV),
        ] {
            let is_excluded = has_level && !modifiers.contains(level);
            attr.flags = attr.flags.with(flag, is_excluded);
        }
        attr
    }
}
