//! A count from the first system call to the last reading.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rperf_sys::{Counter, Pidfd, Proc, Signals, Sysctl, Sysfs, Workload, raise_open_files_limit};

use super::count_output::{CountWriter, StatRoundKind};
use super::kernel::RunningKernel;
use super::kernel_sums::KernelSums;
use super::open::{OpenCounters, OpenParameters};
use super::wait_conditions::{WaitConditions, WaitEnd};
use super::{CountObserver, CountRequest, CountStart, CountSummary, EventReadings};
use crate::opened::open_cgroup;
use crate::recording::fork_workload;
use crate::tasks::{CpuTasks, online_cpus};
use crate::{Control, Error, SessionNotice, Target};

/// Counts as requested, until the workload or the observed tasks exit, or on a timeout, a signal or a stop command; without a
/// workload, also after the last requested interval. Also ends if the reader of recorded counts closes the pipe.
///
/// SIGINT, SIGTERM, SIGHUP and SIGCHLD are handled meanwhile. SIGTERM and SIGHUP are forwarded to the workload;
/// SIGINT is not, because the terminal sends it to the workload, too.
///
/// # Errors
/// Events can't be opened, read or controlled, the workload can't be started, or recorded counts can't be written.
pub fn count(
    request: &CountRequest,
    control: Option<&mut Control>,
    observer: &mut dyn CountObserver,
) -> Result<CountSummary, Error> {
    let handled = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD];
    let signals = Signals::block(&handled).map_err(Error::system("block signals"))?;
    let mut workload = fork_workload(request.workload.as_ref(), &signals)?;
    let controlled = control.is_some();
    let (opened, cpu_tasks) = open(request, workload.as_ref(), controlled, observer)?;
    let sums = KernelSums::start(request, &opened, &cpu_tasks)?;
    let writer = request.record_to.as_ref();
    let writer = writer.map(|options| CountWriter::begin(request, options, &opened, &cpu_tasks));
    enable_at_once(request, &opened)?;
    let mut run = CountRun::new(request, &opened, sums, writer.transpose()?);
    if let Some(workload) = &mut workload {
        start_workload(workload, request)?;
    }
    run.writer.as_mut().map_or(Ok(()), CountWriter::commit)?;
    let mut waiting = WaitConditions {
        signals: &signals,
        workload: workload.as_mut(),
        tasks: exit_descriptors(&request.target),
        control,
    };
    let woken = match run.enable_after_delay(&mut waiting, observer)? {
        Some(woken) => woken,
        None => run.observe(&mut waiting, observer)?,
    };
    let signal = waiting.finish(woken)?;
    let elapsed = run.began.elapsed();
    opened.for_each_leader("disable", Counter::disable)?;
    let mut readings = run.read()?;
    run.report_lost_tasks(observer)?;
    // If tasks are observed, the workload only limits the time: if the tasks exited first, `finish` has killed the workload.
    let was_killed = woken == WaitEnd::TasksEnded;
    let status = workload.as_mut().map(Workload::wait).transpose();
    let status = status.map_err(Error::system("wait for the workload"))?;
    let usage = workload.as_ref().and_then(Workload::usage);
    readings.set_times(elapsed, usage);
    run.end(elapsed, &readings, observer)?;
    opened.close();
    Ok(CountSummary {
        elapsed,
        readings,
        workload_status: status.filter(|_| !was_killed),
        usage,
        signal: signal.or(late_signal(&signals)?),
    })
}

/// Returns the signal that arrived since the count ended, while counters were read and closed. The caller needs it: if
/// this run is one of many, the signal ends them all.
fn late_signal(signals: &Signals) -> Result<Option<i32>, Error> {
    while let Some(signal) = signals.next().map_err(Error::system("read signals"))? {
        if signal != libc::SIGCHLD {
            return Ok(Some(signal));
        }
    }
    Ok(None)
}

