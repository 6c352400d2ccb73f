//! What a count waits for.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rperf_sys::{Ready, Signals, TaskEnd, Workload, poll};

use crate::{Control, Error};

/// Why the waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// The time has come.
    Time,
    /// The workload has ended.
    WorkloadEnded,
    /// All observed tasks have ended.
    TasksEnded,
    /// SIGINT, SIGTERM or SIGHUP came.
    Signal(i32),
    /// There are orders, or there will be none any more.
    Orders(Ready),
    /// The end was ordered.
    Stopped,
    /// Nobody reads what is kept any more.
    ReaderGone,
}

/// What can end a count.
pub(super) struct Waiting<'a> {
    pub(super) signals: &'a Signals,
    pub(super) workload: Option<&'a mut Workload>,
    /// The observed tasks, where the end of all of them is the end of the count.
    pub(super) tasks: Option<Vec<TaskEnd>>,
    /// Where orders come from.
    pub(super) control: Option<&'a mut Control>,
}

impl Waiting<'_> {
    /// Waits until something happens, at most until `deadline`.
    pub(super) fn until(&mut self, deadline: Option<Instant>) -> Result<Woken, Error> {
        loop {
            if let Some(woken) = self.signalled()? {
                return Ok(woken);
            }
            let tasks = self.tasks.iter().flatten();
            let orders = self.control.as_ref().and_then(|control| control.as_fd());
            let fds: Vec<BorrowedFd<'_>> = std::iter::once(self.signals.as_fd())
                .chain(tasks.map(AsFd::as_fd))
                .chain(orders)
                .collect();
            let ready = poll(&fds, millis(deadline)).map_err(Error::system("wait for the end"))?;
            let ordered = orders.and(ready.last()).copied().unwrap_or_default();
            if let Some(tasks) = &mut self.tasks {
                let mut states = ready.iter().skip(1);
                tasks.retain(|_| !states.next().is_some_and(|state| state.readable));
                if tasks.is_empty() {
                    return Ok(Woken::TasksEnded);
                }
            }
            if ordered != Ready::default() {
                return Ok(Woken::Orders(ordered));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(self.signalled()?.unwrap_or(Woken::Time));
            }
        }
    }

    fn signalled(&mut self) -> Result<Option<Woken>, Error> {
        while let Some(signal) = self.signals.next().map_err(Error::system("read signals"))? {
            if signal != libc::SIGCHLD {
                return Ok(Some(Woken::Signal(signal)));
            }
            let Some(workload) = &mut self.workload else {
                continue;
            };
            let ended = workload.try_wait();
            if ended
                .map_err(Error::system("wait for the workload"))?
                .is_some()
            {
                return Ok(Some(Woken::WorkloadEnded));
            }
        }
        Ok(None)
    }
}

/// Milliseconds to a moment, rounded up; -1 without one.
fn millis(deadline: Option<Instant>) -> i32 {
    let Some(deadline) = deadline else {
        return -1;
    };
    let left = deadline.saturating_duration_since(Instant::now());
    let millis = left.saturating_add(Duration::from_micros(999)).as_millis();
    i32::try_from(millis).unwrap_or(i32::MAX)
}
