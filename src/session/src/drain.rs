//! The main loop: waits for data in the rings and writes them to the file, until the recording ends.

use std::borrow::Cow;
use std::collections::HashSet;
use std::os::fd::{AsFd as _, BorrowedFd};

use rperf_perfdata::WriteError;
use rperf_ring::{RecordWalker, drain};
use rperf_sys::{OverwriteRing, Ready, Signals, Workload};
use rperf_wire::{HardwareClock, RawRecord, RecordKind, TimeConv};

use crate::aux::AuxArea;
use crate::build_id_mappings::corrected;
use crate::control::ControlledCounters;
use crate::counted_output::{CountedOutput, write_error, write_run};
use crate::growth_warning::GrowthWarning;
use crate::lanes::LaneEvents;
use crate::open::{OpenCounter, OpenEvent};
use crate::output_rotation::OutputRotation;
use crate::poll_set::{DescriptorKind, PollSet, PollStates};
use crate::rewriting::RewriteThread;
use crate::rings::Ring;
use crate::schedule::Schedule;
use crate::synthesize::RecordBuffer;
use crate::thread_layout::RingAffinity;
use crate::triggers::TriggerEvents;
use crate::{Control, Error, SessionNotice, SessionObserver};

/// Passes the content of a ring to the file or the rewriting thread, and adds the number of records that its LOST records report
/// to `lost`. Returns whether the ring had data.
fn empty_ring(
    ring: &mut Ring,
    lost: &mut u64,
    rewrite_thread: &mut Option<RewriteThread>,
    sink: &mut CountedOutput,
) -> Result<bool, WriteError> {
    let Some(chunk) = drain(&mut ring.map) else {
        return Ok(false);
    };
    let stats = &mut sink.stats;
    let mismarked_before = stats.mismarked;
    let runs = sink
        .walker
        .walk(chunk.pieces(), |record| *lost += stats.note(&record));
    // False if a record of the chunk has the flag `MMAP_BUILD_ID`, but no build-id.
    let is_correct = stats.mismarked == mismarked_before;
    for run in [runs.first, runs.straddling, runs.second] {
        let run = match is_correct {
            true => Cow::Borrowed(run),
            false => corrected(run),
        };
        match rewrite_thread {
            Some(rewrite_thread) => rewrite_thread.add(&run),
            None => write_run(&run, &mut sink.compressor, &mut sink.output_sink)?,
        }
    }
    Ok(true)
}

/// The rings of a recording and their losses.
pub(crate) struct RingSet {
    rings: Vec<Ring>,
    /// Overwrite rings, which are read at the end of each file.
    overwrite_rings: Vec<OverwriteRing>,
    /// Records lost per ring, from LOST records.
    lost: Vec<u64>,
    /// Minimum number of bytes in a ring to drain it: that of `--mmap-flush`, but at most a quarter of a ring.
    min_bytes: u64,
    /// The thread that rewrites records before they are written, for example unwinds copied user stacks, if any.
    pub(crate) rewrite_thread: Option<RewriteThread>,
    /// CPU affinity for draining (`--affinity`).
    affinity: RingAffinity,
    /// Whether the event of the hardware trace is enabled, if a trace is recorded. While it is not, a trace that stopped (because
    /// its AUX area was full, or to copy a snapshot) is not resumed.
    pub(crate) is_trace_enabled: bool,
}

impl RingSet {
    pub(crate) fn new(
        rings: Vec<Ring>,
        overwrite_rings: Vec<OverwriteRing>,
        min_flush_bytes: u64,
        affinity: RingAffinity,
    ) -> Self {
        let lost = vec![0; rings.len()];
        // At most a quarter, as in perf: when the kernel wakes the reader of a ring, by default half full, it must be drained.
        let quarter = rings.first().map_or(0, |ring| ring.size() / 4);
        Self {
            rings,
            overwrite_rings,
            lost,
            min_bytes: min_flush_bytes.min(quarter),
            rewrite_thread: None,
            affinity,
            is_trace_enabled: true,
        }
    }

