//! Events whose counts BPF programs sum up in the kernel (`--bpf-counters`, `--bpf-prog`, modifier `b`).

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use rperf_bpf::{CgroupPlace, CountSum, CountedScope, CpuCounter, KernelCounters, TaskSet};
use rperf_count::{CounterCounts, CounterReading};
use rperf_sys::{CgroupFolder, Counter, read_pseudo_file_text};

use super::kernel::RunningKernel;
use super::open::{OpenCounters, OpenEvent};
use super::{CountRequest, CountStart, EventReadings};
use crate::tasks::CpuTasks;
use crate::{Error, Target};

/// The place of an event's sums.
#[derive(Debug)]
struct SummedEvent {
    /// The index of the event.
    event: usize,
    /// The index of its counters (one for each CPU) among those of all events that have counters.
    counters_index: usize,
    /// The index of its cgroup among those for which the programs have separate sums; 0 without cgroups.
    cgroup: usize,
}

/// The programs, and the events that they sum up.
#[derive(Debug)]
pub(super) struct KernelSums {
    programs: KernelCounters,
    events: Vec<SummedEvent>,
    /// The CPUs with counters.
    cpus: Vec<u32>,
    /// Whether each CPU has a separate reading.
    by_cpu: bool,
}

impl KernelSums {
    /// Loads the programs for the open events that need them; `None` without such events.
    pub(super) fn start(
        request: &CountRequest,
        opened: &OpenCounters<RunningKernel>,
        cpu_tasks: &CpuTasks,
    ) -> Result<Option<Self>, Error> {
        let is_summed = |(_, event): &(usize, &OpenEvent<Counter>)| {
            event.supported && event.summed_from.is_some()
        };
        let summed = opened.events.iter().enumerate().filter(is_summed);
        let summed: Vec<(usize, &OpenEvent<Counter>)> = summed.collect();
        if summed.is_empty() {
            return Ok(None);
        }
        let mut cgroups = Vec::new();
        let (mut sources, mut events) = (Vec::new(), Vec::new());
        for (index, event) in summed {
            // Of several equal events, such as those for several cgroups, only the first has counters. It is the source of all of
            // them, itself included. `summed_from` is never `None` here: `is_summed` requires it.
            let source = event.summed_from.unwrap_or(index);
            let requested = request.events.get(index);
            let cgroup = requested.and_then(|event| event.cgroup.as_deref());
            events.push(SummedEvent {
                event: index,
                counters_index: index_of(&mut sources, source),
                cgroup: cgroup.map_or(0, |cgroup| index_of(&mut cgroups, cgroup)),
            });
        }
        let counters: Vec<Vec<CpuCounter<'_>>> = sources
            .iter()
            .map(|source| counters_of(opened, *source))
            .collect();
        let cpus: BTreeSet<u32> = counters.iter().flatten().map(|at| at.cpu).collect();
        let scope = scope(request, &cgroups, cpu_tasks)?;
        Ok(Some(Self {
            programs: KernelCounters::start(&scope, &counters)?,
            events,
            cpus: cpus.into_iter().collect(),
            by_cpu: matches!(request.target, Target::Cpus(_)),
        }))
    }

    /// Replaces the readings of the summed events by their sums.
    pub(super) fn fill(&self, readings: &mut EventReadings) -> Result<(), Error> {
        let sums_by_cgroup = self.programs.read(&self.cpus)?;
        for SummedEvent {
            event,
            counters_index,
            cgroup,
        } in &self.events
        {
            let sums = sums_by_cgroup.get(*cgroup);
            let sums = sums.and_then(|by_counters| by_counters.get(*counters_index));
            // Indexed by CPU number.
            let sums = sums.map(Vec::as_slice).unwrap_or_default();
            // The readings of the event: one for each CPU, or only one.
            let Some(cells) = readings.cells.get_mut(*event) else {
                continue;
            };
            let on = |cpu: u32| sums.get(cpu as usize).copied().unwrap_or_default();
            *cells = match self.by_cpu {
                true => self
                    .cpus
                    .iter()
                    .map(|cpu| reading(Some(*cpu), on(*cpu)))
                    .collect(),
                false => {
                    let all = self.cpus.iter().map(|cpu| on(*cpu));
                    vec![reading(None, all.fold(CountSum::default(), sum))]
                }
            };
        }
        Ok(())
    }

