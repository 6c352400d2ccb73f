//! The threads of a process that wait for futexes, at one moment.

use std::collections::BTreeMap;
use std::io;

use rperf_analysis::lock::{
    BEFORE_FUTEX, FROM_FUTEX, FutexHolder, FutexMemory, FutexWait, MUTEX_MEMORY,
};
use rperf_sys::{BlockedCall, Proc, read_process_memory, syscall_number};

/// The offset of the thread's id in glibc's `struct pthread` on x86-64; the structure begins with a pointer to itself, and has another one after
/// 16 bytes.
const GLIBC_TID: u64 = 0x2d0;

/// The threads of a process at one moment.
pub(super) struct Snapshot {
    /// Names of threads.
    pub(super) names: BTreeMap<u32, String>,
    /// Waits by thread.
    pub(super) waits: BTreeMap<u32, FoundWait>,
}

/// A wait for a futex.
pub(super) struct FoundWait {
    pub(super) address: u64,
    pub(super) has_timeout: bool,
    /// The thread that has to act before the wait ends; its id is that of this PID namespace.
    pub(super) holder: Option<FutexHolder>,
    /// How often the thread was taken off a CPU.
    pub(super) switches: u64,
}

/// What is known of a thread.
struct ThreadState {
    name: String,
    /// The id that the program knows.
    own_tid: u32,
    switches: u64,
    call: Option<BlockedCall>,
}

impl Snapshot {
    /// Reads the threads of a process twice, and the memory of the futexes in between. Waits that lasted from the first to the second reading
    /// are kept, so all of them existed at the same time, with the holders that are returned.
    ///
    /// # Errors
    /// Those of procfs and process_vm_readv(2).
    pub(super) fn take(proc: &Proc, pid: u32) -> io::Result<Self> {
        let before = threads(proc, pid)?;
        let by_own_tid: BTreeMap<u32, u32> = before
            .iter()
            .map(|(tid, thread)| (thread.own_tid, *tid))
            .collect();
        let mut waits = BTreeMap::new();
        for (tid, thread) in &before {
            if let Some(wait) = found_wait(pid, thread, &by_own_tid)? {
                waits.insert(*tid, wait);
            }
        }
        let after = threads(proc, pid)?;
        waits.retain(|tid, _| {
            let both = before.get(tid).zip(after.get(tid));
            both.is_some_and(|(before, after)| {
                before.switches == after.switches && before.call == after.call
            })
        });
        let names = after.into_iter().map(|(tid, thread)| (tid, thread.name));
        Ok(Self {
            names: names.collect(),
            waits,
        })
    }
}

/// Whether a thread has not run since a snapshot.
pub(super) fn still_waits(proc: &Proc, pid: u32, tid: u32, wait: &FoundWait) -> bool {
    let status = proc.status(pid, tid);
    status.is_ok_and(|status| status.switches == wait.switches)
}

/// Reads the state of the threads. Those that end meanwhile are left out.
fn threads(proc: &Proc, pid: u32) -> io::Result<BTreeMap<u32, ThreadState>> {
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

/// Returns the wait of a thread; `None` if it does not wait for a futex.
fn found_wait(
    pid: u32,
    thread: &ThreadState,
    by_own_tid: &BTreeMap<u32, u32>,
) -> io::Result<Option<FoundWait>> {
    let Some(call) = thread.call else {
        return Ok(None);
    };
    let [address, operation, value, timeout, ..] = call.arguments;
    let low = |argument: u64| (argument & u64::from(u32::MAX)) as u32;
    let wait = FutexWait {
        operation: low(operation),
        value: low(value),
    };
    if syscall_number("futex").map(u64::from) != Some(call.number) || !wait.is_wait() {
        return Ok(None);
    }
    let memory = futex_memory(pid, address)?;
    let holder = wait.holder(&memory, is_thread_id(pid, address));
    let holder = holder.and_then(|holder| {
        let tid = *by_own_tid.get(&holder.tid)?;
        Some(FutexHolder { tid, ..holder })
    });
    Ok(Some(FoundWait {
        address,
        has_timeout: timeout != 0,
        holder,
        switches: thread.switches,
    }))
}

/// Reads the memory around a futex, or as much as is mapped.
fn futex_memory(pid: u32, address: u64) -> io::Result<FutexMemory> {
    let read = |address: u64, memory: &mut [u8]| match read_process_memory(pid, address, memory) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(error),
        read => Ok(read.is_ok_and(|read| read == memory.len())),
    };
    let mut around = [0; BEFORE_FUTEX + FROM_FUTEX];
    if read(address.wrapping_sub(BEFORE_FUTEX as u64), &mut around)? {
        return Ok(FutexMemory::around(&around));
    }
    let mut mutex = [0; MUTEX_MEMORY];
    read(address, &mut mutex)?;
    Ok(FutexMemory::from_futex(&mutex))
}

/// Whether a word is the id of a thread in glibc's description of it.
fn is_thread_id(pid: u32, address: u64) -> bool {
    let Some(start) = address.checked_sub(GLIBC_TID) else {
        return false;
    };
    let mut memory = [0; 24];
    let read = read_process_memory(pid, start, &mut memory);
    let (words, _) = memory.as_chunks::<8>();
    let pointers = [words.first(), words.last()];
    let is_own =
        |word: Option<&[u8; 8]>| word.is_some_and(|word| u64::from_ne_bytes(*word) == start);
    cfg!(target_arch = "x86_64")
        && read.is_ok_and(|read| read == 24)
        && pointers.into_iter().all(is_own)
}
