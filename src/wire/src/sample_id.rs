//! The trailer that `sample_id_all` adds to the kernel's records other than samples.

use crate::{Cursor, Encoder, Endian, SampleType};

/// Task, time, event and CPU of a record (`struct sample_id` in `perf_event.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleId {
    /// Process and thread id.
    pub pid_tid: Option<(u32, u32)>,
    /// Timestamp in nanoseconds of the event's clock.
    pub time: Option<u64>,
    /// Event id.
    pub id: Option<u64>,
    /// Stream id.
    pub stream_id: Option<u64>,
    /// CPU number.
    pub cpu: Option<u32>,
}

/// Layout of the trailer, determined by the event's `sample_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleIdLayout {
    sample_type: SampleType,
    size: usize,
    /// Offset of the time from the start of the trailer.
    time_offset: Option<usize>,
}

impl SampleIdLayout {
    /// Returns the layout for events with this `sample_type`.
    #[must_use]
    pub fn new(sample_type: SampleType) -> Self {
        let width = |bit| if sample_type.contains(bit) { 8 } else { 0 };
        let pid_tid_size = width(SampleType::TID);
        let size = pid_tid_size
            + width(SampleType::TIME)
            + width(SampleType::ID)
            + width(SampleType::STREAM_ID)
            + width(SampleType::CPU)
            + width(SampleType::IDENTIFIER);
        let time_offset = sample_type
            .contains(SampleType::TIME)
            .then_some(pid_tid_size);
        Self {
            sample_type,
            size,
            time_offset,
        }
    }

    /// Size of the trailer in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the time from a record's body without decoding the rest; `None` if the layout has no time, or if the body is
    /// too short.
    #[must_use]
    pub fn time(&self, body: &[u8], endian: Endian) -> Option<u64> {
        let start = body.len().checked_sub(self.size)?;
        endian.u64_at(body, start + self.time_offset?)
    }

    /// Splits the trailer off a record's body. Returns the whole body and an empty trailer if the
    /// body is too short.
    #[must_use]
    pub fn split<'a>(&self, body: &'a [u8], endian: Endian) -> (&'a [u8], SampleId) {
        let start = body.len().checked_sub(self.size);
        match start.and_then(|start| body.split_at_checked(start)) {
            Some((fields, trailer)) => (fields, self.decode(trailer, endian)),
            None => (body, SampleId::default()),
        }
    }

    fn decode(&self, trailer: &[u8], endian: Endian) -> SampleId {
        let mut at = Cursor::new(trailer, endian);
        let has = |bit| self.sample_type.contains(bit);
        let mut id = SampleId::default();
        if has(SampleType::TID) {
            id.pid_tid = at.u32("pid").ok().zip(at.u32("tid").ok());
        }
        if has(SampleType::TIME) {
            id.time = at.u64("time").ok();
        }
        if has(SampleType::ID) {
            id.id = at.u64("id").ok();
        }
        if has(SampleType::STREAM_ID) {
            id.stream_id = at.u64("stream_id").ok();
        }
        if has(SampleType::CPU) {
            id.cpu = at.u32("cpu").ok();
            let _reserved = at.u32("cpu reserved");
        }
        if has(SampleType::IDENTIFIER) {
            id.id = at.u64("identifier").ok();
        }
        id
    }

    /// Appends a trailer with this layout; missing fields of `id` become 0.
    pub fn encode(&self, id: &SampleId, to: &mut Encoder<'_>) {
        let has = |bit| self.sample_type.contains(bit);
        if has(SampleType::TID) {
            let (pid, tid) = id.pid_tid.unwrap_or_default();
            to.u32(pid);
            to.u32(tid);
        }
        if has(SampleType::TIME) {
            to.u64(id.time.unwrap_or_default());
        }
        if has(SampleType::ID) {
            to.u64(id.id.unwrap_or_default());
        }
        if has(SampleType::STREAM_ID) {
            to.u64(id.stream_id.unwrap_or_default());
        }
        if has(SampleType::CPU) {
            to.u32(id.cpu.unwrap_or_default());
            to.u32(0);
        }
        if has(SampleType::IDENTIFIER) {
            to.u64(id.id.unwrap_or_default());
        }
    }
}
