//! CLOCK_DATA: relation of the timestamps' clock to the time of day.

use rperf_wire::{Cursor, DecodeError, Encoder};

/// The only version of the section.
const VERSION: u32 = 1;

/// The same moment on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockData {
    /// Clock of the timestamps (`CLOCK_*`).
    pub clockid: u32,
    /// Nanoseconds since 1970.
    pub wall_clock: u64,
    /// The moment in nanoseconds of the timestamps' clock.
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
