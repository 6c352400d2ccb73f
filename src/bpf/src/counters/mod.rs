//! Counts of perf events for tasks, cgroups and BPF programs, summed in the kernel: each event is open once on each CPU, however
//! many tasks, cgroups or programs are observed.

mod programs;
#[cfg(test)]
mod tests;

use std::os::fd::BorrowedFd;

use rperf_sys::{BpfMapKind, RawTracepointProgram, TracedBpfProgram, TracedPlace};

use crate::bytes::number;
use crate::loaded::{LoadedPrograms, NamedShape, possible_cpus};
use crate::tasks::{self, LOST_TASKS, slot};
use crate::{Error, TaskSet};
use programs::{Events, Groups, SUM_SIZE, reading};

/// The maximum number of events. It limits the size of programs and of values in the map of readings: each event adds about 40
/// instructions, 12 more for each further level of the counted cgroups, and 48 bytes, whose offsets must fit into an `i16`.
pub const MAX_COUNTED_EVENTS: usize = 512;

/// A cgroup of version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CgroupPlace {
    /// Its id: the inode number of its folder.
    pub id: u64,
    /// The number of its ancestors.
    pub level: u32,
}

/// The tasks, cgroups or programs whose events are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountedScope {
    /// One group: these tasks. Only tasks in the map of tasks are counted. With [`TaskSet::All`] this map is empty, so nothing is
    /// counted.
    Tasks(TaskSet),
    /// A group for each of these cgroups, with its descendants.
    Cgroups(Vec<CgroupPlace>),
    /// One group: BPF programs while they run, by their ids.
    Programs(Vec<u32>),
}

/// An event on a CPU. It counts everything that runs there, and must not be inherited.
#[derive(Debug, Clone, Copy)]
pub struct CpuCounter<'a> {
    /// The CPU.
    pub cpu: u32,
    /// The descriptor of perf_event_open(2).
    pub fd: BorrowedFd<'a>,
}

/// A sum of counts on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CountSum {
    /// Counted events.
    pub value: u64,
    /// Nanoseconds for which the event was enabled while the observed tasks or programs ran.
    pub enabled: u64,
    /// Nanoseconds of `enabled` for which the event was counted.
    pub running: u64,
}

/// The attached programs that count (not those that are counted, [`CountedScope::Programs`]), and their sums. Dropping this
/// detaches the programs.
#[derive(Debug)]
pub struct KernelCounters {
    loaded: LoadedPrograms,
    /// The program at `sched_switch`. It also runs on each CPU before sums are read, to add the counts since the last switch.
    /// `None` if BPF programs are counted.
    account: Option<RawTracepointProgram>,
    /// The number of groups ([`CountedScope`]).
    groups: u32,
    /// The number of events.
    events: usize,
}

