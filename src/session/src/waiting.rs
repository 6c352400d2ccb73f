//! Descriptors of several kinds that are waited for at once.

use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd};

use rperf_sys::{Ready, poll};

use crate::Error;
use crate::open::Placed;

/// What one call of poll(2) waits for.
#[derive(Default)]
pub(crate) struct Waiting<'a> {
    fds: Vec<BorrowedFd<'a>>,
}

/// Descriptors of one kind.
pub(crate) struct Kind(Range<usize>);

/// What became of them.
pub(crate) struct States(Vec<Ready>);

impl<'a> Waiting<'a> {
    /// Adds those of one kind, in order.
    pub(crate) fn add(&mut self, fds: impl IntoIterator<Item = BorrowedFd<'a>>) -> Kind {
        let start = self.fds.len();
        self.fds.extend(fds);
        Kind(start..self.fds.len())
    }

    /// Adds counters.
    pub(crate) fn counters(&mut self, counters: &[&'a Placed]) -> Kind {
        self.add(counters.iter().map(|placed| placed.counter.as_fd()))
    }

    /// Waits until one of them has something to say, or for so many milliseconds (-1: without end).
    pub(crate) fn wait(self, timeout: i32) -> Result<States, Error> {
        let states = poll(&self.fds, timeout);
        states
            .map(States)
            .map_err(Error::system("wait for the rings"))
    }
}

impl States {
    /// Those of one kind.
    pub(crate) fn of(&self, kind: &Kind) -> &[Ready] {
        self.0.get(kind.0.clone()).unwrap_or_default()
    }

    /// Whether one of a kind can be read.
    pub(crate) fn is_readable(&self, kind: &Kind) -> bool {
        self.of(kind).iter().any(|state| state.readable)
    }

    /// Whether the other end of one of a kind is closed.
    pub(crate) fn is_closed(&self, kind: &Kind) -> bool {
        self.of(kind).iter().any(|state| state.closed)
    }

    /// Drops the counters, which are of this kind, of tasks that have ended: they would say so for ever.
    pub(crate) fn drop_ended(&self, kind: &Kind, counters: &mut Vec<&Placed>) {
        let mut states = self.of(kind).iter();
        counters.retain(|_| !states.next().is_some_and(|state| state.closed));
    }
}
