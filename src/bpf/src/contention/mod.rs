//! Waits for locks of the kernel and of user programs. BPF programs either sum them in the kernel, or write a record with the
//! owner or the name of the lock when a wait begins.

mod captured_futexes;
mod captured_locks;
mod futexes;
mod lock_names;
mod programs;
mod queued;
#[cfg(test)]
mod tests;
mod thread_ids;
mod wait_capture;

use std::collections::BTreeMap;

use rperf_sys::{BpfMapKind, syscall_number};

use crate::bytes::number;
use crate::loaded::{LoadedPrograms, NamedShape};
use crate::stacks::MAX_FRAMES;
use crate::tasks::{self, slot};
use crate::{Error, MapId, TaskSet};
use programs::{BUCKETS, losses, value, wait};

pub use captured_futexes::{FutexCaptureOptions, PidLayout};
pub use captured_locks::LockCaptureOptions;
pub use lock_names::{LockFilter, LockLayout, LockName, SlabLayout};
pub use thread_ids::{NamespaceLayout, NamespacedThread};
pub use wait_capture::WaitCapture;

/// What waits are summed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentionKey {
    /// Only the stack.
    Stack,
    /// The waiting thread.
    Thread,
    /// The address of the lock.
    Lock,
    /// The thread that holds the lock when the wait begins.
    Owner(OwnerLayout),
    /// The cgroup of the waiting thread.
    Cgroup,
}

/// Offsets in bytes (from BTF) by which the owner of a lock is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerLayout {
    /// `mutex::owner`.
    pub mutex: u16,
    /// `rw_semaphore::owner`.
    pub rwsem: u16,
    /// `task_struct::pid`.
    pub task_pid: u16,
}

/// The flag of a wait for a futex, above the kernel's `LCB_F_*`.
pub const FUTEX: u32 = 1 << 16;
/// The flag, instead of [`FUTEX`], of a wait for a futex with priority inheritance.
pub const FUTEX_PI: u32 = 1 << 17;

/// [`WaitKey::value`] of waits whose owner is unknown.
pub const UNKNOWN_OWNER: u64 = u64::MAX;
/// The bit of owners of futexes that processes may share: the owner may be a thread of another process.
pub const SHARED_OWNER: u64 = 1 << 32;
/// The bit of owners of futexes whose id could not be translated from the PID namespace of the waiting thread to the initial one:
/// it may be an id in a namespace other than that of the waiting thread.
pub const FOREIGN_OWNER: u64 = 1 << 33;

/// Which waits are summed, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentionOptions {
    /// The waiting tasks.
    pub tasks: TaskSet,
    /// A process whose waits are not summed.
    pub excluded_process: Option<u32>,
    /// What waits are summed by.
    pub key: ContentionKey,
    /// Whether waits with different stacks are kept apart.
    pub with_stacks: bool,
    /// Only waits that begin on these CPUs; `None` for all.
    pub cpus: Option<Vec<u32>>,
    /// Only waits for these locks; `None` for all. Futexes have no names, nor have other locks without `lock_layout`.
    pub locks: Option<LockFilter>,
    /// How locks of the kernel are recognized, for the names in sums and in `locks`.
    pub lock_layout: Option<LockLayout>,
    /// The offset of `task_struct::pid` in bytes (from BTF), if the time for which waiting threads wait for a CPU is summed
    /// separately.
    pub task_pid_offset: Option<u16>,
    /// Whether waits for futexes are summed, too.
    pub with_futexes: bool,
    /// How ids of owners of futexes are translated from other PID namespaces to the initial one; without it, the ids remain as
    /// the user programs see them.
    pub namespace_layout: Option<NamespaceLayout>,
    /// Only waits whose flags (`LCB_F_*`, [`FUTEX`], [`FUTEX_PI`]) are one of these values; `None` for all.
    pub flags: Option<Vec<u32>>,
    /// Only waits of threads in these cgroups, by id, not in their descendants; `None` for all.
    pub cgroups: Option<Vec<u64>>,
    /// The maximum number of frames of a stack, limited to 1 to 127.
    pub max_stack: u32,
    /// The number of innermost frames that are skipped in stacks of the kernel.
    pub stack_skip: u8,
    /// The maximum number of sums. Each of the two maps of stacks (the second has stacks whose bucket in the first is taken) has
    /// as many entries, rounded up to a power of two.
    pub max_entries: u32,
}