    /// Returns the number of rings.
    pub(crate) fn count(&self) -> usize {
        self.rings.len()
    }

    /// Returns the data size of each ring in bytes; 0 without rings.
    pub(crate) fn size(&self) -> u64 {
        self.rings.first().map_or(0, Ring::size)
    }

    /// Splits the set into sets of one ring, each with its CPU. The set must not have overwrite rings.
    pub(crate) fn split(&mut self) -> Vec<(i32, Self)> {
        let single = |ring: Ring| {
            let cpu = ring.cpu;
            // No affinity: the thread that drains the ring has its own.
            let affinity = RingAffinity::default();
            let set = Self::new(vec![ring], Vec::new(), self.min_bytes, affinity);
            (cpu, set)
        };
        self.lost.clear();
        self.rings.drain(..).map(single).collect()
    }

    /// Adds the rings of another set, with their losses.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.rings.extend(other.rings);
        self.lost.extend(other.lost);
    }

    /// Returns the conversion from the hardware clock to timestamps, which is the same for all rings; `None` if the kernel does
    /// not provide it.
    pub(crate) fn time_conversion(&self) -> Option<TimeConv> {
        let conversion = self.rings.first()?.map.time_conversion()?;
        let (cycles, mask) = conversion.short.unwrap_or_default();
        Some(TimeConv {
            shift: conversion.shift.into(),
            mult: conversion.mult.into(),
            zero: conversion.zero,
            clock: Some(HardwareClock {
                cycles,
                mask,
                is_zero_valid: true,
                is_short: conversion.short.is_some(),
            }),
        })
    }

    /// Returns the size of each AUX area in bytes; 0 if there are none.
    pub(crate) fn area_bytes(&self) -> u64 {
        let area = self.rings.iter().find_map(|ring| ring.area.as_ref());
        area.map_or(0, AuxArea::size)
    }

    /// Whether AUX areas are overwritten, and copied on request (`--snapshot`).
    pub(crate) fn keeps_snapshots(&self) -> bool {
        let mut areas = self.rings.iter().filter_map(|ring| ring.area.as_ref());
        areas.any(AuxArea::is_in_overwrite_mode)
    }

    /// Writes the latest part of the trace in each AUX area, after the records that are in the rings.
    pub(crate) fn write_snapshot(&mut self, sink: &mut CountedOutput) -> Result<(), Error> {
        self.drain_with_min(0, sink).map_err(write_error)?;
        for area in self.rings.iter_mut().filter_map(|ring| ring.area.as_mut()) {
            area.snapshot(self.is_trace_enabled, sink)?;
        }
        Ok(())
    }

    /// Returns for each ring its CPU, -1 if it is a task's, and the number of its lost records.
    pub(crate) fn lost(&self) -> impl Iterator<Item = (i32, u64)> {
        let cpus = self.rings.iter().map(|ring| ring.cpu);
        cpus.zip(self.lost.iter().copied())
    }

    /// Drains the rings that have enough data, and all AUX areas; returns whether there was any data.
    pub(crate) fn drain_filled(&mut self, sink: &mut CountedOutput) -> Result<bool, WriteError> {
        self.drain_with_min(self.min_bytes, sink)
    }

    /// Drains, once each, the rings that have at least `min_bytes` bytes (0: all rings) or trace data: one write per run of
    /// records, directly from the ring's memory, unless records are rewritten, compressed or corrected. A record that wraps
    /// around the end of the ring is copied. Returns whether there was any data; if so, writes FINISHED_ROUND, except to a file
    /// of a single ring (`--threads`) and with overwrite rings.
    fn drain_with_min(
        &mut self,
        min_bytes: u64,
        sink: &mut CountedOutput,
    ) -> Result<bool, WriteError> {
        let mut any = false;
        for (ring, lost) in self.rings.iter_mut().zip(&mut self.lost) {
            if ring.available() < min_bytes && !ring.has_trace() {
                continue;
            }
            self.affinity.set_for_ring(ring.cpu);
            any |= empty_ring(ring, lost, &mut self.rewrite_thread, sink)?;
            // The ring's AUX records, which describe the area, come first.
            if let Some(area) = &mut ring.area
                && area.drain(sink)?
            {
                any = true;
                if self.is_trace_enabled {
                    area.resume();
                }
            }
        }
        // With overwrite rings, FINISHED_ROUND would be wrong: their samples are written later, but may be older than the
        // previous round.
        if any && self.overwrite_rings.is_empty() && sink.output_sink.has_rounds() {
            self.write_finished_round(sink)?;
        }
        // `end_round` does not write FINISHED_ROUND: it writes the thread's results so far, and passes new records to the thread.
        if let Some(rewrite_thread) = &mut self.rewrite_thread {
            rewrite_thread.end_round(sink)?;
        }
        Ok(any)
    }

    /// Passes all complete records to `take`, ring by ring; returns whether there were any.
    pub(crate) fn hand_over(
        &mut self,
        walker: &mut RecordWalker,
        take: &mut dyn FnMut(&[u8]),
    ) -> bool {
        let mut any = false;
        for ring in &mut self.rings {
            let Some(chunk) = drain(&mut ring.map) else {
                continue;
            };
            any = true;
            let no_statistics = |_: RawRecord<'_>| {};
            let runs = walker.walk(chunk.pieces(), no_statistics);
            for run in [runs.first, runs.straddling, runs.second] {
                take(run);
            }
        }
        any
    }

    /// Writes synthesized records after those that were drained from the rings so far.
    pub(crate) fn write_synthesized(
        &mut self,
        records: &mut RecordBuffer,
        sink: &mut CountedOutput,
    ) -> Result<(), WriteError> {
        let Some(rewrite_thread) = &mut self.rewrite_thread else {
            return sink.write_records(records);
        };
        rewrite_thread.add(&sink.take_counted(records));
        Ok(())
    }

    /// Waits until all records are rewritten and written.
    pub(crate) fn flush(&mut self, sink: &mut CountedOutput) -> Result<(), WriteError> {
        let rewrite_thread = self.rewrite_thread.as_mut();
        rewrite_thread.map_or(Ok(()), |rewrite_thread| rewrite_thread.flush(sink))
    }

    /// Returns the milliseconds until rewritten records may be available; -1 if none are expected, or without a rewriting thread.
    fn timeout(&self) -> i32 {
        self.rewrite_thread
            .as_ref()
            .map_or(-1, RewriteThread::timeout)
    }

    /// Writes FINISHED_ROUND: no later record is older than those before the previous FINISHED_ROUND.
    fn write_finished_round(&mut self, sink: &mut CountedOutput) -> Result<(), WriteError> {
        let mut mark = RecordBuffer::new(0);
        mark.user(RecordKind::FINISHED_ROUND, |_| {});
        self.write_synthesized(&mut mark, sink)
    }

    /// If there are overwrite rings, writes their content, then that of the other rings, and FINISHED_ROUND; otherwise does
    /// nothing.
    pub(crate) fn dump_overwrite_rings(&mut self, sink: &mut CountedOutput) -> Result<(), Error> {
        for ring in &mut self.overwrite_rings {
            let taken = ring
                .take()
                .map_err(Error::system("read an overwrite ring"))?;
            let stats = &mut sink.stats;
            let runs = sink.walker.walk([&taken, &[]], |record| {
                stats.note(&record);
            });
            // With one piece, there is only the first run. It is not compressed, even with `-z`.
            sink.output_sink
                .write_data(runs.first)
                .map_err(write_error)?;
        }
        if !self.overwrite_rings.is_empty() {
            // Samples may refer to tasks that started in the meantime, whose side-band records are in the other rings.
            self.drain_with_min(0, sink).map_err(write_error)?;
            self.write_finished_round(sink).map_err(write_error)?;
        }
        Ok(())
    }

    /// Writes the remaining data after events were disabled; with `snapshot`, writes a snapshot of traces first.
    pub(crate) fn conclude(
        &mut self,
        snapshot: bool,
        sink: &mut CountedOutput,
    ) -> Result<(), Error> {
        self.is_trace_enabled = false;
        if snapshot {
            self.write_snapshot(sink)?;
        }
        self.drain_all(sink).map_err(write_error)?;
        self.dump_overwrite_rings(sink)?;
        self.flush(sink).map_err(write_error)
    }

    /// Drains the rings until they are empty.
    pub(crate) fn drain_all(&mut self, sink: &mut CountedOutput) -> Result<(), WriteError> {
        while self.drain_with_min(0, sink)? {}
        Ok(())
    }
}

