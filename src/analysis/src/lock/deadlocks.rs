//! Deadlocks and chains of waits for futexes in a recording.

use std::sync::Arc;

use rperf_tracepoint::typed::TypedEvent;
use rustc_hash::FxHashSet;

use super::futex_holder::{FutexHolder, FutexObject};
use super::owners::FutexOwners;
use super::rows::LockDetail;
use super::user::{AGAIN, FutexAction, UserLock};
use super::wait_graph::{HeldWait, WaitChain, WaitCycle, WaitGraph};
use crate::sched::LostStretches;
use crate::{EventContext, Loss, Observer};

/// Finds threads that wait for futexes of each other.
#[derive(Debug)]
pub struct FutexDeadlocks {
    owners: FutexOwners,
    graph: WaitGraph,
    /// Waiting threads without a record of their wait so far. The record of a wait is a sample with memory of the process, which
    /// is captured when the wait begins and says who holds the futex.
    uncaptured: FxHashSet<u32>,
    waits: u64,
    unknown_holders: u64,
    /// The time of the last event, in ns.
    end: u64,
    /// Where records were lost.
    pub losses: LostStretches,
}

/// The deadlocks and chains of waits in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundWaits {
    /// Cycles, in order of time.
    pub cycles: Vec<WaitCycle>,
    /// Chains of at least two waits, the one with the longest total time first.
    pub chains: Vec<WaitChain>,
    /// The number of calls that wait, including those that returned at once since the futex had changed (`EAGAIN`).
    pub waits: u64,
    /// The number of these calls for futexes without a known holder when the call began.
    pub unknown_holders: u64,
    /// How often a chain was not counted, since there were too many different ones.
    pub skipped_chains: u64,
    /// The time of the last event, in ns.
    pub end: u64,
}

impl FutexDeadlocks {
    /// Creates an analysis without waits. `processes` has the thread ids of the recording, each with the id of its process.
    #[must_use]
    pub fn new(processes: impl IntoIterator<Item = (u32, u32)>) -> Self {
        Self {
            owners: FutexOwners::new(processes),
            graph: WaitGraph::default(),
            uncaptured: FxHashSet::default(),
            waits: 0,
            unknown_holders: 0,
            end: 0,
            losses: LostStretches::default(),
        }
    }

    /// Returns the deadlocks and chains up to the last event.
    #[must_use]
    pub fn finish(self) -> FoundWaits {
        let skipped_chains = self.graph.skipped_chains;
        let (cycles, chains) = self.graph.finish(self.end);
        FoundWaits {
            cycles,
            chains,
            waits: self.waits,
            unknown_holders: self.unknown_holders,
            skipped_chains,
            end: self.end,
        }
    }

    fn begin(&mut self, at: &EventContext, address: u64, has_timeout: bool, stack: Vec<u64>) {
        // The holder in the record of this wait: `None` if there was no record yet, `Some(None)` if the record has no holder.
        let captured = self.owners.take_pending(at, address);
        match captured {
            Some(_) => self.uncaptured.remove(&at.task.tid),
            None => self.uncaptured.insert(at.task.tid),
        };
        let holder = captured.flatten();
        self.waits += 1;
        self.unknown_holders += u64::from(holder.is_none());
        let wait = HeldWait {
            pid: at.task.pid,
            address,
            object: holder.map_or(FutexObject::Unknown, |holder| holder.object),
            holder: holder.map(|holder| holder.tid),
            has_timeout,
            stack,
        };
        self.graph.begin(at.task.tid, wait, at.time());
    }
}

impl Observer<Option<Arc<LockDetail>>> for FutexDeadlocks {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, detail: Option<Arc<LockDetail>>) {
        self.end = self.end.max(at.time());
        if !self.losses.usable_event(at) {
            return;
        }
        match event {
            TypedEvent::SysEnterFutex(event) => match FutexAction::of(event.op()) {
                FutexAction::Wait(_) => {
                    let has_timeout = event.utime().is_some_and(|timeout| timeout != 0);
                    let stack = detail.map_or_else(Vec::new, |detail| detail.full_stack.clone());
                    self.begin(at, event.uaddr(), has_timeout, stack);
                }
                FutexAction::Wake => {
                    let lock = UserLock {
                        pid: at.task.pid,
                        address: event.uaddr(),
                    };
                    // From now on, another thread may hold the futex.
                    self.graph.forget_holder(lock, at.time());
                }
                FutexAction::Other => {}
            },
            TypedEvent::SysExitFutex(event) if event.ret() == AGAIN => {
                self.uncaptured.remove(&at.task.tid);
                self.graph.cancel(at.task.tid, at.time());
            }
            TypedEvent::SysExitFutex(_) => {
                self.uncaptured.remove(&at.task.tid);
                self.graph.end(at.task.tid, at.time());
            }
            _ => {}
        }
    }

    /// Handles the record of a wait.
    fn sample(&mut self, at: &EventContext, detail: Option<Arc<LockDetail>>) {
        let detail = detail.unwrap_or_default();
        let Some(captured) = &detail.captured else {
            return;
        };
        let tid_and_object =
            |holder: Option<FutexHolder>| holder.map(|holder| (holder.tid, holder.object));
        // The first is the wait that the record is for; the event of its call may precede the record or follow it. The others
        // have begun before: the wait of the holder, of the holder's holder and so on.
        for wait in captured.waits.iter().skip(1) {
            let holder = tid_and_object(self.owners.holder(captured.pid, wait));
            self.graph
                .set_holder(wait.tid, wait.address, holder, at.time());
        }
        let Some(new) = self.owners.new_wait(captured) else {
            return;
        };
        // Whether the event of the call preceded this record.
        let has_begun = self.uncaptured.remove(&new.tid);
        match has_begun {
            true => {
                self.unknown_holders -= u64::from(new.holder.is_some());
                self.graph
                    .set_holder(new.tid, new.address, tid_and_object(new.holder), at.time());
            }
            false => self.owners.add_pending(new),
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
        // A wake may be among the lost events: the holders of the waits may have changed.
        self.graph.forget_holders(at.time());
    }
}
