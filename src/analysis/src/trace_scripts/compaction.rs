//! Time that tasks spend on memory compaction, and the pages that are scanned and moved.

use rustc_hash::FxHashMap;

use super::{EventFields, FirstSeen, ScriptSample};

// The positions of tracepoints in [`CompactionTimes::EVENTS`], the values of [`ScriptSample::kind`].
const BEGIN: usize = 0;
const END: usize = 1;
const MIGRATE_PAGES: usize = 2;
const ISOLATE_FREE_PAGES: usize = 3;
const ISOLATE_MIGRATE_PAGES: usize = 4;

/// Returns whether the compactions of a thread, given by its id and name, are added up.
pub type TaskFilter = Box<dyn Fn(i64, &str) -> bool>;

/// Time and pages of one compaction, or their sums over several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionTotals {
    /// Time in nanoseconds.
    pub time: u64,
    /// Number of pages moved.
    pub moved: u64,
    /// Number of pages that could not be moved.
    pub failed: u64,
    /// Number of pages that the free scanner scanned, and of those that it isolated.
    pub free_scanner: [u64; 2],
    /// Number of pages that the migration scanner scanned, and of those that it isolated.
    pub migration_scanner: [u64; 2],
}

impl CompactionTotals {
    fn add(&mut self, other: &Self) {
        self.time = self.time.saturating_add(other.time);
        self.moved = self.moved.saturating_add(other.moved);
        self.failed = self.failed.saturating_add(other.failed);
        for index in 0..2 {
            self.free_scanner[index] =
                self.free_scanner[index].saturating_add(other.free_scanner[index]);
            self.migration_scanner[index] =
                self.migration_scanner[index].saturating_add(other.migration_scanner[index]);
        }
    }
}

/// The compactions of a task.
#[derive(Debug, Clone, Default)]
pub struct TaskCompactions {
    /// The task's name at the end of its first compaction.
    pub comm: String,
    /// Each compaction, in the order of their ends.
    pub each: Vec<CompactionTotals>,
}

/// Compactions by task.
#[derive(Default)]
pub struct CompactionTimes {
    filter: Option<TaskFilter>,
    /// By thread id: when the running compaction began, and its pages so far.
    running: FxHashMap<i64, (u64, CompactionTotals)>,
    tasks: FirstSeen<i64, TaskCompactions>,
}

impl CompactionTimes {
    /// The tracepoints whose samples are needed.
    pub const EVENTS: &'static [EventFields] = &[
        event("compaction:mm_compaction_begin", &[]),
        event("compaction:mm_compaction_end", &[]),
        event(
            "compaction:mm_compaction_migratepages",
            &["nr_migrated", "nr_failed"],
        ),
        event(
            "compaction:mm_compaction_isolate_freepages",
            &["nr_scanned", "nr_taken"],
        ),
        event(
            "compaction:mm_compaction_isolate_migratepages",
            &["nr_scanned", "nr_taken"],
        ),
    ];

    /// Creates empty sums for the threads that `filter` accepts; `None` for all.
    #[must_use]
    pub fn of_tasks(filter: Option<TaskFilter>) -> Self {
        Self {
            filter,
            ..Self::default()
        }
    }

    /// Adds an event.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        let is_wanted = |filter: &TaskFilter| filter(sample.tid, sample.comm);
        if !self.filter.as_ref().is_none_or(is_wanted) {
            return;
        }
        if sample.kind == Some(BEGIN) {
            let began = (sample.time, CompactionTotals::default());
            self.running.insert(sample.tid, began);
            return;
        }
        if sample.kind == Some(END) {
            if let Some((began, mut totals)) = self.running.remove(&sample.tid) {
                totals.time = sample.time.saturating_sub(began);
                let task = self.tasks.entry(&sample.tid);
                if task.each.is_empty() {
                    sample.comm.clone_into(&mut task.comm);
                }
                task.each.push(totals);
            }
            return;
        }
        let Some((_, totals)) = self.running.get_mut(&sample.tid) else {
            return;
        };
        // The values of the tracepoint's two fields in `EVENTS`.
        let [first, second] = [0, 1].map(|index| sample.number(index).cast_unsigned());
        match sample.kind {
            Some(MIGRATE_PAGES) => {
                totals.moved = totals.moved.saturating_add(first);
                totals.failed = totals.failed.saturating_add(second);
            }
            Some(ISOLATE_FREE_PAGES) => {
                totals.free_scanner[0] = totals.free_scanner[0].saturating_add(first);
                totals.free_scanner[1] = totals.free_scanner[1].saturating_add(second);
            }
            Some(ISOLATE_MIGRATE_PAGES) => {
                totals.migration_scanner[0] = totals.migration_scanner[0].saturating_add(first);
                totals.migration_scanner[1] = totals.migration_scanner[1].saturating_add(second);
            }
            _ => {}
        }
    }

    /// Returns thread ids and their compactions, in the order in which the first compaction of each ended.
    pub fn tasks(&self) -> impl Iterator<Item = (i64, &TaskCompactions)> {
        self.tasks.iter().map(|(tid, task)| (*tid, task))
    }
}

impl TaskCompactions {
    /// Returns the sum of all compactions.
    #[must_use]
    pub fn total(&self) -> CompactionTotals {
        sum(&self.each)
    }
}

/// Returns the sum of compactions.
pub fn sum<'t>(each: impl IntoIterator<Item = &'t CompactionTotals>) -> CompactionTotals {
    let mut total = CompactionTotals::default();
    for totals in each {
        total.add(totals);
    }
    total
}

const fn event(tracepoint: &'static str, numbers: &'static [&'static str]) -> EventFields {
    EventFields {
        tracepoint,
        numbers,
        text: None,
    }
}
