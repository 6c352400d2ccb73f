//! poll(2) for descriptors of several kinds.

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

/// The descriptors added by one call of [`PollSet::add`], as indexes into the set.
pub(crate) struct DescriptorKind(Range<usize>);

/// States of the descriptors of a [`PollSet`], in the same order.
pub(crate) struct PollStates(Vec<Ready>);

impl<'a> PollSet<'a> {
    /// Adds descriptors of one kind, in order.
    pub(crate) fn add(&mut self, fds: impl IntoIterator<Item = BorrowedFd<'a>>) -> DescriptorKind {
        let start = self.fds.len();
        self.fds.extend(fds);
        DescriptorKind(start..self.fds.len())
    }

    /// Adds the descriptors of counters, as one kind.
    pub(crate) fn add_counters(&mut self, counters: &[&'a OpenCounter]) -> DescriptorKind {
        self.add(
            counters
                .iter()
                .map(|open_counter| open_counter.counter.as_fd()),
        )
    }

    /// Waits until a descriptor is ready, but at most `timeout` milliseconds (-1: no limit).
    pub(crate) fn wait(self, timeout: i32) -> Result<PollStates, Error> {
        let states = poll(&self.fds, timeout);
        states
            .map(PollStates)
            .map_err(Error::system("wait for the rings"))
    }
}

impl PollStates {
    /// Returns the states of the descriptors of one kind, in the order in which they were added.
    pub(crate) fn of(&self, kind: &DescriptorKind) -> &[Ready] {
        self.0.get(kind.0.clone()).unwrap_or_default()
    }

    /// Whether any descriptor of this kind is readable.
    pub(crate) fn is_readable(&self, kind: &DescriptorKind) -> bool {
        self.of(kind).iter().any(|state| state.readable)
    }

    /// Whether the other end of any descriptor of this kind is closed.
    pub(crate) fn is_closed(&self, kind: &DescriptorKind) -> bool {
        self.of(kind).iter().any(|state| state.closed)
    }

    /// Removes the counters of exited tasks, which would always be ready. `kind` is the result of [`PollSet::add_counters`] for
    /// the same `counters`.
    pub(crate) fn drop_ended(&self, kind: &DescriptorKind, counters: &mut Vec<&OpenCounter>) {
        let mut states = self.of(kind).iter();
        counters.retain(|_| !states.next().is_some_and(|state| state.closed));
    }
}
