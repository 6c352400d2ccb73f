//! How fast a recording grows, told where it would soon fill a disk.

use std::time::{Duration, Instant};

use rperf_wire::SampleType;

use crate::open::OpenEvent;
use crate::{Happened, Sampled, Watch};

/// How long is looked on before it is told.
const WINDOW: Duration = Duration::from_secs(1);
/// Bytes a minute of which it is told.
const MUCH: u64 = 1 << 30;

/// The growth since some moment, until it was told once.
pub(crate) struct Pace {
    began: Instant,
    bytes: u64,
    samples: u64,
    /// Whether others write, so that nothing wakes who looks on.
    asleep: bool,
    told: bool,
}

impl Pace {
    /// Of a recording that has so many bytes; `asleep` where others write it.
    pub(crate) fn new(bytes: u64, asleep: bool) -> Self {
        Self {
            began: Instant::now(),
            bytes,
            samples: 0,
            asleep,
            told: false,
        }
    }

    /// Milliseconds until it is to be looked at; -1 where that is time whenever something comes.
    pub(crate) fn timeout(&self) -> i32 {
        match self.asleep && !self.told {
            true => i32::try_from(WINDOW.as_millis()).unwrap_or(i32::MAX),
            false => -1,
        }
    }

    /// Looks at bytes and samples so far, and tells when they become many.
    pub(crate) fn keep(
        &mut self,
        (bytes, samples): (u64, u64),
        events: &[OpenEvent],
        watch: &mut dyn Watch,
    ) {
        let after = self.began.elapsed();
        if self.told || after < WINDOW {
            return;
        }
        let growth = self.growth((bytes, samples), after);
        if let (Some((bytes, samples)), Some(first)) = (growth, events.first()) {
            let attr = &first.event.attr;
            self.told = true;
            watch.tell(Happened::Growing {
                bytes,
                samples,
                rate: Sampled::of(attr),
                copies: attr.sample_type.contains(SampleType::STACK_USER),
            });
        }
        self.began = Instant::now();
    }

    /// Bytes in a minute and samples in a second, where they are many; the next are those from here on.
    fn growth(&mut self, (bytes, samples): (u64, u64), after: Duration) -> Option<(u64, u64)> {
        let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).max(1);
        // Another file begins with no samples.
        let come = |now: u64, before: u64| now.saturating_sub(before).saturating_mul(1000) / millis;
        let minute = come(bytes, self.bytes).saturating_mul(60);
        let second = come(samples, self.samples);
        (self.bytes, self.samples) = (bytes, samples);
        (minute >= MUCH).then_some((minute, second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabyte_a_minute_is_much() {
        let mut pace = Pace::new(500, false);
        let second = Duration::from_secs(1);
        let much = MUCH / 60 + 1;
        assert_eq!(pace.growth((500 + much, 70), second), Some((much * 60, 70)));
        assert_eq!(pace.growth((500 + 2 * much, 80), 2 * second), None);
        // What came in long is little, and what comes after that is looked at alone.
        assert_eq!(
            pace.growth((500 + 4 * much, 90), second),
            Some((much * 120, 10))
        );
        assert_eq!(pace.timeout(), -1);
        assert_eq!(Pace::new(0, true).timeout(), 1000);
    }

    #[test]
    fn a_second_is_waited_for() {
        struct Silent;
        impl Watch for Silent {
            fn tell(&mut self, happened: Happened<'_>) {
                panic!("{happened:?}");
            }
        }
        let mut pace = Pace::new(0, false);
        pace.began = Instant::now() + Duration::from_secs(3600);
        pace.keep((u64::MAX, 1), &[], &mut Silent);
        assert_eq!(pace.bytes, 0);
    }
}
