//! Threads over time: the successive threads with the same id, and their names.

use rustc_hash::FxHashMap;

use super::Comms;
use super::thread_cache::OrderRange;
use crate::{CommId, Order};

/// Process and thread id of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadIds {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

/// A change in the history of a thread id.
#[derive(Debug, Clone, Copy)]
enum ThreadChange {
    /// A new thread, with its parent's name if that has one.
    Start(Option<CommId>),
    /// A new name.
    Comm(CommId),
}

/// Changes of one thread id, oldest first.
#[derive(Debug, Default)]
struct ThreadHistory {
    changes: Vec<(Order, ThreadChange)>,
    /// Process of the last thread with this id; `None` if unknown.
    pid: Option<u32>,
    /// Id of the thread that created the last thread with this id.
    parent: Option<u32>,
    /// Whether the thread id occurs in a COMM or FORK record, or is that of the idle task; otherwise it is only known from
    /// mappings.
    has_task_records: bool,
}

/// The last thread with a thread id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Process id; `u32::MAX` if not recorded.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Id of the thread that created it, if recorded.
    pub parent: Option<u32>,
    /// Its last name, or `:TID`.
    pub comm: CommId,
    /// Whether it occurs in COMM or FORK records, and not only in those of mappings. Always true for the idle task.
    pub has_task_records: bool,
}

/// The start of a thread, or its new name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommChange {
    /// The thread.
    pub tid: u32,
    /// The position of the change, which applies to later records.
    pub order: Order,
    /// The name; `None` for a new thread without one.
    pub comm: Option<CommId>,
}

impl ThreadHistory {
    /// The last change before `order`, and the later changes of the same thread's name.
    fn neighbours(
        &self,
        order: Order,
    ) -> (Option<&ThreadChange>, impl Iterator<Item = &ThreadChange>) {
        let before = self.changes.partition_point(|(at, _)| *at < order);
        let (past, future) = self.changes.split_at_checked(before).unwrap_or_default();
        let is_name = |change: &&ThreadChange| matches!(change, ThreadChange::Comm(_));
        let future = future.iter().map(|(_, change)| change).take_while(is_name);
        (past.last().map(|(_, change)| change), future)
    }
}

impl ThreadChange {
    /// The name it sets, if any.
    fn comm(&self) -> Option<CommId> {
        match self {
            Self::Start(comm) => *comm,
            Self::Comm(comm) => Some(*comm),
        }
    }
}

/// All threads of the host.
#[derive(Debug, Default)]
pub(crate) struct ThreadTable {
    histories: FxHashMap<u32, ThreadHistory>,
}

impl ThreadTable {
    /// Sets the process of the thread `tid` unless it is known; `pid` is `u32::MAX` if not recorded.
    pub(crate) fn seen(&mut self, pid: u32, tid: u32) {
        let history = self.histories.entry(tid).or_default();
        if history.pid.is_none() && pid != u32::MAX {
            history.pid = Some(pid);
        }
    }

    /// Handles a COMM record.
    pub(crate) fn named(&mut self, order: Order, pid: u32, tid: u32, comm: CommId) {
        self.seen(pid, tid);
        let history = self.histories.entry(tid).or_default();
        history.has_task_records = true;
        history.changes.push((order, ThreadChange::Comm(comm)));
    }

    /// Handles a FORK record. If the parent's thread id is known with another pid, it was reused and the record of the new thread
    /// was lost: a new thread starts here.
    pub(crate) fn forked(&mut self, order: Order, parent: ThreadIds, child: ThreadIds) {
        let history = self.histories.entry(parent.tid).or_default();
        if history.pid.is_some_and(|pid| pid != parent.pid) {
            history.changes.push((order, ThreadChange::Start(None)));
            history.parent = None;
        }
        history.has_task_records = true;
        history.pid = Some(parent.pid);
        let name = self.latest(parent.tid);
        let history = self.histories.entry(child.tid).or_default();
        history.pid = Some(child.pid);
        history.parent = Some(parent.tid);
        history.has_task_records = true;
        history.changes.push((order, ThreadChange::Start(name)));
    }

