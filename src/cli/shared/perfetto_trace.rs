//! The context switches, wakeups, I/O system calls, idle states and frequencies of a recording in Perfetto's format.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use rperf_analysis::sched::{CommonFlags, LostStretches, ignored_wakeup};
use rperf_analysis::{
    DeliveredCounts, EventContext, EventLayouts, Loss, Observer, ObserverPass, TaskId,
};
use rperf_export::perfetto::sched::{
    EventTask, SchedEventContext, SchedThread, SchedTraceWriter, TracedSystem,
};
use rperf_replay::{Error, FoldControl, World};
use rperf_tracepoint::typed::{SchedSwitch, SchedWakeup, TypedEvent};

use super::analysis::Analysis;
use crate::cli::error::CliError;
use crate::cli::output_file::write_to;

/// The wakeup of a new task.
const WAKEUP_NEW: &str = "sched:sched_wakeup_new";
/// The prefixes of the tracepoints of a system call's entry and return.
const ENTER: &str = "syscalls:sys_enter_";
const EXIT: &str = "syscalls:sys_exit_";

/// The events that are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceContent {
    /// Whether context switches, wakeups and I/O system calls are written.
    pub(crate) has_tasks: bool,
    /// Whether idle states and frequencies of CPUs are written.
    pub(crate) has_power: bool,
    /// The first and the last time of the events that are written, in nanoseconds.
    pub(crate) range: (u64, u64),
    /// Whether the file is written even if there are no events.
    pub(crate) may_be_empty: bool,
}

/// The outcome of writing all events.
#[derive(Default)]
pub(crate) struct TraceOutcome {
    /// The counts of read samples, lost records and skipped samples, whether or not they were written.
    pub(crate) delivered: DeliveredCounts,
    /// The stretches of time in which records were lost.
    pub(crate) losses: LostStretches,
    /// The times of the first and the last event, if any was written.
    pub(crate) times: Option<(u64, u64)>,
}

