//! Polling of descriptors of several kinds.

use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd};

use rperf_sys::{Ready, poll};

use crate::Error;
use crate::open::OpenCounter;

/// The descriptors for one call of poll(2).
#[derive(Default)]
pub(crate) struct PollSet<'a> {
    fds: Vec<BorrowedFd<'a>>,
}

/// Descriptors of one kind.
pub(crate) struct DescriptorKind(Range<usize>);

/// Results of a poll.
pub(crate) struct PollStates(Vec<Ready>);

impl<'a> PollSet<'a> {
    /// Adds descriptors of one kind, in order.
    pub(crate) fn add(&mut self, fds: impl IntoIterator<Item = BorrowedFd<'a>>) -> DescriptorKind {
        let start = self.fds.len();
        self.fds.extend(fds);
        DescriptorKind(start..self.fds.len())
    }

    /// Adds counters.
    pub(crate) fn counters(&mut self, counters: &[&'a OpenCounter]) -> DescriptorKind {
        self.add(counters.iter().map(|placed| placed.counter.as_fd()))
    }

    /// Waits until one of them is ready, or for this many milliseconds (-1: no limit).
    pub(crate) fn wait(self, timeout: i32) -> Result<PollStates, Error> {
        let states = poll(&self.fds, timeout);
        states
            .map(PollStates)
            .map_err(Error::system("wait for the rings"))
    }
}

impl PollStates {
    /// Results of one kind.
    pub(crate) fn of(&self, kind: &DescriptorKind) -> &[Ready] {
        self.0.get(kind.0.clone()).unwrap_or_default()
    }

    /// Whether any of a kind is readable.
    pub(crate) fn is_readable(&self, kind: &DescriptorKind) -> bool {
        self.of(kind).iter().any(|state| state.readable)
    }

    /// Whether the other end of any of a kind is closed.
    pub(crate) fn is_closed(&self, kind: &DescriptorKind) -> bool {
        self.of(kind).iter().any(|state| state.closed)
    }

    /// Removes the counters of exited tasks, which would always be ready.
    pub(crate) fn drop_ended(&self, kind: &DescriptorKind, counters: &mut Vec<&OpenCounter>) {
        let mut states = self.of(kind).iter();
        counters.retain(|_| !states.next().is_some_and(|state| state.closed));
    }
}
