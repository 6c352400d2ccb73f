//! Which threads hold futexes when waits begin, from the captured memory of a recording.

use rustc_hash::FxHashMap;

use super::captured::{CapturedWait, CapturedWaits};
use super::futex_holder::FutexHolder;
use crate::EventContext;

/// The captured waits whose calls have not been observed yet, and the threads that may be owners.
#[derive(Debug, Default)]
pub(super) struct FutexOwners {
    /// The process of each thread of the recording.
    processes: FxHashMap<u32, u32>,
    /// Threads by process and by the id that the program sees, of programs in PID namespaces.
    own_ids: FxHashMap<(u32, u32), u32>,
    /// By thread.
    pending: FxHashMap<u32, PendingHolder>,
}

#[derive(Debug, Clone, Copy)]
struct PendingHolder {
    address: u64,
    holder: Option<FutexHolder>,
}

impl FutexOwners {
    /// `processes` has the process of each thread: other numbers in memory are no owners.
    pub(super) fn new(processes: impl IntoIterator<Item = (u32, u32)>) -> Self {
        Self {
            processes: processes.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Notes the first wait, whose call is the next event of its thread.
    pub(super) fn capture(&mut self, captured: &CapturedWaits) {
        let Some(first) = captured.waits.first() else {
            return;
        };
        if first.own_tid != first.tid {
            let own = (captured.pid, first.own_tid);
            self.own_ids.insert(own, first.tid);
        }
        let pending = PendingHolder {
            address: first.address,
            holder: self.holder(captured.pid, first),
        };
        self.pending.insert(first.tid, pending);
    }

    /// Returns the holder of the futex of a wait, with its id in the recording; `None` if it is unknown.
    pub(super) fn holder(&self, pid: u32, wait: &CapturedWait) -> Option<FutexHolder> {
        let found = wait.holder?;
        let tid = match wait.own_tid == wait.tid {
            true => {
                let process = *self.processes.get(&found.tid)?;
                (process == pid || wait.wait.is_shared()).then_some(found.tid)
            }
            false => self.own_ids.get(&(pid, found.tid)).copied(),
        };
        Some(FutexHolder { tid: tid?, ..found })
    }

    /// Returns the holder of the futex at `address` when the current thread begins to wait for it.
    pub(super) fn take(&mut self, at: &EventContext, address: u64) -> Option<FutexHolder> {
        let pending = self.pending.remove(&at.task.tid)?;
        pending.holder.filter(|_| pending.address == address)
    }
}