    /// Returns the number of tasks that could not be observed.
    pub(super) fn lost_tasks(&self) -> Result<u64, Error> {
        Ok(self.programs.lost_tasks()?)
    }
}

/// Returns the index of a value in `values`; appends the value if it is new.
fn index_of<T: PartialEq>(values: &mut Vec<T>, value: T) -> usize {
    if let Some(index) = values.iter().position(|other| *other == value) {
        return index;
    }
    values.push(value);
    values.len() - 1
}

fn counters_of(opened: &OpenCounters<RunningKernel>, event: usize) -> Vec<CpuCounter<'_>> {
    let slots = opened
        .events
        .get(event)
        .map(|event| event.counters.as_slice());
    let slots = slots.unwrap_or_default().iter();
    let counters = slots.filter_map(|slot| {
        Some(CpuCounter {
            cpu: slot.cpu?,
            fd: slot.counter.as_ref()?.as_fd(),
        })
    });
    counters.collect()
}

/// Returns the tasks, cgroups or programs whose events are summed up.
fn scope(
    request: &CountRequest,
    cgroups: &[&str],
    cpu_tasks: &CpuTasks,
) -> Result<CountedScope, Error> {
    if !request.bpf.programs.is_empty() {
        return Ok(CountedScope::Programs(request.bpf.programs.clone()));
    }
    if !cgroups.is_empty() {
        let places = cgroups.iter().map(|name| cgroup_place(name, &request.proc));
        return Ok(CountedScope::Cgroups(places.collect::<Result<_, _>>()?));
    }
    // What remains are given tasks: an event of all tasks of a CPU needs no sums. So none of the tasks is -1 (all tasks).
    let threads = cpu_tasks.tasks.iter();
    Ok(CountedScope::Tasks(TaskSet::Threads {
        threads: threads.map(|task| task.unsigned_abs()).collect(),
        // To find children, the programs need the offset of `task_struct::pid`, which is unknown without BTF.
        follow: match request.inherit {
            true => Some(request.bpf.task_pid.ok_or(rperf_bpf::Error::NoBtf)?),
            false => None,
        },
        // [`CountStart::AtOnce`] counts a workload from its exec; after a delay or a control command, its exec does not matter.
        from_exec: request.target == Target::Workload && request.start == CountStart::AtOnce,
    }))
}

/// Returns the place of a cgroup in the hierarchy of version 2.
fn cgroup_place(name: &str, proc: &Path) -> Result<CgroupPlace, Error> {
    let mounts = read_pseudo_file_text(proc.join("self/mounts")).unwrap_or_default();
    let folder = CgroupFolder::find(&mounts).ok_or_else(|| io::ErrorKind::NotFound.into());
    let place = folder.and_then(|folder| folder.id_and_level(name));
    let place = place.map_err(|cause| Error::Cgroup {
        name: name.to_owned(),
        cause,
    })?;
    let (id, level) = place.ok_or(rperf_bpf::Error::NoHierarchy)?;
    Ok(CgroupPlace { id, level })
}

fn reading(cpu: Option<u32>, sum: CountSum) -> CounterReading {
    CounterReading {
        cpu,
        thread: None,
        counts: CounterCounts {
            value: sum.value,
            enabled: sum.enabled,
            running: sum.running,
        },
    }
}

fn sum(one: CountSum, other: CountSum) -> CountSum {
    CountSum {
        value: one.value.wrapping_add(other.value),
        enabled: one.enabled.wrapping_add(other.enabled),
        running: one.running.wrapping_add(other.running),
    }
}
