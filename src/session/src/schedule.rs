//! Enabling and disabling of events at set times (`-D`), and the end of the recording (`--duration`).

use std::time::{Duration, Instant};

use crate::open::{OpenEvent, for_each_counter};
use crate::{Error, ObserveOptions, SessionNotice, SessionObserver, TimedSwitch};

/// The remaining times at which events are enabled or disabled, and the end of the recording.
pub(crate) struct Schedule<'a> {
    began: Instant,
    remaining: &'a [TimedSwitch],
    /// The time after which the recording ends.
    duration: Option<Duration>,
}

impl<'a> Schedule<'a> {
    /// Creates a schedule whose times are relative to this call.
    pub(crate) fn new(observe: &'a ObserveOptions) -> Self {
        Self {
            began: Instant::now(),
            remaining: observe.switches.as_deref().unwrap_or_default(),
            duration: observe.duration,
        }
    }

    /// Whether the duration of the recording has elapsed.
    pub(crate) fn is_over(&self) -> bool {
        let elapsed = self.began.elapsed();
        self.duration.is_some_and(|duration| elapsed >= duration)
    }

    /// Returns the milliseconds until the next switch or the end, rounded up; -1 (no timeout) without either.
    pub(crate) fn timeout(&self) -> i32 {
        let next = self.remaining.first().map(|next| next.after);
        let Some(after) = next.into_iter().chain(self.duration).min() else {
            return -1;
        };
        let left = after.saturating_sub(self.began.elapsed());
        let millis = left.saturating_add(Duration::from_micros(999)).as_millis();
        i32::try_from(millis).unwrap_or(i32::MAX)
    }

    /// Applies due switches. The side-band event stays enabled. Returns whether events are enabled afterwards, `None` if no
    /// switch was due.
    pub(crate) fn apply_due(
        &mut self,
        events: &[OpenEvent],
        observer: &mut dyn SessionObserver,
    ) -> Result<Option<bool>, Error> {
        let mut last = None;
        while let Some((next, rest)) = self.remaining.split_first() {
            if next.after > self.began.elapsed() {
                break;
            }
            match next.on {
                true => for_each_counter(events, "enable", rperf_sys::Counter::enable)?,
                // The side-band event records mappings and tasks that later samples need.
                false => {
                    let others = events.iter().filter(|event| !event.is_side_band());
                    for_each_counter(others, "disable", rperf_sys::Counter::disable)?;
                }
            }
            observer.on_event(SessionNotice::Switched { on: next.on });
            self.remaining = rest;
            last = Some(next.on);
        }
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct ReportedSwitches(Vec<bool>);

    impl SessionObserver for ReportedSwitches {
        fn on_event(&mut self, notice: SessionNotice<'_>) {
            if let SessionNotice::Switched { on } = notice {
                self.0.push(on);
            }
        }
    }

    fn schedule(remaining: &[TimedSwitch], duration: Option<Duration>) -> Schedule<'_> {
        Schedule {
            began: Instant::now(),
            remaining,
            duration,
        }
    }

    #[test]
    fn due_switches_are_applied_in_order() {
        let switch = |millis, on| TimedSwitch {
            after: Duration::from_millis(millis),
            on,
        };
        let switches = [switch(0, true), switch(0, false), switch(60_000, true)];
        let mut planned = schedule(&switches, None);
        assert_eq!(planned.timeout(), 0);
        let mut reported = ReportedSwitches(Vec::new());
        assert_eq!(planned.apply_due(&[], &mut reported).unwrap(), Some(false));
        assert_eq!(planned.apply_due(&[], &mut reported).unwrap(), None);
        assert_eq!(reported.0, [true, false]);
        assert!((1..=60_000).contains(&planned.timeout()));
        assert_eq!(schedule(&[], None).timeout(), -1);
    }

    #[test]
    fn the_timeout_includes_the_end_of_the_recording() {
        let after = |millis| schedule(&[], Some(Duration::from_millis(millis)));
        assert!(after(0).is_over() && after(0).timeout() == 0);
        assert!(!after(60_000).is_over());
        assert!((1..=60_000).contains(&after(60_000).timeout()));
    }
}
