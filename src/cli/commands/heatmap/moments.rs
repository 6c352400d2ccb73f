//! When samples were taken.

use rperf_flame::Heat;
use rperf_replay::{EventIndex, Fold, Sample, World};
use rperf_resolve::Filter;
use rperf_resolve::Resolver;

use super::Question;
use crate::cli::error::CliError;
use crate::cli::sampled::find_event;

/// A picture of more seconds is none.
const MOST_SECONDS: u64 = 100_000;
/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

impl Question<'_> {
    /// The samples of one event by second and part of the second.
    pub(super) fn moments(&self, event: Option<&str>) -> Result<Heat, CliError> {
        let number = find_event(self.replay, &self.input.path, event)?;
        let (filter, resolver) = (&self.filter, self.resolver);
        let folded = self.replay.fold(self.jobs, || Moments {
            event: EventIndex(u32::try_from(number).unwrap_or(u32::MAX)),
            filter,
            resolver,
            times: Vec::new(),
        });
        let times = folded.times;
        let span = times.iter().min().zip(times.iter().max());
        let (first, last) = span.ok_or_else(|| self.none_left())?;
        if (last - first) / SECOND > MOST_SECONDS {
            let message = format!("the samples span more than {MOST_SECONDS} seconds");
            return Err(CliError::message(255, message).hint("--time START,END draws a part"));
        }
        let mut heat = Heat::of_seconds(*first, *last, self.looks.rows);
        times.iter().for_each(|time| heat.add(*time));
        let event = self.replay.data().events().get(number);
        let name = event.map_or("", |event| &event.name);
        heat.title = format!("Samples of {name}: seconds, and parts of the second");
        heat.unit = "samples".to_owned();
        Ok(heat)
    }
}

struct Moments<'m> {
    event: EventIndex,
    filter: &'m Filter,
    resolver: &'m Resolver<'m>,
    /// Those of samples that have one.
    times: Vec<u64>,
}

impl Fold for Moments<'_> {
    fn sample(&mut self, _world: &World, sample: &Sample<'_>) {
        if sample.event == self.event
            && let Some(time) = sample.wire.time
            && self.filter.accepts(sample, self.resolver)
        {
            self.times.push(time);
        }
    }

    fn merge(&mut self, later: Self) {
        self.times.extend(later.times);
    }
}
