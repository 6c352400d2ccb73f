//! The tasks of a recording by thread id, with the latest name of each.

use super::tid_table::TidTable;
use crate::{TaskChange, TaskId};

/// The number of buckets of perf's thread table, which decides the order of perf's lists of tasks.
const BUCKETS: u32 = 256;

/// A task's index in [`SchedTasks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskIndex(usize);

impl TaskIndex {
    /// Creates the index of the task whose entry is at `position` in a table with an entry for each task.
    pub(super) fn nth(position: usize) -> Self {
        Self(position)
    }

    /// Returns the index, for tables with an entry for each task.
    #[must_use]
    pub fn get(self) -> usize {
        self.0
    }
}

/// A task. Ids are -1 if unknown, for example in samples of a task that has exited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedTask {
    /// Thread id; 0 for the idle tasks.
    pub tid: i32,
    /// Process id.
    pub pid: i32,
    /// Thread id of the creator.
    pub parent: i32,
    /// Its latest name; `:TID` if unknown.
    pub comm: Vec<u8>,
    /// Whether its exit was recorded.
    pub is_dead: bool,
    /// Whether the name was set by `rename`; otherwise, children do not inherit it.
    has_comm: bool,
}

impl SchedTask {
    fn new(pid: i32, tid: i32) -> Self {
        Self {
            tid,
            pid,
            parent: -1,
            comm: format!(":{tid}").into_bytes(),
            is_dead: false,
            has_comm: false,
        }
    }

    /// Creates the idle task with the name `<idle>`, under which `sched timehist` shows it.
    pub(super) fn idle() -> Self {
        Self {
            comm: b"<idle>".to_vec(),
            ..Self::new(0, 0)
        }
    }

    fn rename(&mut self, comm: &[u8]) {
        self.comm = comm.to_vec();
        self.has_comm = true;
    }
}

/// Tasks by thread id. After a FORK record of a known thread id, the id belongs to a new task; the earlier task is kept.
#[derive(Debug)]
pub struct SchedTasks {
    tasks: Vec<SchedTask>,
    by_tid: TidTable,
    /// Tasks whose thread id is used by another task now, in order of replacement.
    replaced: Vec<TaskIndex>,
}

impl Default for SchedTasks {
    fn default() -> Self {
        Self::new()
    }
}

impl SchedTasks {
    /// Creates a table that has only the idle task, `swapper`.
    #[must_use]
    pub fn new() -> Self {
        let mut tasks = Self {
            tasks: Vec::new(),
            by_tid: TidTable::default(),
            replaced: Vec::new(),
        };
        let idle = tasks.find_or_add(0, 0);
        tasks.rename(idle, b"swapper");
        tasks
    }

    /// Returns the task with this thread id, and sets its process id if that was unknown; adds a task if there is none.
    /// `pid` is -1 if unknown.
    pub fn find_or_add(&mut self, pid: i32, tid: i32) -> TaskIndex {
        if let Some(found) = self.find(pid, tid) {
            return found;
        }
        let added = TaskIndex(self.tasks.len());
        self.tasks.push(SchedTask::new(pid, tid));
        self.by_tid.insert(tid, added);
        added
    }

    /// Returns a task.
    #[must_use]
    pub fn get(&self, index: TaskIndex) -> &SchedTask {
        // All indexes come from this table, which never shrinks.
        &self.tasks[index.0]
    }

    /// Returns the number of tasks, including those whose thread id was used again.
    #[must_use]
    pub fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Handles a FORK, EXIT or COMM record. Returns the task that COMM names; `None` for the other records.
    pub fn change(&mut self, change: &TaskChange<'_>) -> Option<TaskIndex> {
        match change {
            TaskChange::Fork { parent, child } => {
                self.fork(*parent, *child);
                None
            }
            TaskChange::Exit(task) => {
                let (pid, tid) = signed(*task);
                if let Some(index) = self.find(pid, tid)
                    && let Some(task) = self.tasks.get_mut(index.0)
                {
                    task.is_dead = true;
                }
                None
            }
            TaskChange::Comm { task, name, .. } => {
                let (pid, tid) = signed(*task);
                let index = self.find_or_add(pid, tid);
                self.rename(index, name);
                Some(index)
            }
        }
    }

    /// Returns all tasks in perf's order: by thread id modulo 256, then by thread id. For each remainder, tasks whose thread id
    /// was used again come last, in the order in which they were replaced.
    #[must_use]
    pub fn in_listing_order(&self) -> Vec<TaskIndex> {
        let current = self
            .by_tid
            .iter()
            .map(|(tid, index)| ((tid.cast_unsigned() % BUCKETS, 0, i64::from(tid)), index));
        let replaced = self.replaced.iter().zip(0_i64..).map(|(index, order)| {
            let tid = self.get(*index).tid;
            ((tid.cast_unsigned() % BUCKETS, 1, order), *index)
        });
        let mut all: Vec<_> = current.chain(replaced).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all.into_iter().map(|(_, index)| index).collect()
    }

