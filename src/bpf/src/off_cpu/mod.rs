//! How long tasks wait, summed in the kernel by task and stacks. Long waits are written as records to the ring buffers of events
//! instead; those that cannot be written are summed, too.

mod programs;
#[cfg(test)]
mod tests;

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rperf_sys::{BpfMapKind, RawTracepointProgram, clock_time};

use crate::Error;
use crate::bytes::{number, word};
use crate::loaded::{LoadedPrograms, MapEntry, NamedShape, possible_cpus};
use crate::stacks::MAX_FRAMES;
use crate::tasks::{self, LOST_TASKS, slot};
use programs::{ProgramOptions, losses, sum_key, wait};

/// The number of buckets of each map of stacks: the second map has the stacks whose bucket in the first map is taken.
const MAX_STACKS: u32 = 1 << 14;
/// The maximum number of tasks that wait at a time.
const MAX_WAITS: u32 = 1 << 16;

/// Which waits are observed, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffCpuOptions {
    /// The offset of `task_struct::pid` in bytes (from BTF).
    pub task_pid: u16,
    /// Whether all tasks are observed, and not only the threads given to [`OffCpuPrograms::begin`].
    pub all_tasks: bool,
    /// Whether tasks that observed ones create are observed, too.
    pub follows_children: bool,
    /// The maximum number of frames of a stack, limited to 1 to 127.
    pub max_stack: u32,
    /// The maximum number of sums.
    pub max_sums: u32,
    /// The shortest wait, in ns, that is written as a record.
    pub threshold: u64,
}

/// A task and where it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitPlace {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The number of the kernel stack; `None` if there is none, or it could not be stored.
    pub kernel_stack: Option<u32>,
    /// The number of the user stack; `None` if there is none, or it could not be stored.
    pub user_stack: Option<u32>,
}

/// A sum of waits, or a single one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffCpuWait {
    /// The task, and where it waited.
    pub place: WaitPlace,
    /// How long, in nanoseconds.
    pub nanos: u64,
}

/// Counts of missing data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffCpuLosses {
    /// Failed attempts to observe a task.
    pub tasks: u64,
    /// Waits that are neither in a sum nor written as a record.
    pub waits: u64,
    /// Nanoseconds of these waits, except those whose start could not be stored.
    pub nanos: u64,
    /// Stacks that could not be stored.
    pub stacks: u64,
}

/// The programs and their sums. Dropping this ends the programs.
#[derive(Debug)]
pub struct OffCpuPrograms {
    loaded: Mutex<LoadedPrograms>,
    switch: RawTracepointProgram,
    options: OffCpuOptions,
}

impl OffCpuPrograms {
    /// Loads the programs. They observe nothing before [`OffCpuPrograms::begin`].
    ///
    /// # Errors
    /// [`Error`]; [`Error::Attach`] before Linux 5.18: there, the raw tracepoint `sched_switch` lacks the state of the task.
    pub fn load(options: OffCpuOptions) -> Result<Self, Error> {
        let loaded = LoadedPrograms::new(&shapes(&options)?)?;
        let program_options = ProgramOptions {
            task_pid: i16::try_from(options.task_pid).map_err(|_| Error::NoBtf)?,
            known_tasks_only: !options.all_tasks,
            threshold: options.threshold,
        };
        let switch = loaded.load("off_cpu", &programs::switch(program_options))?;
        loaded.check_attachment(&switch, "sched_switch")?;
        Ok(Self {
            loaded: Mutex::new(loaded),
            switch,
            options,
        })
    }

