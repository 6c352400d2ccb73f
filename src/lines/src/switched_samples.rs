//! Events that enable and disable the display of other events, for samples in any order.

use std::num::NonZeroUsize;

use rperf_replay::{Fold, Order, Replay, Sample, World};

use crate::EventSwitch;

/// The samples that `--switch-on` and `--switch-off` show, for passes that do not see samples in order.
#[derive(Debug)]
pub struct SwitchedSamples {
    /// Samples of switching events in ascending order, including those that change nothing.
    switch_samples: Vec<SwitchSample>,
    /// Whether samples before the first of `switch_samples` are shown.
    starts_on: bool,
}

/// A sample of a switching event.
#[derive(Debug)]
struct SwitchSample {
    /// Its position in the order of the recording.
    at: Order,
    /// Whether the sample itself is shown.
    is_shown: bool,
    /// Whether samples after it are shown.
    is_on_after: bool,
}

impl SwitchedSamples {
    /// Searches all samples for those of switching events, on `threads` threads. `None` if `switch` has no events.
    #[must_use]
    pub fn find(
        replay: &Replay<'_>,
        mut switch: EventSwitch,
        threads: NonZeroUsize,
    ) -> Option<Self> {
        if !switch.is_needed() {
            return None;
        }
        let SwitchCollector { mut samples, .. } = replay.fold(threads, || SwitchCollector {
            switch: &switch,
            samples: Vec::new(),
        });
        samples.sort_unstable();
        let starts_on = switch.is_on();
        // `shows` processes the sample, so `is_on` is the state after it.
        let switch_sample = |(at, event): (Order, usize)| SwitchSample {
            at,
            is_shown: switch.shows(event),
            is_on_after: switch.is_on(),
        };
        let switch_samples = samples.into_iter().map(switch_sample).collect();
        Some(Self {
            switch_samples,
            starts_on,
        })
    }

    /// Whether the sample at this position is shown.
    #[must_use]
    pub fn shows(&self, at: Order) -> bool {
        let passed = self
            .switch_samples
            .partition_point(|sample| sample.at <= at);
        let last = passed
            .checked_sub(1)
            .and_then(|last| self.switch_samples.get(last));
        match last {
            None => self.starts_on,
            Some(sample) if sample.at == at => sample.is_shown,
            Some(sample) => sample.is_on_after,
        }
    }
}

/// Collects the samples of switching events in file order, which is not that of [`Order`]: they are sorted afterwards.
struct SwitchCollector<'s> {
    switch: &'s EventSwitch,
    /// The position of each sample, and the index of its event.
    samples: Vec<(Order, usize)>,
}

impl Fold for SwitchCollector<'_> {
    // The world (the processes and mappings at the time of the sample) is not needed.
    fn sample(&mut self, _: &World, sample: &Sample<'_>) {
        let event = sample.event.0 as usize;
        if self.switch.concerns(event) {
            self.samples.push((sample.order, event));
        }
    }

    fn merge(&mut self, later: Self) {
        self.samples.extend(later.samples);
    }
}
