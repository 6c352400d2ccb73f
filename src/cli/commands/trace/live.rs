//! Traces of running programs.

use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ArgMatches;
use rperf_analysis::trace::{AddressNames, AddressOptions, TraceObserver, TraceSamples};
use rperf_analysis::{EventLayouts, LiveFeed, ObserverPass};
use rperf_bpf::SyscallSummary;
use rperf_names::counted;
use rperf_perfdata::{Features, Metadata};
use rperf_replay::LiveWorld;
use rperf_session::{Error, Observation, RecordRequest, Target};
use rperf_symbol::SearchPaths;
use rperf_sys::{Proc, Tracefs, WaitStatus};
use rperf_syscalls::SyscallTable;
use rperf_tracepoint::{Abi, EventFormat, Formats};
use rperf_view::trace::SummaryMode;
use rperf_wire::Endian;

use super::addresses::AddressSymbolizer;
use super::kernel_types::KernelTypes;
use super::{TracePrinter, TraceSettings, capture, kernel_summary, request};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::live::record_reporter::RecordReporter;
use crate::cli::live::{events, explain};

/// The maximum time between two reads of the rings. Lines are printed one read later, so that earlier records of other
/// CPUs can arrive.
const MAX_READ_INTERVAL: Duration = Duration::from_millis(50);
/// The maximum time between two reads of the rings if the memory of arguments is read without BPF: late, when the record of a
/// call arrives. The shorter this time, the less the memory has changed.
const LATE_READ_INTERVAL: Duration = Duration::from_millis(1);
/// The input of [`Observation::wait`]: a trace reads no commands.
const NO_INPUT: Option<BorrowedFd<'static>> = None;

/// Traces until the command or all tasks end, a limit of lines is reached, no more can be written, or a signal is received.
///
/// Only the BPF programs of [`kernel_summary::start`] can count calls by cgroup: records of calls have no cgroup. The layouts are
/// empty because `samples` has its own readers of the fields. [`Observation::start`] passes the synthesized records of running
/// tasks to the feed.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let (mut request, mut settings) = request::build(matches, context)?;
    if let Some(summary) = kernel_summary::start(&request, &settings, matches, context) {
        request.observe.events = request::dummy_event(context)?;
        return sum_up(&request, &settings, &summary, matches, context);
    }
    if settings.summary.mode == SummaryMode::Cgroup {
        return Err(kernel_summary::no_cgroups());
    }
    let printer = TracePrinter::open(matches, settings.layout)?;
    let mut reporter = RecordReporter::new(context, matches);
    let types = Arc::new(KernelTypes::load(&settings, &enumerations(&request)));
    settings.options.structures = Some(types.clone());
    let names = events::names(&request.observe.events);
    let capture = capture::start(&mut request, &settings, matches, context);
    let explained = |error| explain_start(context, &names, error);
    let mut observation = Observation::open(&request, &mut reporter).map_err(explained)?;
    let formats = formats(&request);
    let layouts = EventLayouts::empty(Endian::NATIVE);
    let samples = TraceSamples::new(observation.events(), &formats);
    let samples = match &capture {
        Some(capture) => samples.with_memory_event(capture.event),
        None => samples,
    };
    let world = LiveWorld::new(Endian::NATIVE, observation.events());
    let addresses = addresses(&world, &observation, &request, &settings, context);
    let samples = samples
        .with_addresses(observation.events(), addresses)
        .with_enumerations(types);
    let pass = ObserverPass::new(&layouts, samples).with_tasks();
    let mut trace = LiveTrace {
        feed: LiveFeed::new(world),
        observer: TraceObserver::new(settings.options.clone(), printer),
        pass,
        read_interval: MAX_READ_INTERVAL,
    };
    if let Some(capture) = &capture {
        capture.connect(&observation, &request)?;
    } else if capture::reads_memory_late(&request, &settings) {
        trace.read_late(&settings);
    }
    trace.read_files(&observation, &request, &settings);
    let started = observation.start(&request, &mut |records| trace.feed.add_records(records));
    started.map_err(explained)?;
    let stopped = match trace.wait_for_begin(&mut observation, settings.delay)? {
        Some(stopped) => stopped,
        None => {
            if settings.delay.is_some() {
                trace.begin(&mut observation, &request, &settings)?;
            }
            trace.follow(&mut observation)?
        }
    };
    let command_status = end_command(&mut observation, &request, stopped)?;
    let lost = trace.print_rest(&mut observation, &settings)?;
    let uncaptured_tasks = capture.map_or(0, |capture| capture.uncaptured_tasks());
    warn_of_losses(context, lost, uncaptured_tasks);
    Ok(status(stopped, command_status))
}

