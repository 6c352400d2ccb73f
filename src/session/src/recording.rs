//! A recording from its first system call to the closed file.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rperf_sys::{Ended, Proc, Program, Signals, Sysfs, Urgent, Workload, poll, run_in_real_time};
use rperf_wire::{RecordKind, SampleIdLayout};

use crate::drain::{Rings, Stopped, Waits, run};
use crate::finish::{Closing, close};
use crate::lanes::{Lane, Limits, lanes, with_lanes};
use crate::layout::{Near, shares as shares_of};
use crate::medium::Medium;
use crate::open::{OpenEvent, for_each_counter};
use crate::opened::Opened;
use crate::output::Replacement;
use crate::rewriting::Beside;
use crate::rings::Ring;
use crate::rotate::{Turns, stamp};
use crate::schedule::Schedule;
use crate::sink::{Sink, write_error};
use crate::start::Start;
use crate::summary::Summary;
use crate::synthesize::{self, Records};
use crate::tally::Tally;
use crate::tasks::Places;
use crate::triggers::{Triggers, open_triggers, start_triggers};
use crate::{BuildIds, Control, Error, Happened, Request, Target, Watch};

/// What a recording takes for itself. SIGUSR2 ends none: it turns to the next file, where there is one, or copies a trace. Nor
/// does SIGXFSZ: what cannot be written because the file would be too large (`ulimit -f`) is an error of its own.
const HELD: [i32; 6] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGCHLD,
    libc::SIGUSR2,
    libc::SIGXFSZ,
];
/// Signals this close to one another are one.
const SAME_SIGNAL: Duration = Duration::from_millis(200);
/// How long a workload may take to end before that is told.
const PATIENCE: Duration = Duration::from_secs(1);
/// Milliseconds between looks at a workload until then.
const LOOK_AFTER: i32 = 500;

/// Records as `request` says, until the workload or the observed tasks end or a signal comes.
///
/// SIGINT, SIGTERM, SIGHUP, SIGCHLD and SIGUSR2 are taken by the recording meanwhile. The old output stays
/// where it is until all events are open and the workload runs.
///
/// # Errors
/// [`Error`]; of those only [`Error::Write`] leaves a file behind.
pub fn record(
    request: &Request,
    mut control: Option<&mut Control>,
    ids: &dyn BuildIds,
    watch: &mut dyn Watch,
) -> Result<Summary, Error> {
    let signals = Signals::hold(&HELD).map_err(Error::system("hold signals back"))?;
    let mut live = match Live::set_up(request, &signals, ids, watch) {
        Ok(live) => live,
        Err(error) if is_reader_gone(request, &error) => {
            return Ok(Summary {
                signal: Some(libc::SIGPIPE),
                ..Summary::default()
            });
        }
        Err(error) => return Err(error),
    };
    let urgent = urgency(request)?;
    let outcome = match live.begin(request) {
        Ok(()) => live.observe(request, (&signals, control.take()), ids, watch),
        Err(error) if is_reader_gone(request, &error) => Err(error),
        Err(error) => return Err(at(request)(error)),
    };
    let outcome = match outcome {
        Err(error) if is_reader_gone(request, &error) => Ok((Stopped::ReaderGone, 0)),
        outcome => outcome,
    };
    drop(urgent);
    let by_itself = matches!(outcome, Ok((Stopped::WorkloadEnded, _)));
    if let Some(workload) = live.workload.as_mut().filter(|_| !by_itself) {
        workload.stop();
    }
    let workload = live.workload.take();
    let completed = live.complete(request, outcome, ids, watch);
    // All that was recorded is in its place, however long this takes.
    let ended = wait_for(workload, &signals, watch)?;
    let mut summary = completed?;
    summary.ended = ended.filter(|_| by_itself);
    Ok(summary)
}

/// A recording while it is made.
struct Live {
    opened: Opened,
    /// Those that no lane has.
    rings: Rings,
    /// What threads empty, if they do.
    lanes: Vec<Lane>,
    /// What turns to the next file, and its rings.
    triggers: Vec<OpenEvent>,
    trigger_rings: Vec<Ring>,
    workload: Option<Workload>,
    /// `None` for a pipe.
    replacement: Option<Replacement>,
    sink: Sink,
    /// What is synthesized, until it is written.
    records: Records,
    /// What the files before the last hold.
    earlier: Summary,
}

