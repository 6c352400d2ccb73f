//! A recording from its first system call to the closed file.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use rperf_events::RecordOptions;
use rperf_perfdata::EventDesc;
use rperf_perfdata::feature::TracingDataBuilder;
use rperf_sys::{
    Cgroup, CgroupFolder, Ended, Proc, Program, Signals, Sysctl, Sysfs, Urgent, Workload,
    raise_open_files, run_in_real_time,
};
use rperf_wire::{AttrFlags, RecordKind, SampleIdLayout};

use crate::drain::{Rings, Sink, Stopped, Waits, run, write_error};
use crate::finish::{Closing, close, kernel_build_ids};
use crate::header::features;
use crate::kernel::Kernel;
use crate::medium::Medium;
use crate::open::{OpenEvent, Opener, for_each_counter};
use crate::output::Replacement;
use crate::rewriting::Beside;
use crate::rings::{Ring, default_pages, map_rings};
use crate::rotate::{Turns, stamp};
use crate::schedule::Schedule;
use crate::start::Start;
use crate::summary::Summary;
use crate::synthesize::{self, Records};
use crate::tally::Tally;
use crate::tasks::Places;
use crate::tracing_data::tracing_data;
use crate::{BuildIds, Error, Happened, Request, Target, Turn, Watch};

/// Records as `request` says, until the workload or the observed tasks end or a signal comes.
///
/// SIGINT, SIGTERM, SIGHUP and SIGCHLD are taken by the recording meanwhile. The old output stays
/// where it is until all events are open and the workload runs.
///
/// # Errors
/// [`Error`]; of those only [`Error::Write`] leaves a file behind.
pub fn record(
    request: &Request,
    ids: &dyn BuildIds,
    watch: &mut dyn Watch,
) -> Result<Summary, Error> {
    let mut held = vec![libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD];
    if request
        .rotation
        .is_some_and(|rotation| rotation.turn == Turn::Signal)
    {
        held.push(libc::SIGUSR2);
    }
    let signals = Signals::hold(&held).map_err(Error::system("hold signals back"))?;
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
        Ok(()) => live.observe(request, &signals, ids, watch),
        Err(error) if is_reader_gone(request, &error) => Err(error),
        Err(error) => return Err(at(request)(error)),
    };
    let outcome = match outcome {
        Err(error) if is_reader_gone(request, &error) => Ok((Stopped::ReaderGone, 0)),
        outcome => outcome,
    };
    drop(urgent);
    let ended = end_workload(live.workload, &outcome)?;
    let closing = Closing {
        request,
        ids,
        events: &live.events,
        descriptions: &live.descriptions,
        tracing_data: live.tracing_data.as_ref(),
        kernel: &live.kernel,
        reader_gone: matches!(outcome, Ok((Stopped::ReaderGone, _))),
    };
    let summary = close(&closing, live.sink, live.records);
    let (stopped, woken) = outcome.map_err(at(request))?;
    let mut summary = summary.map_err(at(request))?;
    summary.add(&live.earlier);
    if request.stamped || request.rotation.is_some() {
        stamp(&request.output, watch)?;
    }
    summary.woken = woken;
    summary.ended = ended;
    summary.signal = match stopped {
        Stopped::BySignal(signal) => Some(signal),
        Stopped::ReaderGone => Some(libc::SIGPIPE),
        Stopped::WorkloadEnded | Stopped::TasksEnded | Stopped::SizeReached => None,
    };
    let rings = live.rings;
    summary.ring_bytes = rings.rings.first().map_or(0, Ring::size);
    let lost = rings.rings.iter().map(|ring| ring.cpu).zip(rings.lost);
    let lost = lost.filter(|(_, lost)| *lost > 0);
    let on_cpu = |(cpu, lost): (i32, u64)| Some((u32::try_from(cpu).ok()?, lost));
    summary.lost_by_cpu = lost.filter_map(on_cpu).collect();
    Ok(summary)
}

