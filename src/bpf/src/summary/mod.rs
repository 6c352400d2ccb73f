//! Counts and durations of system calls by task and call, summed in the kernel: no record is written per call, so none is lost
//! because a buffer is full. Only what does not fit into the maps is lost, and counted ([`SummaryLosses`]).

mod programs;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;

use rperf_sys::BpfMapKind;

use crate::bytes::{command_name, from_offset, number, word};
use crate::loaded::{LoadedPrograms, NamedShape};
use crate::registers::RegisterLayout;
use crate::tasks::{self, slot};
use crate::{Error, TaskSet};
use programs::{COMPAT, ProgramOptions};
use values::{CALL_SIZE, call};

/// The number of buckets of [`CallSummary::buckets`].
pub const SUMMARY_BUCKETS: usize = values::BUCKET_COUNT as usize;

/// Which system calls are counted, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryOptions {
    /// The tasks.
    pub tasks: TaskSet,
    /// A process whose calls are not counted.
    pub excluded_process: Option<u32>,
    /// The numbers of the system calls; 512 is added to those of 32-bit programs. `None` for all calls.
    pub calls: Option<Vec<u32>>,
    /// Whether calls are counted by cgroup (of version 2), too: [`CallKey::birth_or_cgroup`] is then the id of the cgroup.
    pub by_cgroup: bool,
    /// The maximum number of (task, system call) pairs, 1.5 KB each.
    pub max_pairs: u32,
}

/// A system call of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    /// The thread id.
    pub thread: u32,
    /// The time at which the thread was first seen (ns of `CLOCK_MONOTONIC`), since thread ids are reused; 0 for threads of
    /// [`TaskSet::Threads`] and [`SyscallSummary::add_threads`]. With [`SummaryOptions::by_cgroup`], the id of the thread's
    /// cgroup when the call returned.
    pub birth_or_cgroup: u64,
    /// The number of the system call. All above 511 are counted as 511.
    pub call: u32,
    /// Whether a 32-bit program made the call. On x86-64, `int 0x80` in a 64-bit program isn't recognized.
    pub is_compat: bool,
}

/// The calls of one [`CallKey`], durations in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSummary {
    /// Calls that returned.
    pub count: u64,
    /// Calls that returned an error.
    pub errors: u64,
    /// Sum of durations.
    pub total: u64,
    /// The shortest duration.
    pub min: u64,
    /// The longest duration.
    pub max: u64,
    /// Sum of the squares of durations.
    pub squares: u128,
    /// The process id.
    pub process: u32,
    /// The end of the last call, ns of `CLOCK_MONOTONIC`.
    pub last_end: u64,
    /// The command name at the end of the last call.
    pub comm: Vec<u8>,
    /// Number of durations by bucket; see [`bucket_start`].
    pub buckets: Vec<u32>,
    /// Number of errors by errno.
    pub errnos: BTreeMap<u32, u64>,
}

/// Returns the shortest duration of a bucket, in ns: each duration below 16 ns has its own bucket; above, each power of two
/// has 8.
#[must_use]
pub fn bucket_start(bucket: usize) -> u64 {
    let shift = (bucket / 8).saturating_sub(1).min(60);
    ((bucket - shift * 8) as u64) << shift
}

/// Counts of data that did not fit into the maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SummaryLosses {
    /// Failed attempts to add a task.
    pub tasks: u64,
    /// Calls that are not in a sum.
    pub calls: u64,
    /// Errors that are in [`CallSummary::errors`], but not in [`CallSummary::errnos`].
    pub errnos: u64,
}

/// A running summary. It ends when this is dropped.
#[derive(Debug)]
pub struct SyscallSummary(LoadedPrograms);

impl SyscallSummary {
    /// Loads and attaches the programs.
    ///
    /// # Errors
    /// [`Error`].
    pub fn start(options: &SummaryOptions) -> Result<Self, Error> {
        let program_options = ProgramOptions::of(options)?;
        let mut summary = Self(LoadedPrograms::new(&shapes(options.max_pairs))?);
        let loaded = &mut summary.0;
        // The first value of each new key of the map of calls: all 0 except for the minimum, which is `u64::MAX`.
        loaded.set_template(programs::TEMPLATE, CALL_SIZE, call::MIN)?;
        select(loaded, options.calls.as_deref())?;
        // The programs that follow tasks run before threads are added: otherwise, tasks that the threads create in between would
        // be missing. If all tasks are observed, no program at execs is needed: `enter` adds each task at its first call, also
        // after an exec that changed its id.
        let with_execs = program_options.known_tasks_only;
        tasks::attach(loaded, program_options.task_pid, with_execs)?;
        loaded.attach("exit", "sys_exit", &programs::exit(program_options))?;
        loaded.attach("enter", "sys_enter", &programs::enter(program_options))?;
        summary.0.add_tasks(&options.tasks)?;
        Ok(summary)
    }

