//! The result of `kwork top`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::KworkTop;
use crate::sched::LostStretches;

/// 100%, in hundredths of a percent.
const WHOLE: u128 = 10_000;

/// The times that a CPU spent, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// All complete stretches between two context switches.
    pub total: u64,
    /// The idle task, without the selected interrupts and softirqs within it.
    pub idle: u64,
    /// Hardware interrupts, without the interrupts within them; 0 if they are not selected.
    pub irq: u64,
    /// Softirqs, without the interrupts within them; 0 if they are not selected.
    pub softirq: u64,
}

impl CpuTimes {
    /// Returns the time of tasks other than the idle task. Interrupts and softirqs that are not selected count as time of the
    /// interrupted task.
    #[must_use]
    pub fn task_time(&self) -> u64 {
        let other = self.idle.saturating_add(self.irq);
        let other = other.saturating_add(self.softirq);
        self.total.saturating_sub(other)
    }

    fn add(&mut self, other: &Self) {
        self.total = self.total.saturating_add(other.total);
        self.idle = self.idle.saturating_add(other.idle);
        self.irq = self.irq.saturating_add(other.irq);
        self.softirq = self.softirq.saturating_add(other.softirq);
    }
}

/// A thread, or the idle tasks of all CPUs, with the run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopTask {
    /// The thread; 0 for the idle tasks.
    pub tid: i32,
    /// Its latest name; not necessarily UTF-8.
    pub comm: Vec<u8>,
    /// Nanoseconds, without selected interrupts and softirqs.
    pub runtime: u64,
    /// The sum of its shares of the time ([`CpuTimes::total`]) of each CPU, in hundredths of a percent; each share is rounded
    /// down. The sum may exceed 100%: the idle tasks can have up to 100% for each CPU.
    pub share: u64,
}

/// A column to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopSortKey {
    /// The share ([`TopTask::share`], in perf the rate), highest first.
    Rate,
    /// The run time, longest first.
    Runtime,
    /// The thread, lowest first.
    Tid,
}

impl TopSortKey {
    /// The default order.
    pub const DEFAULT: [Self; 2] = [Self::Rate, Self::Runtime];

    /// Returns the key of this name, as in `-s`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "rate" => Self::Rate,
            "runtime" => Self::Runtime,
            "tid" => Self::Tid,
            _ => return None,
        })
    }

    fn compare(self, left: &TopTask, right: &TopTask) -> Ordering {
        match self {
            Self::Rate => right.share.cmp(&left.share),
            Self::Runtime => right.runtime.cmp(&left.runtime),
            Self::Tid => left.tid.cmp(&right.tid),
        }
    }
}

/// The times of all CPUs and tasks.
#[derive(Debug)]
pub struct TopTable {
    /// The CPUs with a complete stretch between two context switches.
    pub cpus: BTreeMap<u32, CpuTimes>,
    /// The sum of all CPUs.
    pub all: CpuTimes,
    /// The selected tasks that ran, sorted.
    pub tasks: Vec<TopTask>,
    /// The stretches of time in which records were lost.
    pub losses: LostStretches,
}

impl KworkTop {
    /// Returns the table. Tasks that are equal by all `keys` are in ascending order of thread ids.
    #[must_use]
    pub fn into_table(self, keys: &[TopSortKey]) -> TopTable {
        let cpus = self.cpus.iter().map(|(cpu, state)| (*cpu, state.times));
        let cpus: BTreeMap<u32, CpuTimes> = cpus.filter(|(_, times)| times.total > 0).collect();
        let mut all = CpuTimes::default();
        for times in cpus.values() {
            all.add(times);
        }
        let mut tasks: BTreeMap<i32, TopTask> = BTreeMap::new();
        for (task_on_cpu, runtime) in &self.tasks {
            let tid = task_on_cpu.tid;
            let comm = self.comms.get(&tid);
            let task = tasks.entry(tid).or_insert_with(|| TopTask {
                tid,
                comm: comm.cloned().unwrap_or_default(),
                runtime: 0,
                share: 0,
            });
            let total = cpus.get(&task_on_cpu.cpu).map_or(0, |times| times.total);
            task.runtime = task.runtime.saturating_add(*runtime);
            task.share += share(*runtime, total);
        }
        let selected_name = self.selection.name.as_ref();
        let mut tasks: Vec<TopTask> = tasks.into_values().collect();
        tasks
            .retain(|task| task.runtime > 0 && selected_name.is_none_or(|name| *name == task.comm));
        tasks.sort_by(|left, right| {
            let orders = keys.iter().map(|key| key.compare(left, right));
            orders.fold(Ordering::Equal, Ordering::then)
        });
        TopTable {
            cpus,
            all,
            tasks,
            losses: self.losses,
        }
    }
}

/// Returns the share of a part, in hundredths of a percent, rounded down; 0 if `total` is 0.
fn share(part: u64, total: u64) -> u64 {
    let share = (u128::from(part) * WHOLE).checked_div(u128::from(total));
    share.unwrap_or_default().try_into().unwrap_or(u64::MAX)
}
