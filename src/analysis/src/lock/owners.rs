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
    /// The threads of PID namespaces other than the recorder's, by process and by id in the namespace.
    own_ids: FxHashMap<(u32, u32), u32>,
    /// Waits whose calls have not been observed yet, by thread.
    pending: FxHashMap<u32, NewWait>,
}

/// A wait that begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewWait {
    pub(super) tid: u32,
    pub(super) address: u64,
    /// The holder of the futex, with its id in the recording.
    pub(super) holder: Option<FutexHolder>,
}

impl FutexOwners {
    /// `processes` has the id and the process id of each thread. Other numbers in the memory of a futex are no owners.
    pub(super) fn new(processes: impl IntoIterator<Item = (u32, u32)>) -> Self {
        Self {
            processes: processes.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns the new wait of a record, and notes the id of its thread in another PID namespace.
    pub(super) fn new_wait(&mut self, captured: &CapturedWaits) -> Option<NewWait> {
        let first = captured.waits.first()?;
        if first.own_tid != first.tid {
            let own = (captured.pid, first.own_tid);
            self.own_ids.insert(own, first.tid);
        }
        Some(NewWait {
            tid: first.tid,
            address: first.address,
            holder: self.holder(captured.pid, first),
        })
    }

    /// Notes a wait whose call is the next event of its thread.
    pub(super) fn expect(&mut self, wait: NewWait) {
        self.pending.insert(wait.tid, wait);
    }

    /// Returns the holder of the futex of a wait, with its id in the recording; `None` if it is unknown.
    pub(super) fn holder(&self, pid: u32, wait: &CapturedWait) -> Option<FutexHolder> {
        let captured = wait.holder?;
        let tid = match wait.own_tid == wait.tid {
            true => {
                let process = *self.processes.get(&captured.tid)?;
                (process == pid || wait.wait.is_shared()).then_some(captured.tid)
            }
            false => self.own_ids.get(&(pid, captured.tid)).copied(),
        };
        Some(FutexHolder {
            tid: tid?,
            ..captured
        })
    }

    /// Removes the pending wait of the current thread, which begins a wait for the futex at `address`. Returns the holder,
    /// `Some(None)` if it is unknown; `None` if the thread has no pending wait, or one for another futex. The record may then
    /// follow, since the kernel writes records and events of a call in any order.
    pub(super) fn take(&mut self, at: &EventContext, address: u64) -> Option<Option<FutexHolder>> {
        let pending = self.pending.remove(&at.task.tid)?;
        (pending.address == address).then_some(pending.holder)
    }
}