/// If the trace ended because its tasks or the command ended, returns the status of the command, if there is one. After another
/// end, a traced command continues to run; one that only sets the duration is ended when `observation` is dropped.
fn end_command(
    observation: &mut Observation,
    request: &RecordRequest,
    stopped: StopReason,
) -> Result<Option<WaitStatus>, CliError> {
    let is_traced = request.observe.target == Target::Workload;
    if stopped == StopReason::Ended {
        // The counters of a traced command may end just before the command. A command that only sets the duration may still run
        // if the traced tasks ended first: then it is not waited for, and has no status.
        let waits = is_traced;
        return Ok(observation.workload_status(waits)?);
    }
    if is_traced {
        observation.detach_workload();
    }
    Ok(None)
}

/// Reports lost records, and tasks whose memory was not captured.
fn warn_of_losses(context: &Context, lost: u64, uncaptured_tasks: u64) {
    if uncaptured_tasks > 0 {
        context.warn(format_args!(
            "too many threads: memory of {} was not read, so strings are addresses",
            counted(uncaptured_tasks, "thread")
        ));
    }
    if lost > 0 {
        context.warn(format_args!("lost {}: larger ring buffers (-m 16M) lose fewer, and so do -s and -e with fewer calls", counted(lost, "event")));
    }
}

/// Runs `-s` with `summary`, the BPF programs that count calls. The `dummy` event of `request` serves only to notice when tasks
/// end: the records in its rings are discarded.
fn sum_up(
    request: &RecordRequest,
    settings: &TraceSettings,
    summary: &SyscallSummary,
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let printer = TracePrinter::open(matches, settings.layout)?;
    let mut reporter = RecordReporter::new(context, matches);
    let explained = |error| explain_start(context, "dummy", error);
    let mut observation = Observation::open(request, &mut reporter).map_err(explained)?;
    let failed = |error: rperf_bpf::Error| CliError::message(255, error.to_string());
    // Until its exec, the process of a command runs the code of this program: these calls are not counted.
    let from_exec = request.observe.target == Target::Workload;
    let threads = capture::observed_threads(&observation, request);
    summary.add_threads(&threads, from_exec).map_err(failed)?;
    let started = observation.start(request, &mut |_| {});
    started.map_err(explained)?;
    let stopped = loop {
        let woken = observation.wait(MAX_READ_INTERVAL, NO_INPUT)?;
        observation.drain(&mut |_| {});
        match (woken.signal, woken.ended) {
            (Some(signal), _) => break StopReason::Signal(signal),
            (None, true) => break StopReason::Ended,
            (None, false) => {}
        }
    };
    let command_status = end_command(&mut observation, request, stopped)?;
    let calls = kernel_summary::read(summary, settings.summary.mode, context).map_err(failed)?;
    let table = SyscallTable::of(settings.options.abi);
    printer.finish(Some((&calls, table, settings.summary)))?;
    Ok(status(stopped, command_status))
}

/// The reason for the end of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopReason {
    /// The command or all tasks have ended.
    Ended,
    /// The requested number of lines is printed, or no more can be written.
    Enough,
    /// This signal was received.
    Signal(i32),
}

