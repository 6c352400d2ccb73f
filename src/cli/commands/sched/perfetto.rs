//! `sched perfetto`: the scheduler's events for Perfetto's viewer.

use std::io::{self, Write};
use std::path::Path;

use clap::{ArgMatches, Command};
use rperf_analysis::sched::{CommonFlags, LostStretches, ignored_wakeup};
use rperf_analysis::{DeliveredCounts, EventContext, Loss, Observer, ObserverPass};
use rperf_export::perfetto::sched::{
    EventTask, SchedEventContext, SchedThread, SchedTraceWriter, TracedSystem,
};
use rperf_replay::{Error, FoldControl, World};
use rperf_tracepoint::typed::{SchedSwitch, SchedWakeup, TypedEvent};

use super::common;
use super::recording::{SchedRecording, conclude};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::{self, jobs};
use crate::cli::options::value;
use crate::cli::output_file::write_to;
use crate::cli::shared::analysis::Analysis;

const ABOUT: &str = "\
Writes the context switches and wakeups of a recording in Perfetto's format. Its viewer shows a track for each CPU with the tasks that run on \
it, and one for each thread with its states; arrows lead from a wakeup to the task that is woken.";

/// The default output file.
const DEFAULT_OUTPUT: &str = "sched.pftrace";
/// The wakeup of a new task.
const WAKEUP_NEW: &str = "sched:sched_wakeup_new";

/// The options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("sched perfetto")
        .long_about(ABOUT)
        .arg(
            value("output", "file")
                .short('o')
                .help("output file, - for the standard output (default: sched.pftrace)"),
        )
        .args(common())
        .arg(jobs::option())
}

/// Writes the file.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let output = matches.get_one::<String>("output");
    let output = output.map_or(DEFAULT_OUTPUT, String::as_str);
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let recording = SchedRecording::new(&analysis)?;
    let flags = CommonFlags::new(data.metadata())?;
    let pass = ObserverPass::new(&recording.layouts, flags).with_tasks();
    let mut walk = TraceWalk::default();
    let written = write_to(Path::new(output), context, |out| {
        let features = data.features();
        let system = TracedSystem {
            release: features.os_release().unwrap_or_default(),
            machine: features.arch().unwrap_or_default(),
        };
        let threads = threads(analysis.replay.world());
        let mut events = TracedEvents {
            writer: SchedTraceWriter::new(out, system, &threads)?,
            ignored: ignored_wakeup(&recording.layouts),
            losses: LostStretches::default(),
            result: Ok(()),
        };
        match pass.run(&analysis.replay, analysis.jobs, &mut events) {
            Ok(delivered) => walk.delivered = delivered,
            Err(error) => {
                // No unfinished file is left behind.
                walk.error = Some(error);
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        events.result?;
        walk.losses = events.losses;
        events.writer.finish()
    });
    if let Some(error) = walk.error {
        return Err(error.into());
    }
    written?;
    conclude(&analysis, walk.delivered, &walk.losses, matches)
}

/// What is known after all events are written.
#[derive(Default)]
struct TraceWalk {
    delivered: DeliveredCounts,
    losses: LostStretches,
    error: Option<Error>,
}

/// The threads of the recording.
fn threads(world: &World) -> Vec<SchedThread> {
    let threads = world.threads().filter(|thread| thread.tid != u32::MAX);
    let threads = threads.map(|thread| SchedThread {
        pid: thread.pid.cast_signed(),
        tid: thread.tid.cast_signed(),
        name: world.comm(thread.comm).to_owned(),
    });
    threads.collect()
}

/// Passes events to a trace.
struct TracedEvents<W> {
    writer: SchedTraceWriter<W>,
    /// The tracepoint that reports a wakeup a second time.
    ignored: Option<&'static str>,
    losses: LostStretches,
    result: io::Result<()>,
}

impl<W: Write> TracedEvents<W> {
    fn switch(&mut self, at: SchedEventContext, event: &SchedSwitch<'_>) -> io::Result<()> {
        let prev = task(event.prev_comm(), event.prev_pid(), event.prev_prio());
        let next = task(event.next_comm(), event.next_pid(), event.next_prio());
        let at = SchedEventContext {
            // A task that has exited has no id in the sample.
            tid: event.prev_pid(),
            ..at
        };
        self.writer
            .switch(at, prev, event.prev_state().bits(), next)
    }

    fn wake(&mut self, at: SchedEventContext, event: &SchedWakeup<'_>) -> io::Result<()> {
        if Some(event.tracepoint()) == self.ignored {
            return Ok(());
        }
        let woken = task(event.comm(), event.pid(), event.prio());
        let is_new = event.tracepoint() == WAKEUP_NEW;
        self.writer.wake(at, woken, event.target_cpu(), is_new)
    }
}

impl<W: Write> Observer<Option<u32>> for TracedEvents<W> {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, flags: Option<u32>) {
        self.losses.event(at);
        let (Some(cpu), true) = (at.cpu, self.result.is_ok()) else {
            return;
        };
        let context = SchedEventContext {
            time: at.time(),
            cpu,
            tid: at.task.tid.cast_signed(),
            flags,
        };
        self.result = match event {
            TypedEvent::SchedSwitch(event) => self.switch(context, &event),
            TypedEvent::SchedWakeup(event) => self.wake(context, &event),
            _ => Ok(()),
        };
    }

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
