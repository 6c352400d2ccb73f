//! Waiting for the end of a count, or of an observation of `/proc/schedstat`.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rperf_sys::{Pidfd, Ready, Signals, Workload, poll};

use crate::{Control, Error};

/// Why waiting ended. [`WaitConditions::until`] returns all but the last two, which its callers return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// The deadline passed.
    Time,
    /// The workload exited.
    WorkloadEnded,
    /// All observed tasks exited.
    TasksEnded,
    /// SIGINT, SIGTERM or SIGHUP was received.
    Signal(i32),
    /// Control commands are available, or their pipe was closed.
    Control(Ready),
    /// A stop command was received.
    Stopped,
    /// The reader of recorded counts closed the pipe.
    ReaderGone,
}

/// The conditions to wait for.
pub(crate) struct WaitConditions<'a> {
    pub(crate) signals: &'a Signals,
    pub(crate) workload: Option<&'a mut Workload>,
    /// The observed tasks, if their exit ends the count.
    pub(crate) tasks: Option<Vec<Pidfd>>,
    /// Control commands.
    pub(crate) control: Option<&'a mut Control>,
}

impl WaitConditions<'_> {
    /// Waits for the first of the conditions, at most until `deadline` if given.
    pub(crate) fn until(&mut self, deadline: Option<Instant>) -> Result<WaitEnd, Error> {
        loop {
            if let Some(woken) = self.signalled()? {
                return Ok(woken);
            }
            let tasks = self.tasks.iter().flatten();
            let control = self.control.as_ref().and_then(|control| control.as_fd());
            // In this order: signals, tasks, control commands. `ready` has the same order.
            let fds: Vec<BorrowedFd<'_>> = std::iter::once(self.signals.as_fd())
                .chain(tasks.map(AsFd::as_fd))
                .chain(control)
                .collect();
            let ready = poll(&fds, millis(deadline)).map_err(Error::system("wait for the end"))?;
            let commands = control.and(ready.last()).copied().unwrap_or_default();
            if let Some(tasks) = &mut self.tasks {
                // The descriptor of a process is readable when the process has exited.
                let mut states = ready.iter().skip(1);
                tasks.retain(|_| !states.next().is_some_and(|state| state.readable));
                if tasks.is_empty() {
                    return Ok(WaitEnd::TasksEnded);
                }
            }
            if commands != Ready::default() {
                return Ok(WaitEnd::Control(commands));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                // A signal that arrived while waiting takes precedence over the deadline.
                return Ok(self.signalled()?.unwrap_or(WaitEnd::Time));
            }
        }
    }

    /// Reads pending signals; returns the reason if one of them ends the wait.
    fn signalled(&mut self) -> Result<Option<WaitEnd>, Error> {
        while let Some(signal) = self.signals.next().map_err(Error::system("read signals"))? {
            if signal != libc::SIGCHLD {
                return Ok(Some(WaitEnd::Signal(signal)));
            }
            let Some(workload) = &mut self.workload else {
                continue;
            };
            let ended = workload.try_wait();
            if ended
                .map_err(Error::system("wait for the workload"))?
                .is_some()
            {
                return Ok(Some(WaitEnd::WorkloadEnded));
            }
        }
        Ok(None)
    }
}

/// Returns the timeout for poll(2): the milliseconds until `deadline`, rounded up, or -1 (no timeout) if there is no deadline.
fn millis(deadline: Option<Instant>) -> i32 {
    let Some(deadline) = deadline else {
        return -1;
    };
    let left = deadline.saturating_duration_since(Instant::now());
    let millis = left.saturating_add(Duration::from_micros(999)).as_millis();
    i32::try_from(millis).unwrap_or(i32::MAX)
}