/// The key of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitKey {
    /// Depending on [`ContentionKey`], the id of the thread, the address of the lock, the thread id of the owner or the id of the
    /// cgroup; 0 for stacks.
    ///
    /// An owner may be [`UNKNOWN_OWNER`]. That of a futex may have the bits [`SHARED_OWNER`] and [`FOREIGN_OWNER`], and is read
    /// from memory that may contain any number: it is right only if a thread with this id is in the process of the futex, or,
    /// with [`SHARED_OWNER`], in a process that shares the memory.
    pub value: u64,
    /// The process of a futex; `None` for locks of the kernel.
    pub process: Option<u32>,
    /// The number of the stack, if stacks are kept apart.
    pub stack: Option<u32>,
}

/// The waits of one [`WaitKey`]; times are in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitSummary {
    /// Waits that ended.
    pub count: u64,
    /// The sum of their times.
    pub total: u64,
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
    /// Flags (`LCB_F_*`, [`FUTEX`], [`FUTEX_PI`]) of the wait that ended first.
    pub flags: u32,
    /// The address of the lock of the wait that ended first.
    pub lock: u64,
    /// What that lock is, if it was recognized.
    pub name: Option<LockName>,
    /// The time for which the threads could run, but waited for a CPU; 0 without [`ContentionOptions::task_pid_offset`]. The
    /// other times do not include it.
    pub run_queue_time: u64,
    /// Number of waits by power of two: bucket n has those from 2ⁿ to 2ⁿ⁺¹ - 1 ns, bucket 0 also those of 0 ns.
    pub buckets: Vec<u64>,
}

/// Numbers of waits that are missing in the sums, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContentionLosses {
    /// No room for another open wait. Also counts each task for which there was no room: all of its waits are missing.
    pub tasks: u64,
    /// The stack could not be read, or there was no room for it.
    pub stacks: u64,
    /// The time of the end is before that of the beginning.
    pub times: u64,
    /// No room for another sum.
    pub entries: u64,
}

/// The running programs and their sums. Dropping this ends them.
#[derive(Debug)]
pub struct ContentionSummary(LoadedPrograms);

/// The maximum number of CPUs whose run queues are known.
const MAX_CPUS: u32 = 8192;
/// The maximum number of open waits, and of threads in [`queued::RUN_QUEUE_TIMES`].
const MAX_WAITS: u32 = 16384;
/// The maximum number of entries of a map with LRU eviction if the programs do not use the map: small, since the kernel allocates
/// all entries at once.
const UNUSED_LRU: u32 = 128;

impl ContentionSummary {
    /// Loads and attaches the programs.
    ///
    /// # Errors
    /// [`Error`]; before Linux 5.19, [`Error::Attach`] unless only waits for futexes are selected: the tracepoint
    /// `contention_begin` is missing.
    pub fn start(options: &ContentionOptions) -> Result<Self, Error> {
        // The offset of `task_struct::pid`, if new child tasks are observed, too.
        let follow = options.tasks.follow_offset()?;
        let mut loaded = LoadedPrograms::new(&shapes(options))?;
        // Each new sum begins as a copy of the template, in which only the minimum is not 0.
        loaded.set_template(programs::TEMPLATE, value::SIZE, value::MIN)?;
        select(&loaded, options)?;
        if options.tasks.is_limited() {
            let with_execs = true;
            tasks::attach(&mut loaded, follow, with_execs)?;
        }
        if let Some(offset) = options.task_pid_offset {
            let offset = i16::try_from(offset).map_err(|_| Error::NoBtf)?;
            loaded.attach("switch", "sched_switch", &queued::switch(offset))?;
            loaded.attach("wakeup", "sched_wakeup", &queued::wake(offset))?;
        }
        // The flags of futexes are above those of the kernel's locks.
        let [selects_kernel_locks, selects_futexes] = [false, true].map(|is_futex| {
            let flags = options.flags.as_ref();
            flags.is_none_or(|list| list.iter().any(|flags| (*flags >= FUTEX) == is_futex))
        });
        if selects_kernel_locks {
            note_run_queues(&loaded, options)?;
            let end = programs::end(options);
            let begin = programs::begin(options)?;
            // The end first: otherwise, a wait that begins and ends in between would remain open.
            loaded.attach("contention_end", "contention_end", &end)?;
            loaded.attach("contention_begin", "contention_begin", &begin)?;
        }
        if options.with_futexes && selects_futexes {
            let number = syscall_number("futex").ok_or(Error::Architecture)?;
            if let Some(layout) = options.thread_id_layout() {
                let program = thread_ids::fork(layout);
                loaded.attach("thread_ids", "sched_process_fork", &program)?;
            }
            let exit = futexes::exit(options);
            let enter = futexes::enter(options, number)?;
            loaded.attach("futex_exit", "sys_exit", &exit)?;
            loaded.attach("futex_enter", "sys_enter", &enter)?;
        }
        let summary = Self(loaded);
        summary.0.add_tasks(&options.tasks)?;
        Ok(summary)
    }