/// Why the recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The workload exited.
    WorkloadEnded,
    /// All observed tasks exited, or a lane (a thread of `--threads`) ended, for example because a write failed.
    TasksEnded,
    /// SIGINT, SIGTERM or SIGHUP was received.
    BySignal(i32),
    /// The reader of the output closed the pipe.
    ReaderGone,
    /// The maximum output size was reached.
    SizeReached,
    /// A stop command was received.
    ByCommand,
    /// The requested time has passed.
    TimeOver,
}

impl StopReason {
    /// Returns the signal that ended the recording, if any; SIGPIPE if the reader closed the pipe.
    pub(crate) fn signal(self) -> Option<i32> {
        match self {
            Self::BySignal(signal) => Some(signal),
            Self::ReaderGone => Some(libc::SIGPIPE),
            Self::WorkloadEnded
            | Self::TasksEnded
            | Self::SizeReached
            | Self::ByCommand
            | Self::TimeOver => None,
        }
    }
}

/// The inputs of [`run`].
pub(crate) struct DrainContext<'a> {
    pub(crate) events: &'a [OpenEvent],
    pub(crate) signals: &'a Signals,
    pub(crate) workload: Option<&'a mut Workload>,
    /// Whether the recording ends when all observed tasks have exited. It always ends when the workload exits, which SIGCHLD
    /// reports.
    pub(crate) until_tasks_end: bool,
    pub(crate) schedule: Schedule<'a>,
    /// Maximum output size in bytes.
    pub(crate) max_size: Option<u64>,
    /// Notifications of the lanes (`--threads`), if any. Lanes poll the counters of their rings themselves.
    pub(crate) lanes: Option<&'a LaneEvents>,
    /// Control commands.
    pub(crate) control: Option<&'a mut Control>,
    /// Events that request a new file (`--switch-output-event`).
    pub(crate) triggers: TriggerEvents<'a>,
}