/// Returns the exit status of this program. `command_status` is the result of [`end_command`].
fn status(stopped: StopReason, command_status: Option<WaitStatus>) -> ExitStatus {
    match (stopped, command_status) {
        // ^C is the ordinary way to end a trace.
        (StopReason::Signal(libc::SIGINT), _) => ExitStatus::Ok,
        (StopReason::Signal(signal), _) | (_, Some(WaitStatus::Signaled(signal))) => {
            ExitStatus::Signal(signal)
        }
        (_, Some(WaitStatus::Exited(0)) | None) => ExitStatus::Ok,
        (_, Some(WaitStatus::Exited(status))) => ExitStatus::Child(status),
    }
}

/// Reads records from the rings and prints them as lines.
struct LiveTrace<'p> {
    feed: LiveFeed,
    observer: TraceObserver<TracePrinter>,
    pass: ObserverPass<'p, TraceSamples>,
    /// The maximum time between two reads of the rings.
    read_interval: Duration,
}

impl LiveTrace<'_> {
    /// Makes the observer read the memory of arguments when records of calls arrive, and reads the rings more often.
    fn read_late(&mut self, settings: &TraceSettings) {
        let size = usize::try_from(settings.string_size).unwrap_or(usize::MAX);
        let memory = Box::new(capture::ChildMemory);
        self.observer.read_memory_late(memory, size);
        self.read_interval = LATE_READ_INTERVAL;
    }

    /// Reads the open files of the observed processes, if lines with file names are printed. Descriptors of processes with
    /// excluded threads get no names.
    fn read_files(
        &mut self,
        observation: &Observation,
        request: &RecordRequest,
        settings: &TraceSettings,
    ) {
        let proc = Proc::new(&request.roots.proc);
        for thread in &settings.excluded_threads {
            if let Ok(process) = proc.process_of(*thread) {
                self.observer.exclude_files(process);
            }
        }
        if settings.options.prints_lines && settings.options.names_files {
            for (process, files) in capture::open_files(observation, request) {
                self.observer.set_files(process, files);
            }
        }
    }

    /// Waits until a delayed trace is to begin, and returns `None`. Returns the reason if the trace ends before. Without a delay,
    /// returns `None` at once.
    fn wait_for_begin(
        &mut self,
        observation: &mut Observation,
        delay: Option<Duration>,
    ) -> Result<Option<StopReason>, CliError> {
        let Some(begin) = delay.map(|delay| Instant::now() + delay) else {
            return Ok(None);
        };
        loop {
            let left = begin.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let woken = observation.wait(left.min(self.read_interval), NO_INPUT)?;
            self.read(observation);
            match (woken.signal, woken.ended) {
                (Some(signal), _) => return Ok(Some(StopReason::Signal(signal))),
                (None, true) => return Ok(Some(StopReason::Ended)),
                (None, false) => {}
            }
        }
    }

    /// Begins a delayed trace.
    fn begin(
        &mut self,
        observation: &mut Observation,
        request: &RecordRequest,
        settings: &TraceSettings,
    ) -> Result<(), CliError> {
        // Records are delivered one read later, so the second read delivers what the first one has found.
        self.read(observation);
        self.read(observation);
        // The BPF programs have captured arguments during the delay, too: of calls that are not in the trace.
        self.observer.forget_memory();
        self.read_files(observation, request, settings);
        Ok(observation.set_enabled(true)?)
    }

    /// Prints lines until the trace ends; returns the reason.
    fn follow(&mut self, observation: &mut Observation) -> Result<StopReason, CliError> {
        loop {
            let woken = observation.wait(self.read_interval, NO_INPUT)?;
            self.read(observation);
            if let Some(signal) = woken.signal {
                return Ok(StopReason::Signal(signal));
            }
            if self.observer.has_ended() {
                return Ok(StopReason::Enough);
            }
            if woken.ended {
                return Ok(StopReason::Ended);
            }
        }
    }

    /// Reads the rings once and prints the lines whose order is certain.
    fn read(&mut self, observation: &mut Observation) {
        let feed = &mut self.feed;
        observation.drain(&mut |records| feed.add_records(records));
        // Each ring was drained once: that is a round. Now the order of the records of the round before is certain.
        feed.end_round();
        let delivered = feed.deliver(&self.pass, &mut self.observer);
        // The live World, the processes and mappings by time, was pruned.
        if delivered.invalidates_mapping_ids {
            self.pass.preparation().forget_mappings(self.feed.world());
        }
        // Shows the returns that were held until the record of their memory is delivered. Only if the time limit of this delivery
        // is between the two records, a return is shown without its memory.
        self.observer.release();
        self.observer.sink_mut().flush();
    }

    /// Prints the remaining records of the rings, and the summary; returns the number of lost records.
    fn print_rest(
        mut self,
        observation: &mut Observation,
        settings: &TraceSettings,
    ) -> Result<u64, CliError> {
        self.read(observation);
        self.feed.finish();
        self.feed.deliver(&self.pass, &mut self.observer);
        let lost = self.observer.lost();
        let (printer, summary) = self.observer.finish();
        let table = SyscallTable::of(settings.options.abi);
        let sums_up = settings.options.sums_up;
        printer.finish(sums_up.then_some((&summary, table, settings.summary)))?;
        Ok(lost)
    }
}

