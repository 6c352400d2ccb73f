//! Four records: the name of an event type, a header feature, an index of event ids, and the conversion of hardware time.

use super::{put_last_name, take_last_name};
use crate::{Cursor, DecodeError, Encoder};

/// Maximum size of an event type's name in bytes.
const NAME: usize = 64;

/// `PERF_RECORD_HEADER_EVENT_TYPE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTypeName<'a> {
    /// `perf_event_attr::config` of a tracepoint; not an event id as in [`IdIndexEntry::id`].
    pub event_id: u64,
    /// Name of the event type.
    pub name: &'a [u8],
}

/// `PERF_RECORD_HEADER_FEATURE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureData<'a> {
    /// Number of the feature.
    pub feature: u64,
    /// The contents of the feature section, as in a file.
    pub data: &'a [u8],
}

/// `PERF_RECORD_ID_INDEX`: ring, CPU and thread of each event id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdIndex {
    /// One entry per id.
    pub entries: Vec<IdIndexEntry>,
}

/// One id of an [`IdIndex`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdIndexEntry {
    /// Event id, which the kernel gives an event on one CPU or thread (`PERF_EVENT_IOC_ID`).
    pub id: u64,
    /// Index of the ring within the recording.
    pub index: u64,
    /// CPU, all bits set for any.
    pub cpu: u64,
    /// Thread, all bits set for any.
    pub tid: u64,
    /// Pid of the virtual machine's process, and the number of the virtual CPU; missing in recordings of perf before 6.0.
    pub machine: Option<(u64, u64)>,
}

/// `PERF_RECORD_TIME_CONV`: conversion of hardware time to timestamps (`perf_event_mmap_page`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeConv {
    /// Number of bits to shift by.
    pub shift: u64,
    /// Multiplier.
    pub mult: u64,
    /// Nanoseconds to add.
    pub zero: u64,
    /// The hardware clock, in the last fields of the record; missing in recordings of perf before 5.10.
    pub clock: Option<HardwareClock>,
}

/// The hardware clock of a TIME_CONV record: flags, and the parameters by which times are extended to 64 bits. The clock has 64
/// bits itself unless [`HardwareClock::is_short`] is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardwareClock {
    /// A recent hardware time, by which a shorter `time` is extended: `cycles + ((time - cycles) & mask)`.
    pub cycles: u64,
    /// Mask of the clock's bits.
    pub mask: u64,
    /// `cap_user_time_zero`: [`TimeConv::zero`] is valid.
    pub is_zero_valid: bool,
    /// `cap_user_time_short`: `cycles` and `mask` are valid.
    pub is_short: bool,
}

impl<'a> EventTypeName<'a> {
    pub(super) fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            event_id: at.u64("event_id")?,
            name: take_last_name::<NAME>(at, "event type name")?,
        })
    }

    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        to.u64(self.event_id);
        put_last_name::<NAME>(to, self.name);
    }
}

impl<'a> FeatureData<'a> {
    pub(super) fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let feature = at.u64("feat_id")?;
        let data = at.rest();
        Ok(Self { feature, data })
    }

    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        to.u64(self.feature);
        to.bytes(self.data);
    }
}

impl IdIndex {
    pub(super) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let count = at.u64("id index nr")?;
        let words = at.u64s(count.saturating_mul(4), "id index")?;
        let machines = at.u64s(count.saturating_mul(2), "id index machines").ok();
        let entry = |index: usize| {
            let word = |field| words.get(index * 4 + field);
            Some(IdIndexEntry {
                id: word(0)?,
                index: word(1)?,
                cpu: word(2)?,
                tid: word(3)?,
                machine: machines
                    .and_then(|machines| machines.get(index * 2).zip(machines.get(index * 2 + 1))),
            })
        };
        let entries = (0..words.len() / 4).filter_map(entry).collect();
        Ok(Self { entries })
    }

    /// Appends the body, with the machine fields only if every entry has them.
    pub(super) fn encode(&self, to: &mut Encoder<'_>) {
        to.u64(self.entries.len() as u64);
        for entry in &self.entries {
            [entry.id, entry.index, entry.cpu, entry.tid]
                .into_iter()
                .for_each(|word| to.u64(word));
        }
        let machines: Option<Vec<_>> = self.entries.iter().map(|entry| entry.machine).collect();
        for (pid, vcpu) in machines.into_iter().flatten() {
            to.u64(pid);
            to.u64(vcpu);
        }
    }
}

impl TimeConv {
    pub(super) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            shift: at.u64("time_shift")?,
            mult: at.u64("time_mult")?,
            zero: at.u64("time_zero")?,
            clock: if at.rest().is_empty() {
                None
            } else {
                Some(HardwareClock::decode(at)?)
            },
        })
    }

    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        to.u64(self.shift);
        to.u64(self.mult);
        to.u64(self.zero);
        if let Some(clock) = self.clock {
            to.u64(clock.cycles);
            to.u64(clock.mask);
            to.bytes(&[u8::from(clock.is_zero_valid), u8::from(clock.is_short)]);
            to.zeros(6);
        }
    }
}

impl HardwareClock {
    fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            cycles: at.u64("time_cycles")?,
            mask: at.u64("time_mask")?,
            is_zero_valid: at.u8("cap_user_time_zero")? != 0,
            is_short: at.u8("cap_user_time_short")? != 0,
        })
    }
}