/// Drains the rings until the recording ends; returns the reason for its end, and the number of wake-ups.
pub(crate) fn run(
    context: &mut DrainContext<'_>,
    rings: &mut RingSet,
    sink: &mut CountedOutput,
    rotation: &mut OutputRotation<'_>,
    observer: &mut dyn SessionObserver,
) -> Result<(StopReason, u64), Error> {
    let mut counters = match context.lanes {
        Some(_) => Vec::new(),
        None => counters_to_poll(context.events),
    };
    let mut triggers = counters_to_poll(context.triggers.events);
    let mut woken = 0;
    let mut growth = GrowthWarning::new(context.bytes(sink, rotation), context.lanes.is_some());
    loop {
        if context.is_full(sink, rotation, observer) {
            return Ok((StopReason::SizeReached, woken));
        }
        let timeout = context.timeout(&growth, rotation, rings);
        let awaited = context.wait(sink.output_sink.pipe_fd(), &triggers, &counters, timeout)?;
        let states = &awaited.states;
        woken += 1;
        if let Some(on) = context.schedule.apply_due(context.events, observer)? {
            rings.is_trace_enabled = on;
        }
        if states.is_closed(&awaited.reader) {
            return Ok((StopReason::ReaderGone, woken));
        }
        rings.drain_filled(sink).map_err(write_error)?;
        if context.is_full(sink, rotation, observer) {
            return Ok((StopReason::SizeReached, woken));
        }
        let bytes = context.bytes(sink, rotation);
        growth.update(bytes, sink.samples(), context.events, observer);
        if let Some(stopped) = context.stopped(rotation)? {
            return Ok((stopped, woken));
        }
        // Lanes also notify when the maximum size is reached, which was checked above.
        if states.is_readable(&awaited.lanes) {
            return Ok((StopReason::TasksEnded, woken));
        }
        let ready = states.of(&awaited.commands).first().copied();
        if context.handle_control(ready, rotation, rings, observer)? {
            return Ok((StopReason::ByCommand, woken));
        }
        // With `--snapshot`, SIGUSR2 and the command `snapshot` request a snapshot of the traces instead of a new file.
        if rings.keeps_snapshots() && std::mem::take(&mut rotation.is_requested) {
            rings.write_snapshot(sink)?;
        }
        rotation.is_requested |= states.is_readable(&awaited.triggers) && context.triggers.poll();
        rotation.switch_if_due(rings, sink, observer)?;
        states.drop_ended(&awaited.triggers, &mut triggers);
        states.drop_ended(&awaited.rings, &mut counters);
        if counters.is_empty() && context.until_tasks_end && context.lanes.is_none() {
            return Ok((StopReason::TasksEnded, woken));
        }
    }
}

