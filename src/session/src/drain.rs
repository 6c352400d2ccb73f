//! The loop: wait, hand what the rings hold to the file, until something ends it.

use std::borrow::Cow;
use std::os::fd::{AsFd as _, BorrowedFd};

use rperf_perfdata::WriteError;
use rperf_ring::{Walker, drain};
use rperf_sys::{FlightRing, Ready, Signals, Workload};
use rperf_wire::{RecordKind, ShortClock, TimeConv};

use crate::aux::Area;
use crate::control::Steered;
use crate::lanes::News;
use crate::layout::Near;
use crate::mismarked::mended;
use crate::open::{OpenEvent, Placed};
use crate::pace::Pace;
use crate::rewriting::Beside;
use crate::rings::Ring;
use crate::rotate::Turns;
use crate::schedule::Schedule;
use crate::sink::{Sink, write_error, write_run};
use crate::synthesize::Records;
use crate::triggers::Triggers;
use crate::waiting::{Kind, States, Waiting};
use crate::{Control, Error, Happened, Watch};

/// Hands what a ring holds to the file or to who changes it; whether there was anything.
fn empty_ring(
    ring: &mut Ring,
    lost: &mut u64,
    (beside, sink): (&mut Option<Beside>, &mut Sink),
) -> Result<bool, WriteError> {
    let Some(chunk) = drain(&mut ring.map) else {
        return Ok(false);
    };
    let tally = &mut sink.tally;
    let marked = tally.mismarked;
    let runs = sink
        .walker
        .walk(chunk.pieces(), |record| *lost += tally.note(&record));
    let is_right = tally.mismarked == marked;
    for run in [runs.first, runs.straddling, runs.second] {
        let run = match is_right {
            true => Cow::Borrowed(run),
            false => mended(run),
        };
        match beside {
            Some(beside) => beside.take(&run),
            None => write_run(&run, &mut sink.squeeze, &mut sink.medium)?,
        }
    }
    Ok(true)
}

/// The rings of a recording and what they lost.
pub(crate) struct Rings {
    rings: Vec<Ring>,
    /// Those that keep the last samples, which are taken at the end of each file.
    flights: Vec<FlightRing>,
    /// Records lost per ring, as its LOST records tell.
    lost: Vec<u64>,
    /// Bytes that a ring must hold to be emptied while recording (`--mmap-flush`).
    least: u64,
    /// Who changes the records before they are written, if they are to be changed.
    pub(crate) beside: Option<Beside>,
    /// Where each is emptied (`--affinity`).
    near: Near,
    /// Whether events run: a trace that stopped where its area was full goes on then.
    pub(crate) running: bool,
}

impl Rings {
    pub(crate) fn new(
        (rings, flights): (Vec<Ring>, Vec<FlightRing>),
        least: u64,
        near: Near,
    ) -> Self {
        let lost = vec![0; rings.len()];
        // A ring that is full to a quarter is emptied in any case: the kernel wakes its reader at the half.
        let quarter = rings.first().map_or(0, |ring| ring.size() / 4);
        Self {
            rings,
            flights,
            lost,
            least: least.min(quarter),
            beside: None,
            near,
            running: true,
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.rings.len()
    }

    /// Data bytes of each.
    pub(crate) fn size(&self) -> u64 {
        self.rings.first().map_or(0, Ring::size)
    }

    /// Each ring by itself, with its CPU. There are none that keep the last samples.
    pub(crate) fn split(&mut self) -> Vec<(i32, Self)> {
        let single = |ring: Ring| {
            let cpu = ring.cpu;
            let rings = (vec![ring], Vec::new());
            (cpu, Self::new(rings, self.least, Near::default()))
        };
        self.lost.clear();
        self.rings.drain(..).map(single).collect()
    }

    /// Takes over rings of the same recording.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.rings.extend(other.rings);
        self.lost.extend(other.lost);
    }

    /// How times follow from the hardware's clock: the same for all rings.
    pub(crate) fn time_conversion(&self) -> Option<TimeConv> {
        let conversion = self.rings.first()?.map.time_conversion()?;
        let (cycles, mask) = conversion.short.unwrap_or_default();
        Some(TimeConv {
            shift: conversion.shift.into(),
            mult: conversion.mult.into(),
            zero: conversion.zero,
            short: Some(ShortClock {
                cycles,
                mask,
                has_zero: true,
                is_short: conversion.short.is_some(),
            }),
        })
    }

    /// Bytes of each area for a trace; 0 where there is none.
    pub(crate) fn area_bytes(&self) -> u64 {
        let area = self.rings.iter().find_map(|ring| ring.area.as_ref());
        area.map_or(0, Area::size)
    }