/// Enables the events, unless they are enabled later, or by the exec of the workload.
fn enable_at_once(
    request: &CountRequest,
    opened: &OpenCounters<RunningKernel>,
) -> Result<(), Error> {
    match (request.start, &request.target) {
        // exec(2) enables the workload's own counters, but not the counters of CPUs that BPF programs sum up for it. The programs
        // ignore the counts before the exec.
        (CountStart::AtOnce, Target::Workload) => opened.enable_summed(),
        (CountStart::AtOnce, _) => opened.for_each_leader("enable", Counter::enable),
        _ => Ok(()),
    }
}

/// Lets the forked workload execute its program.
fn start_workload(workload: &mut Workload, request: &CountRequest) -> Result<(), Error> {
    let program = request.workload.as_ref();
    let path = program.map(|program| program.path().to_owned());
    workload.start().map_err(|cause| Error::Workload {
        program: path.unwrap_or_default(),
        cause,
    })
}

fn open(
    request: &CountRequest,
    workload: Option<&Workload>,
    controlled: bool,
    observer: &mut dyn CountObserver,
) -> Result<(OpenCounters<RunningKernel>, CpuTasks), Error> {
    raise_open_files_limit().map_err(Error::system("raise the limit of open files"))?;
    let (proc, sysfs) = (Proc::new(&request.proc), Sysfs::new(&request.sysfs));
    let pid = workload.map(Workload::pid);
    // The counters of a task are opened for all CPUs together.
    let per_thread = true;
    let cpu_tasks = CpuTasks::find(&request.target, pid, &proc, &sysfs, per_thread)?;
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
    let opening = OpenParameters {
        cpu_tasks: &cpu_tasks,
        cgroups: &cgroups,
        sysctl: &Sysctl::new(&request.proc),
        inherit: request.inherit,
        on_exec: request.target == Target::Workload && request.start == CountStart::AtOnce,
        on_cpus: matches!(request.target, Target::Cpus(_)),
        counts_programs: !request.bpf.programs.is_empty(),
        all_cpus: &online_cpus(&sysfs),
        // Bundles (tracepoints opened as one group): their counters cannot be enabled, disabled or recorded one by one.
        bundles: request.record_to.is_none() && !controlled,
    };
    let opened = OpenCounters::open(RunningKernel, &request.events, &opening, observer)?;
    set_filters(&opened)?;
    Ok((opened, cpu_tasks))
}