/// Returns the counters to poll for the rings other than overwrite rings. Polling one counter covers its whole ring, so of the
/// events that use these rings, two are enough: all counters of the first event, and the last event's counters in rings that the
/// first event does not use. The caller must remove counters of exited tasks, which are always ready.
pub(crate) fn counters_to_poll(events: &[OpenEvent]) -> Vec<&OpenCounter> {
    let mut drained = events.iter().filter(|event| !event.is_in_overwrite_ring());
    let first = drained.next();
    let mut watched: Vec<&OpenCounter> = first
        .into_iter()
        .flat_map(|event| &event.counters)
        .collect();
    // The last event may be the side-band event, which may have rings that the first event doesn't use.
    let rings: HashSet<usize> = watched
        .iter()
        .map(|open_counter| open_counter.ring)
        .collect();
    let last = drained.next_back();
    let others = last.into_iter().flat_map(|event| &event.counters);
    watched.extend(others.filter(|open_counter| !rings.contains(&open_counter.ring)));
    watched
}

/// Returns the events for control commands. The side-band event, which all other events need, is not disabled with them. Group
/// members are switched by their leader.
fn controlled_counters(events: &[OpenEvent]) -> Vec<ControlledCounters<'_>> {
    fn controlled(open: &OpenEvent) -> ControlledCounters<'_> {
        let is_side_band = open.is_side_band();
        let OpenEvent { event, counters } = open;
        ControlledCounters {
            spec: &event.spec,
            attr: &event.attr,
            is_switched_with_all: event.leader.is_none() && !is_side_band,
            counters: counters
                .iter()
                .map(|open_counter| &open_counter.counter)
                .collect(),
        }
    }
    events.iter().map(controlled).collect()
}

/// The result of polling, and the kinds of descriptors that were polled.
struct PollResults {
    states: PollStates,
    /// The output, if it is a pipe: reported as closed when its reader closes it.
    reader: DescriptorKind,
    /// The notifications of lanes.
    lanes: DescriptorKind,
    /// The control commands.
    commands: DescriptorKind,
    /// The counters of [`DrainContext::triggers`].
    triggers: DescriptorKind,
    /// The counters of rings.
    rings: DescriptorKind,
}

