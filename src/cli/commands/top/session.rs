//! What runs, observed interval by interval; how it is shown is not known here.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use clap::ArgMatches;
use rperf_events::Sampling;
use rperf_hist::{Fade, Fading, Live, LiveCounts};
use rperf_perfdata::EventDesc;
use rperf_replay::{EventIndex, Growing};
use rperf_session::{Happened, Observation, Request, Watch};
use rperf_sys::clock_time;
use rperf_view::top::{EventRate, Rate, Status};
use rperf_wire::{AttrFlags, Endian};

use super::request::scope;
use super::settings::Settings;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::{events, explain, said};

/// Nanoseconds of processor time that this process has used.
const OWN_TIME: i32 = libc::CLOCK_PROCESS_CPUTIME_ID;

/// An observation while it goes on.
pub(super) struct Session {
    observation: Observation,
    pub(super) live: Live,
    /// From one refresh to the next.
    pub(super) delay: Duration,
    /// Whether the samples of the last interval are forgotten.
    pub(super) zero: bool,
    /// The places of the events that have a table each.
    groups: Vec<Vec<usize>>,
    /// How often samples are taken.
    sampling: Sampling,
    scope: String,
    /// The clock that takes the place of a missing counter.
    clock: Option<String>,
    due: Instant,
    interval: Interval,
    ended: bool,
    /// Whether events are stopped.
    stopped: bool,
}

/// What is known of the last interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    /// What came.
    pub(super) counts: LiveCounts,
    /// Records that were lost so far, and samples that could not be read.
    lost: u64,
    damaged: u64,
    /// How often records were lost so far.
    pub(super) losses: u64,
    /// How long it was.
    length: Duration,
    /// The share of one CPU that this program used, in percent.
    pub(super) own_cost: f64,
    began: Instant,
    own_time: u64,
}

/// Why [`Session::step`] came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// There is something new to be shown.
    Refreshed,
    /// Keys may have been pressed.
    Input,
    /// So much time has passed.
    Idle,
    /// This signal came.
    Signal(i32),
}

impl Session {
    /// Opens the events and lets them count.
    pub(super) fn begin(
        matches: &ArgMatches,
        context: &Context,
        (request, settings): (&Request, &Settings),
        delay: Duration,
    ) -> Result<Self, CliError> {
        let mut watch = Noted {
            said: said::Said::new(context, matches),
            clock: None,
        };
        let names = events::names(&request.events);
        let explained = |error| explain::explain(context, &names, error);
        let observation = Observation::open(request, &mut watch).map_err(explained)?;
        let setup = settings.setup(matches, context, observation.events());
        let groups = setup.source.groups.clone();
        let growing = Growing::new(Endian::NATIVE, observation.events());
        let mut live = Live::new(growing, setup);
        let explained = |error| explain::explain(context, &names, error);
        let taken = observation.start(request, &mut |records| live.take(records));
        taken.map_err(explained)?;
        Ok(Self {
            scope: scope(matches, observation.cpus()),
            observation,
            live,
            delay,
            zero: false,
            groups,
            sampling: request.sampling,
            clock: watch.clock,
            due: Instant::now() + delay,
            interval: Interval::begin(),
            ended: false,
            stopped: false,
        })
    }

