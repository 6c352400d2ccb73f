//! The oracle, which replay's results must equal: perf's queue ([`NaiveQueue`]), and a machine ([`NaiveMachine`]) that is updated
//! record by record in the order of that queue. The machine keeps lists of mappings that are trimmed and split by newer ones, and
//! copies them at fork.

use std::collections::{BTreeMap, HashMap};

/// A visible part of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) pgoff: u64,
    pub(crate) name: String,
}

#[derive(Debug, Default)]
struct Thread {
    pid: Option<u32>,
    comm: Option<String>,
    parent: Option<u32>,
    /// Whether it occurs in COMM or FORK records, and not only in those of mappings. Always true for the idle task.
    has_task_records: bool,
}

/// Joins adjacent pieces of the same file with consecutive offsets; `pieces` are sorted by address.
pub(crate) fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        match joined.last_mut() {
            Some(last)
                if last.end == piece.start
                    && last.name == piece.name
                    && last.pgoff + (last.end - last.start) == piece.pgoff =>
            {
                last.end = piece.end;
            }
            _ => joined.push(piece),
        }
    }
    joined
}

#[derive(Debug, Default)]
pub(crate) struct NaiveMachine {
    threads: HashMap<u32, Thread>,
    maps: HashMap<u32, Vec<Piece>>,
    kernel: Vec<Piece>,
}

/// Removes the range from `start` to `end` from all pieces, splitting those that extend beyond both ends. Empty parts are
/// not kept.
fn punch(pieces: &mut Vec<Piece>, start: u64, end: u64) {
    let mut outside = Vec::new();
    for piece in pieces.drain(..) {
        if piece.start < start.min(piece.end) {
            outside.push(Piece {
                end: piece.end.min(start),
                ..piece.clone()
            });
        }
        if piece.end > end.max(piece.start) {
            let from = piece.start.max(end);
            outside.push(Piece {
                start: from,
                pgoff: piece.pgoff + (from - piece.start),
                ..piece
            });
        }
    }
    *pieces = outside;
}

fn find(pieces: &[Piece], address: u64) -> Option<(String, u64)> {
    let mut hits = pieces
        .iter()
        .filter(|piece| piece.start <= address && address < piece.end);
    let hit = hits.next()?;
    assert_eq!(hits.next(), None, "pieces never overlap");
    Some((hit.name.clone(), address - hit.start + hit.pgoff))
}

impl NaiveMachine {
    pub(crate) fn new() -> Self {
        let mut machine = Self::default();
        machine.comm(0, 0, "swapper");
        machine
    }

    /// The thread `tid`, which is added if it is new. Its process becomes `pid` if it was unknown.
    fn thread(&mut self, pid: u32, tid: u32) -> &mut Thread {
        let thread = self.threads.entry(tid).or_default();
        thread.pid.get_or_insert(pid);
        thread
    }

    pub(crate) fn mmap(&mut self, pid: u32, piece: Piece) {
        self.thread(pid, pid);
        let maps = self.maps.entry(pid).or_default();
        punch(maps, piece.start, piece.end);
        if piece.start < piece.end {
            maps.push(piece);
        }
    }

    pub(crate) fn comm(&mut self, pid: u32, tid: u32, name: &str) {
        let thread = self.thread(pid, tid);
        thread.comm = Some(name.to_owned());
        thread.has_task_records = true;
    }

    /// Handles a FORK record; `exec` is its flag `PERF_RECORD_MISC_FORK_EXEC`: the child does not inherit the parent's mappings.
    pub(crate) fn fork(&mut self, parent: (u32, u32), child: (u32, u32), exec: bool) {
        let (ppid, ptid) = parent;
        // A parent known with another process is a different thread with the same id.
        if self.thread(ppid, ptid).pid != Some(ppid) {
            self.threads.insert(ptid, Thread::default());
        }
        let parent = self.thread(ppid, ptid);
        parent.has_task_records = true;
        let comm = parent.comm.clone();
        let (pid, tid) = child;
        self.threads.insert(
            tid,
            Thread {
                pid: Some(pid),
                comm,
                parent: Some(ptid),
                has_task_records: true,
            },
        );
        if pid == tid {
            let inherits = pid != ppid && !exec;
            let maps = self.maps.get(&ppid).filter(|_| inherits);
            let maps = maps.cloned().unwrap_or_default();
            self.maps.insert(pid, maps);
        }
    }

