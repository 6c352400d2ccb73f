//! Tasks that ran on a CPU while others waited for it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::AddAssign;

use rustc_hash::FxHashMap;

use super::run_queues::Charge;
use crate::sched::{SchedTasks, TaskIndex};

/// What a CPU did while a task waited for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Antagonist {
    /// The CPU ran a task.
    Task {
        /// The latest name; not necessarily UTF-8.
        comm: Vec<u8>,
        /// The thread; `None` for all tasks of that name.
        tid: Option<i32>,
    },
    /// The CPU was idle: the delay is the time that the CPU needed to leave its idle state.
    Idle,
    /// Unknown: the CPU of the wait, or the context switches of that CPU, were not recorded.
    Unknown,
}

/// How long an antagonist occupied CPUs while tasks waited for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AntagonistTime {
    /// For how many nanoseconds of the waits it occupied the CPU.
    pub nanos: u64,
    /// The number of runs during waits; a run during several waits counts once for each.
    pub runs: u64,
    /// The number of tasks that waited.
    pub delayed_tasks: u64,
}

impl AddAssign for AntagonistTime {
    fn add_assign(&mut self, other: Self) {
        self.nanos = self.nanos.saturating_add(other.nanos);
        self.runs += other.runs;
        self.delayed_tasks += other.delayed_tasks;
    }
}

/// The times of all antagonists of one or more tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Antagonists {
    times: BTreeMap<Antagonist, AntagonistTime>,
}

impl Antagonists {
    /// Returns the antagonists, the one with the most time first.
    #[must_use]
    pub fn by_time(&self) -> Vec<(&Antagonist, AntagonistTime)> {
        let times = self.times.iter().map(|(who, time)| (who, *time));
        let mut times: Vec<_> = times.collect();
        // Stable: antagonists with equal times remain in the order of the map.
        times.sort_by_key(|(_, time)| Reverse(time.nanos));
        times
    }

    /// Adds the times of the waits of other tasks.
    pub fn merge(&mut self, other: &Self) {
        for (who, time) in &other.times {
            self.add(who.clone(), *time);
        }
    }

    fn add(&mut self, who: Antagonist, time: AntagonistTime) {
        *self.times.entry(who).or_default() += time;
    }

    fn nanos(&self) -> u64 {
        let nanos = self.times.values().map(|time| time.nanos);
        nanos.fold(0, u64::saturating_add)
    }
}

/// The sums of the charges of all ended waits of one task. A charge is the part of a wait in which one other task ran.
#[derive(Debug, Default)]
pub(super) struct ChargeSums {
    /// By the task that ran (`Charge::by`); `None` if unknown.
    by_task: FxHashMap<Option<TaskIndex>, Charge>,
}

impl ChargeSums {
    pub(super) fn add(&mut self, charges: Vec<Charge>) {
        for charge in charges {
            let sum = self.by_task.entry(charge.by);
            sum.and_modify(|sum| *sum += charge).or_insert(charge);
        }
    }

    /// Returns the antagonists of a task whose waits are `delay` nanoseconds in all; if `merge_names`, tasks of one name are one
    /// antagonist. Time that is not charged belongs to [`Antagonist::Unknown`].
    pub(super) fn antagonists(
        &self,
        tasks: &SchedTasks,
        merge_names: bool,
        delay: u64,
    ) -> Antagonists {
        let mut antagonists = Antagonists::default();
        for charge in self.by_task.values() {
            let who = match charge.by.map(|by| tasks.get(by)) {
                None => Antagonist::Unknown,
                Some(task) if task.tid == 0 => Antagonist::Idle,
                Some(task) => Antagonist::Task {
                    comm: task.comm.clone(),
                    tid: (!merge_names).then_some(task.tid),
                },
            };
            antagonists.add(who, charge.time());
        }
        let rest = Charge {
            by: None,
            nanos: delay.saturating_sub(antagonists.nanos()),
            runs: 0,
        };
        if rest.nanos > 0 {
            antagonists.add(Antagonist::Unknown, rest.time());
        }
        // All charges are from the waits of one task, so each antagonist delayed one task.
        let times = antagonists.times.values_mut();
        times.for_each(|time| time.delayed_tasks = 1);
        antagonists
    }
}
