//! Warning if a recording grows fast.

use std::time::{Duration, Instant};

use rperf_wire::SampleType;

use crate::open::OpenEvent;
use crate::{SampledRate, SessionNotice, SessionObserver};

/// Minimum time between measurements.
const WINDOW: Duration = Duration::from_secs(1);
/// Threshold in bytes per minute.
const MAX_BYTES_PER_MINUTE: u64 = 1 << 30;

/// Measures the growth of the output, and warns once if it is fast.
pub(crate) struct GrowthWarning {
    /// When the last measurement was made, or measuring began.
    began: Instant,
    /// The size in bytes at that time.
    bytes: u64,
    /// The number of samples at that time.
    samples: u64,
    /// Whether lanes (the threads of `--threads`) drain the rings, so that data do not wake this thread, the main one.
    has_lanes: bool,
    reported: bool,
}

impl GrowthWarning {
    /// Starts measuring at a size of `bytes`.
    pub(crate) fn new(bytes: u64, has_lanes: bool) -> Self {
        Self {
            began: Instant::now(),
            bytes,
            samples: 0,
            has_lanes,
            reported: false,
        }
    }

    /// Returns the poll timeout: the milliseconds after which this thread must wake up for a measurement; -1 (no limit) if data
    /// wake it, or if the warning was already given.
    pub(crate) fn timeout(&self) -> i32 {
        match self.has_lanes && !self.reported {
            true => i32::try_from(WINDOW.as_millis()).unwrap_or(i32::MAX),
            false => -1,
        }
    }

    /// Measures if a second has passed, and reports fast growth. `bytes` and `samples` are the numbers so far.
    pub(crate) fn update(
        &mut self,
        bytes: u64,
        samples: u64,
        events: &[OpenEvent],
        observer: &mut dyn SessionObserver,
    ) {
        let elapsed = self.began.elapsed();
        if self.reported || elapsed < WINDOW {
            return;
        }
        let growth = self.measure(bytes, samples, elapsed);
        if let (Some((bytes, samples)), Some(first)) = (growth, events.first()) {
            let attr = &first.event.attr;
            self.reported = true;
            observer.on_event(SessionNotice::GrowingFast {
                bytes,
                samples,
                event: &first.event.spec.name,
                rate: SampledRate::of(attr),
                is_only: events.len() == 1,
                // Whether samples contain copies of the user stack.
                copies: attr.sample_type.contains(SampleType::STACK_USER),
            });
        }
        self.began = Instant::now();
    }

    /// Records the numbers so far. Returns bytes per minute and samples per second since the previous measurement, which was made
    /// `elapsed` ago; `None` below the threshold.
    fn measure(&mut self, bytes: u64, samples: u64, elapsed: Duration) -> Option<(u64, u64)> {
        let millis = u64::try_from(elapsed.as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        // The number of samples restarts with a new file, so it may be below the one before. `bytes` are those of all files.
        let per_second =
            |now: u64, before: u64| now.saturating_sub(before).saturating_mul(1000) / millis;
        let bytes_per_minute = per_second(bytes, self.bytes).saturating_mul(60);
        let samples_per_second = per_second(samples, self.samples);
        (self.bytes, self.samples) = (bytes, samples);
        (bytes_per_minute >= MAX_BYTES_PER_MINUTE).then_some((bytes_per_minute, samples_per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabyte_per_minute_is_reported() {
        let (with_lanes, without_lanes) = (true, false);
        let mut warning = GrowthWarning::new(500, without_lanes);
        let second = Duration::from_secs(1);
        let much = MAX_BYTES_PER_MINUTE / 60 + 1;
        assert_eq!(
            warning.measure(500 + much, 70, second),
            Some((much * 60, 70))
        );
        // The same growth in two seconds is below the threshold. The next period is measured separately.
        assert_eq!(warning.measure(500 + 2 * much, 80, 2 * second), None);
        assert_eq!(
            warning.measure(500 + 4 * much, 90, second),
            Some((much * 120, 10))
        );
        // Only with lanes does this thread need a timeout to measure.
        assert_eq!(warning.timeout(), -1);
        assert_eq!(GrowthWarning::new(0, with_lanes).timeout(), 1000);
    }

    #[test]
    fn nothing_is_measured_before_a_second_has_passed() {
        struct Silent;
        impl SessionObserver for Silent {
            fn on_event(&mut self, notice: SessionNotice<'_>) {
                panic!("{notice:?}");
            }
        }
        let has_lanes = false;
        let mut warning = GrowthWarning::new(0, has_lanes);
        // No time has passed since a time in the future.
        warning.began = Instant::now() + Duration::from_secs(3600);
        warning.update(u64::MAX, 1, &[], &mut Silent);
        assert_eq!(warning.bytes, 0);
    }
}
