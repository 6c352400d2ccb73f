//! Counts and durations of system calls by task and call, summed in the kernel: no record is written per call, so none is lost.

mod programs;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, AsRawFd as _};

use rperf_sys::{
    BpfMap, BpfMapKind, BpfMapShape, CpuState, RawTracepointLink, RawTracepointProgram, Sysfs,
};

use crate::{Error, ProgramBuilder};
use programs::{COMPAT, CompatMark, ProgramOptions};
use values::{CALL_SIZE, call, number, slot, word};

/// The number of buckets of [`CallSummary::buckets`].
pub const SUMMARY_BUCKETS: usize = values::BUCKETS as usize;

/// Tasks to summarize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskSet {
    /// All tasks of the machine.
    All,
    /// These threads.
    Threads {
        /// Thread numbers.
        threads: Vec<u32>,
        /// The offset of `task_struct::pid` in bytes (from BTF), to include tasks that they create.
        follow: Option<u16>,
        /// Whether the calls of each thread are counted only from its next successful exec on.
        from_exec: bool,
    },
}

/// Selection of the calls to summarize.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryOptions {
    /// The tasks.
    pub tasks: TaskSet,
    /// A process whose calls are not counted.
    pub excluded_process: Option<u32>,
    /// The numbers of the system calls; `None` for all.
    pub calls: Option<Vec<u32>>,
    /// The maximum number of (task, system call) pairs, 1.5 KB each.
    pub max_pairs: u32,
}

/// A system call of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    /// The thread number.
    pub thread: u32,
    /// When the thread was first seen (ns of `CLOCK_MONOTONIC`), since numbers are used again.
    pub birth: u64,
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
    /// Those that returned an error.
    pub errors: u64,
    /// Sum of durations.
    pub total: u64,
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
    /// Sum of the squares of durations.
    pub squares: u128,
    /// The process number.
    pub process: u32,
    /// The end of the last call, ns of `CLOCK_MONOTONIC`.
    pub last: u64,
    /// The command name at that time.
    pub comm: Vec<u8>,
    /// Number of durations by bucket; see [`bucket_start`].
    pub buckets: Vec<u32>,
    /// Errors by number.
    pub errnos: BTreeMap<u32, u64>,
}

/// Returns the shortest duration in ns of a bucket: each duration below 16 has one, above that each power of two has 8.
#[must_use]
pub fn bucket_start(bucket: usize) -> u64 {
    let shift = (bucket / 8).saturating_sub(1).min(60);
    ((bucket - shift * 8) as u64) << shift
}

/// Counts of data that did not fit into the maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SummaryLosses {
    /// Attempts to add a task.
    pub tasks: u64,
    /// Calls.
    pub calls: u64,
    /// Errors, which are in [`CallSummary::errors`] nevertheless.
    pub errnos: u64,
}

/// A running summary. It ends when this is dropped.
#[derive(Debug)]
pub struct SyscallSummary {
    maps: Vec<BpfMap>,
    _links: Vec<RawTracepointLink>,
}

/// The names of the maps, by their [`crate::MapId`].
const MAPS: [&str; 6] = [
    "tasks",
    "calls",
    "errors",
    "template",
    "losses",
    "selected calls",
];
/// The maximum number of tasks at one time.
const MAX_TASKS: u32 = 32768;
/// The inode number of the initial PID namespace (`PROC_PID_INIT_INO`).
const INITIAL_NAMESPACE: &str = "pid:[4026531836]";

/// Returns the field of the saved registers that distinguishes 32-bit programs: on x86-64 the code segment (`__USER32_CS`), on
/// arm64 the mode bit of the processor state.
fn compat_mark() -> Result<CompatMark, Error> {
    if cfg!(target_arch = "x86_64") {
        Ok(CompatMark {
            offset: 136,
            mask: 0xffff,
            value: 0x23,
        })
    } else if cfg!(target_arch = "aarch64") {
        Ok(CompatMark {
            offset: 264,
            mask: 0x10,
            value: 0x10,
        })
    } else {
        Err(Error::Architecture)
    }
}

