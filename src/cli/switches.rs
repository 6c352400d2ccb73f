//! `--switch-on`, `--switch-off`: samples of one event that say whether those of others count.

use std::num::NonZeroUsize;

use clap::ArgMatches;
use rperf_lines::EventSwitch;
use rperf_perfdata::Described;
use rperf_replay::{Fold, Order, Replay, Sample, World};

use super::error::CliError;
use super::options::flag;

/// What the options say.
pub(crate) struct SwitchOptions {
    /// Names of events.
    on: Option<String>,
    off: Option<String>,
    shows_itself: bool,
}

impl SwitchOptions {
    /// Reads the options.
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        Self {
            on: matches.get_one::<String>("switch-on").cloned(),
            off: matches.get_one::<String>("switch-off").cloned(),
            shows_itself: flag(matches, "show-on-off-events") == Some(true),
        }
    }

    /// Which samples of `recording` others switch on and off.
    ///
    /// # Errors
    ///
    /// Status 255: names that no event has.
    pub(crate) fn find(&self, recording: Described<'_>) -> Result<EventSwitch, CliError> {
        let place = |what, name: &Option<String>| {
            let Some(name) = name else {
                return Ok(None);
            };
            let mut events = recording.events.iter();
            match events.position(|event| event.name == *name) {
                Some(place) => Ok(Some(place)),
                None => Err(CliError::message(
                    255,
                    format!("switch-{what} event not found ({name})"),
                )
                .hint("'evlist' names the events of a recording")),
            }
        };
        let (on, off) = (place("on", &self.on)?, place("off", &self.off)?);
        Ok(EventSwitch::new(on, off, self.shows_itself))
    }
}

/// When samples were switched on and off, for passes that do not see them in order.
pub(crate) struct Switched {
    /// By rising order: a sample that switches, whether it is shown itself, and whether those behind it are.
    moments: Vec<Moment>,
    /// Whether what comes before all of them is shown.
    first: bool,
}

struct Moment {
    at: Order,
    itself: bool,
    behind: bool,
}

impl Switched {
    /// Looks through all samples for those that switch. `None` if nothing is switched.
    pub(crate) fn find(
        replay: &Replay<'_>,
        mut switch: EventSwitch,
        threads: NonZeroUsize,
    ) -> Option<Self> {
        if !switch.is_needed() {
            return None;
        }
        let Switching { mut found, .. } = replay.fold(threads, || Switching {
            switch: &switch,
            found: Vec::new(),
        });
        found.sort_unstable();
        let first = switch.is_on();
        let moment = |(at, event): (Order, usize)| Moment {
            at,
            itself: switch.shows(event),
            behind: switch.is_on(),
        };
        let moments = found.into_iter().map(moment).collect();
        Some(Self { moments, first })
    }

    /// Whether the sample at this place is shown.
    pub(crate) fn shows(&self, at: Order) -> bool {
        let before = self.moments.partition_point(|moment| moment.at <= at);
        let last = before
            .checked_sub(1)
            .and_then(|last| self.moments.get(last));
        match last {
            None => self.first,
            Some(moment) if moment.at == at => moment.itself,
            Some(moment) => moment.behind,
        }
    }
}

/// The samples of the events that switch.
struct Switching<'s> {
    switch: &'s EventSwitch,
    found: Vec<(Order, usize)>,
}

impl Fold for Switching<'_> {
    fn sample(&mut self, _: &World, sample: &Sample<'_>) {
        let event = sample.event.0 as usize;
        if self.switch.concerns(event) {
            self.found.push((sample.order, event));
        }
    }

    fn merge(&mut self, later: Self) {
        self.found.extend(later.found);
    }
}
