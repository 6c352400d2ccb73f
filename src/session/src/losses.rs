//! Losses of a recording: lost samples, and throttled events.

use std::collections::HashMap;

use rperf_wire::{
    Attr, AttrFlags, Encoder, EventType, LostSamples, Misc, ReadFormat, Record, SampleId,
    SampleIdLayout,
};

use crate::open::{OpenCounter, OpenEvent};
use crate::synthesize::RecordBuffer;

/// Losses of one event on one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventLosses {
    /// The event's name.
    pub event: String,
    /// `None` if its counters follow tasks on all CPUs.
    pub cpu: Option<u32>,
    /// Number of lost samples, or of throttlings.
    pub count: u64,
    /// The event's sampling rate.
    pub rate: SampledRate,
}

/// Sampling rate of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampledRate {
    /// Samples per second.
    Frequency(u64),
    /// One sample per this number of events.
    Period(u64),
    /// One sample per this time in nanoseconds: a clock event (cpu-clock or task-clock).
    Nanoseconds(u64),
    /// A tracepoint, with one sample per this number of its events.
    Tracepoint(u64),
}

impl SampledRate {
    /// Returns the rate of an attr.
    #[must_use]
    pub fn of(attr: &Attr) -> Self {
        let period = attr.sample_period;
        match attr.kind {
            _ if attr.flags.contains(AttrFlags::FREQ) => Self::Frequency(period),
            EventType::TRACEPOINT => Self::Tracepoint(period),
            _ if attr.is_clock() => Self::Nanoseconds(period),
            _ => Self::Period(period),
        }
    }
}

impl EventLosses {
    /// Adds `more` to `into`; losses of the same event on the same CPU are summed.
    pub(crate) fn merge(into: &mut Vec<Self>, more: impl IntoIterator<Item = Self>) {
        for losses in more {
            let same = |known: &&mut Self| known.event == losses.event && known.cpu == losses.cpu;
            match into.iter_mut().find(same) {
                Some(known) => known.count += losses.count,
                None => into.push(losses),
            }
        }
    }

    fn of(event: &OpenEvent, open_counter: &OpenCounter, count: u64) -> Self {
        let attr = &event.event.attr;
        Self {
            event: event.event.spec.name.clone(),
            cpu: u32::try_from(open_counter.cpu).ok(),
            count,
            rate: SampledRate::of(attr),
        }
    }
}

/// Whether a read of a counter of the event starts with the values of that counter. With GROUP, a read of any member starts with
/// those of the leader, which is the only event of the group that samples.
fn reads_own_value(event: &&OpenEvent) -> bool {
    let format = event.event.attr.read_format;
    event.event.leader.is_none() || !format.contains(ReadFormat::GROUP)
}

/// Appends LOST_SAMPLES for every counter with lost samples, as counted by the kernel, and returns the losses. Members of a
/// group that is read with GROUP are skipped. Kernels before 6.0 don't count lost samples (`PERF_FORMAT_LOST`).
pub(crate) fn lost_samples(events: &[OpenEvent], to: &mut RecordBuffer) -> Vec<EventLosses> {
    let mut losses = Vec::new();
    for event in events.iter().filter(reads_own_value) {
        let attr = &event.event.attr;
        let layout = SampleIdLayout::new(attr.sample_type);
        for open_counter in &event.counters {
            let reading = open_counter.counter.read(attr.read_format).ok();
            let lost = reading.and_then(|reading| reading.lost);
            let Some(lost) = lost.filter(|lost| *lost > 0) else {
                continue;
            };
            EventLosses::merge(&mut losses, [EventLosses::of(event, open_counter, lost)]);
            let id = SampleId {
                id: Some(open_counter.id),
                ..SampleId::default()
            };
            let record = Record::LostSamples(LostSamples { lost });
            to.with_trailer(&record, Misc(0), |to: &mut Encoder<'_>| {
                layout.encode(&id, to)
            });
        }
    }
    losses
}

/// Returns the tracepoints (`SYSTEM:EVENT`) with a count of 0. Members of a group that is read with GROUP are skipped: their
/// counts are not read.
pub(crate) fn tracepoints_without_hits(events: &[OpenEvent]) -> Vec<String> {
    let is_zero = |event: &&OpenEvent| {
        let format = event.event.attr.read_format;
        let mut counters = event.counters.iter();
        counters.all(|open_counter| {
            open_counter
                .counter
                .read(format)
                .is_ok_and(|reading| reading.value == 0)
        })
    };
    let counted = events
        .iter()
        .filter(reads_own_value)
        .filter(|event| !event.counters.is_empty());
    let tracepoints =
        counted.filter_map(|event| Some((event, event.event.spec.tracepoint.as_ref()?)));
    let tracepoints = tracepoints.filter(|(event, _)| is_zero(event));
    tracepoints
        .map(|(_, name)| format!("{}:{}", name.system, name.name))
        .collect()
}

/// Returns the throttlings of each event and CPU. `by_id` has the number of THROTTLE records of each counter id; other ids than
/// those of `events` are ignored.
pub(crate) fn throttled(events: &[OpenEvent], by_id: &HashMap<u64, u64>) -> Vec<EventLosses> {
    let mut losses = Vec::new();
    for event in events {
        let counts = event.counters.iter().filter_map(|open_counter| {
            let count = by_id.get(&open_counter.id)?;
            Some(EventLosses::of(event, open_counter, *count))
        });
        EventLosses::merge(&mut losses, counts);
    }
    losses
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{Endian, SampleType};

    #[test]
    fn the_sample_id_contains_the_counter_id() {
        let layout = SampleIdLayout::new(SampleType::TID | SampleType::TIME | SampleType::ID);
        // The trailer size of the buffer has no effect on `with_trailer`.
        let mut records = RecordBuffer::new(0);
        let id = SampleId {
            id: Some(7),
            ..SampleId::default()
        };
        let record = Record::LostSamples(LostSamples { lost: 3 });
        records.with_trailer(&record, Misc(0), |to: &mut Encoder<'_>| {
            layout.encode(&id, to)
        });
        let bytes = records.take();
        // The header, `lost`, and the sample id: pid and tid, time, counter id.
        assert_eq!(bytes.len(), 8 + 8 + 24);
        assert_eq!(Endian::NATIVE.u64_at(&bytes, 32), Some(7));
    }

    #[test]
    fn losses_are_summed_by_event_and_cpu() {
        let missed = |event: &str, cpu, count| EventLosses {
            event: event.to_owned(),
            cpu,
            count,
            rate: SampledRate::Period(1),
        };
        let mut losses = vec![missed("a", Some(0), 1)];
        let more = [
            missed("a", Some(1), 2),
            missed("a", Some(0), 4),
            missed("b", None, 8),
        ];
        EventLosses::merge(&mut losses, more);
        let expected = [
            missed("a", Some(0), 5),
            missed("a", Some(1), 2),
            missed("b", None, 8),
        ];
        assert_eq!(losses, expected);
    }
}