impl SyscallSummary {
    /// Loads and attaches the programs.
    ///
    /// # Errors
    /// [`Error`].
    pub fn start(options: &SummaryOptions) -> Result<Self, Error> {
        let program_options = ProgramOptions::of(options)?;
        let maps = create_maps(options.max_pairs)?;
        let mut summary = Self {
            maps,
            _links: Vec::new(),
        };
        let mut template = vec![0; CALL_SIZE];
        let min = usize::try_from(call::MIN).unwrap_or_default();
        if let Some(min) = template.get_mut(min..min + 8) {
            min.fill(0xff);
        }
        summary.set(programs::TEMPLATE.0, &0_u32.to_ne_bytes(), &template)?;
        summary.select(options.calls.as_deref())?;
        // The programs that follow tasks are attached first: otherwise tasks created meanwhile would be missing.
        let mut attach = |name, tracepoint, program: ProgramBuilder| {
            let link = summary.attach(name, tracepoint, &program)?;
            summary._links.push(link);
            Ok::<_, Error>(())
        };
        attach("task_exit", "sched_process_exit", programs::task_exit())?;
        if let Some(offset) = program_options.task_pid {
            attach("fork", "sched_process_fork", programs::fork(offset))?;
        }
        if program_options.known_tasks_only {
            attach("exec", "sched_process_exec", programs::exec())?;
        }
        attach("exit", "sys_exit", programs::exit())?;
        attach("enter", "sys_enter", programs::enter(program_options))?;
        if let TaskSet::Threads {
            threads, from_exec, ..
        } = &options.tasks
        {
            summary.add_threads(threads, *from_exec)?;
        }
        Ok(summary)
    }

    fn set(&self, map: usize, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let name = MAPS.get(map).copied().unwrap_or_default();
        let result = self.maps.get(map).map_or(Ok(()), |map| map.set(key, value));
        result.map_err(|error| Error::Map { map: name, error })
    }

    fn select(&self, calls: Option<&[u32]>) -> Result<(), Error> {
        let limit = 2 * COMPAT.unsigned_abs();
        for call in 0..limit {
            if calls.is_none_or(|calls| calls.contains(&call)) {
                let map = programs::SELECTED.0;
                self.set(map, &call.to_ne_bytes(), &1_u32.to_ne_bytes())?;
            }
        }
        Ok(())
    }

    /// Adds threads, with `from_exec` from their next successful exec on, which is their first call.
    ///
    /// # Errors
    /// [`Error::Map`] if there are too many.
    pub fn add_threads(&self, threads: &[u32], from_exec: bool) -> Result<(), Error> {
        for thread in threads {
            let mut value = [0; slot::SIZE];
            let (words, _) = value.as_chunks_mut::<4>();
            if let [_, _, _, _, call, waits] = words {
                *call = slot::NONE.to_ne_bytes();
                *waits = u32::from(from_exec).to_ne_bytes();
            }
            self.set(programs::TASKS.0, &thread.to_ne_bytes(), &value)?;
        }
        Ok(())
    }

    fn attach(
        &self,
        name: &'static str,
        tracepoint: &'static str,
        program: &ProgramBuilder,
    ) -> Result<RawTracepointLink, Error> {
        let maps = self.maps.iter();
        let maps: Vec<i32> = maps.map(|map| map.as_fd().as_raw_fd()).collect();
        let encoded = program.encode(&maps)?;
        let loaded = RawTracepointProgram::load(&encoded).map_err(|failure| {
            let log = failure.log;
            Error::classify(failure.error, |error| Error::Rejected {
                program: name,
                error,
                log,
            })
        })?;
        loaded
            .attach(tracepoint)
            .map_err(|error| Error::classify(error, |error| Error::Attach { tracepoint, error }))
    }

    fn entries(&self, map: usize) -> Result<Vec<MapEntry>, Error> {
        let name = MAPS.get(map).copied().unwrap_or_default();
        let failed = |error| Error::Map { map: name, error };
        let mut entries = Vec::new();
        let Some(map) = self.maps.get(map) else {
            return Ok(entries);
        };
        for key in map.keys().map_err(failed)? {
            if let Some(value) = map.get(&key).map_err(failed)? {
                entries.push(MapEntry { key, value });
            }
        }
        Ok(entries)
    }

