//! Sampling without a file: events are opened as for a recording, and records are passed to the
//! caller.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use rperf_perfdata::EventDesc;
use rperf_ring::RecordWalker;
use rperf_sys::{Counter, Proc, Signals, Sysfs, WaitStatus, Workload, run_in_real_time};
use rperf_wire::SampleIdLayout;

use crate::drain::{RingSet, counters_to_poll};
use crate::initial_records::InitialRecords;
use crate::open::{OpenCounter, for_each_counter};
use crate::opened::OpenedEvents;
use crate::poll_set::PollSet;
use crate::recording::{fork_workload, workload_error};
use crate::synthesize::{self, RecordBuffer};
use crate::tasks::CpuTasks;
use crate::thread_layout::RingAffinity;
use crate::{Error, RecordRequest, SessionObserver, Target};

/// Open events and their rings, whose records are passed to the caller.
pub struct Observation {
    opened: OpenedEvents,
    rings: RingSet,
    walker: RecordWalker,
    signals: Signals,
    /// The command, if one is run.
    workload: Option<Workload>,
    /// For each counter of [`counters_to_poll`], whether its task has exited.
    exited: Vec<bool>,
}

/// The reasons why [`Observation::wait`] returned, other than for a timeout or data in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WakeReason {
    /// The received signal: SIGINT, SIGTERM or SIGHUP.
    pub signal: Option<i32>,
    /// The `input` passed to [`Observation::wait`] is readable or closed.
    pub input: bool,
    /// All observed tasks have exited, or the workload has. Rings may still hold records.
    pub ended: bool,
}