fn set_filters(opened: &OpenCounters<RunningKernel>) -> Result<(), Error> {
    for event in &opened.events {
        let Some(filter) = &event.spec.filter else {
            continue;
        };
        for counter in event
            .counters
            .iter()
            .filter_map(|slot| slot.counter.as_ref())
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

/// Returns descriptors that report the exit of the target's processes or threads; `None` for other targets, or if no descriptor
/// can be opened, for example on kernels without pidfds.
fn exit_descriptors(target: &Target) -> Option<Vec<Pidfd>> {
    let pidfds: Vec<Pidfd> = match target {
        Target::Processes(pids) => {
            let pidfds = pids.iter().map(|pid| Pidfd::of_process(*pid));
            pidfds.flatten().collect()
        }
        Target::Threads(tids) => tids.iter().flat_map(|tid| Pidfd::of_thread(*tid)).collect(),
        _ => Vec::new(),
    };
    (!pidfds.is_empty()).then_some(pidfds)
}

/// A running count.
struct CountRun<'a> {
    request: &'a CountRequest,
    opened: &'a OpenCounters<RunningKernel>,
    /// The sums of BPF programs, if any event needs them.
    sums: Option<KernelSums>,
    writer: Option<CountWriter<'a>>,
    /// Whether the reader of the recorded counts closed the pipe.
    reader_gone: bool,
    /// When counting began: when the events were opened or, with a delay, enabled.
    began: Instant,
    /// Readings at the end of the previous interval; empty during the first one.
    previous: EventReadings,
    /// Time from `began` to the end of the previous interval.
    previous_at: Duration,
    /// How many intervals have ended.
    intervals: u64,
}

impl<'a> CountRun<'a> {
    fn new(
        request: &'a CountRequest,
        opened: &'a OpenCounters<RunningKernel>,
        sums: Option<KernelSums>,
        writer: Option<CountWriter<'a>>,
    ) -> Self {
        Self {
            request,
            opened,
            sums,
            writer,
            reader_gone: false,
            began: Instant::now(),
            previous: EventReadings::default(),
            previous_at: Duration::ZERO,
            intervals: 0,
        }
    }

    /// With [`CountStart::After`] (`-D`), waits and then enables the events; otherwise returns at once. Reports that
    /// the events are disabled, also with [`CountStart::Never`]. Returns why the count ended if it ended during the delay.
    fn enable_after_delay(
        &mut self,
        waiting: &mut WaitConditions<'_>,
        observer: &mut dyn CountObserver,
    ) -> Result<Option<WaitEnd>, Error> {
        if self.request.start == CountStart::AtOnce {
            return Ok(None);
        }
        observer.on_event(SessionNotice::Switched { on: false });
        let CountStart::After(delay) = self.request.start else {
            return Ok(None);
        };
        match self.wait(waiting, self.began.checked_add(delay), observer)? {
            WaitEnd::Time => {}
            woken => return Ok(Some(woken)),
        }
        self.opened.for_each_leader("enable", Counter::enable)?;
        observer.on_event(SessionNotice::Switched { on: true });
        self.began = Instant::now();
        Ok(None)
    }

    /// Reads counters at intervals until the count ends, and returns why it ended.
    fn observe(
        &mut self,
        waiting: &mut WaitConditions<'_>,
        observer: &mut dyn CountObserver,
    ) -> Result<WaitEnd, Error> {
        let end = self
            .request
            .timeout
            .and_then(|timeout| self.began.checked_add(timeout));
        loop {
            let next = self.next_interval();
            let deadline = [end, next].into_iter().flatten().min();
            let woken = self.wait(waiting, deadline, observer)?;
            if woken != WaitEnd::Time || end.is_some_and(|end| end <= Instant::now()) {
                return Ok(woken);
            }
            let mut readings = self.read()?;
            let elapsed = self.began.elapsed();
            // The workload's resource usage is known only when it has exited.
            let usage = None;
            readings.set_times(elapsed, usage);
            self.interval(elapsed, &readings, observer)?;
            if self.reader_gone {
                return Ok(WaitEnd::ReaderGone);
            }
            if !self.has_more_intervals() && waiting.workload.is_none() {
                return Ok(WaitEnd::Time);
            }
        }
    }

    /// Reads all events.
    fn read(&self) -> Result<EventReadings, Error> {
        let mut readings = self.opened.read();
        if let Some(sums) = &self.sums {
            sums.fill(&mut readings)?;
        }
        Ok(readings)
    }

    /// Reports the number of tasks that BPF programs had no room for.
    fn report_lost_tasks(&self, observer: &mut dyn CountObserver) -> Result<(), Error> {
        let lost = self.sums.as_ref().map(KernelSums::lost_tasks).transpose()?;
        if let Some(lost) = lost.filter(|lost| *lost > 0) {
            observer.on_event(SessionNotice::TasksNotCounted { lost });
        }
        Ok(())
    }

    /// Executes control commands until one of them, or anything else, ends the wait, and returns the reason.
    fn wait(
        &mut self,
        waiting: &mut WaitConditions<'_>,
        deadline: Option<Instant>,
        observer: &mut dyn CountObserver,
    ) -> Result<WaitEnd, Error> {
        loop {
            let ready = match waiting.until(deadline)? {
                WaitEnd::Control(ready) => ready,
                woken => return Ok(woken),
            };
            let Some(control) = &mut waiting.control else {
                continue;
            };
            let requests =
                control.handle_commands(ready, || self.opened.controlled_counters(), observer)?;
            if requests.stop {
                return Ok(WaitEnd::Stopped);
            }
        }
    }

    /// Whether counts are reported at intervals, and fewer than the maximum number have ended.
    fn has_more_intervals(&self) -> bool {
        let interval = self.request.interval;
        interval.is_some_and(|interval| {
            interval
                .max_intervals
                .is_none_or(|maximum| self.intervals < maximum)
        })
    }

    /// Returns when the next interval ends; `None` without intervals, or after the last one.
    fn next_interval(&self) -> Option<Instant> {
        let interval = self
            .request
            .interval
            .filter(|_| self.has_more_intervals())?;
        let number = u32::try_from(self.intervals + 1).unwrap_or(u32::MAX);
        let due = self
            .began
            .checked_add(interval.every.checked_mul(number)?)?;
        // After this process was stopped (SIGSTOP), `due` is in the past: intervals are shorter until they have caught up, but
        // each lasts at least half of the requested time.
        Some(due.max(self.began + self.previous_at + interval.every / 2))
    }

    /// Reports and records the counts of an interval. `at` is the time from `began` to its end.
    fn interval(
        &mut self,
        at: Duration,
        readings: &EventReadings,
        observer: &mut dyn CountObserver,
    ) -> Result<(), Error> {
        let since = readings.since(&self.previous);
        observer.interval(at, at.saturating_sub(self.previous_at), &since);
        self.previous = readings.clone();
        self.previous_at = at;
        self.intervals += 1;
        self.record_round(StatRoundKind::Interval, readings, at)
    }

    /// Completes the output. Without intervals, the last reading is recorded. Otherwise it ends an incomplete interval, which is
    /// reported and recorded unless the maximum number of intervals have ended.
    fn end(
        &mut self,
        at: Duration,
        readings: &EventReadings,
        observer: &mut dyn CountObserver,
    ) -> Result<(), Error> {
        match self.request.interval {
            None => self.record_round(StatRoundKind::Final, readings, at)?,
            Some(_) if self.has_more_intervals() => self.interval(at, readings, observer)?,
            Some(_) => {}
        }
        self.writer.take().map_or(Ok(()), CountWriter::finish)
    }

    fn record_round(
        &mut self,
        round: StatRoundKind,
        readings: &EventReadings,
        at: Duration,
    ) -> Result<(), Error> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        match writer.round(round, readings, at) {
            Err(error) if writer.is_reader_gone(&error) => {
                self.reader_gone = true;
                self.writer = None;
                Ok(())
            }
            outcome => outcome,
        }
    }
}

