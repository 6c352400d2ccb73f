//! What threads did while others waited for locks that they held: where they ran, slept, and waited for a CPU.

use std::sync::Arc;

use rperf_tracepoint::typed::{SchedSwitch, TypedEvent};
use rustc_hash::FxHashMap;

use super::captured::CapturedWaits;
use super::futex_holder::FutexHolder;
use super::owners::FutexOwners;
use super::rows::{LockDetail, LockStack};
use super::user::{FutexAction, UserLock};
use crate::sched::LostStretches;
use crate::{ContextSwitch, EventContext, Loss, Observer};

/// What a holder did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HolderState {
    /// It ran: the periods of its samples of a clock event.
    Running,
    /// It slept: the time from a context switch to the wakeup.
    Sleeping,
    /// It waited for a CPU: the time from a wakeup or a preemption until it ran again.
    Queued,
}

/// The time of holders with the same state and stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderRow {
    /// What the holders did.
    pub state: HolderState,
    /// The stack of the samples, or of the context switch at which they left the CPU.
    pub stack: LockStack,
    /// Number of samples, or of stretches of sleeping or waiting for a CPU.
    pub count: u64,
    /// Their time, in ns, while at least one thread waited.
    pub nanos: u64,
}

/// The result of [`FutexHolders`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HolderTable {
    /// Most time first.
    pub rows: Vec<HolderRow>,
    /// For how long each holder had at least one waiter, summed over the holders, in ns.
    pub waited: u64,
}

/// Sums the time of holders while others wait.
#[derive(Debug)]
pub struct FutexHolders {
    owners: FutexOwners,
    /// By waiting thread: the holder of the futex that it waits for, and the futex.
    waits: FxHashMap<u32, (u32, UserLock)>,
    /// By waiting thread: the futex of a wait that has begun, but whose [`CapturedWaits`] record, which has the holder, has not
    /// been read yet.
    uncaptured: FxHashMap<u32, UserLock>,
    /// By thread.
    holders: FxHashMap<u32, Holder>,
    /// [`HolderRow::count`] and [`HolderRow::nanos`].
    sums: FxHashMap<(HolderState, LockStack), (u64, u64)>,
    /// Where records were lost.
    pub losses: LostStretches,
}

/// A thread that holds a lock, or may do so later.
#[derive(Debug, Default)]
struct Holder {
    /// The number of threads that wait for it.
    waiters: u32,
    /// If there are waiters, the time up to which `waited` is summed, in ns.
    since: u64,
    /// For how long there was at least one waiter up to `since`, in ns.
    waited: u64,
    /// `None` if the thread runs, or if the time at which it left the CPU is unknown.
    away: Option<Away>,
}

/// A thread that does not run.
#[derive(Debug)]
struct Away {
    stack: LockStack,
    /// The result of [`Holder::waited`] when it left the CPU.
    waited_at_leave: u64,
    /// The result of [`Holder::waited`] when it became runnable again.
    waited_at_wakeup: Option<u64>,
}

impl Holder {
    /// Returns for how long the thread has had at least one waiter up to `time`, in ns.
    fn waited(&self, time: u64) -> u64 {
        match self.waiters {
            0 => self.waited,
            _ => self.waited + time.saturating_sub(self.since),
        }
    }
}

impl FutexHolders {
    /// Creates an analysis without waits. `processes` has the thread id and the process id of each thread of the recording.
    #[must_use]
    pub fn new(processes: impl IntoIterator<Item = (u32, u32)>) -> Self {
        Self {
            owners: FutexOwners::new(processes),
            waits: FxHashMap::default(),
            uncaptured: FxHashMap::default(),
            holders: FxHashMap::default(),
            sums: FxHashMap::default(),
            losses: LostStretches::default(),
        }
    }

