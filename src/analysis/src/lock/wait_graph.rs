//! Which threads wait for which over time: chains with their times, and cycles.
//!
//! The holder of a wait is read from the memory of the futex when the wait begins, or later when another thread begins to wait
//! for the waiting thread (also through further threads). The holder is forgotten when a thread wakes those that wait for the
//! lock, since another thread may have the lock then, and when events are lost.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::futex_holder::FutexObject;
use super::user::UserLock;

/// The maximum number of different chains that are stored; others only count in [`WaitGraph::skipped_chains`].
const MAX_CHAINS: usize = 1 << 16;

/// A wait for a lock of a user program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldWait {
    /// The process of the waiting thread.
    pub pid: u32,
    /// The address of the lock.
    pub address: u64,
    /// What is held; [`FutexObject::Unknown`] without a holder.
    pub object: FutexObject,
    /// The thread that holds the lock, or is joined; `None` if unknown.
    pub holder: Option<u32>,
    /// Whether the call has a timeout.
    pub has_timeout: bool,
    /// The user frames, innermost first.
    pub stack: Vec<u64>,
}

/// Threads that wait for each other: each for the next one, the last for the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitCycle {
    /// The threads and their waits. The first has the lowest id.
    pub waits: Vec<(u32, HeldWait)>,
    /// How often the cycle came about: its waits end by timeouts and signals, and begin again.
    pub count: u64,
    /// When it came about for the first time, in ns.
    pub from: u64,
    /// When it ended for the last time, in ns; `None` if it lasts to the end of the recording.
    pub until: Option<u64>,
}

/// Threads of which each waits for the next one; at least two of them wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitChain {
    /// The waiting threads and their locks.
    pub waits: Vec<ChainedWait>,
    /// Whether the last wait is one of a cycle.
    pub ends_in_cycle: bool,
    /// How often there was this chain.
    pub count: u64,
    /// How long the first thread waited in it, in ns.
    pub total: u64,
    /// The longest of these times.
    pub max: u64,
}

/// A wait of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainedWait {
    /// The waiting thread.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// The address of the lock.
    pub address: u64,
    /// What is held.
    pub object: FutexObject,
    /// The thread that holds it.
    pub holder: u32,
}

/// The time in which a thread waits in one chain.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// The index in [`WaitGraph::chains`].
    chain: usize,
    /// When it began, in ns.
    since: u64,
}

/// The open waits, and the chains and cycles so far.
#[derive(Debug, Default)]
pub(super) struct WaitGraph {
    /// By thread.
    open: FxHashMap<u32, HeldWait>,
    /// The threads that wait for each holder.
    waiters: FxHashMap<u32, BTreeSet<u32>>,
    /// The threads that wait for each lock.
    by_lock: FxHashMap<UserLock, BTreeSet<u32>>,
    /// By thread that waits in a chain; threads in a cycle have none.
    segments: FxHashMap<u32, Segment>,
    chains: Vec<WaitChain>,
    /// The index in `chains`, by waits.
    chain_indexes: FxHashMap<Vec<ChainedWait>, usize>,
    cycles: Vec<WaitCycle>,
    /// For each cycle, the value of [`WaitCycle::until`] before the cycle last came about: [`WaitGraph::cancel`] restores it.
    ended_before: Vec<Option<u64>>,
    /// The index in `cycles`, by waits.
    cycle_indexes: FxHashMap<Vec<ChainedWait>, usize>,
    /// The index in `cycles` of the cycle that each thread is in.
    open_cycles: FxHashMap<u32, usize>,
    /// How often a chain was not counted, since there were too many different ones.
    pub(super) skipped_chains: u64,
}

impl WaitGraph {
    /// Begins a wait. An open wait of the thread, whose end was lost, ends.
    pub(super) fn begin(&mut self, tid: u32, wait: HeldWait, time: u64) {
        self.end(tid, time);
        let lock = UserLock {
            pid: wait.pid,
            address: wait.address,
        };
        self.by_lock.entry(lock).or_default().insert(tid);
        let holder = wait.holder;
        self.open.insert(tid, wait);
        self.link(tid, holder, time);
    }

    /// Sets the holder of the thread's open wait, if that is a wait for this lock. `holder` is `None` if it is unknown from
    /// now on.
    pub(super) fn set_holder(
        &mut self,
        tid: u32,
        address: u64,
        holder: Option<(u32, FutexObject)>,
        time: u64,
    ) {
        let Some(wait) = self.open.get_mut(&tid) else {
            return;
        };
        let (old, new) = (wait.holder, holder.map(|(tid, _)| tid));
        if wait.address != address || old == new {
            return;
        }
        wait.holder = new;
        wait.object = holder.map_or(FutexObject::Unknown, |(_, object)| object);
        self.unlink(tid, old);
        self.end_cycle(tid, time);
        self.link(tid, new, time);
    }

