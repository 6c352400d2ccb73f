//! Threads through time: who had a thread id when, and under which names.

use rustc_hash::FxHashMap;

use super::Comms;
use crate::{CommId, Order};

/// One change in the life of a thread id.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// A new thread, under its parent's name if that has one.
    Start(Option<CommId>),
    /// A new name.
    Comm(CommId),
}

/// What happened to one thread id, oldest first.
#[derive(Debug, Default)]
struct Life {
    changes: Vec<(Order, Change)>,
    /// Process of the thread that has the id now, while pushing.
    pid: Option<u32>,
}

impl Life {
    /// The changes of the thread that had the id just before `order`, and how many of them came
    /// before it.
    fn thread_at(&self, order: Order) -> (&[(Order, Change)], usize) {
        let is_start = |(_, change): &(Order, Change)| matches!(change, Change::Start(_));
        let before = self.changes.partition_point(|(at, _)| *at < order);
        let (past, future) = self.changes.split_at_checked(before).unwrap_or_default();
        let first = past.iter().rposition(is_start).unwrap_or(0);
        let end = future.iter().position(is_start).unwrap_or(future.len()) + before;
        let changes = self.changes.get(first..end).unwrap_or_default();
        (changes, before - first)
    }
}

/// Name of a change, if it gives one.
fn comm(change: &(Order, Change)) -> Option<CommId> {
    match change.1 {
        Change::Start(comm) => comm,
        Change::Comm(comm) => Some(comm),
    }
}

/// All threads of one machine.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    lives: FxHashMap<u32, Life>,
}

impl Threads {
    /// Notes that `tid` belongs to `pid`, as far as that was not known.
    pub(crate) fn seen(&mut self, pid: u32, tid: u32) {
        let life = self.lives.entry(tid).or_default();
        if life.pid.is_none() && pid != u32::MAX {
            life.pid = Some(pid);
        }
    }

    /// A COMM record.
    pub(crate) fn named(&mut self, order: Order, pid: u32, tid: u32, comm: CommId) {
        self.seen(pid, tid);
        let life = self.lives.entry(tid).or_default();
        life.changes.push((order, Change::Comm(comm)));
    }

    /// A FORK record. A parent that is known under another pid is not the parent: what ended it was
    /// lost, and a new thread begins.
    pub(crate) fn forked(&mut self, order: Order, parent: (u32, u32), child: (u32, u32)) {
        let (ppid, ptid) = parent;
        let life = self.lives.entry(ptid).or_default();
        if life.pid.is_some_and(|pid| pid != ppid) {
            life.changes.push((order, Change::Start(None)));
        }
        life.pid = Some(ppid);
        let name = self.latest(ptid);
        let (pid, tid) = child;
        let life = self.lives.entry(tid).or_default();
        life.pid = Some(pid);
        life.changes.push((order, Change::Start(name)));
    }

    fn latest(&self, tid: u32) -> Option<CommId> {
        comm(self.lives.get(&tid)?.changes.last()?)
    }

    /// The name at `order`, or `:TID`.
    pub(crate) fn comm_at(&self, tid: u32, order: Order) -> CommId {
        let name = self.lives.get(&tid).and_then(|life| {
            let before = life.changes.partition_point(|(at, _)| *at < order);
            comm(life.changes.get(before.checked_sub(1)?)?)
        });
        name.unwrap_or(Comms::unnamed(tid))
    }

    /// The name at `order`, or the first one that the thread got later.
    pub(crate) fn comm_final(&self, tid: u32, order: Order) -> CommId {
        let name = self.lives.get(&tid).and_then(|life| {
            let (changes, before) = life.thread_at(order);
            let (past, future) = changes.split_at_checked(before)?;
            past.last()
                .and_then(comm)
                .or_else(|| future.iter().find_map(comm))
        });
        name.unwrap_or(Comms::unnamed(tid))
    }

    /// The last name that the thread got.
    pub(crate) fn comm_last(&self, tid: u32, order: Order) -> CommId {
        let life = self.lives.get(&tid);
        let name = life.and_then(|life| comm(life.thread_at(order).0.last()?));
        name.unwrap_or(Comms::unnamed(tid))
    }
}
