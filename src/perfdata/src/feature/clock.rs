//! CLOCK_DATA: what the timestamps' clock said when the time of day was known.

use rperf_wire::{Cursor, DecodeError, Encoder};

/// The only version of the section.
const VERSION: u32 = 1;

/// One moment on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockData {
    /// Clock of the timestamps (`CLOCK_*`).
    pub clockid: u32,
    /// Nanoseconds since 1970.
    pub wall_clock: u64,
    /// The same moment in nanoseconds of the timestamps' clock.
    pub clockid_time: u64,
}

impl ClockData {
    pub(crate) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        at.u32("clock data version")?;
        Ok(Self {
            clockid: at.u32("clockid")?,
            wall_clock: at.u64("wall clock time")?,
            clockid_time: at.u64("clockid time")?,
        })
    }

    pub(crate) fn encode(&self, to: &mut Encoder<'_>) {
        to.u32(VERSION);
        to.u32(self.clockid);
        to.u64(self.wall_clock);
        to.u64(self.clockid_time);
    }
}