    /// Maps the kernel, a module or code that a KSYMBOL record registers.
    pub(crate) fn map_kernel(&mut self, piece: Piece) {
        punch(&mut self.kernel, piece.start, piece.end);
        self.kernel.push(piece);
    }

    /// Handles a KSYMBOL record that registers code. Code that is already registered at the new code's start is removed
    /// completely. The record is ignored if the new code starts within the kernel or a module.
    pub(crate) fn register_code(&mut self, piece: Piece) {
        let here = find(&self.kernel, piece.start);
        // Only the names of the kernel and of modules are in brackets.
        if here.is_some_and(|(name, _)| name.starts_with('[')) {
            return;
        }
        self.unregister_code(piece.start);
        self.map_kernel(piece);
    }

    /// Handles a KSYMBOL record that unregisters code: removes the code at `address`, also a module, but not the kernel.
    pub(crate) fn unregister_code(&mut self, address: u64) {
        self.kernel.retain(|piece| {
            let is_kernel = piece.name == "[kernel.kallsyms]";
            is_kernel || !(piece.start <= address && address < piece.end)
        });
    }

    pub(crate) fn user(&self, pid: u32, address: u64) -> Option<(String, u64)> {
        find(self.maps.get(&pid)?, address)
    }

    pub(crate) fn kernel(&self, address: u64) -> Option<(String, u64)> {
        find(&self.kernel, address)
    }

    /// The mappings of a process by address, with adjacent pieces joined.
    pub(crate) fn mapped(&self, pid: u32) -> Vec<Piece> {
        let mut pieces = self.maps.get(&pid).cloned().unwrap_or_default();
        pieces.sort_by_key(|piece| piece.start);
        joined(pieces)
    }

    /// Process, parent and name of every thread in FORK and COMM records, by thread id.
    pub(crate) fn tasks(&self) -> BTreeMap<u32, (u32, Option<u32>, String)> {
        let threads = self
            .threads
            .iter()
            .filter(|(_, thread)| thread.has_task_records);
        threads
            .map(|(tid, thread)| {
                let pid = thread.pid.unwrap_or(u32::MAX);
                (*tid, (pid, thread.parent, self.comm_of(*tid)))
            })
            .collect()
    }

    pub(crate) fn comm_of(&self, tid: u32) -> String {
        let comm = self
            .threads
            .get(&tid)
            .and_then(|thread| thread.comm.clone());
        comm.unwrap_or_else(|| format!(":{tid}"))
    }
}

/// perf's queue: records with a time are delivered at the ends of rounds (FINISHED_ROUND records), others at once.
#[derive(Debug)]
pub(crate) struct NaiveQueue<T> {
    /// Records with their times, by ascending time.
    waiting: Vec<(u64, T)>,
    /// The end of the current round delivers the records up to this time: the highest time before the round.
    next: u64,
    /// The highest time of the records so far.
    highest: u64,
    /// The time up to which records were delivered: a record pushed after that with an earlier time is late.
    pub(crate) flushed: u64,
    pub(crate) delivered: Vec<T>,
}

impl<T> NaiveQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Vec::new(),
            next: 0,
            highest: 0,
            flushed: 0,
            delivered: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, time: u64, item: T) {
        if time == 0 {
            self.delivered.push(item);
            return;
        }
        self.highest = self.highest.max(time);
        let place = self.waiting.partition_point(|(at, _)| *at <= time);
        self.waiting.insert(place, (time, item));
    }

    fn deliver(&mut self, limit: u64) {
        let count = self.waiting.partition_point(|(at, _)| *at <= limit);
        self.delivered
            .extend(self.waiting.drain(..count).map(|(_, item)| item));
    }

    pub(crate) fn finish_round(&mut self) {
        self.deliver(self.next);
        self.flushed = self.next;
        self.next = self.highest;
    }

    pub(crate) fn finish(mut self) -> Vec<T> {
        self.deliver(u64::MAX);
        self.delivered
    }
}
