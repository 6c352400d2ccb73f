//! Owners of locks of the running system, from the thread ids that BPF programs read from the locks.

use std::collections::HashMap;
use std::io;

use rperf_bpf::{FOREIGN_OWNER, NamespacedThread, SHARED_OWNER, UNKNOWN_OWNER};
use rperf_sys::Proc;

use super::machine_threads::MachineThreads;

/// The threads that may be owners, at the end of an observation.
pub(super) struct LiveOwners {
    proc: Proc,
    machine: MachineThreads,
    /// The process of each observed thread.
    process_by_tid: HashMap<u32, u32>,
    /// Whether a workload and its children were observed.
    is_workload: bool,
}

impl LiveOwners {
    pub(super) fn new(proc: Proc, process_by_tid: HashMap<u32, u32>, is_workload: bool) -> Self {
        Self {
            machine: MachineThreads::new(&proc),
            proc,
            process_by_tid,
            is_workload,
        }
    }

    /// Returns the thread id of the owner of the futex at `address` in the memory of `process`, or of a lock of the kernel if
    /// `process` is `None`. Returns `None` if the owner is unknown.
    ///
    /// `value` is the owner as the BPF programs report it: a thread id and flags. [`SHARED_OWNER`]: the futex may be shared by
    /// processes. [`FOREIGN_OWNER`]: the id could not be translated from the PID namespace of the waiting thread to the initial
    /// one. The owner of a futex is read from the memory of the process, so it is only returned if it is the id of a thread that
    /// can own the futex.
    pub(super) fn owner(&self, value: u64, process: Option<u32>, address: u64) -> Option<u32> {
        if value == UNKNOWN_OWNER {
            return None;
        }
        let tid = (value & u64::from(u32::MAX)) as u32;
        let Some(pid) = process else {
            return Some(tid);
        };
        let is_foreign = value & FOREIGN_OWNER != 0;
        if value & SHARED_OWNER != 0 {
            match self.proc.status(pid, pid) {
                Ok(status) => {
                    // The place: the mapped file or shared memory with the futex, and the offset in it. Other processes may map
                    // it at other addresses.
                    if let Some(place) = self.machine.place(pid, address) {
                        // The futex holds the owner's thread id in the owner's PID namespace. If the waiting process is not in
                        // the initial namespace (depth 1), the BPF programs have translated the id to the initial namespace,
                        // but the search needs the original id.
                        let is_translated = status.pid_namespace_depth > 1 && !is_foreign;
                        let own_tid = match is_translated {
                            true => self.own_id(tid)?,
                            false => tid,
                        };
                        let owner = self.machine.thread_sharing(place, pid, own_tid);
                        return owner.map(|owner| owner.tid);
                    }
                }
                // The process has ended, so its mappings are unknown: any process of the workload may share the futex.
                Err(_)
                    if self.is_workload
                        && !is_foreign
                        && self.process_by_tid.contains_key(&tid) =>
                {
                    return Some(tid);
                }
                Err(_) => {}
            }
        }
        (!is_foreign && self.process_by_tid.get(&tid) == Some(&pid)).then_some(tid)
    }

    /// Returns the name of a thread; `None` if it has ended.
    pub(super) fn name(&self, tid: u32) -> Option<String> {
        let pid = self.proc.process_of(tid).ok()?;
        let status = self.proc.status(pid, tid).ok()?;
        Some(String::from_utf8_lossy(&status.name).into_owned())
    }

    /// Returns the process of a thread, if known.
    pub(super) fn process(&self, tid: u32) -> Option<u32> {
        let observed = self.process_by_tid.get(&tid).copied();
        observed.or_else(|| self.proc.process_of(tid).ok())
    }

    /// Returns the id of a thread in its own PID namespace.
    fn own_id(&self, tid: u32) -> Option<u32> {
        let pid = self.process(tid)?;
        self.proc.status(pid, tid).ok().map(|status| status.own_tid)
    }
}

/// Returns the threads outside the initial PID namespace. Threads whose files in procfs cannot be read are left out.
///
/// # Errors
///
/// The processes cannot be listed.
pub(super) fn namespaced_threads(proc: &Proc) -> io::Result<Vec<NamespacedThread>> {
    let mut threads = Vec::new();
    for pid in proc.processes()? {
        let status = proc.status(pid, pid);
        // Depth 1 is the initial namespace.
        if status.is_ok_and(|status| status.pid_namespace_depth > 1)
            && let Ok(namespace) = proc.pid_namespace(pid)
            && let Ok(namespace) = u32::try_from(namespace)
        {
            for tid in proc.threads(pid).unwrap_or_default() {
                let status = proc.status(pid, tid);
                threads.extend(status.map(|status| NamespacedThread {
                    namespace,
                    own_tid: status.own_tid,
                    tid,
                }));
            }
        }
    }
    Ok(threads)
}
