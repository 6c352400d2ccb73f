//! Which threads hold futexes when waits begin, from the memory around each futex: the BPF program of `lock record --user`
//! captures it in a record for each wait (a "BPF record").
//!
//! A recording has two sources for a wait, in any order: this record, and the events of the call, futex(2).

use rustc_hash::FxHashMap;

use super::captured::{CapturedWait, CapturedWaits};
use super::futex_holder::FutexHolder;
use crate::EventContext;

/// The captured waits for whose calls no event has been observed yet, and the threads that may be holders.
#[derive(Debug, Default)]
pub(super) struct FutexOwners {
    /// The process of each thread of the recording.
    processes: FxHashMap<u32, u32>,
    /// For threads in PID namespaces other than the recorder's: the id in the recording, by process and by id in the namespace.
    by_namespace_id: FxHashMap<(u32, u32), u32>,
    /// Waits for whose calls no event has been observed yet, by thread.
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
    /// `processes` has the id and the process id of each thread of the recording. For waits in the recorder's PID namespace, a
    /// number in the memory of a futex is the id of a holder only if it is one of these thread ids.
    pub(super) fn new(processes: impl IntoIterator<Item = (u32, u32)>) -> Self {
        Self {
            processes: processes.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns the new wait of a BPF record. If its thread has another id in its own PID namespace, that id is noted.
    pub(super) fn new_wait(&mut self, captured: &CapturedWaits) -> Option<NewWait> {
        // The other waits of the record began before.
        let new = captured.waits.first()?;
        if new.own_tid != new.tid {
            let namespace_id = (captured.pid, new.own_tid);
            self.by_namespace_id.insert(namespace_id, new.tid);
        }
        Some(NewWait {
            tid: new.tid,
            address: new.address,
            holder: self.holder(captured.pid, new),
        })
    }

    /// Notes a wait for whose call no event has been observed yet.
    pub(super) fn add_pending(&mut self, wait: NewWait) {
        self.pending.insert(wait.tid, wait);
    }

    /// Returns the holder of the futex that a thread of the process `pid` waits for, with its id in the recording; `None` if
    /// unknown.
    pub(super) fn holder(&self, pid: u32, wait: &CapturedWait) -> Option<FutexHolder> {
        let holder = wait.holder?;
        let is_in_recorder_namespace = wait.own_tid == wait.tid;
        let tid = match is_in_recorder_namespace {
            true => {
                let process = *self.processes.get(&holder.tid)?;
                // Only a thread of the same process can hold a futex that processes do not share.
                (process == pid || wait.call.is_shared()).then_some(holder.tid)
            }
            false => self.by_namespace_id.get(&(pid, holder.tid)).copied(),
        };
        Some(FutexHolder {
            tid: tid?,
            ..holder
        })
    }

    /// Removes the pending wait of the current thread, which begins to wait for the futex at `address`. Returns the holder,
    /// `Some(None)` if it is unknown; `None` if the thread has no pending wait, or one for another futex. After `None`, the
    /// record of this wait may follow, since the kernel writes records and events of a call in any order.
    pub(super) fn take_pending(
        &mut self,
        at: &EventContext,
        address: u64,
    ) -> Option<Option<FutexHolder>> {
        let pending = self.pending.remove(&at.task.tid)?;
        (pending.address == address).then_some(pending.holder)
    }
}