    /// Forgets the holder of a lock: another thread may have the lock from now on.
    pub(super) fn forget_holder(&mut self, lock: UserLock, time: u64) {
        let waiting = self.by_lock.get(&lock).cloned().unwrap_or_default();
        for tid in waiting {
            self.set_holder(tid, lock.address, None, time);
        }
    }

    /// Forgets the holders of all locks: events are missing.
    pub(super) fn forget_holders(&mut self, time: u64) {
        let open: Vec<(u32, u64)> = self
            .open
            .iter()
            .map(|(tid, wait)| (*tid, wait.address))
            .collect();
        for (tid, address) in open {
            self.set_holder(tid, address, None, time);
        }
    }

    /// Ends the wait of a thread that did not wait after all: neither the chain that begins with it nor the cycle that it was in
    /// counts. The chains of other threads that lead through it do count.
    pub(super) fn cancel(&mut self, tid: u32, time: u64) {
        self.segments.remove(&tid);
        let cycle_index = self.open_cycles.get(&tid).copied();
        self.end(tid, time);
        if let Some(index) = cycle_index
            && let Some(cycle) = self.cycles.get_mut(index)
        {
            cycle.count -= 1;
            cycle.until = self.ended_before.get(index).copied().flatten();
        }
    }

    /// Ends the wait of a thread, if it has one.
    pub(super) fn end(&mut self, tid: u32, time: u64) {
        let Some(wait) = self.open.remove(&tid) else {
            return;
        };
        let lock = UserLock {
            pid: wait.pid,
            address: wait.address,
        };
        if let Some(waiting) = self.by_lock.get_mut(&lock) {
            waiting.remove(&tid);
            if waiting.is_empty() {
                self.by_lock.remove(&lock);
            }
        }
        self.unlink(tid, wait.holder);
        self.end_cycle(tid, time);
        self.restart_segments(tid, time);
    }

    /// Returns the cycles in the order in which they first came about, and the chains, the one with the longest total time first.
    /// `time` is the end of the recording.
    pub(super) fn finish(mut self, time: u64) -> (Vec<WaitCycle>, Vec<WaitChain>) {
        let chained: Vec<u32> = self.segments.keys().copied().collect();
        for tid in chained {
            self.end_segment(tid, time);
        }
        self.chains.sort_by(|left, right| {
            let order = right.total.cmp(&left.total);
            order.then_with(|| left.waits.cmp(&right.waits))
        });
        self.chains.retain(|chain| chain.count > 0);
        self.cycles.retain(|cycle| cycle.count > 0);
        // A cycle that was cancelled at first may have come about again after cycles that were added later.
        self.cycles.sort_by_key(|cycle| cycle.from);
        (self.cycles, self.chains)
    }

    /// Adds a thread to the waiters of its holder, and updates cycles and chains.
    fn link(&mut self, tid: u32, holder: Option<u32>, time: u64) {
        if let Some(holder) = holder {
            self.waiters.entry(holder).or_default().insert(tid);
            self.find_cycle(tid, time);
        }
        self.restart_segments(tid, time);
    }

    /// Removes a thread from the waiters of its holder.
    fn unlink(&mut self, tid: u32, holder: Option<u32>) {
        let Some(holder) = holder else {
            return;
        };
        if let Some(waiting) = self.waiters.get_mut(&holder) {
            waiting.remove(&tid);
            if waiting.is_empty() {
                self.waiters.remove(&holder);
            }
        }
    }

    /// Returns the wait of `first`, and the waits that follow it: each is the wait of the holder of the wait before. Only waits
    /// with a known holder are in the path. Also returns whether the path ends in a cycle: the holder of its last wait is a
    /// thread of the path.
    fn path(&self, first: u32) -> (Vec<ChainedWait>, bool) {
        let (mut path, mut visited) = (Vec::new(), FxHashSet::default());
        let mut tid = first;
        while let Some(wait) = self.open.get(&tid)
            && let Some(holder) = wait.holder
        {
            if !visited.insert(tid) {
                return (path, true);
            }
            path.push(ChainedWait {
                tid,
                pid: wait.pid,
                address: wait.address,
                object: wait.object,
                holder,
            });
            tid = holder;
        }
        (path, false)
    }