    /// Returns the sums up to now, of ended tasks, too. Calls that did not return are missing.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn read(&self) -> Result<BTreeMap<CallKey, CallSummary>, Error> {
        let mut calls = BTreeMap::new();
        for entry in self.entries(programs::CALLS.0)? {
            calls.insert(
                CallKey::decode(&entry.key),
                CallSummary::decode(&entry.value),
            );
        }
        for entry in self.entries(programs::ERRNOS.0)? {
            let errno = u32::try_from(number(&entry.key, 16)).unwrap_or_default();
            if let Some(call) = calls.get_mut(&CallKey::decode(&entry.key)) {
                call.errnos.insert(errno, number(&entry.value, 0));
            }
        }
        Ok(calls)
    }

    /// Returns what did not fit, of all CPUs.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn losses(&self) -> Result<SummaryLosses, Error> {
        let mut losses = [0; 3];
        for (entry, loss) in self.entries(programs::LOSSES.0)?.iter().zip(&mut losses) {
            let (per_cpu, _) = entry.value.as_chunks();
            *loss = per_cpu.iter().map(|cpu| u64::from_ne_bytes(*cpu)).sum();
        }
        let [tasks, calls, errnos] = losses;
        Ok(SummaryLosses {
            tasks,
            calls,
            errnos,
        })
    }
}

/// An entry of a map.
#[derive(Debug)]
struct MapEntry {
    key: Vec<u8>,
    value: Vec<u8>,
}

fn create_maps(max_pairs: u32) -> Result<Vec<BpfMap>, Error> {
    let cpus = Sysfs::new("/sys").cpus(CpuState::Possible);
    let cpus = cpus.map_err(|error| Error::KernelFile {
        file: "/sys/devices/system/cpu/possible",
        error,
    })?;
    let possible = cpus.numbers().last().map_or(1, |last| *last as usize + 1);
    let value = u32::try_from(CALL_SIZE).unwrap_or(u32::MAX);
    use BpfMapKind::{Array, Hash, PerCpuArray};
    let shape = |kind, key, value, entries| BpfMapShape {
        kind,
        key,
        value,
        entries,
    };
    let shapes = [
        shape(Hash, 4, slot::SIZE as u32, MAX_TASKS),
        shape(Hash, 16, value, max_pairs),
        shape(Hash, 24, 8, max_pairs),
        shape(Array, 4, value, 1),
        shape(PerCpuArray, 4, 8, 3),
        shape(Array, 4, 4, 2 * COMPAT.unsigned_abs()),
    ];
    let created = shapes.into_iter().zip(MAPS).map(|(shape, map)| {
        BpfMap::create(shape, possible)
            .map_err(|error| Error::classify(error, |error| Error::Map { map, error }))
    });
    created.collect()
}

impl ProgramOptions {
    fn of(options: &SummaryOptions) -> Result<Self, Error> {
        let compat = Some(compat_mark()?);
        let file = "/proc/self/ns/pid";
        let namespace = rperf_sys::link_target(file);
        let namespace = namespace.map_err(|error| Error::KernelFile { file, error })?;
        if namespace.to_str() != Some(INITIAL_NAMESPACE) {
            return Err(Error::PidNamespace);
        }
        let follow = match &options.tasks {
            TaskSet::All => None,
            TaskSet::Threads { follow, .. } => *follow,
        };
        let task_pid = follow.map(i16::try_from).transpose();
        Ok(Self {
            known_tasks_only: options.tasks != TaskSet::All,
            excluded_process: options.excluded_process,
            task_pid: task_pid.map_err(|_| Error::NoBtf)?,
            compat,
        })
    }
}

impl CallKey {
    fn decode(key: &[u8]) -> Self {
        let call = word(key, 4);
        let compat = COMPAT.unsigned_abs();
        Self {
            thread: word(key, 0),
            birth: number(key, 8),
            call: call % compat,
            is_compat: call >= compat,
        }
    }
}

impl CallSummary {
    fn decode(value: &[u8]) -> Self {
        let field = |at| number(value, at);
        let bytes = |at: i16| {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            value.get(at..).unwrap_or_default()
        };
        let comm = bytes(call::COMM);
        let comm = comm.get(..16).unwrap_or(comm).split(|byte| *byte == 0);
        let (buckets, _) = bytes(call::BUCKETS).as_chunks();
        Self {
            count: field(call::COUNT),
            errors: field(call::ERRORS),
            total: field(call::TOTAL),
            min: field(call::MIN),
            max: field(call::MAX),
            squares: u128::from(field(call::SQUARES + 8)) << 64 | u128::from(field(call::SQUARES)),
            process: u32::try_from(field(call::PROCESS)).unwrap_or_default(),
            last: field(call::LAST),
            comm: comm.take(1).flatten().copied().collect(),
            buckets: buckets
                .iter()
                .map(|count| u32::from_ne_bytes(*count))
                .collect(),
            errnos: BTreeMap::new(),
        }
    }
}