    /// Runs the programs. `outputs` has CPUs, each with an open `bpf-output` event of all tasks on it, which receives a record
    /// ([`OffCpuWait::decode`]) of each long wait. Long waits that cannot be written, for example on a CPU without such an event,
    /// are added to the sums. `threads` are observed, with `from_exec` from their next successful exec on; `threads` and
    /// `from_exec` are ignored if all tasks are observed.
    ///
    /// # Errors
    /// [`Error`].
    pub fn begin(
        &self,
        outputs: &[(u32, BorrowedFd<'_>)],
        threads: &[u32],
        from_exec: bool,
    ) -> Result<(), Error> {
        let mut loaded = self.loaded();
        // `check_attachment` ran the program for a moment, in which it may have stored waits and sums.
        for map in [programs::WAITS, programs::SUMS] {
            for MapEntry { key, .. } in loaded.entries(map)? {
                loaded.remove(map, &key)?;
            }
        }
        for (cpu, event) in outputs {
            loaded.set_descriptor(programs::EVENTS, *cpu, *event)?;
        }
        if !self.options.all_tasks {
            let pid_offset = i16::try_from(self.options.task_pid).ok();
            // With an offset, `attach` also attaches the program at forks.
            let fork_offset = pid_offset.filter(|_| self.options.follows_children);
            // Also without `from_exec`: a thread that is not the leader has the leader's id after an exec.
            let with_execs = true;
            tasks::attach(&mut loaded, fork_offset, with_execs)?;
            loaded.add_threads(threads, from_exec)?;
        }
        loaded.run_at(&self.switch, "sched_switch")
    }

    /// Ends the programs. The sums can still be read.
    pub fn end(&self) {
        self.loaded().detach();
    }

    /// Returns the sums. Waits that have not ended are added with their time up to now, so call this only once, after
    /// [`OffCpuPrograms::end`].
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn sums(&self) -> Result<Vec<OffCpuWait>, Error> {
        let now = clock_time(libc::CLOCK_MONOTONIC).unwrap_or_default();
        let loaded = self.loaded();
        let sums = loaded.entries(programs::SUMS)?;
        let sums = sums.into_iter().map(|MapEntry { key, value }| OffCpuWait {
            place: WaitPlace::decode(&key),
            nanos: number(&value, 0),
        });
        let waits = loaded.entries(programs::WAITS)?;
        let waits = waits.into_iter().map(|MapEntry { key, value }| OffCpuWait {
            place: WaitPlace {
                process: word(&value, at(wait::PROCESS)),
                thread: word(&key, 0),
                kernel_stack: stack_number(word(&value, at(wait::KERNEL))),
                user_stack: stack_number(word(&value, at(wait::USER))),
            },
            nanos: now.saturating_sub(number(&value, wait::START)),
        });
        let mut all: Vec<OffCpuWait> = sums.chain(waits).collect();
        all.sort_unstable_by_key(|wait| wait.place);
        // A wait that has not ended is added to the sum of the same task and stacks, if there is one.
        all.dedup_by(|wait, previous| {
            let is_same = wait.place == previous.place;
            if is_same {
                previous.nanos = previous.nanos.saturating_add(wait.nanos);
            }
            is_same
        });
        Ok(all)
    }

    /// Returns the addresses of a stack, innermost first; empty if the number is unknown.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn stack(&self, number: u32) -> Result<Vec<u64>, Error> {
        programs::STACKS.read(&self.loaded(), number)
    }

    /// Returns the counts of missing data of all CPUs.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn losses(&self) -> Result<OffCpuLosses, Error> {
        let lost = self.loaded().losses()?;
        Ok(OffCpuLosses {
            tasks: lost.of(LOST_TASKS),
            waits: lost
                .of(losses::BEGINS)
                .saturating_add(lost.of(losses::SUMS)),
            nanos: lost.of(losses::NANOS),
            stacks: lost.of(losses::STACKS),
        })
    }

    fn loaded(&self) -> MutexGuard<'_, LoadedPrograms> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OffCpuWait {
    /// Decodes the raw data of a record; `None` if they are too short.
    #[must_use]
    pub fn decode(raw: &[u8]) -> Option<Self> {
        let size = usize::try_from(programs::RECORD_SIZE).ok()?;
        let raw = raw.get(..size)?;
        Some(Self {
            place: WaitPlace::decode(raw.get(8..)?),
            nanos: number(raw, 0),
        })
    }
}

impl WaitPlace {
    fn decode(key: &[u8]) -> Self {
        Self {
            process: word(key, sum_key::PROCESS),
            thread: word(key, sum_key::THREAD),
            kernel_stack: stack_number(word(key, sum_key::KERNEL)),
            user_stack: stack_number(word(key, sum_key::USER)),
        }
    }
}

/// Returns the number of a stack; `None` if it is an error instead.
fn stack_number(number: u32) -> Option<u32> {
    programs::is_stack(number).then_some(number)
}

/// Converts an offset of [`wait`], which is an `i16` as in instructions, to the `usize` that [`word`] takes. [`number`] takes the
/// `i16` itself.
fn at(offset: i16) -> usize {
    usize::from(offset.unsigned_abs())
}

/// Returns the shapes of the maps, indexed by [`crate::MapId`]: key size, value size and maximum number of entries of each.
fn shapes(options: &OffCpuOptions) -> Result<[NamedShape; 7], Error> {
    use BpfMapKind::{Hash, PerCpuArray, PerfEventArray, StackTrace};
    let cpus = u32::try_from(possible_cpus()?).unwrap_or(u32::MAX);
    let frames = options.max_stack.clamp(1, MAX_FRAMES);
    let shape = NamedShape::new;
    Ok([
        shape("tasks", Hash, [4, slot::SIZE as u32, tasks::MAX_TASKS]),
        shape("losses", PerCpuArray, [4, 8, losses::COUNT]),
        shape("events", PerfEventArray, [4, 4, cpus]),
        shape("waits", Hash, [4, wait::SIZE, MAX_WAITS]),
        shape("sums", Hash, [sum_key::SIZE, 8, options.max_sums.max(1)]),
        shape("stacks", StackTrace, [4, 8 * frames, MAX_STACKS]),
        shape("more stacks", StackTrace, [4, 8 * frames, MAX_STACKS]),
    ])
}
