//! The threads of processes at one moment, and the futexes that they wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rperf_analysis::lock::{
    BEFORE_FUTEX, FROM_FUTEX, FutexCall, FutexMemory, FutexObject, MUTEX_MEMORY,
};
use rperf_sys::{BlockedCall, Proc, read_process_memory, syscall_number};

use super::super::machine_threads::{FoundThread, MachineThreads};

/// The offset of the thread's id in glibc's `struct pthread` on x86-64; the structure begins with a pointer to itself, and has
/// another one at offset 16.
const GLIBC_TID: u64 = 0x2d0;

/// The threads of processes at one moment.
#[derive(Default)]
pub(super) struct Snapshot {
    /// The processes whose threads were read.
    pub(super) processes: BTreeMap<u32, ProcessThreads>,
    /// Processes of holders that cannot be read.
    pub(super) unreadable: BTreeSet<u32>,
    /// Waits by thread.
    pub(super) waits: BTreeMap<u32, FoundWait>,
}

/// The threads of a process.
pub(super) struct ProcessThreads {
    /// Names by thread.
    pub(super) names: BTreeMap<u32, String>,
}

/// A wait for a futex.
pub(super) struct FoundWait {
    pub(super) pid: u32,
    pub(super) address: u64,
    pub(super) object: FutexObject,
    pub(super) has_timeout: bool,
    /// The thread that holds the lock, or is joined; its ids are those of this PID namespace.
    pub(super) holder: Option<FoundThread>,
    /// How often the waiting thread was taken off a CPU. If the number is the same later, the thread has not run in between.
    pub(super) switches: u64,
}

/// What is known of a thread.
struct ThreadState {
    name: String,
    /// The id in the thread's own PID namespace, as the program stores it in locks.
    own_tid: u32,
    switches: u64,
    call: Option<BlockedCall>,
}

/// The threads of a process by their ids in this PID namespace.
type ThreadStates = BTreeMap<u32, ThreadState>;

/// A process that cannot be read.
pub(super) struct ReadFailure {
    pub(super) pid: u32,
    pub(super) error: io::Error,
}

impl Snapshot {
    /// Reads the threads of `pids`, and of other processes with threads that these wait for, directly or through others.
    ///
    /// # Errors
    /// Those of procfs and process_vm_readv(2) for one of `pids`.
    pub(super) fn take(proc: &Proc, pids: &[u32]) -> Result<Self, ReadFailure> {
        let requested: BTreeSet<u32> = pids.iter().copied().collect();
        let (mut all, mut unreadable) = (requested.clone(), BTreeSet::new());
        loop {
            let mut snapshot = Self::at_once(proc, &requested, &all)?;
            let holders = snapshot.waits.values().filter_map(|wait| wait.holder);
            let holders = holders.map(|holder| holder.pid);
            let others: BTreeSet<u32> = holders.filter(|pid| !all.contains(pid)).collect();
            let count = all.len();
            for pid in others {
                match threads(proc, pid) {
                    // This was only a test: the next round reads the threads again, with those of all other processes.
                    Ok(_) => {
                        all.insert(pid);
                    }
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        unreadable.insert(pid);
                    }
                    // As a rule, the process has ended.
                    Err(_) => {}
                }
            }
            // If no process was added, this round has read the processes of all holders that can be read.
            if all.len() == count {
                snapshot.unreadable = unreadable;
                return Ok(snapshot);
            }
        }
    }

    /// Reads the threads of `pids` twice, and the memory of the futexes in between. Waits that lasted from the first to the
    /// second reading are kept, so all of them existed at the same time, with the holders that are returned. Fails only for
    /// `requested` processes; others that cannot be read are skipped.
    fn at_once(
        proc: &Proc,
        requested: &BTreeSet<u32>,
        pids: &BTreeSet<u32>,
    ) -> Result<Self, ReadFailure> {
        let all_threads = || {
            let mut all: BTreeMap<u32, ThreadStates> = BTreeMap::new();
            for pid in pids {
                match threads(proc, *pid) {
                    Ok(threads) => {
                        all.insert(*pid, threads);
                    }
                    Err(error) if requested.contains(pid) => {
                        return Err(ReadFailure { pid: *pid, error });
                    }
                    Err(_) => {}
                }
            }
            Ok(all)
        };
        let before = all_threads()?;
        let machine = MachineThreads::new(proc);
        let mut waits = BTreeMap::new();
        for (pid, threads) in &before {
            match found_waits(*pid, threads, &machine) {
                Ok(process_waits) => waits.extend(process_waits),
                Err(error) if requested.contains(pid) => {
                    return Err(ReadFailure { pid: *pid, error });
                }
                Err(_) => {}
            }
        }
        let after = all_threads()?;
        waits.retain(|tid, wait| {
            let state_in = |all: &BTreeMap<u32, ThreadStates>| {
                let thread = all.get(&wait.pid)?.get(tid)?;
                Some((thread.switches, thread.call))
            };
            state_in(&before).is_some_and(|before| Some(before) == state_in(&after))
        });
        let processes = after.into_iter().map(|(pid, threads)| {
            let names = threads.into_iter().map(|(tid, thread)| (tid, thread.name));
            let names = names.collect();
            (pid, ProcessThreads { names })
        });
        Ok(Self {
            processes: processes.collect(),
            unreadable: BTreeSet::new(),
            waits,
        })
    }
}

