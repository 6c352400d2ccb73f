//! A recording from the first system call to the completed file.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rperf_sys::{
    PriorityBoost, Proc, Program, Signals, Sysfs, WaitStatus, Workload, poll, run_in_real_time,
};
use rperf_wire::{RecordKind, SampleIdLayout};

use crate::completion::{FileCompletion, close};
use crate::counted_output::{CountedOutput, write_error};
use crate::drain::{DrainContext, RingSet, StopReason, run};
use crate::initial_records::InitialRecords;
use crate::lanes::{Lane, NotifyLimits, lanes, with_lanes};
use crate::open::{OpenEvent, for_each_counter};
use crate::opened::OpenedEvents;
use crate::output::Replacement;
use crate::output_rotation::{OutputRotation, stamp};
use crate::output_stream::OutputStream;
use crate::record_stats::RecordStats;
use crate::rewriting::RewriteThread;
use crate::rings::Ring;
use crate::schedule::Schedule;
use crate::summary::Summary;
use crate::synthesize::{self, RecordBuffer};
use crate::tasks::CpuTasks;
use crate::thread_layout::{RingAffinity, shares as shares_of};
use crate::triggers::{TriggerEvents, open_triggers, start_triggers};
use crate::{BuildIds, Control, Error, RecordRequest, SessionNotice, SessionObserver, Target};

/// Signals handled by a recording. SIGUSR2 starts the next file, or takes a snapshot of traces. SIGXFSZ is ignored: exceeding
/// the file size limit (`ulimit -f`) is a write error.
const HANDLED_SIGNALS: [i32; 6] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGCHLD,
    libc::SIGUSR2,
    libc::SIGXFSZ,
];
/// SIGINT, SIGTERM and SIGHUP are ignored as duplicates until this long after the file was completed.
const DUPLICATE_SIGNAL_PERIOD: Duration = Duration::from_millis(200);
/// Time for the workload to exit before [`SessionNotice::WorkloadStays`] is reported.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval in milliseconds at which [`EXIT_TIMEOUT`] is checked.
const EXIT_POLL_MILLIS: i32 = 500;

/// Records as requested, until the workload or the observed tasks exit, a signal or a stop command is received, the reader of
/// a pipe closes it, or a limit of the request is reached.
///
/// SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR2 and SIGXFSZ are handled by the recording. A file that the output replaces is kept
/// until all events are open and the workload runs.
///
/// # Errors
/// [`Error`].
pub fn record(
    request: &RecordRequest,
    mut control: Option<&mut Control>,
    ids: &dyn BuildIds,
    observer: &mut dyn SessionObserver,
) -> Result<Summary, Error> {
    let signals = Signals::block(&HANDLED_SIGNALS).map_err(Error::system("block signals"))?;
    let mut live = match LiveRecording::set_up(request, &signals, ids, observer) {
        Ok(live) => live,
        Err(error) if is_reader_gone(request, &error) => {
            return Ok(Summary {
                signal: Some(libc::SIGPIPE),
                ..Summary::default()
            });
        }
        Err(error) => return Err(error),
    };
    let boost = raise_priority(request)?;
    let outcome = match live.begin(request) {
        Ok(()) => live.observe(request, &signals, control.take(), ids, observer),
        // Becomes `StopReason::ReaderGone` below.
        Err(error) if is_reader_gone(request, &error) => Err(error),
        Err(error) => return Err(with_output_path(request)(error)),
    };
    let outcome = match outcome {
        // The number of wake-ups is lost with the error.
        Err(error) if is_reader_gone(request, &error) => Ok((StopReason::ReaderGone, 0)),
        outcome => outcome,
    };
    drop(boost);
    let workload_exited = matches!(outcome, Ok((StopReason::WorkloadEnded, _)));
    if let Some(workload) = live.workload.as_mut().filter(|_| !workload_exited) {
        workload.stop();
    }
    let workload = live.workload.take();
    let completed = live.complete(request, outcome, ids, observer);
    // The file is complete by now, however long the workload takes to exit.
    let status = wait_for(workload, &signals, observer)?;
    let mut summary = completed?;
    // The status of a workload that was stopped above is not reported.
    summary.workload_status = status.filter(|_| workload_exited);
    Ok(summary)
}