/// Writes the events of a recording to a file; an existing file is replaced once the new one is complete. Without events, the
/// file is written only if [`TraceContent::may_be_empty`] is set.
///
/// # Errors
///
/// The descriptions of tracepoints cannot be read, the recording cannot be read to its end, or the file cannot be written.
pub(crate) fn write_trace(
    output: &Path,
    analysis: &Analysis<'_>,
    layouts: &EventLayouts,
    content: TraceContent,
) -> Result<TraceOutcome, CliError> {
    let data = analysis.data();
    let flags = CommonFlags::new(data.metadata())?;
    // `flags` selects the samples of all decoded tracepoints, each with its `common_flags`. `with_tasks` adds the start, exit and
    // renaming of tasks, which `TracedEvents` ignores; it has nothing to do with `has_tasks`.
    let pass = ObserverPass::new(layouts, flags).with_tasks();
    let mut outcome = TraceOutcome::default();
    let mut failure: Option<Error> = None;
    let mut is_empty = false;
    let written = write_to(output, analysis.context, |out| {
        let features = data.features();
        let system = TracedSystem {
            release: features.os_release().unwrap_or_default(),
            machine: features.arch().unwrap_or_default(),
        };
        let threads = threads(analysis.replay.world());
        let mut events = TracedEvents {
            writer: SchedTraceWriter::new(out, system, &threads)?,
            content,
            ignored: ignored_wakeup(layouts),
            calls: HashMap::default(),
            losses: LostStretches::default(),
            times: None,
            result: Ok(()),
        };
        match pass.run(&analysis.replay, analysis.jobs, &mut events) {
            Ok(delivered) => outcome.delivered = delivered,
            Err(error) => {
                // The error that is returned here only makes `write_to` discard the unfinished file.
                failure = Some(error);
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        events.result?;
        (outcome.losses, outcome.times) = (events.losses, events.times);
        if outcome.times.is_none() && !content.may_be_empty {
            // As above, this error only discards the file.
            is_empty = true;
            return Err(io::ErrorKind::InvalidData.into());
        }
        events.writer.finish()
    });
    match failure {
        Some(error) => Err(error.into()),
        None if is_empty => Ok(outcome),
        None => written.map(|()| outcome),
    }
}

/// Returns the threads in `world` (the processes and mappings of the recording), except those whose thread id is unknown (-1).
fn threads(world: &World) -> Vec<SchedThread> {
    let threads = world.threads().filter(|thread| thread.tid != u32::MAX);
    let threads = threads.map(|thread| SchedThread {
        pid: thread.pid.cast_signed(),
        tid: thread.tid.cast_signed(),
        name: world.comm(thread.comm).to_owned(),
    });
    threads.collect()
}

/// Passes events, each with its `common_flags`, to a trace; events without a CPU are skipped.
struct TracedEvents<W> {
    writer: SchedTraceWriter<W>,
    content: TraceContent,
    /// The wakeup tracepoint that is ignored because another one reports the same wakeups.
    ignored: Option<&'static str>,
    /// The system call that each thread is in, by thread id, if it was entered within the written range of time.
    calls: HashMap<u32, &'static str>,
    losses: LostStretches,
    /// The times of the first and the last written event.
    times: Option<(u64, u64)>,
    /// The first error of `writer`, which ends the pass.
    result: io::Result<()>,
}

impl<W: Write> TracedEvents<W> {
    /// Writes an event if `content` includes it, and returns whether it was written.
    fn write(
        &mut self,
        at: SchedEventContext,
        by: TaskId,
        event: TypedEvent<'_>,
    ) -> io::Result<bool> {
        let TraceContent {
            has_tasks,
            has_power,
            ..
        } = self.content;
        match event {
            TypedEvent::SchedSwitch(event) if has_tasks => self.switch(at, &event)?,
            TypedEvent::SchedWakeup(event) if has_tasks => return self.wake(at, &event),
            TypedEvent::SysEnterIo(event) if has_tasks => {
                if let Some(name) = event.tracepoint().strip_prefix(ENTER) {
                    self.begin_call(at, by, name)?;
                }
            }
            TypedEvent::SysExitIo(event) if has_tasks => {
                let name = event.tracepoint().strip_prefix(EXIT);
                return self.end_call(at, by, name, event.ret());
            }
            TypedEvent::CpuIdle(event) if has_power => {
                self.writer.idle(at, event.cpu_id(), event.state())?;
            }
            TypedEvent::CpuFrequency(event) if has_power => {
                self.writer.frequency(at, event.cpu_id(), event.state())?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn switch(&mut self, at: SchedEventContext, event: &SchedSwitch<'_>) -> io::Result<()> {
        let prev = task(event.prev_comm(), event.prev_pid(), event.prev_prio());
        let next = task(event.next_comm(), event.next_pid(), event.next_prio());
        let at = SchedEventContext {
            // Not the thread id of the sample: a task that has exited has none there.
            tid: event.prev_pid(),
            ..at
        };
        self.writer
            .switch(at, prev, event.prev_state().bits(), next)
    }

    fn wake(&mut self, at: SchedEventContext, event: &SchedWakeup<'_>) -> io::Result<bool> {
        if Some(event.tracepoint()) == self.ignored {
            return Ok(false);
        }
        let woken = task(event.comm(), event.pid(), event.prio());
        let is_new = event.tracepoint() == WAKEUP_NEW;
        self.writer.wake(at, woken, event.target_cpu(), is_new)?;
        Ok(true)
    }

    fn begin_call(
        &mut self,
        at: SchedEventContext,
        by: TaskId,
        name: &'static str,
    ) -> io::Result<()> {
        if self.calls.insert(by.tid, name).is_some() {
            // The return of the earlier call is missing.
            self.writer.end_call(at, None)?;
        }
        self.writer.begin_call(at, by.pid.cast_signed(), name)
    }

    /// Ends the system call that a thread is in. If the thread returns from another call (records were lost), the result is
    /// unknown. Returns whether the thread was in a call.
    fn end_call(
        &mut self,
        at: SchedEventContext,
        by: TaskId,
        name: Option<&str>,
        result: i64,
    ) -> io::Result<bool> {
        let Some(began) = self.calls.remove(&by.tid) else {
            return Ok(false);
        };
        let result = (name == Some(began)).then_some(result);
        self.writer.end_call(at, result)?;
        Ok(true)
    }
}

impl<W: Write> Observer<Option<u32>> for TracedEvents<W> {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, flags: Option<u32>) {
        self.losses.event(at);
        let (Some(cpu), true) = (at.cpu, self.result.is_ok()) else {
            return;
        };
        let (range_start, range_end) = self.content.range;
        let time = at.time();
        if !(range_start..=range_end).contains(&time) {
            return;
        }
        let context = SchedEventContext {
            time,
            cpu,
            tid: at.task.tid.cast_signed(),
            flags,
        };
        match self.write(context, at.task, event) {
            Ok(false) => {}
            Ok(true) => {
                let (first, _) = self.times.unwrap_or((time, time));
                self.times = Some((first, time));
            }
            Err(error) => self.result = Err(error),
        }
    }

    /// Marks a loss in the trace, even if it is outside of the written range of time.
    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
        if let (Some(cpu), true) = (at.cpu, self.result.is_ok()) {
            self.result = self.writer.lost(cpu);
        }
    }

    fn flow(&self) -> FoldControl {
        match self.result {
            Ok(()) => FoldControl::Continue,
            Err(_) => FoldControl::Stop,
        }
    }
}

fn task(comm: &[u8], tid: i32, priority: i32) -> EventTask {
    EventTask {
        comm: String::from_utf8_lossy(comm).into_owned(),
        tid,
        priority,
    }
}
