//! How long threads wait for a CPU, from wakeups and context switches.

use rperf_tracepoint::typed::TypedEvent;
use rustc_hash::FxHashMap;

use crate::{ContextSwitch, EventContext};

/// The time in run queues by thread.
#[derive(Debug, Default)]
pub(super) struct RunQueueTimes {
    threads: FxHashMap<u32, ThreadQueueing>,
}

#[derive(Debug, Clone, Copy, Default)]
struct ThreadQueueing {
    /// Whether the thread was switched out and not in again.
    is_off: bool,
    /// When it became runnable; `None` while it runs or sleeps.
    since: Option<u64>,
    /// The time of its ended waits for a CPU, in ns.
    total: u64,
}

impl RunQueueTimes {
    /// Notes a wakeup or a context switch from an event of the scheduler; other events are ignored.
    pub(super) fn event(&mut self, at: &EventContext, event: &TypedEvent<'_>) {
        match event {
            TypedEvent::SchedWakeup(event) => {
                let thread = self.threads.get_mut(&event.pid().cast_unsigned());
                // A thread that is about to sleep may be woken while it still runs.
                if let Some(thread) = thread.filter(|thread| thread.is_off) {
                    // `SchedWakeup` is also decoded from `sched_waking`, which precedes `sched_wakeup`: the first one counts.
                    thread.since.get_or_insert(at.time());
                }
            }
            TypedEvent::SchedSwitch(event) => {
                let is_runnable = event.prev_state().is_runnable();
                self.leaves(event.prev_pid().cast_unsigned(), is_runnable, at.time());
                self.runs(event.next_pid().cast_unsigned(), at.time());
            }
            _ => {}
        }
    }

    /// Notes a context switch of the current thread, from its record.
    pub(super) fn switch(&mut self, at: &EventContext, switch: ContextSwitch) {
        match switch {
            ContextSwitch::In => self.runs(at.task.tid, at.time()),
            ContextSwitch::Out | ContextSwitch::Preempted => {
                let is_runnable = switch == ContextSwitch::Preempted;
                self.leaves(at.task.tid, is_runnable, at.time());
            }
        }
    }

    fn leaves(&mut self, tid: u32, is_runnable: bool, time: u64) {
        let thread = self.threads.entry(tid).or_default();
        thread.is_off = true;
        if is_runnable {
            // A tracepoint and a record may report the same switch: the earlier time counts.
            thread.since.get_or_insert(time);
        }
    }

    fn runs(&mut self, tid: u32, time: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        thread.is_off = false;
        if let Some(since) = thread.since.take() {
            thread.total = thread.total.saturating_add(time.saturating_sub(since));
        }
    }

    /// Returns how long a thread has waited for CPUs until `time`, in ns. The thread runs at that time: if the switch to it was
    /// not recorded, its wait ends now.
    pub(super) fn total(&mut self, tid: u32, time: u64) -> u64 {
        self.runs(tid, time);
        self.threads.get(&tid).map_or(0, |thread| thread.total)
    }
}
