//! Fields dropped from samples.

use rperf_perfdata::EventDesc;
use rperf_replay::{EventTable, Order};
use rperf_wire::{
    AttrFlags, Endian, RawRecord, RecordHeader, RecordKind, SampleLayout, SampleType,
};

use crate::pipeline::Transform;

/// Removes `fields` from the events; returns the layouts of the samples without these fields.
pub(crate) fn drop_fields(events: &mut [EventDesc], fields: SampleType) -> Vec<SampleLayout> {
    for event in events.iter_mut() {
        let attr = &mut event.attr;
        let had_stack_copies = attr.sample_type.contains(SampleType::STACK_USER);
        attr.sample_type = SampleType(attr.sample_type.0 & !fields.0);
        if fields.contains(SampleType::REGS_USER) {
            attr.sample_regs_user = 0;
        }
        if fields.contains(SampleType::STACK_USER) {
            attr.sample_stack_user = 0;
            // Events with stack copies are recorded with EXCLUDE_CALLCHAIN_USER, since unwinding the copies yields the user
            // frames. An earlier transform has converted the copies that are dropped here, so that the callchains now contain
            // user frames. Other events with this flag, also those with user registers, have no user frames.
            if had_stack_copies {
                attr.flags = attr.flags.with(AttrFlags::EXCLUDE_CALLCHAIN_USER, false);
            }
        }
        if fields.contains(SampleType::REGS_INTR) {
            attr.sample_regs_intr = 0;
        }
    }
    let attrs = events.iter().map(|event| &event.attr);
    attrs.map(SampleLayout::new).collect()
}

/// Drops fields of samples.
#[derive(Debug)]
pub struct FieldDropper {
    /// The events with all fields.
    before: EventTable,
    /// Layouts of the new samples, by event.
    after: Vec<SampleLayout>,
    endian: Endian,
}

impl FieldDropper {
    /// Creates the transform that drops `fields` from a recording with these events, and changes the events to those of the
    /// result.
    #[must_use]
    pub fn new(endian: Endian, events: &mut [EventDesc], fields: SampleType) -> Self {
        Self {
            before: EventTable::new(endian, events),
            after: drop_fields(events, fields),
            endian,
        }
    }
}

impl Transform for FieldDropper {
    /// Samples that can't be decoded or have no known event are dropped: their fields can't be found.
    fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        for (raw, record) in RawRecord::all(records, self.endian) {
            if raw.kind != RecordKind::SAMPLE {
                to.extend_from_slice(record);
                continue;
            }
            // The sample's place in the order of the recording is not used.
            if let Ok(Some(sample)) = self.before.sample(&raw, |_| Order::default())
                && let Some(layout) = self.after.get(sample.event.0 as usize)
            {
                RecordHeader::encode_record(raw.kind, raw.misc, to, self.endian, |to| {
                    layout.encode(&sample.wire, to);
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rperf_wire::Attr;

    use super::*;

    #[test]
    fn only_events_that_lose_stack_copies_have_user_callchains_again() {
        let copies = SampleType::REGS_USER | SampleType::STACK_USER;
        let event = |sample_type| EventDesc {
            attr: Attr {
                sample_type,
                flags: AttrFlags::default().with(AttrFlags::EXCLUDE_CALLCHAIN_USER, true),
                ..Attr::default()
            },
            ids: Vec::new(),
            name: String::new(),
        };
        let mut events = [
            event(SampleType::IP | copies),
            event(SampleType::IP | SampleType::REGS_USER),
            event(SampleType::IP),
        ];
        drop_fields(&mut events, copies);
        let excludes =
            |event: &EventDesc| event.attr.flags.contains(AttrFlags::EXCLUDE_CALLCHAIN_USER);
        assert_eq!(events.each_ref().map(excludes), [false, true, true]);
        assert_eq!(
            events.each_ref().map(|event| event.attr.sample_type),
            [SampleType::IP; 3]
        );
    }
}
