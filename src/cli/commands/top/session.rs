//! Observes the target interval by interval, independently of the presentation.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use clap::ArgMatches;
use rperf_events::Sampling;
use rperf_hist::{Decay, DecayingHistogram, LiveCounts, LiveHistograms};
use rperf_perfdata::EventDesc;
use rperf_replay::{EventIndex, LiveWorld};
use rperf_session::{Observation, RecordRequest, SessionNotice, SessionObserver};
use rperf_sys::clock_time;
use rperf_view::top::{DisplayedRate, EventLabel, IntervalStatus};
use rperf_wire::{AttrFlags, Endian};

use super::request::scope;
use super::settings::TopSettings;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::record_reporter::RecordReporter;
use crate::cli::live::{events, explain};

/// The clock of this process's CPU time.
const OWN_TIME: i32 = libc::CLOCK_PROCESS_CPUTIME_ID;

/// A running observation.
pub(super) struct TopSession {
    observation: Observation,
    pub(super) live: LiveHistograms,
    /// The refresh interval.
    pub(super) delay: Duration,
    /// Whether each refresh drops the rows of earlier intervals (`-z`).
    pub(super) zero: bool,
    /// The indices of the events of each table.
    groups: Vec<Vec<usize>>,
    /// The sampling rate.
    sampling: Sampling,
    /// The observed tasks and CPUs, for the status line.
    scope: String,
    /// The event that replaces `cycles`, if the machine has no PMU.
    clock: Option<String>,
    /// Time of the next refresh.
    due: Instant,
    interval: IntervalResult,
    /// Whether all observed tasks have exited.
    ended: bool,
    /// Whether events are disabled.
    stopped: bool,
}

/// Statistics of the last interval, totals since the start, and the beginning of the current interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct IntervalResult {
    /// The counts of the last interval.
    pub(super) counts: LiveCounts,
    /// Records lost since the start.
    lost: u64,
    /// Samples since the start that could not be decoded.
    damaged: u64,
    /// The length of the last interval.
    length: Duration,
    /// The CPU usage of this process in the last interval, in percent of one CPU.
    pub(super) own_cpu: f64,
    /// Start of the current interval.
    began: Instant,
    /// CPU time of this process at the start of the current interval, in nanoseconds.
    own_time: u64,
}

/// Why [`TopSession::step`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepEnd {
    /// The tables were refreshed.
    Refreshed,
    /// Keys were pressed, or the input is closed.
    Input,
    /// The timeout expired.
    Idle,
    /// A signal was received.
    Signal(i32),
}

impl TopSession {
    /// Opens and enables the events.
    pub(super) fn begin(
        matches: &ArgMatches,
        context: &Context,
        request: &RecordRequest,
        settings: &TopSettings,
        delay: Duration,
    ) -> Result<Self, CliError> {
        let mut reporter = TopReporter {
            reporter: RecordReporter::new(context, matches),
            clock: None,
        };
        let names = events::names(&request.observe.events);
        let explained = |error| explain::explain(context, &names, error);
        let mut observation = Observation::open(request, &mut reporter).map_err(explained)?;
        let setup = settings.setup(matches, context, observation.events());
        let groups = setup.source.groups.clone();
        let live_world = LiveWorld::new(Endian::NATIVE, observation.events());
        let mut live = LiveHistograms::new(live_world, setup);
        // The interval begins before `start`: samples already arrive while it synthesizes records of running processes.
        let interval = IntervalResult::begin();
        let started = observation.start(request, &mut |records| live.add_records(records));
        started.map_err(explained)?;
        Ok(Self {
            scope: scope(matches, observation.cpu_count()),
            observation,
            live,
            delay,
            zero: false,
            groups,
            sampling: request.observe.sampling,
            clock: reporter.clock,
            due: Instant::now() + delay,
            interval,
            ended: false,
            stopped: false,
        })
    }