/// A recording while it is made.
struct Live {
    places: Places,
    events: Vec<OpenEvent>,
    descriptions: Vec<EventDesc>,
    tracing_data: Option<TracingDataBuilder>,
    rings: Rings,
    kernel: Kernel,
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
        let mut places = Places::find(
            &request.target,
            pid,
            (&proc, &sysfs),
            request.details.per_thread,
        )?;
        let (events, rings) = open(request, &mut places, watch)?;
        let mut descriptions = describe(&events);
        if let Some(rewriting) = &request.rewriting {
            rewriting.describe(&mut descriptions);
        }
        let tracing_data = describe_tracepoints(request, &events)?;
        let kernel = Kernel::of(&events, &proc, watch);
        let (medium, replacement) = match &request.stream {
            Some(stream) => {
                let mut set = features(request, &descriptions, &events);
                if let Some(tracing_data) = &tracing_data {
                    set.tracing_data(tracing_data);
                }
                if request.build_ids {
                    set.build_ids(&kernel_build_ids(request, ids, &kernel));
                }
                let medium = Medium::pipe(stream.clone(), &descriptions, &set);
                (medium, None)
            }
            None => {
                let (replacement, file) = Replacement::create(&request.output)?;
                (Medium::file(file, &descriptions), Some(replacement))
            }
        };
        let medium = medium.map_err(write_error).map_err(at(request))?;
        let first = events.first().map(|event| event.event.attr.sample_type);
        let first = first.unwrap_or_default();
        Ok(Self {
            kernel,
            sink: Sink::new(medium, Tally::new(first), request.compress),
            records: Records::new(SampleIdLayout::new(first).size()),
            earlier: Summary::default(),
            places,
            events,
            descriptions,
            tracing_data,
            rings,
            workload,
            replacement,
        })
    }

    /// Writes what was there before, lets events and workload run, and puts the file in its place.
    fn begin(&mut self, request: &Request) -> Result<(), Error> {
        let (records, sink) = (&mut self.records, &mut self.sink);
        if let Some(rewriting) = &request.rewriting {
            let rewriter = rewriting.begin(&self.descriptions);
            self.rings.beside = Some(Beside::begin(rewriter)?);
        }
        let start = Start {
            request,
            places: &self.places,
            events: &self.events,
            kernel: &self.kernel,
        };
        if !request.tail_synthesize {
            start.synthesize(records);
            self.rings.records(records, sink).map_err(write_error)?;
        }
        let at_once = request.switches.is_none();
        if request.target != Target::Workload && at_once {
            for_each_counter(&self.events, "enable", rperf_sys::Counter::enable)?;
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
        signals: &Signals,
        ids: &dyn BuildIds,
        watch: &mut dyn Watch,
    ) -> Result<(Stopped, u64), Error> {
        if request.switches.is_some() {
            watch.tell(Happened::Switched { on: false });
        }
        let mut waits = Waits {
            signals,
            workload: self.workload.as_mut(),
            until_tasks_end: !matches!(request.target, Target::Workload | Target::Cpus(_)),
            schedule: Schedule::new(request.switches.as_deref().unwrap_or_default()),
            max_size: request.max_size,
        };
        let closing = Closing {
            request,
            ids,
            events: &self.events,
            descriptions: &self.descriptions,
            tracing_data: self.tracing_data.as_ref(),
            kernel: &self.kernel,
            reader_gone: false,
        };
        let start = Start {
            request,
            places: &self.places,
            events: &self.events,
            kernel: &self.kernel,
        };
        let mut turns = Turns {
            rotation: request.rotation,
            closing,
            start,
            began: Instant::now(),
            before: 0,
            earlier: Summary::default(),
            written: VecDeque::new(),
            asked: false,
        };
        let output = (&mut self.rings, &mut self.sink, &mut turns);
        let outcome = run(&mut waits, &self.events, output, watch);
        self.earlier = std::mem::take(&mut turns.earlier);
        let outcome = outcome?;
        for_each_counter(&self.events, "disable", rperf_sys::Counter::disable)?;
        if outcome.0 == Stopped::ReaderGone {
            return Ok(outcome);
        }
        self.rings.empty(&mut self.sink).map_err(write_error)?;
        self.rings.dump(&mut self.sink)?;
        self.rings.flush(&mut self.sink).map_err(write_error)?;
        turns.end(&mut self.sink)?;
        Ok(outcome)
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

fn open(
    request: &Request,
    places: &mut Places,
    watch: &mut dyn Watch,
) -> Result<(Vec<OpenEvent>, Rings), Error> {
    raise_open_files().map_err(Error::system("raise the limit of open files"))?;
    let sysctl = Sysctl::new(&request.proc);
    let options = RecordOptions {
        target: request.target.kind(),
        sampling: request.sampling,
        call_graph: request.call_graph,
        raw_samples: request.raw_samples,
        details: request.details,
    };
    let cgroups = open_cgroups(request)?;
    let mut opener = Opener {
        cgroups: &cgroups,
        places,
        options,
        max_stack: request.max_stack,
        sysctl: &sysctl,
        ring_tasks: Vec::new(),
        left_out: (false, AttrFlags::default()),
    };
    let events = opener.open(request.events.clone(), watch)?;
    set_filters(&events)?;
    let pages = request.ring_pages.unwrap_or_else(|| default_pages(&sysctl));
    let rings = map_rings(&events, pages, watch)?;
    Ok((events, Rings::new(rings, request.flush_from)))
}

fn set_filters(events: &[OpenEvent]) -> Result<(), Error> {
    for event in events {
        let spec = &event.event.spec;
        let Some(filter) = &spec.filter else { continue };
        for placed in &event.counters {
            placed
                .counter
                .set_filter(filter)
                .map_err(|cause| Error::Filter {
                    event: spec.name.clone(),
                    filter: filter.clone(),
                    cause,
                })?;
        }
    }
    Ok(())
}

fn describe(events: &[OpenEvent]) -> Vec<EventDesc> {
    let describe = |event: &OpenEvent| EventDesc {
        attr: event.event.attr.clone(),
        ids: event.counters.iter().map(|placed| placed.id).collect(),
        name: event.event.spec.name.clone(),
    };
    events.iter().map(describe).collect()
}

fn describe_tracepoints(
    request: &Request,
    events: &[OpenEvent],
) -> Result<Option<TracingDataBuilder>, Error> {
    let tracepoints = events.iter().filter_map(|event| {
        let spec = &event.event.spec;
        spec.tracepoint.as_ref()
    });
    tracing_data(tracepoints, &request.tracefs).map_err(|cause| Error::Tracefs {
        folder: request.tracefs.events().to_owned(),
        cause,
    })
}

/// The cgroups of the events, opened.
fn open_cgroups(request: &Request) -> Result<Vec<Option<Cgroup>>, Error> {
    let open = |name: &Option<String>| {
        let name = name.as_ref();
        name.map(|name| open_cgroup(name, &request.proc))
            .transpose()
    };
    request.cgroups.iter().map(open).collect()
}

/// Opens a cgroup by its name below the folder of all.
pub(crate) fn open_cgroup(name: &str, proc: &Path) -> Result<Cgroup, Error> {
    let mounts = fs::read_to_string(proc.join("self/mounts")).unwrap_or_default();
    let folder = CgroupFolder::find(&mounts);
    let folder = folder.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
    let opened = folder.and_then(|folder| folder.open(name));
    opened.map_err(|cause| Error::Cgroup {
        name: name.to_owned(),
        cause,
    })
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

/// Ends a workload that still runs, as perf does, and tells how one ended that was not ended here.
fn end_workload(
    workload: Option<Workload>,
    outcome: &Result<(Stopped, u64), Error>,
) -> Result<Option<Ended>, Error> {
    let Some(mut workload) = workload else {
        return Ok(None);
    };
    let by_itself = matches!(outcome, Ok((Stopped::WorkloadEnded, _)));
    if !by_itself {
        workload.kill(libc::SIGTERM);
    }
    let ended = workload
        .wait()
        .map_err(Error::system("wait for the workload"))?;
    Ok(by_itself.then_some(ended))
}

/// Whether a write failed because nobody reads the pipe any more: that ends a recording, and is no failure.
fn is_reader_gone(request: &Request, error: &Error) -> bool {
    request.stream.is_some() && error.is_broken_pipe()
}

/// Fills in the path that the writing side does not know.
fn at(request: &Request) -> impl FnOnce(Error) -> Error {
    |error| error.at(&request.output)
}
