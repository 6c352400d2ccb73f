//! A count from its first system call to the last reading.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rperf_sys::{Counter, Proc, Signals, Sysctl, Sysfs, TaskEnd, Workload, raise_open_files};

use super::keep::{Kept, Round};
use super::kernel::Running;
use super::open::{Opened, Opening};
use super::wait::{Waiting, Woken};
use super::{CountRequest, CountWatch, Counted, Readings, Start};
use crate::opened::open_cgroup;
use crate::recording::fork_workload;
use crate::tasks::Places;
use crate::{Control, Error, Happened, Target};

/// Counts as `request` says, until the workload or the observed tasks end, the time is over, a signal or the order to stop
/// comes.
///
/// SIGINT, SIGTERM, SIGHUP and SIGCHLD are taken meanwhile. A workload gets the latter two passed on; SIGINT comes from
/// the terminal, which sends it to the workload too.
///
/// # Errors
/// [`Error`].
pub fn count(
    request: &CountRequest,
    control: Option<&mut Control>,
    watch: &mut dyn CountWatch,
) -> Result<Counted, Error> {
    let held = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD];
    let signals = Signals::hold(&held).map_err(Error::system("hold signals back"))?;
    let mut workload = fork_workload(request.workload.as_ref(), &signals)?;
    let steered = control.is_some();
    let (opened, places) = open(request, (workload.as_ref(), steered), watch)?;
    set_filters(&opened)?;
    let kept = request.keep.as_ref();
    let kept = kept.map(|keep| Kept::begin(request, keep, (&opened, &places)));
    if request.start == Start::AtOnce && request.target != Target::Workload {
        opened.each("enable", Counter::enable)?;
    }
    let mut run = Run {
        request,
        opened: &opened,
        kept: kept.transpose()?,
        reader_gone: false,
        began: Instant::now(),
        last: Readings::default(),
        last_at: Duration::ZERO,
    };
    if let Some(workload) = &mut workload {
        start(workload, request)?;
    }
    run.kept.as_mut().map_or(Ok(()), Kept::commit)?;
    let mut waiting = Waiting {
        signals: &signals,
        workload: workload.as_mut(),
        tasks: ends_of(&request.target),
        control,
    };
    let woken = match run.start(&mut waiting, watch)? {
        Some(woken) => woken,
        None => run.observe(&mut waiting, watch)?,
    };
    let signal = waiting.finish(woken)?;
    let elapsed = run.began.elapsed();
    opened.each("disable", Counter::disable)?;
    let mut readings = opened.read();
    // Ended here because what it was the timer of had ended.
    let was_timer = woken == Woken::TasksEnded;
    let ended = workload.as_mut().map(Workload::wait).transpose();
    let ended = ended.map_err(Error::system("wait for the workload"))?;
    let usage = workload.as_ref().and_then(Workload::usage);
    readings.set_times(elapsed, usage);
    run.end(elapsed, &readings, watch)?;
    opened.close();
    Ok(Counted {
        elapsed,
        readings,
        ended: ended.filter(|_| !was_timer),
        usage,
        signal,
    })
}

/// Lets the program go on to its first instruction.
fn start(workload: &mut Workload, request: &CountRequest) -> Result<(), Error> {
    let program = request.workload.as_ref();
    let path = program.map(|program| program.path().to_owned());
    workload.start().map_err(|cause| Error::Workload {
        program: path.unwrap_or_default(),
        cause,
    })
}

