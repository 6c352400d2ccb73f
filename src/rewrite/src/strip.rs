//! Keeps only the samples of one event.

use rperf_perfdata::EventDesc;
use rperf_replay::{EventIndex, EventTable};
use rperf_wire::{Endian, RawRecord, RecordKind};

use crate::pipeline::Transform;

/// Drops the samples of all events except one; samples of unknown events are kept. The header still describes the other events,
/// since records other than samples may belong to them.
#[derive(Debug)]
pub struct StripSamples {
    events: EventTable,
    endian: Endian,
    kept: EventIndex,
}

impl StripSamples {
    /// Creates the transform for a recording with these events. It keeps the samples of `kept`.
    #[must_use]
    pub fn new(endian: Endian, events: &[EventDesc], kept: EventIndex) -> Self {
        Self {
            events: EventTable::new(endian, events),
            endian,
            kept,
        }
    }
}

impl Transform for StripSamples {
    fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        for (raw, record) in RawRecord::all(records, self.endian) {
            let head = match raw.kind {
                RecordKind::SAMPLE => self.events.sample_head(raw.body),
                _ => None,
            };
            if head.is_none_or(|head| head.event == self.kept) {
                to.extend_from_slice(record);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{Attr, Misc, RecordHeader, SampleType};

    #[test]
    fn samples_of_other_events_are_dropped_in_either_byte_order() {
        for endian in [Endian::Little, Endian::Big] {
            let attr = Attr {
                sample_type: SampleType::IDENTIFIER | SampleType::IP,
                ..Attr::default()
            };
            let events = [11, 12].map(|id| EventDesc::new(attr.clone(), vec![id]));
            let record = |kind, id: u64| {
                let mut bytes = Vec::new();
                RecordHeader::encode_record(kind, Misc(2), &mut bytes, endian, |to| {
                    to.u64(id);
                    to.u64(0x1000);
                });
                bytes
            };
            let (first, second) = (
                record(RecordKind::SAMPLE, 11),
                record(RecordKind::SAMPLE, 12),
            );
            let lost = record(RecordKind::LOST, 11);
            let mut to = Vec::new();
            let mut strip = StripSamples::new(endian, &events, EventIndex(1));
            strip.rewrite(&[&first[..], &lost, &second, &first].concat(), &mut to);
            assert_eq!(to, [lost, second].concat());
        }
    }
}