/// A recording in progress.
struct LiveRecording {
    opened: OpenedEvents,
    /// The rings; empty while the lanes have them.
    rings: RingSet,
    /// The threads of `--threads`, which drain rings in place of the main thread; empty without the option.
    lanes: Vec<Lane>,
    /// Events that trigger a new file, and their rings.
    triggers: Vec<OpenEvent>,
    trigger_rings: Vec<Ring>,
    workload: Option<Workload>,
    /// `None` for a pipe.
    replacement: Option<Replacement>,
    sink: CountedOutput,
    /// Synthesized records that are not written yet.
    records: RecordBuffer,
    /// Statistics of previous files.
    earlier: Summary,
}

impl LiveRecording {
    /// Prepares the recording without changing a file that the output replaces: forks the workload, opens the events, maps the
    /// rings and creates the output.
    fn set_up(
        request: &RecordRequest,
        signals: &Signals,
        ids: &dyn BuildIds,
        observer: &mut dyn SessionObserver,
    ) -> Result<Self, Error> {
        let workload = fork_workload(request.observe.workload.as_ref(), signals)?;
        let pid = workload.as_ref().map(Workload::pid);
        let proc = Proc::new(&request.roots.proc);
        let sysfs = Sysfs::new(&request.roots.sysfs);
        let per_thread = request.observe.details.scope.per_thread;
        let cpu_tasks = CpuTasks::find(&request.observe.target, pid, &proc, &sysfs, per_thread)?;
        // The CPUs of each draining thread.
        let shares = request.rings.threads.as_ref();
        let shares = shares.map(|threads| shares_of(threads, &cpu_tasks.cpus, &sysfs));
        let mut shares = shares.transpose()?.unwrap_or_default();
        // `shares_of` distributes only the sampled CPUs; the side-band rings of the other CPUs go to the first thread.
        if let Some(first) = shares.first_mut() {
            first.also_drains(&cpu_tasks.side_band_cpus);
        }
        let affinity = RingAffinity::new(request.rings.affinity, &cpu_tasks.cpus, &sysfs)?;
        let (opened, mut rings) = OpenedEvents::new(request, cpu_tasks, affinity, observer)?;
        // With `switches` (`-D`), the event of a hardware trace starts disabled.
        rings.is_trace_enabled = request.observe.switches.is_none();
        let (triggers, trigger_rings) = open_triggers(request, &opened.cpu_tasks, observer)?;
        let completion = FileCompletion {
            request,
            ids,
            opened: &opened,
            reader_gone: false,
        };
        let created = RecordingOutput::create(&completion, rings.count())?;
        let (sample_type, statistics_fields) = (opened.sample_type(), opened.statistics_fields());
        let stats = || RecordStats::new(statistics_fields).with_deleted_files(&request.roots.proc);
        Ok(Self {
            opened,
            lanes: lanes(
                shares,
                &mut rings,
                created.files,
                stats,
                request.output.compress,
            ),
            sink: CountedOutput::new(created.output_sink, stats(), request.output.compress),
            records: RecordBuffer::new(SampleIdLayout::new(sample_type).size()),
            earlier: Summary::default(),
            rings,
            triggers,
            trigger_rings,
            workload,
            replacement: created.replacement,
        })
    }

