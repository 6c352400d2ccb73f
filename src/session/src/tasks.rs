//! The threads and CPUs for which events are opened.

use std::io;

use rperf_sys::{CpuList, CpuState, Proc, Sysfs};

use crate::{Error, Target};

/// CPUs and tasks; events are opened for each pair of a CPU and a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuTasks {
    /// The CPUs, each with a separate ring; or only -1, which means all CPUs: then each task has a ring.
    pub(crate) cpus: Vec<i32>,
    /// The thread ids; or only -1, which means all tasks.
    pub(crate) tasks: Vec<i32>,
    /// Other CPUs, on which only the side-band event is opened: a task that is sampled on one of `cpus` may have got its name and
    /// mapped its files on another CPU.
    pub(crate) side_band_cpus: Vec<i32>,
}

impl CpuTasks {
    /// Determines the CPUs and tasks to observe; `workload` is the pid of the forked child. With `per_thread`, there is a ring
    /// for each task instead of each CPU; CPU targets ignore `per_thread`.
    pub(crate) fn find(
        target: &Target,
        workload: Option<u32>,
        proc: &Proc,
        sysfs: &Sysfs,
        per_thread: bool,
    ) -> Result<Self, Error> {
        let online = online_cpus(sysfs);
        let mut side_band_cpus = Vec::new();
        let (cpus, tasks) = match target {
            Target::Cpus(None) => (online, vec![-1]),
            Target::Cpus(Some(cpus)) => {
                if let Some(missing) = cpus.numbers().iter().find(|cpu| !online.contains(**cpu)) {
                    return Err(Error::NoSuchCpu {
                        missing: *missing,
                        online,
                    });
                }
                let others = online.numbers().iter();
                let others = others.filter(|cpu| !cpus.contains(**cpu));
                side_band_cpus = others.map(|cpu| cpu.cast_signed()).collect();
                (cpus.clone(), vec![-1])
            }
            Target::Workload => (online, workload.into_iter().map(u32::cast_signed).collect()),
            Target::Processes(pids) => {
                let mut tids = Vec::new();
                for pid in pids {
                    tids.extend(proc.threads(*pid).map_err(|_| Error::NoSuchTask(*pid))?);
                }
                (online, unique_tids(tids))
            }
            Target::User(user) => {
                let is_owned = |pid| proc.owner(pid).is_ok_and(|owner| owner == *user);
                let tids = threads_of(proc, is_owned)?;
                if tids.is_empty() {
                    return Err(Error::IdleUser(*user));
                }
                (online, unique_tids(tids))
            }
            // Each existing thread has its own counters, unlike with `Target::Cpus`.
            Target::Everyone => (online, unique_tids(threads_of(proc, |_any_pid| true)?)),
            Target::Threads(tids) => {
                if let Some(missing) = tids.iter().find(|tid| proc.process_of(**tid).is_err()) {
                    return Err(Error::NoSuchTask(*missing));
                }
                (online, unique_tids(tids.clone()))
            }
        };
        let whole_cpus = matches!(target, Target::Cpus(_));
        let cpus = match per_thread && !whole_cpus {
            true => vec![-1],
            false => cpus.numbers().iter().map(|cpu| cpu.cast_signed()).collect(),
        };
        Ok(Self {
            cpus,
            tasks,
            side_band_cpus,
        })
    }

    /// Returns the number of rings, not counting overwrite rings.
    pub(crate) fn ring_count(&self) -> usize {
        match self.cpus[..] {
            [-1] => self.tasks.len(),
            _ => self.cpus.len() + self.side_band_cpus.len(),
        }
    }
}

/// Returns the threads of the selected processes.
fn threads_of(proc: &Proc, is_selected: impl Fn(u32) -> bool) -> Result<Vec<u32>, Error> {
    let pids = proc.processes();
    let pids = pids.map_err(Error::system("list the processes"))?;
    let selected = pids.into_iter().filter(|pid| is_selected(*pid));
    // Processes that have exited since the listing have no threads.
    let threads = selected.flat_map(|pid| proc.threads(pid).unwrap_or_default());
    Ok(threads.collect())
}

/// Returns the thread ids sorted and without duplicates.
fn unique_tids(mut tids: Vec<u32>) -> Vec<i32> {
    tids.sort_unstable();
    tids.dedup();
    tids.into_iter().map(u32::cast_signed).collect()
}

/// Returns the online CPUs. If sysfs can't be read, returns as many CPUs as this process may use, numbered from 0.
pub(crate) fn online_cpus(sysfs: &Sysfs) -> CpuList {
    let listed = sysfs.cpus(CpuState::Online);
    listed.unwrap_or_else(|_: io::Error| {
        (0..u32::try_from(rperf_sys::parallelism()).unwrap_or(1)).collect()
    })
}