    /// Returns the task with this thread id, if any, and sets its process id if that was unknown.
    fn find(&mut self, pid: i32, tid: i32) -> Option<TaskIndex> {
        let found = self.by_tid.get(tid)?;
        let task = self.tasks.get_mut(found.0)?;
        if task.pid == -1 {
            task.pid = pid;
        }
        Some(found)
    }

    /// Adds a new task for `child`, with the name of `parent`. An earlier task with the thread id of `child` loses that id.
    fn fork(&mut self, parent: TaskId, child: TaskId) {
        let (child_pid, child_tid) = signed(child);
        let (parent_pid, parent_tid) = signed(parent);
        let earlier = self.find(child_pid, child_tid);
        let mut parent = self.find_or_add(parent_pid, parent_tid);
        // The parent's thread id belonged to another process before: the FORK record of the parent is missing.
        if self.get(parent).pid != parent_pid {
            self.free_tid(parent);
            parent = self.find_or_add(parent_pid, parent_tid);
        }
        if let Some(earlier) = earlier {
            self.free_tid(earlier);
        }
        let child = self.find_or_add(child_pid, child_tid);
        let (comm, has_comm) = {
            let parent = self.get(parent);
            (parent.comm.clone(), parent.has_comm)
        };
        if has_comm {
            self.rename(child, &comm);
        }
        if let Some(child) = self.tasks.get_mut(child.0) {
            child.parent = parent_tid;
        }
    }

    /// Frees the thread id of a task for another task.
    fn free_tid(&mut self, index: TaskIndex) {
        let tid = self.get(index).tid;
        if self.by_tid.get(tid) == Some(index) {
            self.by_tid.remove(tid);
            self.replaced.push(index);
        }
    }

    fn rename(&mut self, index: TaskIndex, comm: &[u8]) {
        if let Some(task) = self.tasks.get_mut(index.0) {
            task.rename(comm);
        }
    }
}

/// Returns the entry of a task in a table with an entry for each task; extends the table if needed.
pub(super) fn entry<T: Default>(table: &mut Vec<T>, index: TaskIndex) -> &mut T {
    if index.0 >= table.len() {
        table.resize_with(index.0 + 1, T::default);
    }
    &mut table[index.0]
}

fn signed(task: TaskId) -> (i32, i32) {
    (task.pid.cast_signed(), task.tid.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::UNKNOWN_PID;

    fn task(pid: u32, tid: u32) -> TaskId {
        TaskId { pid, tid }
    }

    fn comm(pid: u32, tid: u32, name: &[u8]) -> TaskChange<'_> {
        TaskChange::Comm {
            task: task(pid, tid),
            name,
            by_exec: false,
        }
    }

    #[test]
    fn a_fork_inherits_the_name_and_a_reused_tid_is_another_task() {
        let mut tasks = SchedTasks::new();
        tasks.change(&comm(10, 10, b"sh"));
        let fork = TaskChange::Fork {
            parent: task(10, 10),
            child: task(11, 11),
        };
        tasks.change(&fork);
        let first = tasks.find_or_add(UNKNOWN_PID, 11);
        assert_eq!(tasks.get(first).comm, b"sh");
        assert_eq!(tasks.get(first).parent, 10);
        tasks.change(&comm(11, 11, b"ls"));
        tasks.change(&TaskChange::Exit(task(11, 11)));
        assert!(tasks.get(first).is_dead);
        tasks.change(&fork);
        let second = tasks.find_or_add(UNKNOWN_PID, 11);
        assert_ne!(first, second);
        assert_eq!(tasks.get(first).comm, b"ls");
        assert_eq!(tasks.get(second).comm, b"sh");
    }

    #[test]
    fn the_listing_is_by_bucket() {
        let mut tasks = SchedTasks::new();
        for tid in [300, 2, 258, 5] {
            tasks.find_or_add(UNKNOWN_PID, tid);
        }
        let unknown = tasks.find_or_add(7, -1);
        let replaced = tasks.find_or_add(1, 2);
        tasks.change(&TaskChange::Fork {
            parent: task(300, 300),
            child: task(2, 2),
        });
        let order = tasks.in_listing_order();
        let tids: Vec<i32> = order.iter().map(|index| tasks.get(*index).tid).collect();
        assert_eq!(tids, [0, 2, 258, 2, 5, 300, -1]);
        assert_eq!(order[3], replaced);
        assert_eq!(tasks.get(unknown).comm, b":-1");
    }

    #[test]
    fn an_unknown_pid_is_filled_in_once() {
        let mut tasks = SchedTasks::new();
        let index = tasks.find_or_add(UNKNOWN_PID, 4);
        tasks.find_or_add(3, 4);
        tasks.find_or_add(9, 4);
        assert_eq!(tasks.get(index).pid, 3);
    }
}