    /// Whether traces are copied when that is asked for.
    pub(crate) fn keeps_snapshots(&self) -> bool {
        let mut areas = self.rings.iter().filter_map(|ring| ring.area.as_ref());
        areas.any(Area::is_written_over)
    }

    /// Writes the ends of all traces, behind all records that came before.
    pub(crate) fn snapshot(&mut self, sink: &mut Sink) -> Result<(), Error> {
        self.pass_from(0, sink).map_err(write_error)?;
        for area in self.rings.iter_mut().filter_map(|ring| ring.area.as_mut()) {
            area.snapshot(self.running, sink)?;
        }
        Ok(())
    }

    /// CPUs that lost records, and how many.
    pub(crate) fn lost_by_cpu(&self) -> Vec<(u32, u64)> {
        let cpus = self.rings.iter().map(|ring| u32::try_from(ring.cpu).ok());
        let lost = cpus.zip(&self.lost).filter(|(_, lost)| **lost > 0);
        lost.filter_map(|(cpu, lost)| Some((cpu?, *lost))).collect()
    }

    /// Empties every ring that holds as much as is worth a write.
    pub(crate) fn pass(&mut self, sink: &mut Sink) -> Result<bool, WriteError> {
        self.pass_from(self.least, sink)
    }

    /// Empties every ring of at least so many bytes once: one write per run of records, straight from the ring's
    /// memory. Marks the end of the round when there was anything, and says so.
    fn pass_from(&mut self, least: u64, sink: &mut Sink) -> Result<bool, WriteError> {
        let mut any = false;
        for (ring, lost) in self.rings.iter_mut().zip(&mut self.lost) {
            if ring.held() < least && !ring.has_trace() {
                continue;
            }
            self.near.go_to(ring.cpu);
            any |= empty_ring(ring, lost, (&mut self.beside, sink))?;
            // Records that tell of it come first.
            if let Some(area) = &mut ring.area
                && area.drain(sink)?
            {
                any = true;
                if self.running {
                    area.resume();
                }
            }
        }
        // Samples that come at the end of the file are older than what a round would end.
        if any && self.flights.is_empty() && sink.medium.has_rounds() {
            self.end_round(sink)?;
        }
        if let Some(beside) = &mut self.beside {
            beside.keep(sink)?;
        }
        Ok(any)
    }

    /// Hands all whole records to `take`, ring by ring; whether there were any.
    pub(crate) fn hand_over(&mut self, walker: &mut Walker, take: &mut dyn FnMut(&[u8])) -> bool {
        let mut any = false;
        for ring in &mut self.rings {
            let Some(chunk) = drain(&mut ring.map) else {
                continue;
            };
            any = true;
            let runs = walker.walk(chunk.pieces(), |_| {});
            for run in [runs.first, runs.straddling, runs.second] {
                take(run);
            }
        }
        any
    }

    /// Writes records that were made here, at their place among those of the rings.
    pub(crate) fn records(
        &mut self,
        records: &mut Records,
        sink: &mut Sink,
    ) -> Result<(), WriteError> {
        match &mut self.beside {
            Some(beside) => {
                beside.take(&sink.note(records));
                Ok(())
            }
            None => sink.records(records),
        }
    }

    /// Has all records changed that are to be changed, and written.
    pub(crate) fn flush(&mut self, sink: &mut Sink) -> Result<(), WriteError> {
        let beside = self.beside.as_mut();
        beside.map_or(Ok(()), |beside| beside.flush(sink))
    }

    /// Milliseconds until something may have been changed; -1 where nothing is.
    fn timeout(&self) -> i32 {
        self.beside.as_ref().map_or(-1, Beside::timeout)
    }

    /// Marks that nothing is to come that is older than what was written before the last mark.
    fn end_round(&mut self, sink: &mut Sink) -> Result<(), WriteError> {
        let mut mark = Records::new(0);
        mark.user(RecordKind::FINISHED_ROUND, |_| {});
        self.records(&mut mark, sink)
    }

    /// Writes what the rings of the last samples keep, if there are any.
    pub(crate) fn dump(&mut self, sink: &mut Sink) -> Result<(), Error> {
        for ring in &mut self.flights {
            let taken = ring
                .take()
                .map_err(Error::system("read a ring that is written over"))?;
            let tally = &mut sink.tally;
            let runs = sink.walker.walk((&taken, &[]), |record| {
                tally.note(&record);
            });
            sink.medium.write_data(runs.first).map_err(write_error)?;
        }
        if !self.flights.is_empty() {
            // What started while they were read is in samples already.
            self.pass_from(0, sink).map_err(write_error)?;
            self.end_round(sink).map_err(write_error)?;
        }
        Ok(())
    }

