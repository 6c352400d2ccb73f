//! Decoded samples, with defaults for fields that are not recorded, and other records, with their trailers (`sample_id`).

use rperf_wire::{CpuMode, Misc, RawRecord, SampleId};

use crate::{EventIndex, Machine, Order, ThreadKey};

/// A sample of a recording. Fields that its event does not record have perf's default values.
#[derive(Debug, Clone, Default)]
pub struct Sample<'a> {
    /// The recorded fields.
    pub wire: rperf_wire::SampleRecord<'a>,
    /// The event.
    pub event: EventIndex,
    /// Its position in the order of all records.
    pub order: Order,
    /// Mode and flags of the record.
    pub misc: Misc,
    /// Process, `u32::MAX` (-1) if not recorded.
    pub pid: u32,
    /// Thread, `u32::MAX` (-1) if not recorded.
    pub tid: u32,
    /// CPU, `u32::MAX` (-1) if not recorded.
    pub cpu: u32,
    /// Its period; the attr's `sample_period` if not recorded.
    pub period: u64,
    /// The record's bytes after its header.
    pub body: &'a [u8],
}

/// A record other than a sample, with its trailer, the fields that `sample_id_all` appends.
#[derive(Debug, Clone)]
pub struct NonSampleRecord<'a> {
    /// The event with the id in its trailer; the first event if the trailer has no id, or id 0, or if the recording has only one
    /// event; `None` for an unknown id.
    pub event: Option<EventIndex>,
    /// Its position in the order of all records.
    pub order: Order,
    /// The fields of its trailer; empty if it has none.
    pub id: SampleId,
    /// The record, including its trailer.
    pub raw: RawRecord<'a>,
}

impl Sample<'_> {
    /// The CPU mode.
    #[must_use]
    pub fn cpu_mode(&self) -> CpuMode {
        self.misc.cpu_mode()
    }

    /// The process and thread of the sample.
    #[must_use]
    pub fn who(&self) -> ThreadKey {
        ThreadKey {
            machine: self.machine(),
            pid: self.pid,
            tid: self.tid,
        }
    }

    /// The machine of the sample.
    #[must_use]
    pub fn machine(&self) -> Machine {
        Machine::of(self.cpu_mode(), self.pid)
    }
}