fn open(
    request: &CountRequest,
    (workload, steered): (Option<&Workload>, bool),
    watch: &mut dyn CountWatch,
) -> Result<(Opened<Running>, Places), Error> {
    raise_open_files().map_err(Error::system("raise the limit of open files"))?;
    let roots = (&Proc::new(&request.proc), &Sysfs::new(&request.sysfs));
    let places = Places::find(&request.target, workload.map(Workload::pid), roots, true)?;
    let mut cgroups = BTreeMap::new();
    for name in request
        .events
        .iter()
        .filter_map(|event| event.cgroup.as_ref())
    {
        if !cgroups.contains_key(name) {
            cgroups.insert(name.clone(), open_cgroup(name, &request.proc)?);
        }
    }
    let opening = Opening {
        places: &places,
        cgroups: &cgroups,
        sysctl: &Sysctl::new(&request.proc),
        inherit: request.inherit,
        on_exec: request.target == Target::Workload && request.start == Start::AtOnce,
        on_cpus: matches!(request.target, Target::Cpus(_)),
        bundles: request.keep.is_none() && !steered,
    };
    let opened = Opened::open(Running, &request.events, &opening, watch)?;
    Ok((opened, places))
}

fn set_filters(opened: &Opened<Running>) -> Result<(), Error> {
    for event in &opened.events {
        let Some(filter) = &event.spec.filter else {
            continue;
        };
        for counter in event
            .counters
            .iter()
            .filter_map(|placed| placed.counter.as_ref())
        {
            counter.set_filter(filter).map_err(|cause| Error::Filter {
                event: event.spec.name.clone(),
                filter: filter.clone(),
                cause,
            })?;
        }
    }
    Ok(())
}

/// The ends of the tasks whose end is that of the count; `None` where there are none, or the kernel does not tell.
fn ends_of(target: &Target) -> Option<Vec<TaskEnd>> {
    let ends: Vec<TaskEnd> = match target {
        Target::Processes(pids) => {
            let ends = pids.iter().map(|pid| TaskEnd::of_process(*pid));
            ends.flatten().collect()
        }
        Target::Threads(tids) => tids.iter().flat_map(|tid| TaskEnd::of(*tid)).collect(),
        _ => Vec::new(),
    };
    (!ends.is_empty()).then_some(ends)
}

/// A count that runs.
struct Run<'a> {
    request: &'a CountRequest,
    opened: &'a Opened<Running>,
    kept: Option<Kept<'a>>,
    reader_gone: bool,
    began: Instant,
    /// The last interval's end.
    last: Readings,
    last_at: Duration,
}

impl<'a> Run<'a> {
    /// Waits for the moment at which events start; what happened before it, if anything did.
    fn start(
        &mut self,
        waiting: &mut Waiting<'_>,
        watch: &mut dyn CountWatch,
    ) -> Result<Option<Woken>, Error> {
        if self.request.start == Start::AtOnce {
            return Ok(None);
        }
        watch.tell(Happened::Switched { on: false });
        let Start::After(delay) = self.request.start else {
            return Ok(None);
        };
        match self.wait(waiting, self.began.checked_add(delay), watch)? {
            Woken::Time => {}
            woken => return Ok(Some(woken)),
        }
        self.opened.each("enable", Counter::enable)?;
        watch.tell(Happened::Switched { on: true });
        self.began = Instant::now();
        Ok(None)
    }

    /// Waits for the end, and reads in between where that is asked for.
    fn observe(
        &mut self,
        waiting: &mut Waiting<'_>,
        watch: &mut dyn CountWatch,
    ) -> Result<Woken, Error> {
        let end = self
            .request
            .timeout
            .and_then(|timeout| self.began.checked_add(timeout));
        let mut done = 0;
        loop {
            let next = self.next_interval(done);
            let deadline = [end, next].into_iter().flatten().min();
            let woken = self.wait(waiting, deadline, watch)?;
            if woken != Woken::Time || end.is_some_and(|end| end <= Instant::now()) {
                return Ok(woken);
            }
            let mut readings = self.opened.read();
            let elapsed = self.began.elapsed();
            readings.set_times(elapsed, None);
            self.interval(elapsed, &readings, watch)?;
            if self.reader_gone {
                return Ok(Woken::ReaderGone);
            }
            done += 1;
            let enough = self.request.interval.and_then(|interval| interval.times);
            if enough == Some(done) && waiting.workload.is_none() {
                return Ok(Woken::Time);
            }
        }
    }

