//! The times of one event's samples.

use std::num::NonZeroUsize;

use rperf_replay::{EventIndex, Fold, Replay, Sample, World};

use crate::{FilteredSamples, PrepareSamples as _};

/// Returns the times, in nanoseconds, of the samples of `event` that `filter` accepts, in no particular order.
///
/// Samples without a time are left out; without `with_idle`, also those of the idle task.
#[must_use]
pub fn sample_times(
    replay: &Replay<'_>,
    event: EventIndex,
    filter: FilteredSamples<'_>,
    with_idle: bool,
    threads: NonZeroUsize,
) -> Vec<u64> {
    let folded = replay.fold(threads, || SampleTimes {
        event,
        filter,
        with_idle,
        times: Vec::new(),
    });
    folded.times
}

struct SampleTimes<'t> {
    event: EventIndex,
    filter: FilteredSamples<'t>,
    /// Whether the idle task, whose process id is 0, counts.
    with_idle: bool,
    times: Vec<u64>,
}

impl Fold for SampleTimes<'_> {
    /// `world` has the processes and mappings at the time of the sample.
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        // The raw data is not decoded: the filter does not read it.
        let typed_event = None;
        // `prepare` returns `None` for a sample that the filter refuses.
        if sample.event == self.event
            && let Some(time) = sample.wire.time
            && (self.with_idle || sample.pid != 0)
            && self.filter.prepare(world, sample, typed_event).is_some()
        {
            self.times.push(time);
        }
    }

    /// `later` has the times from a later part of the file.
    fn merge(&mut self, later: Self) {
        self.times.extend(later.times);
    }
}
