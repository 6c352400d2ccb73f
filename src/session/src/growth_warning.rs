//! Warning about recordings that grow fast.

use std::time::{Duration, Instant};

use rperf_wire::SampleType;

use crate::open::OpenEvent;
use crate::{SampledRate, SessionNotice, SessionObserver};

/// Measuring period.
const WINDOW: Duration = Duration::from_secs(1);
/// Threshold in bytes per minute.
const MAX_BYTES_PER_MINUTE: u64 = 1 << 30;

/// Growth of the output since the last measurement; reported once.
pub(crate) struct GrowthWarning {
    began: Instant,
    bytes: u64,
    samples: u64,
    /// Whether other threads write, so that this one isn't woken by data.
    asleep: bool,
    reported: bool,
}

impl GrowthWarning {
    /// Starts measuring at this size; `asleep` if other threads write.
    pub(crate) fn new(bytes: u64, asleep: bool) -> Self {
        Self {
            began: Instant::now(),
            bytes,
            samples: 0,
            asleep,
            reported: false,
        }
    }

    /// Returns the milliseconds until the next measurement; -1 if measurements are made whenever data arrive, or if the warning
    /// was already given.
    pub(crate) fn timeout(&self) -> i32 {
        match self.asleep && !self.reported {
            true => i32::try_from(WINDOW.as_millis()).unwrap_or(i32::MAX),
            false => -1,
        }
    }

    /// Measures bytes and samples so far, and reports fast growth.
    pub(crate) fn update(
        &mut self,
        bytes: u64,
        samples: u64,
        events: &[OpenEvent],
        observer: &mut dyn SessionObserver,
    ) {
        let after = self.began.elapsed();
        if self.reported || after < WINDOW {
            return;
        }
        let growth = self.growth(bytes, samples, after);
        if let (Some((bytes, samples)), Some(first)) = (growth, events.first()) {
            let attr = &first.event.attr;
            self.reported = true;
            observer.on_event(SessionNotice::GrowingFast {
                bytes,
                samples,
                event: &first.event.spec.name,
                rate: SampledRate::of(attr),
                is_only: events.len() == 1,
                copies: attr.sample_type.contains(SampleType::STACK_USER),
            });
        }
        self.began = Instant::now();
    }

    /// Returns bytes per minute and samples per second, unless below the threshold; restarts measuring.
    fn growth(&mut self, bytes: u64, samples: u64, after: Duration) -> Option<(u64, u64)> {
        let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).max(1);
        // The number of samples restarts with a new file.
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
        let mut warning = GrowthWarning::new(500, false);
        let second = Duration::from_secs(1);
        let much = MAX_BYTES_PER_MINUTE / 60 + 1;
        assert_eq!(
            warning.growth(500 + much, 70, second),
            Some((much * 60, 70))
        );
        assert_eq!(warning.growth(500 + 2 * much, 80, 2 * second), None);
        // A long period averages growth out; the next one is measured separately.
        assert_eq!(
            warning.growth(500 + 4 * much, 90, second),
            Some((much * 120, 10))
        );
        assert_eq!(warning.timeout(), -1);
        assert_eq!(GrowthWarning::new(0, true).timeout(), 1000);
    }

    #[test]
    fn nothing_is_measured_before_a_second_has_passed() {
        struct Silent;
        impl SessionObserver for Silent {
            fn on_event(&mut self, notice: SessionNotice<'_>) {
                panic!("{notice:?}");
            }
        }
        let mut warning = GrowthWarning::new(0, false);
        warning.began = Instant::now() + Duration::from_secs(3600);
        warning.update(u64::MAX, 1, &[], &mut Silent);
        assert_eq!(warning.bytes, 0);
    }
}
