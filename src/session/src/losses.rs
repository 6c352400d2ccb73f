//! What a recording misses: samples that found their ring full, and events that the kernel held back.

use std::collections::HashMap;

use rperf_wire::{
    Attr, AttrFlags, Encoder, LostSamples, Misc, ReadFormat, Record, SampleId, SampleIdLayout,
};

use crate::open::{OpenEvent, Placed};
use crate::synthesize::Records;

/// What was missed of one event on one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// The event's name.
    pub event: String,
    /// `None` where its counters follow tasks over all CPUs.
    pub cpu: Option<u32>,
    /// Samples that were lost, or how often the event was throttled.
    pub count: u64,
    /// How often it was sampled.
    pub rate: Sampled,
}

/// How often an event is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    /// Times a second.
    Frequency(u64),
    /// Once in so many events.
    Period(u64),
}

impl Sampled {
    /// As an attr says.
    pub(crate) fn of(attr: &Attr) -> Self {
        match attr.flags.contains(AttrFlags::FREQ) {
            true => Self::Frequency(attr.sample_period),
            false => Self::Period(attr.sample_period),
        }
    }
}

impl Missed {
    /// Adds up what was missed of an event on a CPU, by several counters or in several files.
    pub(crate) fn merge(into: &mut Vec<Self>, more: impl IntoIterator<Item = Self>) {
        for missed in more {
            let same = |known: &&mut Self| known.event == missed.event && known.cpu == missed.cpu;
            match into.iter_mut().find(same) {
                Some(known) => known.count += missed.count,
                None => into.push(missed),
            }
        }
    }

    fn of(event: &OpenEvent, placed: &Placed, count: u64) -> Self {
        let attr = &event.event.attr;
        Self {
            event: event.event.spec.name.clone(),
            cpu: u32::try_from(placed.cpu).ok(),
            count,
            rate: Sampled::of(attr),
        }
    }
}

/// Appends LOST_SAMPLES for every counter that lost any, as the kernel counts them beside the rings, and tells what was
/// lost. Counters of kernels that don't count tell nothing.
pub(crate) fn lost_samples(events: &[OpenEvent], to: &mut Records) -> Vec<Missed> {
    let mut all = Vec::new();
    // With GROUP a read tells of the leader, who alone takes samples.
    let samples = |event: &&OpenEvent| {
        let attr = &event.event.attr;
        event.event.leader.is_none() || !attr.read_format.contains(ReadFormat::GROUP)
    };
    for event in events.iter().filter(samples) {
        let attr = &event.event.attr;
        let layout = SampleIdLayout::new(attr.sample_type);
        for placed in &event.counters {
            let reading = placed.counter.read(attr.read_format).ok();
            let lost = reading.and_then(|reading| reading.lost);
            let Some(lost) = lost.filter(|lost| *lost > 0) else {
                continue;
            };
            Missed::merge(&mut all, [Missed::of(event, placed, lost)]);
            let id = SampleId {
                id: Some(placed.id),
                ..SampleId::default()
            };
            let record = Record::LostSamples(LostSamples { lost });
            to.with_trailer(&record, Misc(0), |to: &mut Encoder<'_>| {
                layout.encode(&id, to)
            });
        }
    }
    all
}

/// The tracepoints (`SYSTEM:EVENT`) that never happened where they were observed; of members of a group that are read with it
/// nothing is known.
pub(crate) fn unhit(events: &[OpenEvent]) -> Vec<String> {
    let alone = |event: &&OpenEvent| {
        let format = event.event.attr.read_format;
        event.event.leader.is_none() || !format.contains(ReadFormat::GROUP)
    };
    let never = |event: &&OpenEvent| {
        let format = event.event.attr.read_format;
        let mut counters = event.counters.iter();
        counters.all(|placed| {
            placed
                .counter
                .read(format)
                .is_ok_and(|reading| reading.value == 0)
        })
    };
    let silent = events
        .iter()
        .filter(alone)
        .filter(|event| !event.counters.is_empty());
    let silent = silent.filter_map(|event| Some((event, event.event.spec.tracepoint.as_ref()?)));
    let silent = silent.filter(|(event, _)| never(event));
    silent
        .map(|(_, name)| format!("{}:{}", name.system, name.name))
        .collect()
}

/// Whom the ids of THROTTLE records mean; those of counters that are gone mean nobody.
pub(crate) fn throttled(events: &[OpenEvent], by_id: &HashMap<u64, u64>) -> Vec<Missed> {
    let mut all = Vec::new();
    for event in events {
        let counts = event.counters.iter().filter_map(|placed| {
            let times = by_id.get(&placed.id)?;
            Some(Missed::of(event, placed, *times))
        });
        Missed::merge(&mut all, counts);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{Endian, SampleType};

    #[test]
    fn a_trailer_can_name_the_counter() {
        let layout = SampleIdLayout::new(SampleType::TID | SampleType::TIME | SampleType::ID);
        let mut records = Records::new(0);
        let id = SampleId {
            id: Some(7),
            ..SampleId::default()
        };
        let record = Record::LostSamples(LostSamples { lost: 3 });
        records.with_trailer(&record, Misc(0), |to: &mut Encoder<'_>| {
            layout.encode(&id, to)
        });
        let bytes = records.take();
        assert_eq!(bytes.len(), 8 + 8 + 24);
        assert_eq!(Endian::NATIVE.u64_at(&bytes, 32), Some(7));
    }

    #[test]
    fn what_counters_of_a_cpu_missed_adds_up() {
        let missed = |event: &str, cpu, count| Missed {
            event: event.to_owned(),
            cpu,
            count,
            rate: Sampled::Period(1),
        };
        let mut all = vec![missed("a", Some(0), 1)];
        let more = [
            missed("a", Some(1), 2),
            missed("a", Some(0), 4),
            missed("b", None, 8),
        ];
        Missed::merge(&mut all, more);
        let expected = [
            missed("a", Some(0), 5),
            missed("a", Some(1), 2),
            missed("b", None, 8),
        ];
        assert_eq!(all, expected);
    }
}