    /// Adds threads whose waits are summed: if `from_exec` is set, only those after a thread's next successful exec.
    ///
    /// # Errors
    /// [`Error::Map`] if there are too many.
    pub fn add_threads(&self, threads: &[u32], from_exec: bool) -> Result<(), Error> {
        self.0.add_threads(threads, from_exec)
    }

    /// Adds threads that were created before the programs started, to translate their ids
    /// ([`ContentionOptions::namespace_layout`]).
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn add_thread_ids(&self, threads: &[NamespacedThread]) -> Result<(), Error> {
        for thread in threads {
            let key = [thread.namespace, thread.own_tid].map(u32::to_ne_bytes);
            let (key, tid) = (key.concat(), thread.tid.to_ne_bytes());
            self.0.set(thread_ids::THREAD_IDS, &key, &tid)?;
        }
        Ok(())
    }

    /// Returns the sums of the waits that ended.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn read(&self) -> Result<BTreeMap<WaitKey, WaitSummary>, Error> {
        let entries = self.0.entries(programs::SUMS)?.into_iter();
        let sums = entries.map(|entry| {
            (
                WaitKey::decode(&entry.key),
                WaitSummary::decode(&entry.value),
            )
        });
        Ok(sums.collect())
    }

    /// Returns the addresses of a stack, innermost first; empty if the number is unknown.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn stack(&self, number: u32) -> Result<Vec<u64>, Error> {
        programs::STACKS.read(&self.0, number)
    }

    /// Returns the numbers of waits that are missing in the sums.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn losses(&self) -> Result<ContentionLosses, Error> {
        let lost = self.0.losses()?;
        Ok(ContentionLosses {
            tasks: lost.of(tasks::LOST_TASKS),
            stacks: lost.of(losses::STACKS),
            times: lost.of(losses::TIMES),
            entries: lost.of(losses::SUMS),
        })
    }
}

impl ContentionOptions {
    /// Whether the time for which waiting threads wait for a CPU is summed separately.
    fn separates_run_queue_time(&self) -> bool {
        self.task_pid_offset.is_some()
    }

    /// Returns how ids are translated from PID namespaces, if waits for futexes are summed by owner.
    fn thread_id_layout(&self) -> Option<NamespaceLayout> {
        let is_needed = self.with_futexes && matches!(self.key, ContentionKey::Owner(_));
        self.namespace_layout.filter(|_| is_needed)
    }
}

/// Fills the maps of selected CPUs, flags and cgroups.
fn select(loaded: &LoadedPrograms, options: &ContentionOptions) -> Result<(), Error> {
    let words = |list: &Option<Vec<u32>>| {
        let words = list.iter().flatten();
        words.map(|word| word.to_ne_bytes().to_vec()).collect()
    };
    let numbers = |list: &Option<Vec<u64>>| {
        let numbers = list.iter().flatten();
        numbers
            .map(|number| number.to_ne_bytes().to_vec())
            .collect()
    };
    let keys: [(MapId, Vec<Vec<u8>>); 3] = [
        (programs::CPUS, words(&options.cpus)),
        (programs::FLAGS, words(&options.flags)),
        (programs::CGROUPS, numbers(&options.cgroups)),
    ];
    for (map, keys) in keys {
        for key in keys {
            loaded.set(map, &key, &1_u32.to_ne_bytes())?;
        }
    }
    Ok(())
}