    /// Empties rings until a refresh is due, keys are pressed or a signal comes; with `patience`, no longer than that.
    pub(super) fn step(
        &mut self,
        input: Option<BorrowedFd<'_>>,
        patience: Option<Duration>,
    ) -> Result<Step, CliError> {
        let end = patience.map(|patience| Instant::now() + patience);
        loop {
            if end.is_some_and(|end| end <= Instant::now() && end < self.due) {
                return Ok(Step::Idle);
            }
            let left = self.due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.refresh();
                return Ok(Step::Refreshed);
            }
            let left = patience.map_or(left, |patience| patience.min(left));
            let woken = self.observation.wait(left, input)?;
            if let Some(signal) = woken.signal {
                return Ok(Step::Signal(signal));
            }
            self.ended |= woken.ended;
            self.drain();
            if woken.input {
                return Ok(Step::Input);
            }
        }
    }

    /// Stops the events, or starts them again: rows stay as they are meanwhile.
    pub(super) fn switch(&mut self) -> Result<(), CliError> {
        self.observation.switch(self.stopped)?;
        self.stopped = !self.stopped;
        Ok(())
    }

    /// Shows what there is at once, and not when it is due.
    pub(super) fn hurry(&mut self) {
        self.due = Instant::now();
    }

    fn drain(&mut self) {
        let live = &mut self.live;
        if self.observation.drain(&mut |records| live.take(records)) {
            live.end_round();
        }
    }

    fn refresh(&mut self) {
        self.drain();
        // What the first of these brought is complete when a later round has ended.
        self.drain();
        self.live.end_round();
        self.live.end_round();
        // Naming what came is no part of the time in which it came.
        self.interval.end(self.live.take_counts());
        self.live.refresh(match (self.stopped, self.zero) {
            (true, _) => Fade::Not,
            (false, true) => Fade::AtOnce,
            (false, false) => Fade::Slowly,
        });
        self.due = Instant::now() + self.delay;
    }

    /// The last interval.
    pub(super) fn interval(&self) -> &Interval {
        &self.interval
    }

    /// How many tables there are: one for each event, or for all of a group.
    pub(super) fn tables(&self) -> usize {
        self.groups.len()
    }

    /// A table with the name of its events.
    pub(super) fn table(&self, number: usize) -> Option<(String, &Fading)> {
        let events = self.groups.get(number)?.iter();
        let names = events.filter_map(|event| Some(self.event(*event)?.name.as_str()));
        let names: Vec<&str> = names.collect();
        Some((names.join(", "), self.live.table(number)?))
    }

    /// The events of a table.
    pub(super) fn events_of(&self, number: usize) -> Vec<EventIndex> {
        let events = self.groups.get(number).into_iter().flatten();
        let events = events.filter_map(|event| u32::try_from(*event).ok());
        events.map(EventIndex).collect()
    }

    fn event(&self, number: usize) -> Option<&EventDesc> {
        self.observation.events().get(number)
    }

    /// Calls `with` with what is told of the last interval over a table.
    pub(super) fn status<R>(&self, number: usize, with: impl FnOnce(Status<'_>) -> R) -> R {
        let (name, _) = self.table(number).unzip();
        let interval = &self.interval;
        let counts = &interval.counts;
        let percent = |part: u64| match counts.samples {
            0 => 0.0,
            samples => part as f64 * 100.0 / samples as f64,
        };
        with(Status {
            per_second: counts.samples as f64 / interval.length.as_secs_f64().max(0.001),
            kernel: percent(counts.kernel),
            exact: percent(counts.exact),
            lost: (counts.lost, interval.lost),
            dropped: (counts.damaged, interval.damaged),
            event: EventRate {
                name: name.as_deref().unwrap_or_default(),
                rate: self.rate(number),
            },
            scope: &self.scope,
        })
    }

    /// How often a table's event is sampled, where there is only that one.
    pub(super) fn rate(&self, number: usize) -> Option<Rate> {
        let [events] = &self.groups[..] else {
            return None;
        };
        let [event] = events[..] else {
            return None;
        };
        let attr = &self.event(event).filter(|_| number == 0)?.attr;
        let asked = matches!(self.sampling, Sampling::Period(_));
        match attr.flags.contains(AttrFlags::FREQ) {
            true => Some(Rate::Hertz(attr.sample_period)),
            false => asked.then_some(Rate::Every(attr.sample_period)),
        }
    }

    /// Whether all observed tasks have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Why a table has no rows.
    pub(super) fn why_empty(&self) -> String {
        let hidden = self.live.hidden();
        if self.ended {
            return "all observed processes and threads have ended".to_owned();
        }
        if self.stopped {
            return "events are stopped (f starts them)".to_owned();
        }
        if self.interval.counts.samples > 0 {
            return match (hidden.kernel, hidden.user) {
                (true, true) => "kernel and user space are both hidden (K, U)".to_owned(),
                _ => "none of the samples are of what is to be shown".to_owned(),
            };
        }
        let clock = self.clock.as_ref();
        let instead = clock.map_or(String::new(), |clock| {
            format!(" ({clock} in place of a counter that this machine lacks)")
        });
        format!("no samples yet: nothing that is observed has run{instead}")
    }
}

impl Interval {
    fn begin() -> Self {
        Self {
            counts: LiveCounts::default(),
            lost: 0,
            damaged: 0,
            losses: 0,
            length: Duration::ZERO,
            own_cost: 0.0,
            began: Instant::now(),
            own_time: clock_time(OWN_TIME).unwrap_or_default(),
        }
    }

    fn end(&mut self, counts: LiveCounts) {
        let (now, own_time) = (Instant::now(), clock_time(OWN_TIME).unwrap_or_default());
        self.length = now - self.began;
        let used = own_time.saturating_sub(self.own_time) as f64 / 1e9;
        self.own_cost = used * 100.0 / self.length.as_secs_f64().max(0.001);
        self.counts = counts;
        self.lost = self.lost.saturating_add(counts.lost);
        self.damaged += counts.damaged;
        self.losses += counts.losses;
        (self.began, self.own_time) = (now, own_time);
    }
}

/// Says what is said of recordings, and keeps what explains an empty screen.
struct Noted<'a> {
    said: said::Said<'a>,
    clock: Option<String>,
}

impl Watch for Noted<'_> {
    fn tell(&mut self, happened: Happened<'_>) {
        if let Happened::ClockInstead { instead, .. } = happened {
            self.clock = Some(instead.to_owned());
        }
        self.said.tell(happened);
    }
}