/// Returns the names of frames and of addresses of page faults. There are no names if neither stacks nor page faults are
/// recorded.
fn addresses(
    world: &LiveWorld,
    observation: &Observation,
    request: &RecordRequest,
    settings: &TraceSettings,
    context: &Context,
) -> AddressOptions {
    let features = Features::none(Endian::NATIVE);
    let metadata = Metadata {
        endian: Endian::NATIVE,
        events: observation.events(),
        features: &features,
        // Either value would do: there is no recording, and names do not depend on this field.
        is_pipe: false,
    };
    let names = settings
        .stacks
        .needs_mappings(&request.observe.events)
        .then(|| {
            let paths = SearchPaths::new(context.buildid_dir());
            let names =
                AddressSymbolizer::new(world.world(), metadata, paths, settings.stacks.max_stack);
            Box::new(names) as Box<dyn AddressNames>
        });
    AddressOptions {
        names,
        shows_faults: settings.stacks.shows_faults(),
    }
}

/// Returns the names of the enumerations among the field types of the requested tracepoints.
fn enumerations(request: &RecordRequest) -> BTreeSet<String> {
    let tracefs: &Tracefs = &request.roots.tracefs;
    let tracepoints = request.observe.events.iter();
    let tracepoints = tracepoints.filter_map(|spec| spec.tracepoint.as_ref());
    let formats = tracepoints.filter_map(|name| tracefs.format(&name.system, &name.name).ok());
    let mut names = BTreeSet::new();
    for format in formats {
        let format = String::from_utf8_lossy(&format);
        let fields = format.lines().map(str::trim);
        let fields = fields.filter_map(|line| line.strip_prefix("field:enum "));
        names.extend(fields.filter_map(|field| Some(field.split_once(' ')?.0.to_owned())));
    }
    names
}

/// Returns the formats of the requested tracepoints.
fn formats(request: &RecordRequest) -> Formats {
    let mut formats = Formats::default();
    let tracefs: &Tracefs = &request.roots.tracefs;
    let specs = request.observe.events.iter();
    for name in specs.filter_map(|spec| spec.tracepoint.as_ref()) {
        if let Ok(text) = tracefs.format(&name.system, &name.name) {
            let format = EventFormat {
                system: &name.system,
                text: &text,
            };
            formats.insert(&format, Abi::NATIVE);
        }
    }
    formats
}

fn explain_start(context: &Context, names: &str, error: Error) -> CliError {
    match error {
        Error::Workload { program, cause } => {
            let cause = explain::exec_reason(&cause);
            CliError::message(255, format!("{}: {cause}", program.display()))
        }
        error => explain::explain(context, names, error),
    }
}