    /// Starts what was set up: BPF programs, the thread that rewrites records before they are written, triggers, the events
    /// (unless they are enabled later or by the workload's exec), and the workload. Also writes the initial state, unless it is
    /// written at the end, and renames the output.
    fn begin(&mut self, request: &RecordRequest) -> Result<(), Error> {
        self.connect_programs(request)?;
        let (records, sink) = (&mut self.records, &mut self.sink);
        if let Some(builder) = &request.output.rewriter {
            let rewriter = builder.build(&self.opened.descriptions);
            self.rings.rewrite_thread = Some(RewriteThread::begin(rewriter)?);
        }
        let start = InitialRecords {
            request,
            opened: &self.opened,
        };
        if !request.synthesis.at_end {
            start.synthesize(records);
            self.rings
                .write_synthesized(records, sink)
                .map_err(write_error)?;
        }
        begin_off_cpu(request, &self.opened)?;
        start_triggers(request, &self.triggers)?;
        let at_once = request.observe.switches.is_none();
        if request.observe.target != Target::Workload && at_once {
            for_each_counter(&self.opened.events, "enable", rperf_sys::Counter::enable)?;
        }
        if let Some(workload) = &mut self.workload {
            let proc = Proc::new(&request.roots.proc);
            synthesize::workload_comm(records, &proc, workload.pid());
            let started = workload.start();
            started.map_err(|cause| workload_error(request, cause))?;
        }
        if let Some(replacement) = &mut self.replacement {
            replacement.commit()?;
        }
        records.user(RecordKind::FINISHED_INIT, |_| {});
        self.rings
            .write_synthesized(records, sink)
            .map_err(write_error)
    }

    /// Connects BPF programs, which the caller has loaded, to the events whose samples they write.
    fn connect_programs(&self, request: &RecordRequest) -> Result<(), Error> {
        let workload = self.workload.as_ref().map(Workload::pid);
        for programs in &request.observe.programs {
            let events = self.opened.events.iter();
            let events = events.filter(|event| event.event.spec.name == programs.event());
            let counters = events.flat_map(|event| &event.counters);
            let counters =
                counters.map(|open_counter| (open_counter.cpu, open_counter.counter.as_fd()));
            let connected = programs.connect(&counters.collect::<Vec<_>>(), workload);
            connected.map_err(Error::system("connect programs in the kernel"))?;
        }
        Ok(())
    }

    /// Drains until the recording ends, disables the events, and drains the remaining data. Returns why the recording ended, and
    /// the number of wake-ups.
    ///
    /// The exit of the observed tasks ends the recording, unless the target is CPUs or the workload (whose own exit ends it). The
    /// lanes count only the bytes that they write, so their limit is the maximum size minus the bytes already in the file. With
    /// `switches` (`-D`), the observer gets a notice that the events start disabled.
    fn observe(
        &mut self,
        request: &RecordRequest,
        signals: &Signals,
        control: Option<&mut Control>,
        ids: &dyn BuildIds,
        observer: &mut dyn SessionObserver,
    ) -> Result<(StopReason, u64), Error> {
        if request.observe.switches.is_some() {
            observer.on_event(SessionNotice::Switched { on: false });
        }
        let until_tasks_end = !matches!(request.observe.target, Target::Workload | Target::Cpus(_));
        let completion = FileCompletion {
            request,
            ids,
            opened: &self.opened,
            reader_gone: false,
        };
        let mut rotation = OutputRotation::new(completion);
        let max_size = request.output.max_size;
        let limits = NotifyLimits {
            until_tasks_end,
            max_size: max_size.map(|size| size.saturating_sub(self.sink.bytes())),
        };
        let workload = self.workload.as_mut();
        let triggers = TriggerEvents {
            events: &self.triggers,
            rings: &mut self.trigger_rings,
        };
        let outcome = with_lanes(&mut self.lanes, &self.opened.events, limits, |lanes| {
            let mut context = DrainContext {
                events: &self.opened.events,
                signals,
                workload,
                until_tasks_end,
                schedule: Schedule::new(&request.observe),
                max_size,
                lanes,
                control,
                triggers,
            };
            let (rings, sink) = (&mut self.rings, &mut self.sink);
            let stopped = run(&mut context, rings, sink, &mut rotation, observer)?;
            for_each_counter(&self.opened.events, "disable", rperf_sys::Counter::disable)?;
            Ok(stopped)
        });
        self.earlier = std::mem::take(&mut rotation.earlier);
        for lane in self.lanes.drain(..) {
            lane.merge(&mut self.rings, &mut self.sink)?;
        }
        let outcome = outcome?;
        if outcome.0 == StopReason::ReaderGone {
            return Ok(outcome);
        }
        let snapshot_at_end = request.snapshots().is_some_and(|options| options.at_end);
        self.rings.conclude(snapshot_at_end, &mut self.sink)?;
        rotation.write_tail_records(&mut self.sink)?;
        Ok(outcome)
    }