impl Live {
    /// Does everything that can fail without a trace: forks, opens, maps, creates the file.
    fn set_up(
        request: &Request,
        signals: &Signals,
        ids: &dyn BuildIds,
        watch: &mut dyn Watch,
    ) -> Result<Self, Error> {
        let workload = fork_workload(request.workload.as_ref(), signals)?;
        let pid = workload.as_ref().map(Workload::pid);
        let (proc, sysfs) = (Proc::new(&request.proc), Sysfs::new(&request.sysfs));
        let places = Places::find(
            &request.target,
            pid,
            (&proc, &sysfs),
            request.details.per_thread,
        )?;
        let shares = request.threads.as_ref();
        let shares = shares.map(|threads| shares_of(threads, &places.cpus, &sysfs));
        let shares = shares.transpose()?;
        let near = Near::new(request.affinity, &places.cpus, &sysfs)?;
        let (opened, mut rings) = Opened::new(request, places, near, watch)?;
        rings.running = request.switches.is_none();
        let (triggers, trigger_rings) = open_triggers(request, &opened.places, watch)?;
        let closing = Closing {
            request,
            ids,
            opened: &opened,
            reader_gone: false,
        };
        let place = Place::create(&closing, rings.count())?;
        let first = opened.sample_type();
        let shares = shares.unwrap_or_default();
        Ok(Self {
            opened,
            lanes: lanes(shares, &mut rings, place.files, (first, request.compress)),
            sink: Sink::new(place.medium, Tally::new(first), request.compress),
            records: Records::new(SampleIdLayout::new(first).size()),
            earlier: Summary::default(),
            rings,
            triggers,
            trigger_rings,
            workload,
            replacement: place.replacement,
        })
    }

    /// Writes what was there before, lets events and workload run, and puts the file in its place.
    fn begin(&mut self, request: &Request) -> Result<(), Error> {
        let (records, sink) = (&mut self.records, &mut self.sink);
        if let Some(rewriting) = &request.rewriting {
            let rewriter = rewriting.begin(&self.opened.descriptions);
            self.rings.beside = Some(Beside::begin(rewriter)?);
        }
        let start = Start {
            request,
            opened: &self.opened,
        };
        if !request.tail_synthesize {
            start.synthesize(records);
            self.rings.records(records, sink).map_err(write_error)?;
        }
        start_triggers(request, &self.triggers)?;
        let at_once = request.switches.is_none();
        if request.target != Target::Workload && at_once {
            for_each_counter(&self.opened.events, "enable", rperf_sys::Counter::enable)?;
        }
        if let Some(workload) = &mut self.workload {
            let proc = Proc::new(&request.proc);
            synthesize::workload_comm(records, &proc, workload.pid());
            let started = workload.start();
            started.map_err(|cause| workload_error(request, cause))?;
        }
        if let Some(replacement) = &mut self.replacement {
            replacement.commit()?;
        }
        records.user(RecordKind::FINISHED_INIT, |_| {});
        self.rings.records(records, sink).map_err(write_error)
    }

    /// Drains until something ends the recording, then what is left.
    fn observe(
        &mut self,
        request: &Request,
        (signals, control): (&Signals, Option<&mut Control>),
        ids: &dyn BuildIds,
        watch: &mut dyn Watch,
    ) -> Result<(Stopped, u64), Error> {
        if request.switches.is_some() {
            watch.tell(Happened::Switched { on: false });
        }
        let until_tasks_end = !matches!(request.target, Target::Workload | Target::Cpus(_));
        let closing = Closing {
            request,
            ids,
            opened: &self.opened,
            reader_gone: false,
        };
        let mut turns = Turns::new(closing);
        let limits = Limits {
            until_tasks_end,
            max_size: request
                .max_size
                .map(|size| size.saturating_sub(self.sink.bytes())),
        };
        let workload = self.workload.as_mut();
        let triggers = Triggers {
            events: &self.triggers,
            rings: &mut self.trigger_rings,
        };
        let output = (&mut self.rings, &mut self.sink, &mut turns);
        let outcome = with_lanes(&mut self.lanes, (&self.opened.events, limits), |news| {
            let mut waits = Waits {
                signals,
                workload,
                until_tasks_end,
                schedule: Schedule::new(request.switches.as_deref().unwrap_or_default()),
                max_size: request.max_size,
                news,
                control,
                triggers,
            };
            let stopped = run(&mut waits, &self.opened.events, output, watch)?;
            for_each_counter(&self.opened.events, "disable", rperf_sys::Counter::disable)?;
            Ok(stopped)
        });
        self.earlier = std::mem::take(&mut turns.earlier);
        for lane in self.lanes.drain(..) {
            lane.merge(&mut self.rings, &mut self.sink)?;
        }
        let outcome = outcome?;
        if outcome.0 == Stopped::ReaderGone {
            return Ok(outcome);
        }
        let snapshots = request.snapshots();
        let has_snapshot = snapshots.is_some_and(|snapshots| snapshots.at_end);
        self.rings.conclude(has_snapshot, &mut self.sink)?;
        turns.end(&mut self.sink)?;
        Ok(outcome)
    }