    /// Removes the thread with this id, which exited at `order`; returns `false` if the id is unknown or has later changes.
    pub(crate) fn end(&mut self, order: Order, tid: u32) -> bool {
        let has_ended =
            |history: &ThreadHistory| history.changes.last().is_none_or(|(at, _)| *at <= order);
        let is_removed = self.histories.get(&tid).is_some_and(has_ended);
        is_removed && self.histories.remove(&tid).is_some()
    }

    /// Keeps only the latest name of the last thread of each id, if it has one; the name then applies from the beginning.
    pub(crate) fn keep_last_names(&mut self) {
        for history in self.histories.values_mut() {
            let last = history.changes.drain(..).next_back();
            let name = last.and_then(|(_, change)| change.comm());
            let name = name.map(|name| (Order::default(), ThreadChange::Comm(name)));
            history.changes.extend(name);
        }
    }

    /// All starts and new names of threads: those of one thread id in order, thread ids in no particular order.
    pub(crate) fn comm_changes(&self) -> impl Iterator<Item = CommChange> + '_ {
        self.histories.iter().flat_map(|(tid, history)| {
            history.changes.iter().map(|(order, change)| CommChange {
                tid: *tid,
                order: *order,
                comm: change.comm(),
            })
        })
    }

    /// Number of thread ids.
    pub(crate) fn len(&self) -> usize {
        self.histories.len()
    }

    /// All current and past names.
    pub(crate) fn names(&self) -> impl Iterator<Item = CommId> + '_ {
        let changes = self.histories.values().flat_map(|history| &history.changes);
        changes.filter_map(|(_, change)| change.comm())
    }

    /// The processes of all threads, with duplicates.
    pub(crate) fn processes(&self) -> impl Iterator<Item = u32> + '_ {
        self.histories.values().filter_map(|history| history.pid)
    }

    /// The last thread of each thread id.
    pub(crate) fn all(&self) -> impl Iterator<Item = ThreadInfo> + '_ {
        self.histories.iter().map(|(tid, history)| ThreadInfo {
            pid: history.pid.unwrap_or(u32::MAX),
            tid: *tid,
            parent: history.parent,
            comm: self.latest(*tid).unwrap_or(Comms::unnamed(*tid)),
            has_task_records: history.has_task_records,
        })
    }

    fn latest(&self, tid: u32) -> Option<CommId> {
        let (_, change) = self.histories.get(&tid)?.changes.last()?;
        change.comm()
    }

    /// The range of orders around `order` in which the thread id has no change: each of the `comm_*` functions below returns the
    /// same name for all of them.
    pub(crate) fn span(&self, tid: u32, order: Order) -> OrderRange {
        let changes = self
            .histories
            .get(&tid)
            .map_or(&[][..], |history| &history.changes);
        let before = changes.partition_point(|(at, _)| *at < order);
        OrderRange::at(changes, before, |(at, _)| *at)
    }

    /// The name at `order`, or `:TID`.
    pub(crate) fn comm_at(&self, tid: u32, order: Order) -> CommId {
        let name = self.histories.get(&tid).and_then(|history| {
            let (past, _) = history.neighbours(order);
            past?.comm()
        });
        name.unwrap_or(Comms::unnamed(tid))
    }

    /// The name at `order`, or the first later one of the same thread, or `:TID`.
    pub(crate) fn comm_at_or_later(&self, tid: u32, order: Order) -> CommId {
        let name = self.histories.get(&tid).and_then(|history| {
            let (past, mut future) = history.neighbours(order);
            past.and_then(ThreadChange::comm)
                .or_else(|| future.find_map(ThreadChange::comm))
        });
        name.unwrap_or(Comms::unnamed(tid))
    }

    /// The last name of the thread that has this id at `order`, or `:TID`.
    pub(crate) fn comm_last(&self, tid: u32, order: Order) -> CommId {
        let name = self.histories.get(&tid).and_then(|history| {
            let (past, future) = history.neighbours(order);
            future.last().or(past)?.comm()
        });
        name.unwrap_or(Comms::unnamed(tid))
    }
}
