//! Owners of locks of the running system, by the numbers that BPF programs read from locks.

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
    processes: HashMap<u32, u32>,
    /// Whether a workload and its children were observed.
    is_family: bool,
}

impl LiveOwners {
    pub(super) fn new(proc: Proc, processes: HashMap<u32, u32>, is_family: bool) -> Self {
        Self {
            machine: MachineThreads::new(&proc),
            proc,
            processes,
            is_family,
        }
    }

    /// Returns the thread that owns a lock of the kernel, or the futex at `address` of `process`; `None` if it is unknown. `value` is the owner as the BPF
    /// programs report it; memory of a process may contain any number.
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
            let waiting = self.proc.status(pid, pid);
            if let Ok(waiting) = waiting {
                if let Some(place) = self.machine.place(pid, address) {
                    let is_translated = waiting.namespaces > 1 && !is_foreign;
                    let own = if is_translated {
                        self.own_id(tid)?
                    } else {
                        tid
                    };
                    let owner = self.machine.sharing(place, pid, own);
                    return owner.map(|owner| owner.tid);
                }
            } else if self.is_family && !is_foreign && self.processes.contains_key(&tid) {
                return Some(tid);
            }
        }
        (!is_foreign && self.processes.get(&tid) == Some(&pid)).then_some(tid)
    }

    /// Returns the name of a thread; `None` if it has ended.
    pub(super) fn name(&self, tid: u32) -> Option<String> {
        let pid = self.proc.process_of(tid).ok()?;
        let status = self.proc.status(pid, tid).ok()?;
        Some(String::from_utf8_lossy(&status.name).into_owned())
    }

    /// Returns the process of a thread, if known.
    pub(super) fn process(&self, tid: u32) -> Option<u32> {
        let observed = self.processes.get(&tid).copied();
        observed.or_else(|| self.proc.process_of(tid).ok())
    }

    /// Returns the id of a thread in its own PID namespace.
    fn own_id(&self, tid: u32) -> Option<u32> {
        let pid = self.process(tid)?;
        self.proc.status(pid, tid).ok().map(|status| status.own_tid)
    }
}

/// Returns the threads outside of the first PID namespace. Threads whose files in procfs cannot be read are left out.
///
/// # Errors
///
/// The processes cannot be listed.
pub(super) fn namespaced_threads(proc: &Proc) -> io::Result<Vec<NamespacedThread>> {
    let mut threads = Vec::new();
    for pid in proc.processes()? {
        let status = proc.status(pid, pid);
        if status.is_ok_and(|status| status.namespaces > 1)
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