    /// Counts the cycle that the wait of a thread closes, if there is one.
    fn find_cycle(&mut self, tid: u32, time: u64) {
        let (mut path, ends_in_cycle) = self.path(tid);
        // A path may also lead into a cycle of other threads: then its last holder is one of them.
        if !ends_in_cycle || path.last().is_none_or(|last| last.holder != tid) {
            return;
        }
        let lowest = (0..path.len()).min_by_key(|at| path.get(*at).map(|wait| wait.tid));
        path.rotate_left(lowest.unwrap_or_default());
        let index = match self.cycle_indexes.get(&path) {
            Some(index) => *index,
            None => self.add_cycle(&path),
        };
        for wait in &path {
            self.open_cycles.insert(wait.tid, index);
        }
        let Some(cycle) = self.cycles.get_mut(index) else {
            return;
        };
        // The cycle comes about for the first time, or was cancelled each time before.
        if cycle.count == 0 {
            let waits = path.iter().filter_map(|wait| {
                let open = self.open.get(&wait.tid)?;
                Some((wait.tid, open.clone()))
            });
            cycle.waits = waits.collect();
            cycle.from = time;
        }
        if let Some(ended_before) = self.ended_before.get_mut(index) {
            *ended_before = cycle.until;
        }
        cycle.count += 1;
        cycle.until = None;
    }

    /// Adds a cycle that has not been counted yet. Returns its index.
    fn add_cycle(&mut self, path: &[ChainedWait]) -> usize {
        let cycle = WaitCycle {
            waits: Vec::new(),
            count: 0,
            from: 0,
            until: None,
        };
        self.cycle_indexes.insert(path.to_vec(), self.cycles.len());
        self.cycles.push(cycle);
        self.ended_before.push(None);
        self.cycles.len() - 1
    }

    /// Ends the cycle that a thread is in, if there is one.
    fn end_cycle(&mut self, tid: u32, time: u64) {
        let index = self.open_cycles.remove(&tid);
        let Some(cycle) = index.and_then(|index| self.cycles.get_mut(index)) else {
            return;
        };
        cycle.until = Some(time);
        for (tid, _) in &cycle.waits {
            self.open_cycles.remove(tid);
        }
    }

    /// Ends the segments of a thread and of all that wait for it, also through other threads, and begins segments in their
    /// present chains.
    fn restart_segments(&mut self, tid: u32, time: u64) {
        let (mut affected, mut next) = (FxHashSet::default(), vec![tid]);
        while let Some(tid) = next.pop() {
            if affected.insert(tid) {
                next.extend(self.waiters.get(&tid).into_iter().flatten());
            }
        }
        for tid in affected {
            self.end_segment(tid, time);
            self.begin_segment(tid, time);
        }
    }

    fn begin_segment(&mut self, tid: u32, time: u64) {
        let (path, ends_in_cycle) = self.path(tid);
        if path.len() < 2 || self.open_cycles.contains_key(&tid) {
            return;
        }
        let chain = match self.chain_indexes.get(&path) {
            Some(chain) => *chain,
            None if self.chains.len() == MAX_CHAINS => {
                self.skipped_chains += 1;
                return;
            }
            None => {
                self.chain_indexes.insert(path.clone(), self.chains.len());
                self.chains.push(WaitChain {
                    waits: path,
                    ends_in_cycle,
                    count: 0,
                    total: 0,
                    max: 0,
                });
                self.chains.len() - 1
            }
        };
        let segment = Segment { chain, since: time };
        self.segments.insert(tid, segment);
    }