    /// Drains ring buffers until a refresh is due, `input` is readable or closed, a signal is received, or `timeout` expires.
    pub(super) fn step(
        &mut self,
        input: Option<BorrowedFd<'_>>,
        timeout: Option<Duration>,
    ) -> Result<StepEnd, CliError> {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let now = Instant::now();
            // Both times may have passed: then the earlier one counts.
            if end.is_some_and(|end| end <= now && end < self.due) {
                return Ok(StepEnd::Idle);
            }
            if self.due <= now {
                self.refresh();
                return Ok(StepEnd::Refreshed);
            }
            let wake_up = end.map_or(self.due, |end| end.min(self.due));
            let woken = self
                .observation
                .wait(wake_up.saturating_duration_since(now), input)?;
            if let Some(signal) = woken.signal {
                return Ok(StepEnd::Signal(signal));
            }
            self.ended |= woken.ended;
            self.drain();
            if woken.input {
                return Ok(StepEnd::Input);
            }
        }
    }

    /// Disables the events, or enables them again.
    pub(super) fn toggle_events(&mut self) -> Result<(), CliError> {
        self.observation.set_enabled(self.stopped)?;
        self.stopped = !self.stopped;
        Ok(())
    }

    /// Makes the next refresh due now.
    pub(super) fn refresh_now(&mut self) {
        self.due = Instant::now();
    }

    /// Reads all available records, and if there are any, ends the round, which is the records of one pass over the rings.
    fn drain(&mut self) {
        let live = &mut self.live;
        if self
            .observation
            .drain(&mut |records| live.add_records(records))
        {
            live.end_round();
        }
    }

    fn refresh(&mut self) {
        // The second pass over the rings reads records that were written to one ring while others were read.
        self.drain();
        self.drain();
        // The records of a round are used only after the next round has ended. The first call ends a round that is still open, if
        // any: the start of the observation adds records without ending their round. The second call ends an empty round: then
        // all records read so far are used.
        self.live.end_round();
        self.live.end_round();
        // Ends the interval before the symbol lookup, whose time belongs to the next one.
        self.interval.end(self.live.take_counts());
        self.live.refresh(match (self.stopped, self.zero) {
            (true, _) => Decay::Not,
            (false, true) => Decay::AtOnce,
            (false, false) => Decay::Slowly,
        });
        self.due = Instant::now() + self.delay;
    }

    /// The last interval.
    pub(super) fn interval(&self) -> &IntervalResult {
        &self.interval
    }

    /// The number of tables: one for each event, or with `--group` one for all events.
    pub(super) fn table_count(&self) -> usize {
        self.groups.len()
    }

    /// Returns the names of a table's events, and the table.
    pub(super) fn table(&self, number: usize) -> Option<(String, &DecayingHistogram)> {
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

    /// Returns the event with this index.
    fn event(&self, index: usize) -> Option<&EventDesc> {
        self.observation.events().get(index)
    }

    /// Calls `with` with the status of a table in the last interval.
    pub(super) fn status<R>(&self, number: usize, with: impl FnOnce(IntervalStatus<'_>) -> R) -> R {
        let (name, _) = self.table(number).unzip();
        let interval = &self.interval;
        let counts = &interval.counts;
        let percent = |part: u64| match counts.samples {
            0 => 0.0,
            samples => part as f64 * 100.0 / samples as f64,
        };
        with(IntervalStatus {
            samples_per_second: counts.samples as f64 / interval.length.as_secs_f64().max(0.001),
            kernel_percent: percent(counts.kernel),
            exact_percent: percent(counts.exact),
            // Each in the last interval, and since the start.
            lost: (counts.lost, interval.lost),
            damaged: (counts.damaged, interval.damaged),
            event: EventLabel {
                name: name.as_deref().unwrap_or_default(),
                rate: self.rate(number),
            },
            scope: &self.scope,
        })
    }

    /// The frequency of the only event, or its period if `-c` is given. `None` if there are several events, if `number` is not
    /// that event's table, or for an event's own period, such as that of tracepoints.
    pub(super) fn rate(&self, number: usize) -> Option<DisplayedRate> {
        let [events] = &self.groups[..] else {
            return None;
        };
        let [event] = events[..] else {
            return None;
        };
        let attr = &self.event(event).filter(|_| number == 0)?.attr;
        let is_period = matches!(self.sampling, Sampling::Period(_));
        match attr.flags.contains(AttrFlags::FREQ) {
            true => Some(DisplayedRate::Hertz(attr.sample_period)),
            false => is_period.then_some(DisplayedRate::Every(attr.sample_period)),
        }
    }

    /// Whether all observed tasks have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the reason why a table has no rows, as text.
    pub(super) fn why_empty(&self) -> String {
        let hidden = self.live.hidden();
        if self.ended {
            return "all target processes and threads have exited".to_owned();
        }
        if self.stopped {
            return "events are stopped (f starts them)".to_owned();
        }
        if self.interval.counts.samples > 0 {
            return match (hidden.kernel, hidden.user) {
                (true, true) => "kernel and user space are both hidden (K, U)".to_owned(),
                _ => "no samples match the filters".to_owned(),
            };
        }
        let clock = self.clock.as_ref();
        let instead = clock.map_or(String::new(), |clock| {
            format!(" (using {clock}: this machine has no hardware counter)")
        });
        format!("no samples in the last interval: no target ran, or no event occurred{instead}")
    }
}

impl IntervalResult {
    /// Whether the last interval has LOST records.
    pub(super) fn has_losses(&self) -> bool {
        self.counts.loss_reports > 0
    }

    fn begin() -> Self {
        Self {
            counts: LiveCounts::default(),
            lost: 0,
            damaged: 0,
            length: Duration::ZERO,
            own_cpu: 0.0,
            began: Instant::now(),
            own_time: clock_time(OWN_TIME).unwrap_or_default(),
        }
    }

    fn end(&mut self, counts: LiveCounts) {
        let (now, own_time) = (Instant::now(), clock_time(OWN_TIME).unwrap_or_default());
        self.length = now - self.began;
        let used = own_time.saturating_sub(self.own_time) as f64 / 1e9;
        self.own_cpu = used * 100.0 / self.length.as_secs_f64().max(0.001);
        self.counts = counts;
        self.lost = self.lost.saturating_add(counts.lost);
        self.damaged += counts.damaged;
        (self.began, self.own_time) = (now, own_time);
    }
}

/// Reports notices, and stores the name of the clock that replaces `cycles`.
struct TopReporter<'a> {
    reporter: RecordReporter<'a>,
    clock: Option<String>,
}

impl SessionObserver for TopReporter<'_> {
    fn on_event(&mut self, notice: SessionNotice<'_>) {
        if let SessionNotice::ClockInstead { instead, .. } = notice {
            self.clock = Some(instead.to_owned());
        }
        self.reporter.on_event(notice);
    }
}