    /// Returns the sums. Stretches of sleeping or waiting for a CPU that do not end in the recording are not in the rows; waits
    /// for locks that do not end in it are not in [`HolderTable::waited`].
    #[must_use]
    pub fn finish(self) -> HolderTable {
        let rows = self.sums.into_iter();
        let rows = rows.map(|((state, stack), (count, nanos))| HolderRow {
            state,
            stack,
            count,
            nanos,
        });
        let mut rows: Vec<HolderRow> = rows.collect();
        rows.sort_by(|left, right| {
            let order = right.nanos.cmp(&left.nanos);
            let order = order.then_with(|| left.state.cmp(&right.state));
            order.then_with(|| left.stack.frames.cmp(&right.stack.frames))
        });
        HolderTable {
            rows,
            waited: self.holders.values().map(|holder| holder.waited).sum(),
        }
    }

    /// Begins the wait of the current thread for the futex at `address`.
    fn begin(&mut self, at: &EventContext, address: u64) {
        let captured = self.owners.take_pending(at, address);
        // The exit of an earlier call may be lost.
        self.end(at);
        let lock = UserLock {
            pid: at.task.pid,
            address,
        };
        match captured {
            // `holder` is `None` if it is unknown.
            Some(holder) => self.wait_for(at, lock, holder),
            None => drop(self.uncaptured.insert(at.task.tid, lock)),
        }
    }

    /// Begins the wait of the current thread for a lock, if another thread is known to hold it.
    fn wait_for(&mut self, at: &EventContext, lock: UserLock, holder: Option<FutexHolder>) {
        let Some(holder) = holder.filter(|holder| holder.tid != at.task.tid) else {
            return;
        };
        self.waits.insert(at.task.tid, (holder.tid, lock));
        let holder = self.holders.entry(holder.tid).or_default();
        if holder.waiters == 0 {
            holder.since = at.time();
        }
        holder.waiters += 1;
    }

    /// Notes the holder of a wait, which has begun or begins with the next call of its thread.
    fn capture(&mut self, at: &EventContext, captured: &CapturedWaits) {
        let Some(new) = self.owners.new_wait(captured) else {
            return;
        };
        let begun = self.uncaptured.remove(&new.tid);
        match begun.filter(|lock| lock.address == new.address && new.tid == at.task.tid) {
            Some(lock) => self.wait_for(at, lock, new.holder),
            None => self.owners.add_pending(new),
        }
    }

    /// Ends the wait of the current thread.
    fn end(&mut self, at: &EventContext) {
        self.uncaptured.remove(&at.task.tid);
        if let Some((holder, _)) = self.waits.remove(&at.task.tid) {
            self.remove_waiter(holder, at.time());
        }
    }

    /// Removes a waiter of a holder.
    fn remove_waiter(&mut self, holder: u32, time: u64) {
        if let Some(holder) = self.holders.get_mut(&holder) {
            holder.waited = holder.waited(time);
            holder.since = time;
            holder.waiters = holder.waiters.saturating_sub(1);
        }
    }

    /// Ends all waits for a lock when the current thread wakes its waiters: the holder no longer has the lock.
    fn wake(&mut self, at: &EventContext, address: u64) {
        let lock = UserLock {
            pid: at.task.pid,
            address,
        };
        let is_ended = |wait: &(u32, UserLock)| wait.1 == lock;
        let ended = self.waits.values().filter(|wait| is_ended(wait));
        let holders: Vec<u32> = ended.map(|(holder, _)| *holder).collect();
        self.waits.retain(|_, wait| !is_ended(wait));
        for holder in holders {
            self.remove_waiter(holder, at.time());
        }
    }

    fn leaves(&mut self, tid: u32, stack: LockStack, is_runnable: bool, time: u64) {
        // A thread may become a holder after it has left the CPU, so all threads are kept.
        let holder = self.holders.entry(tid).or_default();
        let waited = holder.waited(time);
        // A switch may be reported twice: by `sched_switch`, which has the stack, and after it by a SWITCH record without one.
        if holder.away.is_none() || !stack.frames.is_empty() {
            holder.away = Some(Away {
                stack,
                waited_at_leave: waited,
                waited_at_wakeup: is_runnable.then_some(waited),
            });
        }
    }

