//! The rows of `sched latency`: merged by name, and sorted.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use super::{LatencyChecks, LatencySums};
use crate::sched::{LostStretches, SchedTasks, TaskIndex};

/// The result of [`SchedLatency`](super::SchedLatency).
#[derive(Debug)]
pub struct LatencyTable {
    /// The tasks or names with at least one wait, sorted.
    pub rows: Vec<LatencyRow>,
    /// Counts of inconsistencies; 0 for waits that were summed in the kernel (`--live`).
    pub checks: LatencyChecks,
    /// The stretches of time in which records were lost.
    pub losses: LostStretches,
}

impl LatencyTable {
    /// Creates a table of tasks whose waits were summed in the kernel (`--live`), one row each; for `merge_names` and `keys` see
    /// [`SchedLatency::finish`](super::SchedLatency::finish).
    #[must_use]
    pub fn of_tasks(mut rows: Vec<LatencyRow>, merge_names: bool, keys: &[LatencySortKey]) -> Self {
        merge_and_sort(&mut rows, merge_names, keys);
        Self {
            rows,
            checks: LatencyChecks::default(),
            losses: LostStretches::default(),
        }
    }

    /// Returns the sums of all rows.
    #[must_use]
    pub fn sums(&self) -> LatencySums {
        let mut sums = LatencySums::default();
        self.rows.iter().for_each(|row| sums.merge(&row.sums));
        sums
    }
}

/// A task, or all tasks of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyRow {
    /// The latest name; not necessarily UTF-8.
    pub comm: Vec<u8>,
    /// The thread id; the highest one if several tasks are merged.
    pub tid: i32,
    /// The number of tasks; merged tasks without a wait are included.
    pub tasks: u64,
    /// The sums of the task, or of all merged tasks.
    pub sums: LatencySums,
}

/// A column to sort by, the highest value first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencySortKey {
    /// Average delay.
    Average,
    /// Maximum delay.
    Maximum,
    /// Number of waits, each ended by a switch.
    Switches,
    /// Run time.
    Runtime,
    /// Thread id, which perf calls pid here.
    Pid,
}

impl LatencySortKey {
    /// The default keys, the most significant first.
    pub const DEFAULT: [Self; 4] = [Self::Average, Self::Maximum, Self::Switches, Self::Runtime];

    /// Returns the key with this name in `sched latency -s`; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "avg" => Self::Average,
            "max" => Self::Maximum,
            "switch" => Self::Switches,
            "runtime" => Self::Runtime,
            "pid" => Self::Pid,
            _ => return None,
        })
    }

    fn compare(self, left: &LatencyRow, right: &LatencyRow) -> Ordering {
        let (left_sums, right_sums) = (&left.sums, &right.sums);
        match self {
            Self::Average => right_sums.average().cmp(&left_sums.average()),
            Self::Maximum => right_sums.max_delay.cmp(&left_sums.max_delay),
            Self::Switches => right_sums.switches.cmp(&left_sums.switches),
            Self::Runtime => right_sums.runtime.cmp(&left_sums.runtime),
            Self::Pid => right.tid.cmp(&left.tid),
        }
    }
}

impl LatencyRow {
    /// The name of the idle tasks, which are not listed.
    const IDLE: &[u8] = b"swapper";

    /// Returns the row of a task; `None` for an idle task.
    pub(super) fn new(tasks: &SchedTasks, index: TaskIndex, sums: LatencySums) -> Option<Self> {
        let task = tasks.get(index);
        (task.comm != Self::IDLE).then(|| Self {
            comm: task.comm.clone(),
            tid: task.tid,
            tasks: 1,
            sums,
        })
    }
}

/// Merges tasks of one name if `merge_names`, drops rows without a wait, and sorts. Rows that are equal by all keys are in
/// descending order of their names if `merge_names`, otherwise of their thread ids, as in perf.
pub(super) fn merge_and_sort(
    rows: &mut Vec<LatencyRow>,
    merge_names: bool,
    keys: &[LatencySortKey],
) {
    rows.sort_by_key(|row| Reverse(row.tid));
    if merge_names {
        let mut merged: BTreeMap<Reverse<Vec<u8>>, LatencyRow> = BTreeMap::new();
        for row in rows.drain(..) {
            match merged.get_mut(&Reverse(row.comm.clone())) {
                Some(first) => {
                    first.tasks += 1;
                    first.sums.merge(&row.sums);
                }
                None => {
                    merged.insert(Reverse(row.comm.clone()), row);
                }
            }
        }
        rows.extend(merged.into_values());
    }
    rows.retain(|row| row.sums.switches > 0);
    rows.sort_by(|left, right| {
        let orders = keys.iter().map(|key| key.compare(left, right));
        orders.fold(Ordering::Equal, Ordering::then)
    });
}