    /// Adds threads. With `from_exec`, their calls are counted from their next successful exec on, which is the first counted
    /// call.
    ///
    /// # Errors
    /// [`Error::Map`] if there are too many.
    pub fn add_threads(&self, threads: &[u32], from_exec: bool) -> Result<(), Error> {
        self.0.add_threads(threads, from_exec)
    }

    /// Returns the sums up to now, of ended tasks, too. Calls that have not returned are missing.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn read(&self) -> Result<BTreeMap<CallKey, CallSummary>, Error> {
        let mut calls = BTreeMap::new();
        for entry in self.0.entries(programs::CALLS)? {
            calls.insert(
                CallKey::decode(&entry.key),
                CallSummary::decode(&entry.value),
            );
        }
        for entry in self.0.entries(programs::ERRNOS)? {
            // The errno follows the key of `CALLS`, which has 16 bytes.
            let errno = u32::try_from(number(&entry.key, 16)).unwrap_or_default();
            if let Some(call) = calls.get_mut(&CallKey::decode(&entry.key)) {
                call.errnos.insert(errno, number(&entry.value, 0));
            }
        }
        Ok(calls)
    }

    /// Returns the losses of all CPUs.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn losses(&self) -> Result<SummaryLosses, Error> {
        let lost = self.0.losses()?;
        Ok(SummaryLosses {
            tasks: lost.of(tasks::LOST_TASKS),
            calls: lost.of(values::LOST_CALLS),
            errnos: lost.of(values::LOST_ERRNOS),
        })
    }
}

/// Selects the calls that are counted; all if `calls` is `None`. The numbers below the limit are those of 64-bit programs, then
/// those of 32-bit programs (with the bit [`COMPAT`]).
fn select(loaded: &LoadedPrograms, calls: Option<&[u32]>) -> Result<(), Error> {
    let limit = 2 * COMPAT.unsigned_abs();
    for call in 0..limit {
        if calls.is_none_or(|calls| calls.contains(&call)) {
            let map = programs::SELECTED;
            loaded.set(map, &call.to_ne_bytes(), &1_u32.to_ne_bytes())?;
        }
    }
    Ok(())
}

/// Returns the shapes of the maps, indexed by [`crate::MapId`]: sizes of a key and of a value in bytes, and the maximum number of
/// entries. The map `errors` is [`programs::ERRNOS`], from a key of `calls` and an errno to a count.
fn shapes(max_pairs: u32) -> [NamedShape; 6] {
    use BpfMapKind::{Array, Hash, PerCpuArray};
    let value = u32::try_from(CALL_SIZE).unwrap_or(u32::MAX);
    let shape = NamedShape::new;
    [
        shape("tasks", Hash, [4, slot::SIZE as u32, tasks::MAX_TASKS]),
        shape("losses", PerCpuArray, [4, 8, 3]),
        shape("calls", Hash, [16, value, max_pairs]),
        shape("errors", Hash, [24, 8, max_pairs]),
        shape("template", Array, [4, value, 1]),
        shape("selected calls", Array, [4, 4, 2 * COMPAT.unsigned_abs()]),
    ]
}

impl ProgramOptions {
    fn of(options: &SummaryOptions) -> Result<Self, Error> {
        Ok(Self {
            known_tasks_only: options.tasks.is_limited(),
            excluded_process: options.excluded_process,
            // The offset of `task_struct::pid`; `None` if new tasks are not followed.
            task_pid: options.tasks.follow_offset()?,
            // The saved register by which calls of 32-bit programs are recognized.
            compat: RegisterLayout::native()?.compat,
            by_cgroup: options.by_cgroup,
        })
    }
}

impl CallKey {
    fn decode(key: &[u8]) -> Self {
        let call = word(key, 4);
        let compat = COMPAT.unsigned_abs();
        Self {
            thread: word(key, 0),
            birth_or_cgroup: number(key, 8),
            call: call % compat,
            is_compat: call >= compat,
        }
    }
}

impl CallSummary {
    fn decode(value: &[u8]) -> Self {
        let field = |at| number(value, at);
        let (buckets, _) = from_offset(value, call::BUCKETS).as_chunks();
        Self {
            count: field(call::COUNT),
            errors: field(call::ERRORS),
            total: field(call::TOTAL),
            min: field(call::MIN),
            max: field(call::MAX),
            squares: u128::from(field(call::SQUARES + 8)) << 64 | u128::from(field(call::SQUARES)),
            process: u32::try_from(field(call::PROCESS)).unwrap_or_default(),
            last_end: field(call::LAST_END),
            comm: command_name(value, call::COMM),
            buckets: buckets
                .iter()
                .map(|count| u32::from_ne_bytes(*count))
                .collect(),
            errnos: BTreeMap::new(),
        }
    }
}