    /// Completes the file and returns its statistics; `outcome` is the reason for the recording's end, and the number of
    /// wake-ups.
    fn complete(
        self,
        request: &RecordRequest,
        outcome: Result<(StopReason, u64), Error>,
        ids: &dyn BuildIds,
        observer: &mut dyn SessionObserver,
    ) -> Result<Summary, Error> {
        let completion = FileCompletion {
            request,
            ids,
            opened: &self.opened,
            reader_gone: matches!(outcome, Ok((StopReason::ReaderGone, _))),
        };
        // The file is completed also after an error, with the records it has.
        let summary = close(&completion, self.sink, self.records);
        let (stopped, woken) = outcome.map_err(with_output_path(request))?;
        let mut summary = summary.map_err(with_output_path(request))?;
        summary.add(&self.earlier);
        if request.output.timestamped || request.output.rotation.is_some() {
            // Appends the time to the file's name.
            stamp(&request.output.path, observer)?;
        }
        summary.wakeups = woken;
        summary.signal = stopped.signal();
        summary.ring_bytes = self.rings.size();
        summary.traces.area_bytes = self.rings.area_bytes();
        for (cpu, lost) in self.rings.lost().filter(|(_, lost)| *lost > 0) {
            match u32::try_from(cpu) {
                Ok(cpu) => summary.lost_by_cpu.push((cpu, lost)),
                // CPU -1: the ring of a task.
                Err(_) => summary.lost_of_tasks += lost,
            }
        }
        Ok(summary)
    }
}

/// Starts the BPF programs of the off-CPU event, if it is recorded.
fn begin_off_cpu(request: &RecordRequest, opened: &OpenedEvents) -> Result<(), Error> {
    let Some(programs) = &request.observe.off_cpu else {
        return Ok(());
    };
    let events = opened.events.iter();
    let off_cpu_events = events.filter(|event| event.event.spec.is_off_cpu());
    let outputs = off_cpu_events
        .flat_map(|event| &event.counters)
        .filter_map(|open_counter| {
            let cpu = u32::try_from(open_counter.cpu).ok()?;
            Some((cpu, open_counter.counter.as_fd()))
        });
    // Empty if all tasks are observed: `tasks` then has only -1.
    let threads = opened.cpu_tasks.tasks.iter();
    let threads: Vec<u32> = threads
        .filter_map(|task| u32::try_from(*task).ok())
        .collect();
    let from_exec = request.observe.target == Target::Workload;
    programs.begin(&outputs.collect::<Vec<_>>(), &threads, from_exec)?;
    Ok(())
}

/// The output of a recording.
struct RecordingOutput {
    output_sink: OutputStream,
    /// `None` for a pipe.
    replacement: Option<Replacement>,
    /// One for each ring, if threads drain them.
    files: Vec<File>,
}

