//! A state machine for the events of each thread and lock: finds waits, and events in an impossible order.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::rows::LockRow;
use crate::EventContext;

/// The numbers of rows with events in an impossible order, by the event at which this was first found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BadSequences {
    /// `lock:lock_acquire`.
    pub acquire: u64,
    /// `lock:lock_acquired`, or `lock:contention_end`.
    pub acquired: u64,
    /// `lock:lock_contended`, or `lock:contention_begin`.
    pub contended: u64,
    /// `lock:lock_release`.
    pub release: u64,
}

impl BadSequences {
    /// Returns the number of rows.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.acquire + self.acquired + self.contended + self.release
    }
}

/// What an event reports. The first two are events of `lock:contention_*`, which report neither acquire nor release; the others
/// are events of `lock:lock_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// `lock:contention_begin`: a wait begins, or continues (a mutex reports spinning and sleeping as two begins).
    Begin,
    /// `lock:contention_end`: a wait ends.
    End,
    /// A lock is about to be taken.
    Acquire,
    /// A lock is taken by a trylock, which does not wait.
    Try,
    /// A lock is taken for reading.
    Read,
    /// A lock is taken.
    Acquired,
    /// The thread has to wait.
    Contended,
    /// A lock is released.
    Release,
}

/// Flag of `lock:lock_acquire`: a trylock.
const TRY_LOCK: u32 = 1;
/// Flag of `lock:lock_acquire`: a lock for reading.
const READ_LOCK: u32 = 2;

impl Step {
    /// Returns the step of `lock:lock_acquire` with these flags. A trylock for reading is [`Step::Read`].
    pub(super) fn acquire(flags: u32) -> Self {
        if flags & READ_LOCK != 0 {
            Self::Read
        } else if flags & TRY_LOCK != 0 {
            Self::Try
        } else {
            Self::Acquire
        }
    }
}

/// The state of a thread and a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Acquiring,
    Waiting,
    /// Taken, or a wait ended. [`Step::End`] leaves this state until the next wait, since `lock:contention_*` report no release.
    Acquired,
    /// Taken for reading this many times (at least 1), or once by a trylock.
    Read(u64),
}

/// What a step leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    State(State),
    /// Nothing changes.
    Same,
    /// The lock is free again.
    Free,
    /// The order of the events is impossible.
    Broken,
}

impl Step {
    /// Returns what the step leads to from `state`, which is `None` before the first event, after a release, after an impossible
    /// order and after a skipped begin ([`Sequences::skip_begin`]).
    fn next(self, state: Option<State>) -> Next {
        match (self, state) {
            // The first alternative: the start of the wait, or the acquire, precedes the recording or is not selected.
            (Self::End | Self::Acquired | Self::Contended, None)
            | (Self::Begin, Some(State::Waiting)) => Next::Same,
            (Self::Release, None | Some(State::Acquired | State::Read(0 | 1))) => Next::Free,
            (Self::Release, Some(State::Read(count))) => Next::State(State::Read(count - 1)),
            (Self::Begin, None | Some(State::Acquired))
            | (Self::Contended, Some(State::Acquiring)) => Next::State(State::Waiting),
            (Self::End, Some(State::Waiting))
            | (Self::Acquired, Some(State::Acquiring | State::Waiting)) => {
                Next::State(State::Acquired)
            }
            (Self::Acquire, None) => Next::State(State::Acquiring),
            (Self::Try | Self::Read, None) => Next::State(State::Read(1)),
            (Self::Read, Some(State::Read(count))) => Next::State(State::Read(count + 1)),
            _ => Next::Broken,
        }
    }
}

/// An event of a thread and a lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockEvent {
    tid: u32,
    address: u64,
    time: u64,
    /// The index of its row; `None` for the row of the previous event of this thread and lock.
    row: Option<usize>,
    /// How long the thread has waited for CPUs so far, in ns.
    queued: u64,
    /// The thread that holds the lock, if a wait begins and the holder is known; counted in [`LockRow::owners`].
    holder: Option<u32>,
}

