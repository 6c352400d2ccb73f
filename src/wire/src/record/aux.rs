//! Records about the AUX area, the ring buffer of hardware traces.

use crate::{Cursor, DecodeError, Encoder};

/// `PERF_RECORD_AUX`: new data in the AUX area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aux {
    /// Offset of the data in bytes. It counts all bytes written so far, so it can exceed the size of the area, a ring.
    pub offset: u64,
    /// Size of the data in bytes.
    pub size: u64,
    /// `PERF_AUX_FLAG_*`: 1 truncated, 2 overwrite, 4 partial, 8 collision; bits 8 to 15 are the trace format of the PMU.
    pub flags: u64,
}

/// `PERF_RECORD_ITRACE_START`: an instruction trace of this thread started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItraceStart {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
}

/// `PERF_RECORD_AUX_OUTPUT_HW_ID`: the id of the event in the hardware trace. The parent module reads and writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuxOutputHwId {
    /// The id.
    pub hw_id: u64,
}

impl Aux {
    /// `PERF_AUX_FLAG_TRUNCATED`: the area was full.
    pub const TRUNCATED: u64 = 1;
    /// `PERF_AUX_FLAG_PARTIAL`: there are gaps in the data.
    pub const PARTIAL: u64 = 4;
    /// `PERF_AUX_FLAG_COLLISION`: a sample collided with another, as with Arm SPE if the period is too short.
    pub const COLLISION: u64 = 8;

    pub(super) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            offset: at.u64("aux_offset")?,
            size: at.u64("aux_size")?,
            flags: at.u64("aux flags")?,
        })
    }

    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        to.u64(self.offset);
        to.u64(self.size);
        to.u64(self.flags);
    }
}

impl ItraceStart {
    pub(super) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            pid: at.u32("pid")?,
            tid: at.u32("tid")?,
        })
    }

    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        to.u32(self.pid);
        to.u32(self.tid);
    }
}
