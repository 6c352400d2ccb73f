//! CLOCK_DATA: what the timestamps' clock said when the time of day was known.

use rperf_wire::{Cursor, DecodeError};

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
}