    /// Closes the file, and tells what is in it; `outcome` is how observing ended, and how often it woke up.
    fn complete(
        self,
        request: &Request,
        outcome: Result<(Stopped, u64), Error>,
        ids: &dyn BuildIds,
        watch: &mut dyn Watch,
    ) -> Result<Summary, Error> {
        let closing = Closing {
            request,
            ids,
            opened: &self.opened,
            reader_gone: matches!(outcome, Ok((Stopped::ReaderGone, _))),
        };
        let summary = close(&closing, self.sink, self.records);
        let (stopped, woken) = outcome.map_err(at(request))?;
        let mut summary = summary.map_err(at(request))?;
        summary.add(&self.earlier);
        if request.stamped || request.rotation.is_some() {
            stamp(&request.output, watch)?;
        }
        summary.woken = woken;
        summary.signal = stopped.signal();
        summary.ring_bytes = self.rings.size();
        summary.traces.area_bytes = self.rings.area_bytes();
        summary.lost_by_cpu = self.rings.lost_by_cpu();
        Ok(summary)
    }
}

/// Where a recording goes.
struct Place {
    medium: Medium,
    /// `None` for a pipe.
    replacement: Option<Replacement>,
    /// For each ring one, where threads empty them.
    files: Vec<File>,
}

impl Place {
    /// A pipe, a file, or a directory with the kernel's code or a file for each of so many rings.
    fn create(closing: &Closing<'_>, rings: usize) -> Result<Self, Error> {
        let request = closing.request;
        if let Some(stream) = &request.stream {
            let medium = closing
                .pipe(stream)
                .map_err(write_error)
                .map_err(at(request))?;
            return Ok(Self {
                medium,
                replacement: None,
                files: Vec::new(),
            });
        }
        let naming = request.naming;
        let (replacement, file, files) = match (&request.threads, &request.kernel_code) {
            (Some(_), _) => Replacement::directory(&request.output, naming, rings)?,
            (None, Some(_)) => Replacement::directory(&request.output, naming, 0)?,
            (None, None) => {
                let (replacement, file) = Replacement::create(&request.output, naming)?;
                (replacement, file, Vec::new())
            }
        };
        if let Some(kernel) = &request.kernel_code {
            let copied = replacement.kernel_folder();
            let copied = copied.and_then(|folder| kernel.copy_to(&folder));
            copied.map_err(Error::system("copy the kernel's code"))?;
        }
        let medium = Medium::file(file, &closing.opened.descriptions);
        Ok(Self {
            medium: medium.map_err(write_error).map_err(at(request))?,
            replacement: Some(replacement),
            files,
        })
    }
}

/// Forks the program, if there is one.
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

fn workload_error(request: &Request, cause: io::Error) -> Error {
    let program = request
        .workload
        .as_ref()
        .map(|program| program.path().to_owned());
    Error::Workload {
        program: program.unwrap_or_default(),
        cause,
    }
}

/// Draining must not wait for what it observes: rings that are not emptied in time lose what comes then. The workload
/// is forked by now and keeps its own priority.
fn urgency(request: &Request) -> Result<Option<Urgent>, Error> {
    let Some(priority) = request.real_time else {
        return Ok(Some(Urgent::begin()));
    };
    run_in_real_time(priority).map_err(|cause| Error::RealTime { priority, cause })?;
    Ok(None)
}

/// Waits until the workload has ended, and tells how. One that does not end when it is told to is left alone at the next
/// signal.
fn wait_for(
    workload: Option<Workload>,
    signals: &Signals,
    watch: &mut dyn Watch,
) -> Result<Option<Ended>, Error> {
    let Some(mut workload) = workload else {
        return Ok(None);
    };
    let began = Instant::now();
    let mut told = false;
    loop {
        while let Some(signal) = signals.next().map_err(Error::system("read signals"))? {
            let is_order = matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP);
            // What comes at once is the first, sent to a whole group: timeout(1) sends it twice.
            if is_order && began.elapsed() > SAME_SIGNAL {
                return Ok(None);
            }
        }
        // Behind the signals: one that tells of an end from here on stays to be read.
        let ended = workload.try_wait();
        if let Some(ended) = ended.map_err(Error::system("wait for the workload"))? {
            return Ok(Some(ended));
        }
        if !told && began.elapsed() > PATIENCE {
            watch.tell(Happened::WorkloadStays {
                pid: workload.pid(),
            });
            told = true;
        }
        let millis = if told { -1 } else { LOOK_AFTER };
        poll(&[signals.as_fd()], millis).map_err(Error::system("wait for the workload"))?;
    }
}

/// Whether a write failed because nobody reads the pipe any more: that ends a recording, and is no failure.
fn is_reader_gone(request: &Request, error: &Error) -> bool {
    request.stream.is_some() && error.is_broken_pipe()
}

/// Fills in the path that the writing side does not know.
fn at(request: &Request) -> impl FnOnce(Error) -> Error {
    |error| error.at(&request.output)
}
