//! The threads and CPUs that a recording opens its events for.

use std::io;

use rperf_sys::{CpuList, CpuState, Proc, Sysfs};

use crate::{Error, Target};

/// Where events are opened: every pair of one CPU and one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// The CPUs, each with a ring of its own; -1 alone stands for all of them, and then each task has
    /// a ring.
    pub(crate) cpus: Vec<i32>,
    /// The thread ids; -1 alone stands for every task.
    pub(crate) tasks: Vec<i32>,
}

impl Places {
    /// Finds them; `workload` is the forked child's id.
    pub(crate) fn find(
        target: &Target,
        workload: Option<u32>,
        (proc, sysfs): (&Proc, &Sysfs),
        per_thread: bool,
    ) -> Result<Self, Error> {
        let online = online_cpus(sysfs);
        let (cpus, tasks) = match target {
            Target::Cpus(None) => (online, vec![-1]),
            Target::Cpus(Some(asked)) => {
                if let Some(missing) = asked.numbers().iter().find(|cpu| !online.contains(**cpu)) {
                    return Err(Error::NoSuchCpu {
                        missing: *missing,
                        online,
                    });
                }
                (asked.clone(), vec![-1])
            }
            Target::Workload => (online, workload.into_iter().map(u32::cast_signed).collect()),
            Target::Processes(pids) => {
                let mut tids = Vec::new();
                for pid in pids {
                    tids.extend(proc.threads(*pid).map_err(|_| Error::NoSuchTask(*pid))?);
                }
                (online, signed(tids))
            }
            Target::User(user) => {
                let tids = threads_of(proc, |pid| {
                    proc.owner(pid).is_ok_and(|owner| owner == *user)
                })?;
                if tids.is_empty() {
                    return Err(Error::IdleUser(*user));
                }
                (online, signed(tids))
            }
            Target::Everyone => (online, signed(threads_of(proc, |_| true)?)),
            Target::Threads(tids) => {
                if let Some(gone) = tids.iter().find(|tid| proc.process_of(**tid).is_err()) {
                    return Err(Error::NoSuchTask(*gone));
                }
                (online, signed(tids.clone()))
            }
        };
        let whole_cpus = matches!(target, Target::Cpus(_));
        let cpus = match per_thread && !whole_cpus {
            true => vec![-1],
            false => cpus.numbers().iter().map(|cpu| cpu.cast_signed()).collect(),
        };
        Ok(Self { cpus, tasks })
    }
}

/// The threads of the processes that are wanted.
fn threads_of(proc: &Proc, wanted: impl Fn(u32) -> bool) -> Result<Vec<u32>, Error> {
    let pids = proc.processes();
    let pids = pids.map_err(Error::system("list the processes"))?;
    let wanted = pids.into_iter().filter(|pid| wanted(*pid));
    // What ended since has no threads.
    let threads = wanted.flat_map(|pid| proc.threads(pid).unwrap_or_default());
    Ok(threads.collect())
}

fn signed(mut tids: Vec<u32>) -> Vec<i32> {
    tids.sort_unstable();
    tids.dedup();
    tids.into_iter().map(u32::cast_signed).collect()
}

/// The online CPUs; where sysfs is not mounted, as many as this process may use, from 0.
fn online_cpus(sysfs: &Sysfs) -> CpuList {
    let listed = sysfs.cpus(CpuState::Online);
    listed.unwrap_or_else(|_: io::Error| {
        (0..u32::try_from(rperf_sys::parallelism()).unwrap_or(1)).collect()
    })
}
