//! Events that are started and stopped while a recording runs (`-D`).

use std::time::{Duration, Instant};

use crate::open::{OpenEvent, for_each_counter};
use crate::{Error, Happened, Switch, Watch};

/// What is still to be switched.
pub(crate) struct Schedule<'a> {
    began: Instant,
    ahead: &'a [Switch],
}

impl<'a> Schedule<'a> {
    /// Times count from now on.
    pub(crate) fn new(switches: &'a [Switch]) -> Self {
        Self {
            began: Instant::now(),
            ahead: switches,
        }
    }

    /// Milliseconds to the next switch, rounded up; -1 without one.
    pub(crate) fn timeout(&self) -> i32 {
        let Some(next) = self.ahead.first() else {
            return -1;
        };
        let left = next.after.saturating_sub(self.began.elapsed());
        let millis = left.saturating_add(Duration::from_micros(999)).as_millis();
        i32::try_from(millis).unwrap_or(i32::MAX)
    }

    /// Does what is due; whether events run then, where something was.
    pub(crate) fn keep(
        &mut self,
        events: &[OpenEvent],
        watch: &mut dyn Watch,
    ) -> Result<Option<bool>, Error> {
        let mut last = None;
        while let Some((next, rest)) = self.ahead.split_first() {
            if next.after > self.began.elapsed() {
                break;
            }
            match next.on {
                true => for_each_counter(events, "enable", rperf_sys::Counter::enable)?,
                false => for_each_counter(events, "disable", rperf_sys::Counter::disable)?,
            }
            watch.tell(Happened::Switched { on: next.on });
            self.ahead = rest;
            last = Some(next.on);
        }
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Heard(Vec<bool>);

    impl Watch for Heard {
        fn tell(&mut self, happened: Happened<'_>) {
            if let Happened::Switched { on } = happened {
                self.0.push(on);
            }
        }
    }

    #[test]
    fn what_is_due_is_done_in_order_and_the_rest_waited_for() {
        let switch = |millis, on| Switch {
            after: Duration::from_millis(millis),
            on,
        };
        let switches = [switch(0, true), switch(0, false), switch(60_000, true)];
        let mut schedule = Schedule::new(&switches);
        assert_eq!(schedule.timeout(), 0);
        let mut heard = Heard(Vec::new());
        assert_eq!(schedule.keep(&[], &mut heard).unwrap(), Some(false));
        assert_eq!(schedule.keep(&[], &mut heard).unwrap(), None);
        assert_eq!(heard.0, [true, false]);
        assert!((1..=60_000).contains(&schedule.timeout()));
        assert_eq!(Schedule::new(&[]).timeout(), -1);
    }
}