impl KernelCounters {
    /// Loads and attaches the programs that count. `events` has the counters of each event, at most one on each CPU. They must
    /// not be enabled yet: earlier counts cannot be attributed to the tasks or programs of `scope`.
    ///
    /// # Errors
    /// [`Error`]; [`Error::TooManyEvents`] for more than [`MAX_COUNTED_EVENTS`], or too many for the number of CPUs.
    pub fn start(scope: &CountedScope, events: &[Vec<CpuCounter<'_>>]) -> Result<Self, Error> {
        let cpus = possible_cpus()?;
        let count = Some(events.len()).filter(|count| *count <= MAX_COUNTED_EVENTS);
        let numbers = Events {
            count: count
                .and_then(|count| i16::try_from(count).ok())
                .ok_or(Error::TooManyEvents)?,
            possible_cpus: i32::try_from(cpus).map_err(|_| Error::TooManyEvents)?,
        };
        let groups = scope.groups();
        let readings = scope.readings();
        let mut loaded = LoadedPrograms::new(&shapes(numbers, [readings, groups]))?;
        for (index, counters) in (0_usize..).zip(events) {
            for CpuCounter { cpu, fd } in counters {
                let key = index * cpus + *cpu as usize;
                let key = u32::try_from(key).map_err(|_| Error::TooManyEvents)?;
                loaded.set_descriptor(programs::EVENTS, key, *fd)?;
            }
        }
        let account = attach(&mut loaded, scope, numbers)?;
        Ok(Self {
            loaded,
            account,
            groups,
            events: events.len(),
        })
    }

    /// Returns the sums up to now by group, event and CPU, of all possible CPUs. `cpus` are the CPUs of the opened events.
    ///
    /// # Errors
    /// [`Error::Map`]; [`Error::Flush`], for example before Linux 5.10.
    pub fn read(&self, cpus: &[u32]) -> Result<Vec<Vec<Vec<CountSum>>>, Error> {
        if let Some(account) = &self.account {
            for cpu in cpus {
                match account.run_on(*cpu) {
                    // The CPU went offline.
                    Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {}
                    ran => ran.map_err(Error::Flush)?,
                }
            }
        }
        let sums = (0..self.groups).map(|group| {
            let value = self.loaded.get(programs::SUMS, &group.to_ne_bytes())?;
            Ok(decode(&value.unwrap_or_default(), self.events))
        });
        sums.collect()
    }

    /// Returns the number of tasks that were not observed, for lack of room.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn lost_tasks(&self) -> Result<u64, Error> {
        Ok(self.loaded.losses()?.of(LOST_TASKS))
    }
}

impl CountedScope {
    /// Returns the number of groups, at least 1: the kernel refuses maps without entries.
    fn groups(&self) -> u32 {
        match self {
            Self::Cgroups(cgroups) => u32::try_from(cgroups.len()).unwrap_or(u32::MAX).max(1),
            Self::Tasks(_) | Self::Programs(_) => 1,
        }
    }

    /// Returns the number of values in the map of readings, at least 1, as for `groups`. A value has the last reading of each
    /// event, to which the next one is compared.
    fn readings(&self) -> u32 {
        match self {
            Self::Programs(programs) => u32::try_from(programs.len()).unwrap_or(u32::MAX).max(1),
            Self::Tasks(_) | Self::Cgroups(_) => 1,
        }
    }
}

/// Returns the maps in the order of their [`crate::MapId`]. `events` has the numbers of events and CPUs, `readings` is the number
/// of values in the map of readings, and `groups` the number of groups.
fn shapes(events: Events, [readings, groups]: [u32; 2]) -> [NamedShape; 6] {
    use BpfMapKind::{Hash, PerCpuArray, PerfEventArray};
    let count = u32::from(events.count.cast_unsigned());
    let shape = NamedShape::new;
    let header = u32::from(reading::LAST.cast_unsigned());
    let reading_size = header + count * u32::from(reading::STRIDE.cast_unsigned());
    // The kernel refuses values of 0 bytes, so without events the size is 8. `decode` has the same minimum.
    let sums = (count * u32::from(SUM_SIZE.cast_unsigned())).max(8);
    let counters = (count * events.possible_cpus.cast_unsigned()).max(1);
    [
        shape("tasks", Hash, [4, slot::SIZE as u32, tasks::MAX_TASKS]),
        shape("losses", PerCpuArray, [4, 8, 1]),
        shape("events", PerfEventArray, [4, 4, counters]),
        shape("readings", PerCpuArray, [4, reading_size, readings]),
        shape("sums", PerCpuArray, [4, sums, groups]),
        shape("cgroups", Hash, [8, 4, groups]),
    ]
}

/// Attaches the programs that count, and returns the one to run on each CPU before sums are read, if any. `events` has only the
/// numbers of events and CPUs; their descriptors are already in the map.
fn attach(
    loaded: &mut LoadedPrograms,
    scope: &CountedScope,
    events: Events,
) -> Result<Option<RawTracepointProgram>, Error> {
    let groups = match scope {
        CountedScope::Programs(programs) => {
            return attach_to_programs(loaded, programs, events).map(|()| None);
        }
        CountedScope::Tasks(_) => Groups::Tasks,
        CountedScope::Cgroups(cgroups) => Groups::Cgroups(place_cgroups(loaded, cgroups)?),
    };
    let account = loaded.load("count", &programs::account(events, &groups))?;
    if let CountedScope::Tasks(set) = scope {
        attach_tasks(loaded, set, &account)?;
    }
    loaded.run_at(&account, "sched_switch")?;
    Ok(Some(account))
}