    fn end_segment(&mut self, tid: u32, time: u64) {
        let Some(segment) = self.segments.remove(&tid) else {
            return;
        };
        if let Some(chain) = self.chains.get_mut(segment.chain) {
            let waited = time.saturating_sub(segment.since);
            chain.count += 1;
            chain.total = chain.total.saturating_add(waited);
            chain.max = chain.max.max(waited);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(address: u64, holder: Option<u32>) -> HeldWait {
        HeldWait {
            pid: 1,
            address,
            object: FutexObject::Mutex,
            holder,
            has_timeout: false,
            stack: Vec::new(),
        }
    }

    fn tids(waits: &[ChainedWait]) -> Vec<u32> {
        let tids = waits.iter().map(|wait| wait.tid);
        tids.chain(waits.last().map(|wait| wait.holder)).collect()
    }

    #[test]
    fn a_chain_lasts_from_the_last_begin_of_its_waits_to_the_first_end() {
        let mut graph = WaitGraph::default();
        // 1 waits for 2, which waits for 3 from 20 to 50, and for 4 from 60 on; 4 waits for 5 from 70 on.
        graph.begin(1, wait(0x10, Some(2)), 10);
        graph.begin(2, wait(0x20, Some(3)), 20);
        graph.end(2, 50);
        graph.begin(2, wait(0x30, Some(4)), 60);
        graph.begin(4, wait(0x40, Some(5)), 70);
        graph.end(1, 100);
        let (cycles, chains) = graph.finish(200);
        assert_eq!(cycles, []);
        let sums: Vec<_> = chains
            .iter()
            .map(|chain| (tids(&chain.waits), chain.count, chain.total, chain.max))
            .collect();
        let expected = [
            (vec![2, 4, 5], 1, 130, 130),
            (vec![1, 2, 3], 1, 30, 30),
            (vec![1, 2, 4, 5], 1, 30, 30),
            (vec![1, 2, 4], 1, 10, 10),
        ];
        assert_eq!(sums, expected);
    }

    #[test]
    fn a_cycle_is_counted_each_time_it_closes_and_a_chain_can_lead_into_it() {
        let mut graph = WaitGraph::default();
        graph.begin(7, wait(0x10, Some(3)), 1);
        graph.begin(3, wait(0x20, Some(5)), 2);
        graph.begin(5, wait(0x30, Some(4)), 3);
        graph.begin(4, wait(0x40, Some(3)), 4);
        // A wait that is interrupted begins again.
        graph.end(4, 5);
        graph.begin(4, wait(0x40, Some(3)), 6);
        let (cycles, chains) = graph.finish(10);
        assert_eq!(cycles.len(), 1);
        let members: Vec<u32> = cycles[0].waits.iter().map(|(tid, _)| *tid).collect();
        assert_eq!(members, [3, 5, 4]);
        let WaitCycle {
            count, from, until, ..
        } = cycles[0];
        assert_eq!((count, from, until), (2, 4, None));
        let chain = chains.iter().find(|chain| chain.ends_in_cycle);
        let chain = chain.unwrap();
        // From 4 to 5, and from 6 to 10.
        assert_eq!((tids(&chain.waits), chain.total), (vec![7, 3, 5, 4, 3], 5));
    }

    #[test]
    fn a_holder_is_forgotten_at_a_wake_and_known_again_from_another_wait() {
        let mut graph = WaitGraph::default();
        let lock = |address| UserLock { pid: 1, address };
        graph.begin(1, wait(0x10, Some(2)), 10);
        graph.forget_holder(lock(0x10), 20);
        // 2 waits for 1, but no longer has the lock that 1 waits for.
        graph.begin(2, wait(0x20, Some(1)), 30);
        // Without effect: 1 does not wait for this lock.
        graph.set_holder(1, 0x99, Some((2, FutexObject::Mutex)), 35);
        graph.set_holder(1, 0x10, Some((3, FutexObject::Mutex)), 40);
        let (cycles, chains) = graph.finish(50);
        assert_eq!(cycles, []);
        assert_eq!(chains.len(), 1);
        assert_eq!(
            (tids(&chains[0].waits), chains[0].total),
            (vec![2, 1, 3], 10)
        );
    }

    /// Returns count, begin and end of a cycle of two threads; nothing if it was not counted. The second thread closes the cycle
    /// at each of `times`, in ns. 5 ns later, its wait is cancelled if the flag is set, and otherwise ends.
    fn repeated_cycle(times: &[(u64, bool)]) -> Vec<(u64, u64, Option<u64>)> {
        let mut graph = WaitGraph::default();
        graph.begin(1, wait(0x10, Some(2)), 10);
        for (time, is_cancelled) in times {
            graph.begin(2, wait(0x20, Some(1)), *time);
            match is_cancelled {
                true => graph.cancel(2, time + 5),
                false => graph.end(2, time + 5),
            }
        }
        let (cycles, _) = graph.finish(100);
        let cycles = cycles.iter();
        cycles
            .map(|cycle| (cycle.count, cycle.from, cycle.until))
            .collect()
    }

    #[test]
    fn a_cancelled_wait_changes_neither_begin_nor_end_of_its_cycle() {
        let (real, cancelled) = (false, true);
        assert_eq!(repeated_cycle(&[(20, cancelled)]), []);
        let expected = [(1, 20, Some(25))];
        assert_eq!(repeated_cycle(&[(20, real), (30, cancelled)]), expected);
        assert_eq!(repeated_cycle(&[(15, cancelled), (20, real)]), expected);
        let twice = [(20, real), (30, cancelled), (40, real), (50, cancelled)];
        assert_eq!(repeated_cycle(&twice), [(2, 20, Some(45))]);
    }

    #[test]
    fn a_call_that_did_not_wait_closes_no_cycle_but_a_wait_for_itself_does() {
        let mut graph = WaitGraph::default();
        graph.begin(1, wait(0x10, Some(2)), 10);
        graph.begin(2, wait(0x20, Some(1)), 20);
        graph.cancel(2, 21);
        let (cycles, chains) = graph.finish(50);
        assert_eq!((cycles, chains), (Vec::new(), Vec::new()));
        // A thread that waits for itself.
        let mut graph = WaitGraph::default();
        graph.begin(1, wait(0x10, Some(1)), 10);
        graph.end(1, 30);
        let (cycles, _) = graph.finish(50);
        assert_eq!((cycles.len(), cycles[0].until), (1, Some(30)));
    }
}