    fn woken(&mut self, tid: u32, time: u64) {
        if let Some(holder) = self.holders.get_mut(&tid) {
            let waited = holder.waited(time);
            if let Some(away) = &mut holder.away {
                away.waited_at_wakeup.get_or_insert(waited);
            }
        }
    }

    fn runs(&mut self, tid: u32, time: u64) {
        let Some(holder) = self.holders.get_mut(&tid) else {
            return;
        };
        let waited = holder.waited(time);
        let Some(away) = holder.away.take() else {
            return;
        };
        // Without a wakeup in the recording, all of the time counts as sleep.
        let at_wakeup = away.waited_at_wakeup.unwrap_or(waited);
        let slept = at_wakeup.saturating_sub(away.waited_at_leave);
        let queued = waited.saturating_sub(at_wakeup);
        let stack = away.stack;
        for (state, nanos) in [
            (HolderState::Sleeping, slept),
            (HolderState::Queued, queued),
        ] {
            if nanos > 0 {
                self.add(state, stack.clone(), nanos);
            }
        }
    }

    fn add(&mut self, state: HolderState, stack: LockStack, nanos: u64) {
        let (count, sum) = self.sums.entry((state, stack)).or_default();
        *count += 1;
        *sum = sum.saturating_add(nanos);
    }

    fn switched(&mut self, at: &EventContext, event: &SchedSwitch<'_>, stack: LockStack) {
        let is_runnable = event.prev_state().is_runnable();
        let [prev, next] = [event.prev_pid(), event.next_pid()].map(i32::cast_unsigned);
        self.leaves(prev, stack, is_runnable, at.time());
        self.runs(next, at.time());
    }
}

impl Observer<Option<Arc<LockDetail>>> for FutexHolders {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, detail: Option<Arc<LockDetail>>) {
        if !self.losses.usable_event(at) {
            return;
        }
        match &event {
            TypedEvent::SysEnterFutex(call) => match FutexAction::of(call.op()) {
                FutexAction::Wait(_) => self.begin(at, call.uaddr()),
                FutexAction::Wake => self.wake(at, call.uaddr()),
                FutexAction::Other => {}
            },
            TypedEvent::SysExitFutex(_) => self.end(at),
            TypedEvent::SchedSwitch(event) => {
                let detail = detail.unwrap_or_default();
                self.switched(at, event, detail.stack.clone());
            }
            TypedEvent::SchedWakeup(event) => {
                self.woken(event.pid().cast_unsigned(), at.time());
            }
            _ => {}
        }
    }

    fn sample(&mut self, at: &EventContext, detail: Option<Arc<LockDetail>>) {
        let detail = detail.unwrap_or_default();
        if let Some(captured) = &detail.captured {
            self.capture(at, captured);
        }
        let Some(nanos) = detail.clock_period else {
            return;
        };
        let holder = self.holders.get(&at.task.tid);
        if holder.is_some_and(|holder| holder.waiters > 0) {
            self.add(HolderState::Running, detail.stack.clone(), nanos);
        }
    }

    fn switch(&mut self, at: &EventContext, switch: ContextSwitch) {
        match switch {
            ContextSwitch::In => self.runs(at.task.tid, at.time()),
            ContextSwitch::Out | ContextSwitch::Preempted => {
                let is_runnable = switch == ContextSwitch::Preempted;
                self.leaves(at.task.tid, LockStack::default(), is_runnable, at.time());
            }
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
        // A wake or a switch may be among the lost events.
        let waits = self.waits.drain();
        let holders: Vec<u32> = waits.map(|(_, (holder, _))| holder).collect();
        for holder in holders {
            self.remove_waiter(holder, at.time());
        }
        for holder in self.holders.values_mut() {
            holder.away = None;
        }
    }
}