/// Adds the tasks, and attaches the programs that follow them.
fn attach_tasks(
    loaded: &mut LoadedPrograms,
    set: &TaskSet,
    account: &RawTracepointProgram,
) -> Result<(), Error> {
    loaded.add_tasks(set)?;
    loaded.attach("count_end", "sched_process_exit", &programs::mark_ended())?;
    if let Some(offset) = set.follow_offset()? {
        loaded.attach("fork", "sched_process_fork", &tasks::fork(offset))?;
    }
    if matches!(
        set,
        TaskSet::Threads {
            from_exec: true,
            ..
        }
    ) {
        // `account` runs first, while the task is not observed yet, and so drops the counts from before the exec.
        loaded.run_at(account, "sched_process_exec")?;
        loaded.attach("exec", "sched_process_exec", &tasks::exec())?;
    }
    Ok(())
}

/// Stores the group of each cgroup, and returns their distinct levels.
fn place_cgroups(loaded: &LoadedPrograms, cgroups: &[CgroupPlace]) -> Result<Vec<i32>, Error> {
    let mut levels = Vec::new();
    for (group, CgroupPlace { id, level }) in (0_u32..).zip(cgroups) {
        loaded.set(programs::GROUPS, &id.to_ne_bytes(), &group.to_ne_bytes())?;
        levels.push(level.cast_signed());
    }
    levels.sort_unstable();
    levels.dedup();
    Ok(levels)
}

/// Attaches programs to the start and the end of each counted program. `ids` are those of the counted programs.
fn attach_to_programs(
    loaded: &mut LoadedPrograms,
    ids: &[u32],
    events: Events,
) -> Result<(), Error> {
    for (index, id) in (0..).zip(ids.iter().copied()) {
        let opened = TracedBpfProgram::open(id).map_err(|error| match error.kind() {
            std::io::ErrorKind::Unsupported => Error::NoProgramTypes { id },
            _ => Error::classify(error, |error| Error::Program { id, error }),
        })?;
        let target = opened.ok_or(Error::NoProgram { id })?;
        // The exit first: until the entry is attached too, `leave` finds no reading of a start, and adds nothing.
        let hooks = [
            (TracedPlace::Exit, "leave", programs::leave(events, index)),
            (TracedPlace::Entry, "enter", programs::enter(events, index)),
        ];
        for (place, name, program) in hooks {
            let attached = loaded.attach_to(&target, place, name, &program);
            attached.map_err(|failure| match failure.error.raw_os_error() {
                // These are errors of the attachment, not of the verifier.
                Some(libc::EPERM | libc::EOPNOTSUPP | ENOTSUPP) => Error::NoTracing { id },
                _ => Error::load(name, failure),
            })?;
        }
    }
    Ok(())
}

/// `ENOTSUPP` of the kernel, which has no name in user space.
const ENOTSUPP: i32 = 524;

/// Returns the sums by event and CPU of a value of [`programs::SUMS`].
fn decode(value: &[u8], events: usize) -> Vec<Vec<CountSum>> {
    let size = (events * usize::from(SUM_SIZE.cast_unsigned())).max(8);
    let of_event = |index: usize| {
        let per_cpu = value.chunks_exact(size).map(|cpu| {
            let at = index * usize::from(SUM_SIZE.cast_unsigned());
            let sum = cpu.get(at..).unwrap_or_default();
            CountSum {
                value: number(sum, 0),
                enabled: number(sum, 8),
                running: number(sum, 16),
            }
        });
        per_cpu.collect()
    };
    (0..events).map(of_event).collect()
}
