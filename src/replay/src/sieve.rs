//! Samples that are left out of a recording while it is made.

use rperf_perfdata::EventDesc;
use rperf_wire::{Endian, RawRecord, RecordKind, Sample};

use crate::events::EventTable;
use crate::{EventIndex, Order};

/// Leaves out samples, and no other records.
#[derive(Debug)]
pub struct Sieve<K> {
    events: EventTable,
    keeps: K,
}

impl<K: FnMut(EventIndex, &Sample<'_>) -> bool> Sieve<K> {
    /// For a recording of these events, of which samples stay that `keeps` is true of.
    pub fn new(events: &[EventDesc], keeps: K) -> Self {
        let events = EventTable::new(Endian::NATIVE, events);
        Self { events, keeps }
    }

    /// Appends `records` without the samples that do not stay. What cannot be read stays.
    pub fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        for (raw, record) in RawRecord::all(records, Endian::NATIVE) {
            if raw.kind == RecordKind::SAMPLE
                && let Ok(Some(sample)) = self.events.sample(&raw, |_| Order::default())
                && !(self.keeps)(sample.event, &sample.wire)
            {
                continue;
            }
            to.extend_from_slice(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{Attr, Misc, RecordHeader, SampleType};

    /// A record of this kind with words for its body.
    fn record(kind: RecordKind, words: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let to = (&mut bytes, Endian::NATIVE);
        RecordHeader::encode_record(kind, Misc(2), to, |to| {
            for word in words {
                to.u64(*word);
            }
        });
        bytes
    }

    #[test]
    fn samples_that_do_not_stay_are_gone_and_all_else_is_as_it_was() {
        let event = |id| EventDesc {
            attr: Attr {
                sample_type: SampleType::IDENTIFIER | SampleType::IP,
                ..Attr::default()
            },
            ids: vec![id],
            name: id.to_string(),
        };
        let events = [event(11), event(12)];
        let sample = |id, ip| record(RecordKind::SAMPLE, &[id, ip]);
        let parts = [
            sample(11, 1),
            record(RecordKind::LOST, &[11, 5]),
            sample(12, 1),
            sample(12, 2),
            record(RecordKind::FINISHED_ROUND, &[]),
            // Of an id that nobody knows, which counts as the first event's, and one that is cut short.
            sample(99, 2),
            record(RecordKind::SAMPLE, &[12]),
            sample(12, 2),
            sample(11, 2),
        ];
        let mut seen = Vec::new();
        let mut sieve = Sieve::new(&events, |event: EventIndex, sample: &Sample<'_>| {
            seen.push((event.0, sample.ip));
            (event.0, sample.ip) != (1, Some(2))
        });
        let mut to = b"before".to_vec();
        sieve.rewrite(&parts.concat(), &mut to);
        let kept = [0, 1, 2, 4, 5, 6, 8].map(|index: usize| parts[index].clone());
        assert_eq!(to, [&b"before"[..], &kept.concat()].concat());
        let expected = [(0, 1), (1, 1), (1, 2), (0, 2), (1, 2), (0, 2)];
        assert_eq!(seen, expected.map(|(event, ip)| (event, Some(ip))));
    }
}