/// Whether a thread has not run since a snapshot.
pub(super) fn still_waits(proc: &Proc, tid: u32, wait: &FoundWait) -> bool {
    let status = proc.status(wait.pid, tid);
    status.is_ok_and(|status| status.switches == wait.switches)
}

/// Reads the state of the threads of a process. Threads that end meanwhile are left out.
fn threads(proc: &Proc, pid: u32) -> io::Result<ThreadStates> {
    let mut threads = BTreeMap::new();
    for tid in proc.threads(pid)? {
        let Ok(status) = proc.status(pid, tid) else {
            continue;
        };
        let call = match proc.blocked_call(pid, tid) {
            Ok(call) => call,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            Err(_) => continue,
        };
        let state = ThreadState {
            name: String::from_utf8_lossy(&status.name).into_owned(),
            own_tid: status.own_tid,
            switches: status.switches,
            call,
        };
        threads.insert(tid, state);
    }
    Ok(threads)
}

/// Returns the waits of a process by thread.
fn found_waits(
    pid: u32,
    threads: &ThreadStates,
    machine: &MachineThreads,
) -> io::Result<BTreeMap<u32, FoundWait>> {
    let own_tids = threads.iter().map(|(tid, state)| (state.own_tid, *tid));
    let by_own_tid: BTreeMap<u32, u32> = own_tids.collect();
    let mut waits = BTreeMap::new();
    for (tid, state) in threads {
        if let Some((address, call)) = futex_call(state) {
            let memory = futex_memory(pid, address)?;
            let holder = call.holder(&memory, is_thread_id(pid, address));
            // `holder` is as found in the memory, with an id of the thread's own PID namespace.
            let holder_thread = holder.and_then(|holder| {
                // Joined threads are of the same process, although their futexes are not private.
                // The place is the file and the offset that shared memory maps; the holder may be of any process that maps it.
                let may_be_shared = call.is_shared() && holder.object != FutexObject::Thread;
                let place = may_be_shared.then(|| machine.place(pid, address)).flatten();
                match place {
                    Some(place) => machine.thread_sharing(place, pid, holder.tid),
                    None => by_own_tid
                        .get(&holder.tid)
                        .map(|tid| FoundThread { pid, tid: *tid }),
                }
            });
            // If there is no thread with the id found in the memory, the memory may not be that of such an object at all.
            let object = holder
                .filter(|_| holder_thread.is_some())
                .map_or(FutexObject::Unknown, |holder| holder.object);
            let found_wait = FoundWait {
                pid,
                address,
                object,
                // futex(2) has the timeout as its fourth argument.
                has_timeout: state.call.is_some_and(|blocked| blocked.arguments[3] != 0),
                holder: holder_thread,
                switches: state.switches,
            };
            waits.insert(*tid, found_wait);
        }
    }
    Ok(waits)
}

/// Returns the address of the futex that a thread waits for, and the call; `None` if it does not wait for a futex.
fn futex_call(thread: &ThreadState) -> Option<(u64, FutexCall)> {
    let call = thread.call?;
    let [address, operation, value, ..] = call.arguments;
    let low = |argument: u64| (argument & u64::from(u32::MAX)) as u32;
    let wait = FutexCall {
        operation: low(operation),
        value: low(value),
    };
    let is_futex = syscall_number("futex").map(u64::from) == Some(call.number);
    (is_futex && wait.is_wait()).then_some((address, wait))
}

/// Reads the memory around a futex; if not all of it is mapped, only [`MUTEX_MEMORY`] bytes from the futex on, enough for a
/// mutex. What cannot be read is 0.
///
/// # Errors
/// `EPERM`: this process may not read the memory of the other one.
fn futex_memory(pid: u32, address: u64) -> io::Result<FutexMemory> {
    // Returns whether all of `memory` was read.
    let read = |address: u64, memory: &mut [u8]| match read_process_memory(pid, address, memory) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(error),
        result => Ok(result.is_ok_and(|count| count == memory.len())),
    };
    let mut around = [0; BEFORE_FUTEX + FROM_FUTEX];
    if read(address.wrapping_sub(BEFORE_FUTEX as u64), &mut around)? {
        return Ok(FutexMemory::around(&around));
    }
    let mut mutex = [0; MUTEX_MEMORY];
    read(address, &mut mutex)?;
    Ok(FutexMemory::starting_at_futex(&mutex))
}

/// Whether the word at `address` is the thread id in glibc's `struct pthread` of a thread; always `false` except on x86-64.
fn is_thread_id(pid: u32, address: u64) -> bool {
    let Some(start) = address.checked_sub(GLIBC_TID) else {
        return false;
    };
    // Three words: the first and the last are the pointers to the structure itself.
    let mut memory = [0; 24];
    let read = read_process_memory(pid, start, &mut memory);
    let (words, _) = memory.as_chunks::<8>();
    let pointers = [words.first(), words.last()];
    let is_start =
        |word: Option<&[u8; 8]>| word.is_some_and(|word| u64::from_ne_bytes(*word) == start);
    cfg!(target_arch = "x86_64")
        && read.is_ok_and(|read| read == memory.len())
        && pointers.into_iter().all(is_start)
}
