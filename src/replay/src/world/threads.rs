//! Threads through time: who had a thread id when, and under which names.

use rustc_hash::FxHashMap;

use super::Comms;
use super::recent::Span;
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
    /// What came before `order`, and what came of the same thread from then on.
    fn around(&self, order: Order) -> (Option<&Change>, impl Iterator<Item = &Change>) {
        let before = self.changes.partition_point(|(at, _)| *at < order);
        let (past, future) = self.changes.split_at_checked(before).unwrap_or_default();
        let same = |change: &&Change| matches!(change, Change::Comm(_));
        let future = future.iter().map(|(_, change)| change).take_while(same);
        (past.last().map(|(_, change)| change), future)
    }
}

impl Change {
    /// The name that it gives, if any.
    fn comm(&self) -> Option<CommId> {
        match self {
            Self::Start(comm) => *comm,
            Self::Comm(comm) => Some(*comm),
        }
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

    /// The thread that had this id has ended; false where another has it by now.
    pub(crate) fn end(&mut self, order: Order, tid: u32) -> bool {
        let is_over = |life: &Life| life.changes.last().is_none_or(|(at, _)| *at <= order);
        let over = self.lives.get(&tid).is_some_and(is_over);
        over && self.lives.remove(&tid).is_some()
    }

    /// Forgets all names but the last ones, which count from the beginning.
    pub(crate) fn settle(&mut self) {
        for life in self.lives.values_mut() {
            let last = life.changes.drain(..).next_back();
            let name = last.and_then(|(_, change)| change.comm());
            let name = name.map(|name| (Order::default(), Change::Comm(name)));
            life.changes.extend(name);
        }
    }

    /// How many thread ids are known.
    pub(crate) fn len(&self) -> usize {
        self.lives.len()
    }

    /// The names that threads have or had.
    pub(crate) fn names(&self) -> impl Iterator<Item = CommId> + '_ {
        let changes = self.lives.values().flat_map(|life| &life.changes);
        changes.filter_map(|(_, change)| change.comm())
    }

    /// The processes of all threads, one as often as it has threads.
    pub(crate) fn processes(&self) -> impl Iterator<Item = u32> + '_ {
        self.lives.values().filter_map(|life| life.pid)
    }

    fn latest(&self, tid: u32) -> Option<CommId> {
        let (_, change) = self.lives.get(&tid)?.changes.last()?;
        change.comm()
    }

    /// Where in the order the names of a thread are what they are at `order`.
    pub(crate) fn span(&self, tid: u32, order: Order) -> Span {
        let changes = self.lives.get(&tid).map_or(&[][..], |life| &life.changes);
        let before = changes.partition_point(|(at, _)| *at < order);
        Span::at(changes, before, |(at, _)| *at)
    }

    /// The name at `order`, or `:TID`.
    pub(crate) fn comm_at(&self, tid: u32, order: Order) -> CommId {
        let name = self.lives.get(&tid).and_then(|life| {
            let (past, _) = life.around(order);
            past?.comm()
        });
        name.unwrap_or(Comms::unnamed(tid))
    }

    /// The name at `order`, or the first one that the thread got later.
    pub(crate) fn comm_final(&self, tid: u32, order: Order) -> CommId {
        let name = self.lives.get(&tid).and_then(|life| {
            let (past, mut future) = life.around(order);
            past.and_then(Change::comm)
                .or_else(|| future.find_map(Change::comm))
        });
        name.unwrap_or(Comms::unnamed(tid))
    }

    /// The last name that the thread got.
    pub(crate) fn comm_last(&self, tid: u32, order: Order) -> CommId {
        let name = self.lives.get(&tid).and_then(|life| {
            let (past, future) = life.around(order);
            future.last().or(past)?.comm()
        });
        name.unwrap_or(Comms::unnamed(tid))
    }
}
