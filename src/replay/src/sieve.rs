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