impl WaitConditions<'_> {
    /// Unless the workload has exited, sends it SIGTERM, or the signal that ended the count (but not SIGINT), and waits for its
    /// exit. Returns the signal that ended the count, if any; SIGPIPE if the reader closed the pipe.
    pub(crate) fn finish(&mut self, woken: WaitEnd) -> Result<Option<i32>, Error> {
        let signal = match woken {
            WaitEnd::Signal(signal) => Some(signal),
            WaitEnd::ReaderGone => Some(libc::SIGPIPE),
            _ => None,
        };
        let Some(workload) = &self.workload else {
            return Ok(signal);
        };
        match woken {
            WaitEnd::WorkloadEnded => return Ok(None),
            // Not forwarded: the terminal has sent it to the workload, too.
            WaitEnd::Signal(libc::SIGINT) => {}
            WaitEnd::Signal(signal) => workload.kill(signal),
            WaitEnd::Time
            | WaitEnd::TasksEnded
            | WaitEnd::Stopped
            | WaitEnd::ReaderGone
            | WaitEnd::Control(_) => {
                workload.kill(libc::SIGTERM);
            }
        }
        // From here on, observed tasks and control commands do not end a wait.
        self.tasks = None;
        self.control = None;
        let no_deadline = None;
        while self.until(no_deadline)? != WaitEnd::WorkloadEnded {
            // Any further signal terminates the workload.
            if let Some(workload) = &self.workload {
                workload.kill(libc::SIGTERM);
            }
        }
        Ok(signal)
    }
}

impl EventReadings {
    /// Returns readings with the counts since `earlier`; all counts if `earlier` is empty.
    fn since(&self, earlier: &Self) -> Self {
        let mut since = self.clone();
        for (cells, earlier_cells) in since.cells.iter_mut().zip(&earlier.cells) {
            for (cell, earlier) in cells.iter_mut().zip(earlier_cells) {
                cell.counts = cell.counts.since(earlier.counts);
            }
        }
        since
    }
}
