//! The times for which tasks wait for a CPU and run, summed in the kernel: no record is written for a switch, so none can be
//! lost.

mod programs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rperf_sys::BpfMapKind;

use crate::Error;
use crate::bytes::{command_name, from_offset, number, word};
use crate::loaded::{LoadedPrograms, MapEntry, NamedShape};
use crate::tasks;
use programs::{BUCKETS, row, state};

/// Options of [`RunQueueSummary::start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunQueueOptions {
    /// Offsets of the fields of tasks that the programs read.
    pub offsets: TaskOffsets,
    /// If given, only run times on this CPU, and waits that end on it, are summed.
    pub cpu: Option<u32>,
    /// The maximum number of tasks with sums in the kernel, 8 KB each: those that have waited and that
    /// [`RunQueueSummary::take_ended`] has not removed.
    pub max_rows: u32,
}

/// Offsets in `struct task_struct`, in bytes (from BTF).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskOffsets {
    /// Of `pid`.
    pub pid: u16,
    /// Of `comm`.
    pub comm: u16,
}

/// The identity of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskKey {
    /// The thread id.
    pub thread: u32,
    /// The time at which the thread was first seen (ns of `CLOCK_MONOTONIC`), since thread ids are reused.
    pub birth: u64,
}

/// The waits and the run time of a task, in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskWaits {
    /// The command name when the task was last switched out; if it never was, that at its first wait.
    pub comm: Vec<u8>,
    /// The time for which it ran until it was last switched out. A run whose start was not seen is left out.
    pub runtime: u64,
    /// The number of waits that ended.
    pub count: u64,
    /// The sum of their times.
    pub total: u64,
    /// The shortest; `u64::MAX` if `count` is 0.
    pub min: u64,
    /// The longest.
    pub max: u64,
    /// The time at which the longest ended, ns of `CLOCK_MONOTONIC`.
    pub max_end: u64,
    /// The number of waits by bucket: each time below 128 ns has one, above that each power of two has 64. The last bucket,
    /// 2047, also has all waits of more than 137 s.
    pub buckets: Vec<u32>,
}

/// Counts of data that did not fit into the maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunQueueLosses {
    /// Failed attempts to add the state of a task. Later events of the task repeat the attempt, and each one counts.
    pub tasks: u64,
    /// Waits of tasks for whose sums there was no room.
    pub waits: u64,
}

/// The running programs and their sums. Dropping this ends them.
#[derive(Debug)]
pub struct RunQueueSummary {
    loaded: LoadedPrograms,
    /// The sums of tasks that ended, and are no longer in the kernel.
    ended: BTreeMap<TaskKey, TaskWaits>,
}

impl RunQueueSummary {
    /// Loads and attaches the programs.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Attach`] on kernels before 5.18: their `sched_switch` lacks the state of the task.
    pub fn start(options: RunQueueOptions) -> Result<Self, Error> {
        let mut loaded = LoadedPrograms::new(&shapes(options.max_rows.max(1)))?;
        // The minimum of an empty row is `u64::MAX`; all else is 0.
        loaded.set_template(programs::TEMPLATE, row::SIZE, row::MIN)?;
        let offsets = options.offsets;
        // The switches first: otherwise a task that was woken, and then has run and slept unseen, would seem to wait from that
        // wakeup until its first seen switch.
        let switch = programs::switch(offsets, options.cpu);
        loaded.attach("switch", "sched_switch", &switch)?;
        let wake = programs::wake(offsets);
        loaded.attach("wake_new", "sched_wakeup_new", &programs::wake_new(offsets))?;
        loaded.attach("wakeup", "sched_wakeup", &wake)?;
        loaded.attach("waking", "sched_waking", &wake)?;
        Ok(Self {
            loaded,
            ended: BTreeMap::new(),
        })
    }

    /// Takes the sums of tasks that ended, which makes room for others. To be called several times a second.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn take_ended(&mut self) -> Result<(), Error> {
        for MapEntry { key, .. } in self.loaded.entries(programs::ENDED)? {
            if let Some(value) = self.loaded.get(programs::ROWS, &key)? {
                self.loaded.remove(programs::ROWS, &key)?;
                let waits = TaskWaits::decode(&value);
                self.ended.insert(TaskKey::decode(&key), waits);
            }
            self.loaded.remove(programs::ENDED, &key)?;
        }
        Ok(())
    }

    /// Returns the sums of all tasks that have waited.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn read(&mut self) -> Result<BTreeMap<TaskKey, TaskWaits>, Error> {
        self.take_ended()?;
        let mut all = self.ended.clone();
        for MapEntry { key, value } in self.loaded.entries(programs::ROWS)? {
            let (key, mut waits) = (TaskKey::decode(&key), TaskWaits::decode(&value));
            let state = self
                .loaded
                .get(programs::STATES, &key.thread.to_ne_bytes())?;
            // A row gets the run time and the last name only when its task ends. Until then, they are in the task's state.
            if let Some(state) = state.filter(|bytes| number(bytes, state::BIRTH) == key.birth) {
                waits.runtime = number(&state, state::RUNTIME);
                let comm = command_name(&state, state::COMM);
                if !comm.is_empty() {
                    waits.comm = comm;
                }
            }
            all.insert(key, waits);
        }
        Ok(all)
    }

    /// Returns the losses of all CPUs.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn losses(&self) -> Result<RunQueueLosses, Error> {
        let lost = self.loaded.losses()?;
        Ok(RunQueueLosses {
            tasks: lost.of(tasks::LOST_TASKS),
            waits: lost.of(programs::LOST_WAITS),
        })
    }
}

/// Returns the shapes of the maps, indexed by [`crate::MapId`]: the sizes of keys and values in bytes, and the maximum number of
/// entries. A key of 16 bytes is the thread id and the birth of a task, 8 bytes each.
fn shapes(rows: u32) -> [NamedShape; 5] {
    use BpfMapKind::{Array, Hash, PerCpuArray};
    let shape = NamedShape::new;
    let size = row::SIZE as u32;
    [
        // `programs::STATES`.
        shape("tasks", Hash, [4, state::SIZE, tasks::MAX_TASKS]),
        // The counters of `RunQueueLosses`.
        shape("losses", PerCpuArray, [4, 8, 2]),
        // `programs::ROWS`.
        shape("waits", Hash, [16, size, rows]),
        shape("template", Array, [4, size, 1]),
        shape("ended tasks", Hash, [16, 4, rows]),
    ]
}

impl TaskKey {
    fn decode(key: &[u8]) -> Self {
        Self {
            thread: word(key, 0),
            birth: number(key, 8),
        }
    }
}

impl TaskWaits {
    fn decode(value: &[u8]) -> Self {
        let (buckets, _) = from_offset(value, row::BUCKETS).as_chunks();
        let buckets = buckets.iter().take(BUCKETS);
        Self {
            comm: command_name(value, row::COMM),
            runtime: number(value, row::RUNTIME),
            count: number(value, row::COUNT),
            total: number(value, row::TOTAL),
            min: number(value, row::MIN),
            max: number(value, row::MAX),
            max_end: number(value, row::MAX_END),
            buckets: buckets.map(|count| u32::from_ne_bytes(*count)).collect(),
        }
    }
}