    /// Waits, and carries out the orders that come meanwhile.
    fn wait(
        &mut self,
        waiting: &mut Waiting<'_>,
        deadline: Option<Instant>,
        watch: &mut dyn CountWatch,
    ) -> Result<Woken, Error> {
        loop {
            let ready = match waiting.until(deadline)? {
                Woken::Orders(ready) => ready,
                woken => return Ok(woken),
            };
            let Some(control) = &mut waiting.control else {
                continue;
            };
            let asked = control.obey(ready, || self.opened.steered(), watch)?;
            if asked.stop {
                return Ok(Woken::Stopped);
            }
        }
    }

    fn next_interval(&self, done: u64) -> Option<Instant> {
        let interval = self.request.interval?;
        if interval.times.is_some_and(|times| done >= times) {
            return None;
        }
        let number = u32::try_from(done + 1).unwrap_or(u32::MAX);
        let due = self
            .began
            .checked_add(interval.every.checked_mul(number)?)?;
        // After a pause of the machine one interval is long, and not many of them short.
        Some(due.max(self.began + self.last_at + interval.every / 2))
    }

    fn interval(
        &mut self,
        at: Duration,
        readings: &Readings,
        watch: &mut dyn CountWatch,
    ) -> Result<(), Error> {
        let since = readings.since(&self.last);
        watch.interval(at, at.saturating_sub(self.last_at), &since);
        self.last = readings.clone();
        self.last_at = at;
        self.keep(Round::Interval, readings, at)
    }

    /// What came after the last whole interval, unless only a number of them was asked for; without intervals all.
    fn end(
        &mut self,
        at: Duration,
        readings: &Readings,
        watch: &mut dyn CountWatch,
    ) -> Result<(), Error> {
        match self.request.interval {
            None => self.keep(Round::Final, readings, at)?,
            Some(interval) if interval.times.is_none() => self.interval(at, readings, watch)?,
            Some(_) => {}
        }
        self.kept.take().map_or(Ok(()), Kept::finish)
    }

    fn keep(&mut self, round: Round, readings: &Readings, at: Duration) -> Result<(), Error> {
        let Some(kept) = &mut self.kept else {
            return Ok(());
        };
        match kept.round(round, readings, at) {
            Err(error) if kept.is_reader_gone(&error) => {
                self.reader_gone = true;
                self.kept = None;
                Ok(())
            }
            outcome => outcome,
        }
    }
}

impl Waiting<'_> {
    /// Brings the workload to its end, by the signal that came or because its time is over; the signal that came.
    fn finish(&mut self, woken: Woken) -> Result<Option<i32>, Error> {
        let signal = match woken {
            Woken::Signal(signal) => Some(signal),
            Woken::ReaderGone => Some(libc::SIGPIPE),
            _ => None,
        };
        let Some(workload) = &self.workload else {
            return Ok(signal);
        };
        match woken {
            Woken::WorkloadEnded => return Ok(None),
            // The terminal has sent it to the workload, too.
            Woken::Signal(libc::SIGINT) => {}
            Woken::Signal(signal) => workload.kill(signal),
            Woken::Time
            | Woken::TasksEnded
            | Woken::Stopped
            | Woken::ReaderGone
            | Woken::Orders(_) => {
                workload.kill(libc::SIGTERM);
            }
        }
        self.tasks = None;
        self.control = None;
        while self.until(None)? != Woken::WorkloadEnded {
            // Whoever sends a second signal wants an end.
            if let Some(workload) = &self.workload {
                workload.kill(libc::SIGTERM);
            }
        }
        Ok(signal)
    }
}

impl Readings {
    /// What came since `earlier`, which may be empty.
    fn since(&self, earlier: &Self) -> Self {
        let mut since = self.clone();
        for (cells, earlier) in since.cells.iter_mut().zip(&earlier.cells) {
            for (cell, earlier) in cells.iter_mut().zip(earlier) {
                cell.counts = cell.counts.since(earlier.counts);
            }
        }
        since
    }
}
