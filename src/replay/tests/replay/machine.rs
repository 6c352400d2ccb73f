//! The oracle: one machine, changed record by record in the order that perf delivers them. It keeps
//! lists of mappings that are trimmed and split by newer ones, and copies them at fork.

use std::collections::HashMap;

/// A stretch of memory that is still visible.
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
}

/// A mutable machine.
#[derive(Debug, Default)]
pub(crate) struct NaiveMachine {
    threads: HashMap<u32, Thread>,
    maps: HashMap<u32, Vec<Piece>>,
    kernel: Vec<Piece>,
}

/// Takes the range out of all pieces, splitting those that stick out on both sides.
fn punch(pieces: &mut Vec<Piece>, start: u64, end: u64) {
    let mut kept = Vec::new();
    for piece in pieces.drain(..) {
        if piece.start < start.min(piece.end) {
            kept.push(Piece {
                end: piece.end.min(start),
                ..piece.clone()
            });
        }
        if piece.end > end.max(piece.start) {
            let from = piece.start.max(end);
            kept.push(Piece {
                start: from,
                pgoff: piece.pgoff + (from - piece.start),
                ..piece
            });
        }
    }
    *pieces = kept;
}

fn find(pieces: &[Piece], address: u64) -> Option<(String, u64)> {
    let mut hits = pieces
        .iter()
        .filter(|at| at.start <= address && address < at.end);
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
        self.thread(pid, tid).comm = Some(name.to_owned());
    }

    pub(crate) fn fork(&mut self, parent: (u32, u32), child: (u32, u32), exec: bool) {
        let (ppid, ptid) = parent;
        if self.thread(ppid, ptid).pid != Some(ppid) {
            self.threads.insert(ptid, Thread::default());
        }
        let comm = self.thread(ppid, ptid).comm.clone();
        let (pid, tid) = child;
        let pid_known = Some(pid);
        self.threads.insert(
            tid,
            Thread {
                pid: pid_known,
                comm,
            },
        );
        if pid == tid {
            let inherits = pid != ppid && !exec;
            let maps = self.maps.get(&ppid).filter(|_| inherits);
            let maps = maps.cloned().unwrap_or_default();
            self.maps.insert(pid, maps);
        }
    }

    /// The kernel or a module, which stay where they are.
    pub(crate) fn map_kernel(&mut self, piece: Piece) {
        punch(&mut self.kernel, piece.start, piece.end);
        self.kernel.push(piece);
    }

    /// A KSYMBOL record that announces code, in the place of what was announced there, but not inside of kernel and modules.
    pub(crate) fn announce(&mut self, piece: Piece) {
        let here = find(&self.kernel, piece.start);
        if here.is_some_and(|(name, _)| name.starts_with('[')) {
            return;
        }
        self.retract(piece.start);
        self.map_kernel(piece);
    }

    /// A KSYMBOL record that takes code away. The kernel stays.
    pub(crate) fn retract(&mut self, address: u64) {
        self.kernel.retain(|at| {
            let is_kernel = at.name == "[kernel.kallsyms]";
            is_kernel || !(at.start <= address && address < at.end)
        });
    }

    pub(crate) fn user(&self, pid: u32, address: u64) -> Option<(String, u64)> {
        find(self.maps.get(&pid)?, address)
    }

    pub(crate) fn kernel(&self, address: u64) -> Option<(String, u64)> {
        find(&self.kernel, address)
    }

    pub(crate) fn comm_of(&self, tid: u32) -> String {
        let comm = self
            .threads
            .get(&tid)
            .and_then(|thread| thread.comm.clone());
        comm.unwrap_or_else(|| format!(":{tid}"))
    }
}

/// perf's queue: what comes with a time waits for the rounds, the rest is delivered at once.
#[derive(Debug)]
pub(crate) struct NaiveQueue<T> {
    waiting: Vec<(u64, T)>,
    next: u64,
    highest: u64,
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