    /// Writes what is left when events stand still, the ends of traces first where there is to be a `snapshot` of them.
    pub(crate) fn conclude(&mut self, snapshot: bool, sink: &mut Sink) -> Result<(), Error> {
        self.running = false;
        if snapshot {
            self.snapshot(sink)?;
        }
        self.empty(sink).map_err(write_error)?;
        self.dump(sink)?;
        self.flush(sink).map_err(write_error)
    }

    /// Empties the rings until nothing more comes.
    pub(crate) fn empty(&mut self, sink: &mut Sink) -> Result<(), WriteError> {
        while self.pass_from(0, sink)? {}
        Ok(())
    }
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The workload has ended.
    WorkloadEnded,
    /// All observed tasks have ended.
    TasksEnded,
    /// SIGINT, SIGTERM or SIGHUP came.
    BySignal(i32),
    /// Nobody reads the pipe any more.
    ReaderGone,
    /// The output has the size at which the recording was to end.
    SizeReached,
    /// The end was ordered.
    ByOrder,
}

impl Stopped {
    /// The signal that was it.
    pub(crate) fn signal(self) -> Option<i32> {
        match self {
            Self::BySignal(signal) => Some(signal),
            Self::ReaderGone => Some(libc::SIGPIPE),
            Self::WorkloadEnded | Self::TasksEnded | Self::SizeReached | Self::ByOrder => None,
        }
    }
}

/// What the loop waits for.
pub(crate) struct Waits<'a> {
    pub(crate) signals: &'a Signals,
    pub(crate) workload: Option<&'a mut Workload>,
    /// Whether the end of all observed tasks ends the recording; a workload's own end is told by its
    /// signal.
    pub(crate) until_tasks_end: bool,
    pub(crate) schedule: Schedule<'a>,
    /// Bytes of output that are enough.
    pub(crate) max_size: Option<u64>,
    /// What the threads tell that empty the rings, if others do.
    pub(crate) news: Option<&'a News>,
    /// Where orders come from.
    pub(crate) control: Option<&'a mut Control>,
    /// What turns to the next file when it happens.
    pub(crate) triggers: Triggers<'a>,
}

/// Drains until something ends the recording; returns what, and how often it woke up.
pub(crate) fn run(
    waits: &mut Waits<'_>,
    events: &[OpenEvent],
    (rings, sink, turns): (&mut Rings, &mut Sink, &mut Turns<'_>),
    watch: &mut dyn Watch,
) -> Result<(Stopped, u64), Error> {
    let mut counters = waits.news.map_or_else(|| watched(events), |_| Vec::new());
    let mut triggers = watched(waits.triggers.events);
    let mut woken = 0;
    let mut pace = Pace::new(waits.bytes(sink, turns), waits.news.is_some());
    loop {
        if waits.is_full((sink, turns), watch) {
            return Ok((Stopped::SizeReached, woken));
        }
        let due = [
            waits.schedule.timeout(),
            turns.timeout(),
            pace.timeout(),
            rings.timeout(),
        ];
        let timeout = due.into_iter().fold(-1, sooner);
        let awaited = waits.wait(sink.medium.reader(), (&triggers, &counters), timeout)?;
        let states = &awaited.states;
        woken += 1;
        if let Some(on) = waits.schedule.keep(events, watch)? {
            rings.running = on;
        }
        if states.is_closed(&awaited.reader) {
            return Ok((Stopped::ReaderGone, woken));
        }
        rings.pass(sink).map_err(write_error)?;
        if waits.is_full((sink, turns), watch) {
            return Ok((Stopped::SizeReached, woken));
        }
        pace.keep((waits.bytes(sink, turns), sink.samples()), events, watch);
        if let Some(stopped) = waits.stopped(turns)? {
            return Ok((stopped, woken));
        }
        if states.is_readable(&awaited.news) {
            return Ok((Stopped::TasksEnded, woken));
        }
        let ready = states.of(&awaited.orders).first().copied();
        if waits.obey(ready, (events, turns, rings), watch)? {
            return Ok((Stopped::ByOrder, woken));
        }
        if rings.keeps_snapshots() && std::mem::take(&mut turns.asked) {
            rings.snapshot(sink)?;
        }
        turns.asked |= states.is_readable(&awaited.happened) && waits.triggers.take();
        turns.keep(rings, sink, watch)?;
        states.drop_ended(&awaited.happened, &mut triggers);
        states.drop_ended(&awaited.rings, &mut counters);
        if counters.is_empty() && waits.until_tasks_end && waits.news.is_none() {
            return Ok((Stopped::TasksEnded, woken));
        }
    }
}

/// The counters by which rings tell that they hold something. All events of a CPU share one ring, so one event's counters
/// tell of them all; those of tasks that have ended would report so for ever and are to be dropped.
pub(crate) fn watched(events: &[OpenEvent]) -> Vec<&Placed> {
    let first = events.iter().find(|event| !event.is_in_flight_ring());
    first
        .into_iter()
        .flat_map(|event| &event.counters)
        .collect()
}

/// The events as orders see them. That of the side-band, which all need, is not stopped with the others.
fn steered(events: &[OpenEvent]) -> Vec<Steered<'_>> {
    fn steered(OpenEvent { event, counters }: &OpenEvent) -> Steered<'_> {
        Steered {
            spec: &event.spec,
            attr: &event.attr,
            leads: event.leader.is_none() && !(event.tracking && event.spec.is_dummy()),
            counters: counters.iter().map(|placed| &placed.counter).collect(),
        }
    }
    events.iter().map(steered).collect()
}