/// Stores the addresses of the locks of the run queues of all online CPUs, so that waits for these locks get a name.
fn note_run_queues(loaded: &LoadedPrograms, options: &ContentionOptions) -> Result<(), Error> {
    let layout = options.lock_layout.and_then(|layout| layout.run_queue);
    layout.map_or(Ok(()), |layout| {
        let note = lock_names::note_run_queue(layout, lock_names::RUN_QUEUES);
        loaded.run_on_all_cpus("run_queues", &note)
    })
}

/// Returns the maps, in the order of their [`MapId`]s, each with the size of a key, the size of a value, and the maximum number
/// of entries.
fn shapes(options: &ContentionOptions) -> [NamedShape; 13] {
    use BpfMapKind::{Array, Hash, LruHash, PerCpuArray, StackTrace};
    let shape = NamedShape::new;
    // The maximum number of entries for a list of this length; a map needs at least one.
    let list_entries = |length: Option<usize>| {
        let length = length.and_then(|length| u32::try_from(length).ok());
        length.unwrap_or_default().max(1)
    };
    let entries = options.max_entries.max(1);
    let sum_size = value::SIZE as u32;
    let lru_size = |is_used: bool, size: u32| if is_used { size } else { UNUSED_LRU };
    let queued_threads = lru_size(options.separates_run_queue_time(), MAX_WAITS);
    let namespaced_threads = lru_size(
        options.thread_id_layout().is_some(),
        thread_ids::MAX_THREADS,
    );
    let depth = options.max_stack.clamp(1, MAX_FRAMES);
    let stacks = [4, 8 * depth, entries.next_power_of_two()];
    [
        shape("tasks", Hash, [4, slot::SIZE as u32, tasks::MAX_TASKS]),
        shape("losses", PerCpuArray, [4, 8, losses::COUNT]),
        shape("waits", Hash, [16, wait::SIZE, MAX_WAITS]),
        shape("sums", Hash, [16, sum_size, entries]),
        shape("template", Array, [4, sum_size, 1]),
        shape("stacks", StackTrace, stacks),
        shape(
            "cpus",
            Hash,
            [4, 4, list_entries(options.cpus.as_ref().map(Vec::len))],
        ),
        shape(
            "flags",
            Hash,
            [4, 4, list_entries(options.flags.as_ref().map(Vec::len))],
        ),
        shape("run queues", Hash, [8, 4, MAX_CPUS]),
        shape(
            "cgroups",
            Hash,
            [8, 4, list_entries(options.cgroups.as_ref().map(Vec::len))],
        ),
        shape(
            "queued",
            LruHash,
            [4, u32::from(queued::SIZE.unsigned_abs()), queued_threads],
        ),
        shape("thread ids", LruHash, [8, 4, namespaced_threads]),
        shape("more stacks", StackTrace, stacks),
    ]
}

impl WaitKey {
    fn decode(key: &[u8]) -> Self {
        let second = number(key, 8);
        let [high, low] = [second >> 32, second & u64::from(u32::MAX)].map(|half| half as u32);
        Self {
            value: number(key, 0),
            process: Some(high).filter(|process| *process != 0),
            stack: Some(low).filter(|number| *number != programs::NO_STACK),
        }
    }
}

impl WaitSummary {
    fn decode(bytes: &[u8]) -> Self {
        let buckets = (0..BUCKETS).map(|bucket| number(bytes, value::BUCKETS + 8 * bucket));
        Self {
            count: number(bytes, value::COUNT),
            total: number(bytes, value::TOTAL),
            min: number(bytes, value::MIN),
            max: number(bytes, value::MAX),
            flags: u32::try_from(number(bytes, value::FLAGS)).unwrap_or_default(),
            lock: number(bytes, value::LOCK),
            name: lock_names::decode(bytes, value::NAME),
            run_queue_time: number(bytes, value::RUN_QUEUE_TIME),
            buckets: buckets.collect(),
        }
    }
}
