//! A decoded sample with what every consumer asks of it.

use rperf_wire::{CpuMode, Misc, RawRecord, SampleId};

use crate::{EventIndex, Machine, Order, Who};

/// A sample of a recording. Fields that its event does not record have perf's stand-ins.
#[derive(Debug, Clone, Default)]
pub struct Sample<'a> {
    /// The fields as recorded.
    pub wire: rperf_wire::Sample<'a>,
    /// The event.
    pub event: EventIndex,
    /// Its place in the recording.
    pub order: Order,
    /// Mode and flags of the record.
    pub misc: Misc,
    /// Process, `u32::MAX` (-1) if not recorded.
    pub pid: u32,
    /// Thread, `u32::MAX` (-1) if not recorded.
    pub tid: u32,
    /// CPU, `u32::MAX` (-1) if not recorded.
    pub cpu: u32,
    /// Events that it stands for: the event's fixed period if not recorded.
    pub period: u64,
    /// The record's bytes behind its header.
    pub body: &'a [u8],
}

/// A record that is no sample, with what its trailer tells.
#[derive(Debug, Clone)]
pub struct SideRecord<'a> {
    /// The event whose ring it came through; `None` for an id that the header does not know.
    pub event: Option<EventIndex>,
    /// Where it stands among all records.
    pub order: Order,
    /// Who, when and where; empty where records have no trailer.
    pub id: SampleId,
    /// The record, with its trailer.
    pub raw: RawRecord<'a>,
}

impl Sample<'_> {
    /// What the CPU was running.
    #[must_use]
    pub fn cpu_mode(&self) -> CpuMode {
        self.misc.cpu_mode()
    }

    /// The thread.
    #[must_use]
    pub fn who(&self) -> Who {
        Who {
            machine: self.machine(),
            pid: self.pid,
            tid: self.tid,
        }
    }

    /// The machine whose code was running.
    #[must_use]
    pub fn machine(&self) -> Machine {
        Machine::of(self.cpu_mode(), self.pid)
    }
}
