//! Threads and their names in a database, as perf knows them at the time of a sample.
//!
//! A thread gets an id when it is exported, and so does each of its names. The row of a sample has the name of the
//! program that the process executes, not the name of the thread.

use rustc_hash::FxHashMap;

/// The index of a thread.
pub(super) type ThreadIndex = usize;

/// The process id and the thread id of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskIds {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

/// A thread, until its thread id is reused.
#[derive(Debug)]
pub(super) struct Thread {
    /// `u32::MAX` if unknown.
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// 0 until it is exported.
    pub(super) id: u64,
    /// Oldest first; never empty.
    comms: Vec<Comm>,
    /// Whether its name is known, for example from a COMM record; otherwise its only name is `:TID`.
    is_named: bool,
}

/// A name of a thread.
#[derive(Debug)]
pub(super) struct Comm {
    pub(super) name: String,
    /// Time in nanoseconds.
    pub(super) start: u64,
    pub(super) is_exec: bool,
    /// 0 until it is exported.
    pub(super) id: u64,
}

/// All threads.
#[derive(Debug)]
pub(super) struct Tasks {
    threads: Vec<Thread>,
    by_tid: FxHashMap<u32, ThreadIndex>,
    /// Whether COMM records mark names of executed programs: an event asks for it (`comm_exec`), or a record has such a mark.
    pub(super) marks_exec: bool,
}

impl Default for Tasks {
    fn default() -> Self {
        let mut tasks = Self {
            threads: Vec::new(),
            by_tid: FxHashMap::default(),
            marks_exec: false,
        };
        let idle = TaskIds { pid: 0, tid: 0 };
        let (start, is_exec) = (0, false);
        tasks.set_name(idle, "swapper".to_owned(), start, is_exec);
        tasks
    }
}

impl Tasks {
    pub(super) fn get(&self, index: ThreadIndex) -> Option<&Thread> {
        self.threads.get(index)
    }

    pub(super) fn get_mut(&mut self, index: ThreadIndex) -> Option<&mut Thread> {
        self.threads.get_mut(index)
    }

    /// The thread with this thread id; adds it if it is unknown, and sets its process id if that was unknown.
    pub(super) fn find_or_create(&mut self, TaskIds { pid, tid }: TaskIds) -> ThreadIndex {
        if let Some(&index) = self.by_tid.get(&tid) {
            if let Some(thread) = self.threads.get_mut(index)
                && thread.pid == u32::MAX
            {
                thread.pid = pid;
            }
            return index;
        }
        let index = self.threads.len();
        self.threads.push(Thread {
            pid,
            tid,
            id: 0,
            comms: vec![Comm {
                name: format!(":{}", tid.cast_signed()),
                start: 0,
                is_exec: false,
                id: 0,
            }],
            is_named: false,
        });
        self.by_tid.insert(tid, index);
        index
    }

    /// The main thread of a thread's process; `None` if it is unknown.
    pub(super) fn main_thread(&self, index: ThreadIndex) -> Option<ThreadIndex> {
        let thread = self.threads.get(index)?;
        match thread.pid {
            pid if pid == thread.tid => Some(index),
            u32::MAX => None,
            pid => self.by_tid.get(&pid).copied(),
        }
    }

    /// The thread with this thread id, if its name is known.
    pub(super) fn named(&self, tid: u32) -> Option<ThreadIndex> {
        let index = *self.by_tid.get(&tid)?;
        self.threads.get(index)?.is_named.then_some(index)
    }

    /// Processes a COMM record.
    pub(super) fn set_name(&mut self, task: TaskIds, name: String, start: u64, is_exec: bool) {
        self.marks_exec |= is_exec;
        let index = self.find_or_create(task);
        if let Some(thread) = self.threads.get_mut(index) {
            thread.set_name(name, start, is_exec);
        }
    }

    /// Processes a FORK record. An earlier thread with the child's thread id is no longer found, nor is a thread with the
    /// parent's thread id but another process id.
    pub(super) fn fork(&mut self, task: TaskIds, parent: TaskIds, time: u64) {
        let mut parent_index = self.find_or_create(parent);
        let thread = self.threads.get(parent_index);
        if thread.is_some_and(|thread| thread.pid != parent.pid) {
            self.by_tid.remove(&parent.tid);
            parent_index = self.find_or_create(parent);
        }
        self.by_tid.remove(&task.tid);
        let child = self.find_or_create(task);
        let named_parent = self
            .threads
            .get(parent_index)
            .filter(|thread| thread.is_named);
        let name = named_parent.and_then(|thread| Some(thread.comms.last()?.name.clone()));
        if let (Some(name), Some(thread)) = (name, self.threads.get_mut(child)) {
            let is_exec = false;
            thread.set_name(name, time, is_exec);
        }
    }

    /// The position of the name of the program that a thread executes.
    pub(super) fn program_comm(&self, index: ThreadIndex) -> usize {
        let Some(thread) = self.threads.get(index) else {
            return 0;
        };
        let newest = thread.newest_comm();
        if !self.marks_exec {
            return newest;
        }
        if let Some(exec) = thread.comms.iter().rposition(|comm| comm.is_exec) {
            return exec;
        }
        // Without an exec, the program has the first name. But if the first name of a main thread has the time 0 (the process
        // was running before the recording), that name may be the parent's: then the second name, if any, is the program's.
        let has_no_time = thread.comms.first().is_some_and(|comm| comm.start == 0);
        usize::from(has_no_time && newest > 0 && thread.pid == thread.tid)
    }
}

impl Thread {
    fn set_name(&mut self, name: String, start: u64, is_exec: bool) {
        if !self.is_named {
            // The first name, `:TID`, is replaced.
            self.is_named = true;
            if let Some(first) = self.comms.first_mut() {
                (first.name, first.start) = (name, start);
                first.is_exec |= is_exec;
            }
            return;
        }
        self.comms.push(Comm {
            name,
            start,
            is_exec,
            id: 0,
        });
    }

    /// The position of the newest name.
    pub(super) fn newest_comm(&self) -> usize {
        self.comms.len().saturating_sub(1)
    }

    pub(super) fn comm(&self, position: usize) -> Option<&Comm> {
        self.comms.get(position)
    }

    pub(super) fn comm_mut(&mut self, position: usize) -> Option<&mut Comm> {
        self.comms.get_mut(position)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pid == 0 && self.tid == 0
    }
}