impl RecordingOutput {
    /// Writes to the request's stream, a pipe, if there is one; otherwise creates a file or a directory. A directory has a file
    /// with the header, one for each of `rings` rings if threads drain them, and the kernel's code if requested.
    fn create(completion: &FileCompletion<'_>, rings: usize) -> Result<Self, Error> {
        let request = completion.request;
        if let Some(stream) = &request.output.stream {
            let output_sink = completion
                .begin_stream(stream)
                .map_err(write_error)
                .map_err(with_output_path(request))?;
            return Ok(Self {
                output_sink,
                replacement: None,
                files: Vec::new(),
            });
        }
        let naming = request.output.naming;
        let (replacement, file, files) = match (&request.rings.threads, &request.output.kernel_code)
        {
            (Some(_), _) => Replacement::create_directory(&request.output.path, naming, rings)?,
            (None, Some(_)) => {
                let ring_files = 0;
                Replacement::create_directory(&request.output.path, naming, ring_files)?
            }
            (None, None) => {
                let (replacement, file) = Replacement::create(&request.output.path, naming)?;
                (replacement, file, Vec::new())
            }
        };
        if let Some(kernel) = &request.output.kernel_code {
            let copied = replacement.create_kernel_folder();
            let copied = copied.and_then(|folder| kernel.copy_to(&folder));
            copied.map_err(Error::system("copy the kernel's code"))?;
        }
        let output_sink = OutputStream::file(file, &completion.opened.descriptions);
        Ok(Self {
            output_sink: output_sink
                .map_err(write_error)
                .map_err(with_output_path(request))?,
            replacement: Some(replacement),
            files,
        })
    }
}

/// Forks the process that will execute the workload's program, if there is one.
pub(crate) fn fork_workload(
    program: Option<&Program>,
    signals: &Signals,
) -> Result<Option<Workload>, Error> {
    let fork = |program: &Program| {
        let forked = Workload::fork(program, signals);
        forked.map_err(|cause| Error::Workload {
            program: program.path().to_owned(),
            cause,
        })
    };
    program.map(fork).transpose()
}

pub(crate) fn workload_error(request: &RecordRequest, cause: io::Error) -> Error {
    let program = request
        .observe
        .workload
        .as_ref()
        .map(|program| program.path().to_owned());
    Error::Workload {
        program: program.unwrap_or_default(),
        cause,
    }
}

/// Raises the priority, since rings that are not drained in time lose records. The workload was forked before and keeps
/// its priority. Returns `None` with a real-time priority, which is not lowered again.
fn raise_priority(request: &RecordRequest) -> Result<Option<PriorityBoost>, Error> {
    let Some(priority) = request.rings.real_time else {
        return Ok(Some(PriorityBoost::begin()));
    };
    run_in_real_time(priority).map_err(|cause| Error::RealTime { priority, cause })?;
    Ok(None)
}

/// Waits until the workload has exited, and returns its status; `None` without a workload, or if a signal ends the wait.
fn wait_for(
    workload: Option<Workload>,
    signals: &Signals,
    observer: &mut dyn SessionObserver,
) -> Result<Option<WaitStatus>, Error> {
    let Some(mut workload) = workload else {
        return Ok(None);
    };
    let began = Instant::now();
    let mut is_reported = false;
    loop {
        while let Some(signal) = signals.next().map_err(Error::system("read signals"))? {
            let is_ending = matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP);
            // An immediate second signal is a duplicate: timeout(1) also signals the whole process
            // group.
            if is_ending && began.elapsed() > DUPLICATE_SIGNAL_PERIOD {
                return Ok(None);
            }
        }
        // Called after signals are read: if the workload exits after this call, its SIGCHLD is still pending and wakes `poll`.
        let ended = workload.try_wait();
        if let Some(ended) = ended.map_err(Error::system("wait for the workload"))? {
            return Ok(Some(ended));
        }
        if !is_reported && began.elapsed() > EXIT_TIMEOUT {
            observer.on_event(SessionNotice::WorkloadStays {
                pid: workload.pid(),
            });
            is_reported = true;
        }
        let millis = if is_reported { -1 } else { EXIT_POLL_MILLIS };
        poll(&[signals.as_fd()], millis).map_err(Error::system("wait for the workload"))?;
    }
}

/// Whether a write failed because the reader closed the pipe: that ends a recording without an
/// error.
fn is_reader_gone(request: &RecordRequest, error: &Error) -> bool {
    request.output.stream.is_some() && error.is_broken_pipe()
}

/// Returns a function for `map_err` that adds the output's path to a write error.
fn with_output_path(request: &RecordRequest) -> impl FnOnce(Error) -> Error {
    |error| error.with_path(&request.output.path)
}