/// What was waited for: what became of all of it, and which is which.
struct Awaited {
    states: States,
    /// Of a pipe.
    reader: Kind,
    news: Kind,
    orders: Kind,
    /// The counters of triggers.
    happened: Kind,
    /// The counters of rings.
    rings: Kind,
}

impl Waits<'_> {
    /// Waits for all of it, the `reader` of a pipe and these counters, of triggers and of rings, for so many milliseconds (-1:
    /// without end).
    fn wait(
        &self,
        reader: Option<BorrowedFd<'_>>,
        (triggers, counters): (&[&Placed], &[&Placed]),
        timeout: i32,
    ) -> Result<Awaited, Error> {
        let mut waiting = Waiting::default();
        waiting.add([self.signals.as_fd()]);
        let reader = waiting.add(reader);
        let news = waiting.add(self.news.map(News::as_fd));
        let orders = waiting.add(self.control.as_ref().and_then(|control| control.as_fd()));
        let happened = waiting.counters(triggers);
        let rings = waiting.counters(counters);
        Ok(Awaited {
            states: waiting.wait(timeout)?,
            reader,
            news,
            orders,
            happened,
            rings,
        })
    }

    /// Bytes of the recording so far.
    fn bytes(&self, sink: &Sink, turns: &Turns<'_>) -> u64 {
        turns.before + sink.bytes() + self.news.map_or(0, News::bytes)
    }

    /// Whether the output has the size at which the recording was to end; says so.
    fn is_full(&self, (sink, turns): (&Sink, &Turns<'_>), watch: &mut dyn Watch) -> bool {
        let bytes = self.bytes(sink, turns);
        let full = self.max_size.is_some_and(|enough| bytes >= enough);
        if full {
            watch.tell(Happened::SizeReached { bytes });
        }
        full
    }

    /// Carries out the orders that came; whether to end was one of them.
    fn obey(
        &mut self,
        ready: Option<Ready>,
        (events, turns, rings): (&[OpenEvent], &mut Turns<'_>, &mut Rings),
        watch: &mut dyn Watch,
    ) -> Result<bool, Error> {
        let (Some(control), Some(ready)) = (&mut self.control, ready) else {
            return Ok(false);
        };
        let asked = control.obey(ready, || steered(events), watch)?;
        turns.asked |= asked.snapshot;
        rings.running = asked.traces.unwrap_or(rings.running);
        Ok(asked.stop)
    }

    fn stopped(&mut self, turns: &mut Turns<'_>) -> Result<Option<Stopped>, Error> {
        while let Some(signal) = self.signals.next().map_err(Error::system("read signals"))? {
            match signal {
                libc::SIGUSR2 => {
                    turns.asked = true;
                    continue;
                }
                // The write that it came of has failed.
                libc::SIGXFSZ => continue,
                libc::SIGCHLD => {}
                signal => return Ok(Some(Stopped::BySignal(signal))),
            }
            let Some(workload) = &mut self.workload else {
                continue;
            };
            let ended = workload
                .try_wait()
                .map_err(Error::system("wait for the workload"))?;
            if ended.is_some() {
                return Ok(Some(Stopped::WorkloadEnded));
            }
        }
        Ok(None)
    }
}

/// The shorter of two times in milliseconds, -1 being none.
fn sooner(one: i32, other: i32) -> i32 {
    match (one, other) {
        (-1, time) | (time, -1) => time,
        (one, other) => one.min(other),
    }
}