impl DrainContext<'_> {
    /// Returns the milliseconds until the next wake-up without data; -1 if none is due.
    fn timeout(
        &self,
        growth: &GrowthWarning,
        rotation: &OutputRotation<'_>,
        rings: &RingSet,
    ) -> i32 {
        let timeouts = [
            self.schedule.timeout(),
            growth.timeout(),
            rotation.timeout(),
            rings.timeout(),
        ];
        timeouts.into_iter().fold(-1, earlier_timeout)
    }

    /// Polls all descriptors, with the output as `reader` if it is a pipe, for at most `timeout` milliseconds (-1: no limit).
    fn wait(
        &self,
        reader: Option<BorrowedFd<'_>>,
        triggers: &[&OpenCounter],
        counters: &[&OpenCounter],
        timeout: i32,
    ) -> Result<PollResults, Error> {
        let mut waiting = PollSet::default();
        // Only to wake up: signals are read after each wake-up, whatever the reason for it.
        waiting.add([self.signals.as_fd()]);
        let reader = waiting.add(reader);
        let lanes = waiting.add(self.lanes.map(LaneEvents::as_fd));
        let commands = waiting.add(self.control.as_ref().and_then(|control| control.as_fd()));
        let triggers = waiting.add_counters(triggers);
        let rings = waiting.add_counters(counters);
        Ok(PollResults {
            states: waiting.wait(timeout)?,
            reader,
            lanes,
            commands,
            triggers,
            rings,
        })
    }

    /// Returns the total size of the recording so far, in bytes.
    fn bytes(&self, sink: &CountedOutput, rotation: &OutputRotation<'_>) -> u64 {
        rotation.earlier_bytes + sink.bytes() + self.lanes.map_or(0, LaneEvents::bytes)
    }

    /// Whether the maximum output size is reached; reports it.
    fn is_full(
        &self,
        sink: &CountedOutput,
        rotation: &OutputRotation<'_>,
        observer: &mut dyn SessionObserver,
    ) -> bool {
        let bytes = self.bytes(sink, rotation);
        let full = self.max_size.is_some_and(|enough| bytes >= enough);
        if full {
            observer.on_event(SessionNotice::SizeReached { bytes });
        }
        full
    }

    /// Executes control commands; returns whether to stop.
    fn handle_control(
        &mut self,
        ready: Option<Ready>,
        rotation: &mut OutputRotation<'_>,
        rings: &mut RingSet,
        observer: &mut dyn SessionObserver,
    ) -> Result<bool, Error> {
        let events = self.events;
        let (Some(control), Some(ready)) = (&mut self.control, ready) else {
            return Ok(false);
        };
        let requests = control.handle_commands(ready, || controlled_counters(events), observer)?;
        rotation.is_requested |= requests.snapshot;
        rings.is_trace_enabled = requests.traces_run.unwrap_or(rings.is_trace_enabled);
        Ok(requests.stop)
    }

    /// Handles pending signals, and returns why the recording ends: because of one of them, or because its duration has elapsed.
    /// `None` if it continues.
    fn stopped(&mut self, rotation: &mut OutputRotation<'_>) -> Result<Option<StopReason>, Error> {
        while let Some(signal) = self.signals.next().map_err(Error::system("read signals"))? {
            match signal {
                libc::SIGUSR2 => {
                    rotation.is_requested = true;
                    continue;
                }
                // The write beyond RLIMIT_FSIZE fails, and its error is reported.
                libc::SIGXFSZ => continue,
                libc::SIGCHLD => {}
                signal => return Ok(Some(StopReason::BySignal(signal))),
            }
            let Some(workload) = &mut self.workload else {
                continue;
            };
            let ended = workload
                .try_wait()
                .map_err(Error::system("wait for the workload"))?;
            if ended.is_some() {
                return Ok(Some(StopReason::WorkloadEnded));
            }
        }
        Ok(self.schedule.is_over().then_some(StopReason::TimeOver))
    }
}

/// Returns the minimum of two timeouts in milliseconds, where -1 means none.
fn earlier_timeout(one: i32, other: i32) -> i32 {
    match (one, other) {
        (-1, time) | (time, -1) => time,
        (one, other) => one.min(other),
    }
}