impl Observation {
    /// Opens all events of `request`, disabled except for system-wide side-band events. No output file is created.
    ///
    /// SIGINT, SIGTERM and SIGHUP, with a workload also SIGCHLD, are blocked until this value is dropped. The workload
    /// is forked, but not executed.
    ///
    /// # Errors
    /// [`Error`], as for a recording.
    pub fn open(
        request: &RecordRequest,
        observer: &mut dyn SessionObserver,
    ) -> Result<Self, Error> {
        let mut blocked = vec![libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
        blocked.extend(request.observe.workload.as_ref().map(|_| libc::SIGCHLD));
        let signals = Signals::block(&blocked).map_err(Error::system("block signals"))?;
        let (proc, sysfs) = (
            Proc::new(&request.roots.proc),
            Sysfs::new(&request.roots.sysfs),
        );
        let workload = fork_workload(request.observe.workload.as_ref(), &signals)?;
        let pid = workload.as_ref().map(Workload::pid);
        let per_thread = request.observe.details.scope.per_thread;
        let cpu_tasks = CpuTasks::find(&request.observe.target, pid, &proc, &sysfs, per_thread)?;
        let (opened, rings) =
            OpenedEvents::new(request, cpu_tasks, RingAffinity::default(), observer)?;
        if let Some(priority) = request.rings.real_time {
            run_in_real_time(priority).map_err(|cause| Error::RealTime { priority, cause })?;
        }
        let exited = vec![false; counters_to_poll(&opened.events).len()];
        Ok(Self {
            opened,
            rings,
            walker: RecordWalker::default(),
            signals,
            workload,
            exited,
        })
    }

    /// Returns the open events.
    #[must_use]
    pub fn events(&self) -> &[EventDesc] {
        &self.opened.descriptions
    }

    /// Returns the CPU and the descriptor of each counter of the event with this index in [`Observation::events`]. The CPU is -1
    /// if the counter follows a task on all CPUs.
    pub fn counters(&self, event: usize) -> impl Iterator<Item = (i32, BorrowedFd<'_>)> {
        let event = self.opened.events.get(event);
        let counters = event.into_iter().flat_map(|event| &event.counters);
        counters.map(|open_counter| (open_counter.cpu, open_counter.counter.as_fd()))
    }

    /// Returns the number of observed CPUs; 0 if each task has a ring for all CPUs.
    #[must_use]
    pub fn cpu_count(&self) -> usize {
        let cpus = &self.opened.cpu_tasks.cpus;
        cpus.iter().filter(|cpu| **cpu >= 0).count()
    }

    /// Enables only the events that record changes of tasks and mappings (`tracking`).
    fn enable_side_band(&self) -> Result<(), Error> {
        let events = self.opened.events.iter();
        let side_band = events.filter(|event| event.event.tracking);
        for_each_counter(side_band, "enable", Counter::enable)
    }

    /// Enables events, passes synthesized records of running tasks to `take`, and executes the workload.
    ///
    /// If the workload is the target, its execve(2) enables the events. If the request delays events, only those that record
    /// changes of tasks and mappings are enabled by this function or the execve(2); the caller enables the others later, by
    /// [`Observation::set_enabled`].
    ///
    /// # Errors
    /// [`Error::Control`], and [`Error::Workload`] if the program cannot be executed.
    pub fn start(
        &mut self,
        request: &RecordRequest,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        let is_delayed = request.observe.details.scope.delayed;
        match request.observe.target {
            Target::Workload => {}
            _ if is_delayed => self.enable_side_band()?,
            _ => self.set_enabled(true)?,
        }
        let trailer = SampleIdLayout::new(self.opened.sample_type()).size();
        let mut records = RecordBuffer::new(trailer);
        let initial = InitialRecords {
            request,
            opened: &self.opened,
        };
        initial.synthesize(&mut records);
        if let Some(workload) = &mut self.workload {
            let proc = Proc::new(&request.roots.proc);
            synthesize::workload_comm(&mut records, &proc, workload.pid());
        }
        take(&records.take());
        match &mut self.workload {
            Some(workload) => {
                let started = workload.start();
                started.map_err(|cause| workload_error(request, cause))
            }
            None => Ok(()),
        }
    }

    /// Returns the process id of the workload.
    #[must_use]
    pub fn workload_pid(&self) -> Option<u32> {
        self.workload.as_ref().map(Workload::pid)
    }

    /// Lets the workload keep running when this value is dropped, instead of ending it by SIGTERM.
    pub fn detach_workload(&mut self) {
        if let Some(workload) = &mut self.workload {
            workload.detach();
        }
    }

    /// Returns the status of the workload if it has exited; `None` without a workload, or if it still runs. With
    /// `waits`, waits until the workload exits.
    ///
    /// # Errors
    /// Errors of waitpid(2).
    pub fn workload_status(&mut self, waits: bool) -> Result<Option<WaitStatus>, Error> {
        let Some(workload) = &mut self.workload else {
            return Ok(None);
        };
        let status = match waits {
            true => workload.wait().map(Some),
            false => workload.try_wait(),
        };
        status.map_err(Error::system("wait for the workload"))
    }

    /// Returns the next pending signal other than SIGCHLD, and whether a SIGCHLD read before it reported the workload's exit.
    fn signal(&mut self) -> Result<(Option<i32>, bool), Error> {
        let mut has_exited = false;
        loop {
            match self.signals.next().map_err(Error::system("read signals"))? {
                Some(libc::SIGCHLD) => {
                    if let Some(workload) = &mut self.workload {
                        let status = workload.try_wait();
                        let status = status.map_err(Error::system("wait for the workload"))?;
                        has_exited |= status.is_some();
                    }
                }
                signal => return Ok((signal, has_exited)),
            }
        }
    }

    /// Enables all events, or disables all but the side-band event: later samples need the changes of tasks and mappings that
    /// happen while the other events are disabled.
    ///
    /// # Errors
    /// [`Error::Control`].
    pub fn set_enabled(&self, on: bool) -> Result<(), Error> {
        let events = self.opened.events.iter();
        match on {
            true => for_each_counter(events, "enable", Counter::enable),
            false => {
                let disabled = events.filter(|event| !event.is_side_band());
                for_each_counter(disabled, "disable", Counter::disable)
            }
        }
    }

    /// Waits until a ring has enough data, the workload or an observed task has exited, `input` is readable or closed, a signal
    /// is received or `timeout` has passed.
    ///
    /// # Errors
    /// Errors of poll(2), of reading signals and of waitpid(2).
    pub fn wait(
        &mut self,
        timeout: Duration,
        input: Option<BorrowedFd<'_>>,
    ) -> Result<WakeReason, Error> {
        let counters = counters_to_poll(&self.opened.events);
        let alive: Vec<(usize, &OpenCounter)> = counters
            .into_iter()
            .enumerate()
            .filter(|(index, _)| self.exited.get(*index) == Some(&false))
            .collect();
        let mut waiting = PollSet::default();
        // Only to wake up: signals are read after each wake-up, whatever the reason for it.
        waiting.add([self.signals.as_fd()]);
        let input = waiting.add(input);
        let of_counters = waiting.add(
            alive
                .iter()
                .map(|(_, open_counter)| open_counter.counter.as_fd()),
        );
        // Rounded up: with a timeout of 0 ms, the last fraction of a millisecond would be spent in busy waiting.
        let timeout = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let states = waiting.wait(timeout)?;
        let indices = alive.iter().map(|(index, _)| *index);
        for (index, state) in indices.zip(states.of(&of_counters)) {
            if let Some(exited) = self.exited.get_mut(index) {
                *exited |= state.closed;
            }
        }
        let input = states.is_readable(&input) || states.is_closed(&input);
        let (signal, has_exited) = self.signal()?;
        let all_exited = !self.exited.is_empty() && self.exited.iter().all(|exited| *exited);
        Ok(WakeReason {
            signal,
            input,
            ended: all_exited || has_exited,
        })
    }

    /// Passes all available complete records to `take`, ring by ring; returns whether there were
    /// any. Each call is one round; no `FINISHED_ROUND` record follows.
    pub fn drain(&mut self, take: &mut dyn FnMut(&[u8])) -> bool {
        self.rings.hand_over(&mut self.walker, take)
    }
}
