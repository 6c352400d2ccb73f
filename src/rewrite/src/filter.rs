//! Drops samples while they are recorded.

use rperf_perfdata::{EventDesc, Rewriter};
use rperf_replay::{EventIndex, EventTable, Order};
use rperf_wire::{Endian, RawRecord, RecordKind, SampleRecord};

/// Drops the samples rejected by a predicate, and no other records.
#[derive(Debug)]
pub struct FilterRewriter<K> {
    events: EventTable,
    is_kept: K,
}

impl<K: FnMut(EventIndex, &SampleRecord<'_>) -> bool> FilterRewriter<K> {
    /// Creates a filter for these events; samples for which `is_kept` is true are written.
    pub fn new(events: &[EventDesc], is_kept: K) -> Self {
        let events = EventTable::new(Endian::NATIVE, events);
        Self { events, is_kept }
    }
}

impl<K: FnMut(EventIndex, &SampleRecord<'_>) -> bool + Send> Rewriter for FilterRewriter<K> {
    /// Appends `records` without the dropped samples. Undecodable samples are kept. Samples are dropped even if the rewriting is
    /// behind the recording.
    fn rewrite(&mut self, records: &[u8], _is_behind: bool, to: &mut Vec<u8>) {
        for (raw, record) in RawRecord::all(records, Endian::NATIVE) {
            // The sample's position in the order is not used.
            if raw.kind == RecordKind::SAMPLE
                && let Ok(Some(sample)) = self.events.sample(&raw, |_| Order::default())
                && !(self.is_kept)(sample.event, &sample.wire)
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

    /// Returns a record of this kind with words as its body.
    fn record(kind: RecordKind, words: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        RecordHeader::encode_record(kind, Misc::USER, &mut bytes, Endian::NATIVE, |to| {
            for word in words {
                to.u64(*word);
            }
        });
        bytes
    }

    #[test]
    fn only_samples_are_dropped() {
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
            // An unknown id, which counts as the first event's, and a truncated sample.
            sample(99, 2),
            record(RecordKind::SAMPLE, &[12]),
            sample(12, 2),
            sample(11, 2),
        ];
        let mut seen = Vec::new();
        let mut filter =
            FilterRewriter::new(&events, |event: EventIndex, sample: &SampleRecord<'_>| {
                seen.push((event.0, sample.ip));
                (event.0, sample.ip) != (1, Some(2))
            });
        let mut to = b"before".to_vec();
        let is_behind = false;
        filter.rewrite(&parts.concat(), is_behind, &mut to);
        let accepted = [0, 1, 2, 4, 5, 6, 8].map(|index: usize| parts[index].clone());
        assert_eq!(to, [&b"before"[..], &accepted.concat()].concat());
        let expected = [(0, 1), (1, 1), (1, 2), (0, 2), (1, 2), (0, 2)];
        assert_eq!(seen, expected.map(|(event, ip)| (event, Some(ip))));
    }
}