impl LockEvent {
    /// Returns an event in the row of the previous event of the thread and lock; without a previous one, it has no effect.
    pub(super) fn at(at: &EventContext, address: u64) -> Self {
        Self {
            tid: at.task.tid,
            address,
            time: at.time(),
            row: None,
            queued: 0,
            holder: None,
        }
    }

    /// Sets the index of its row.
    pub(super) fn of_row(self, row: usize) -> Self {
        let row = Some(row);
        Self { row, ..self }
    }

    /// Sets how long the thread has waited for CPUs so far, in ns.
    pub(super) fn queued(self, queued: u64) -> Self {
        Self { queued, ..self }
    }

    /// Sets the thread that holds the lock.
    pub(super) fn held_by(self, holder: Option<u32>) -> Self {
        Self { holder, ..self }
    }
}

/// The present state of a thread and a lock, and the event that led to it.
#[derive(Debug, Clone, Copy)]
struct Current {
    state: State,
    /// The time of that event.
    since: u64,
    /// The row of that event.
    row: usize,
    /// How long the thread had waited for CPUs then, in ns.
    queued: u64,
    /// The thread that held the lock then.
    holder: Option<u32>,
}

/// The states of all threads and locks.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    current: FxHashMap<(u32, u64), Current>,
    pub(super) bad: BadSequences,
}

impl Sequences {
    /// Skips the start of a wait that is not selected, so that its end does not count as an event in an impossible order. If this
    /// begin continues a selected wait, that wait continues.
    pub(super) fn skip_begin(&mut self, tid: u32, address: u64) {
        if let Entry::Occupied(known) = self.current.entry((tid, address))
            && known.get().state != State::Waiting
        {
            known.remove();
        }
    }

    /// Applies an event to the state of its thread and lock, and to its row.
    pub(super) fn step(&mut self, step: Step, event: LockEvent, rows: &mut [LockRow]) {
        let entry = self.current.entry((event.tid, event.address));
        let before = match &entry {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(_) => None,
        };
        let Some(index) = event.row.or(before.map(|before| before.row)) else {
            return;
        };
        let Some(row) = rows.get_mut(index) else {
            return;
        };
        match step.next(before.map(|before| before.state)) {
            Next::Same => {}
            Next::Free => remove(entry),
            Next::Broken => {
                remove(entry);
                if !row.is_broken {
                    row.is_broken = true;
                    *self.bad.of(step) += 1;
                }
            }
            Next::State(state) => {
                let waited = before.filter(|before| before.state == State::Waiting);
                if let Some(begin) = waited {
                    let queued = event.queued.saturating_sub(begin.queued);
                    row.add_wait(event.time.saturating_sub(begin.since), queued);
                    if let Some(holder) = begin.holder {
                        *row.owners.entry(holder).or_default() += 1;
                    }
                }
                row.contended += u64::from(state == State::Waiting);
                let is_taken = matches!(state, State::Acquired | State::Read(_));
                // A release by one of several readers leaves the lock taken, but does not take it.
                row.acquired += u64::from(is_taken && step != Step::Release);
                entry.insert_entry(Current {
                    state,
                    since: event.time,
                    row: index,
                    queued: event.queued,
                    holder: event.holder,
                });
            }
        }
    }
}

fn remove(entry: Entry<'_, (u32, u64), Current>) {
    if let Entry::Occupied(known) = entry {
        known.remove();
    }
}

impl BadSequences {
    fn of(&mut self, step: Step) -> &mut u64 {
        match step {
            Step::Acquire | Step::Try | Step::Read => &mut self.acquire,
            Step::Acquired | Step::End => &mut self.acquired,
            Step::Begin | Step::Contended => &mut self.contended,
            Step::Release => &mut self.release,
        }
    }
}
