//! The threads of a recording as a tree, with the mappings that their processes have at the end of the recording.

use std::collections::{BTreeMap, BTreeSet};

use rperf_replay::{ThreadInfo, VisibleMapping, World};
use rperf_wire::MAP_SHARED;

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskEntry {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The thread that created it, if recorded.
    pub parent: Option<u32>,
    /// Its name (comm) at the end of the recording.
    pub comm: String,
    /// Its depth in the tree; 0 if its parent is not listed.
    pub level: usize,
    /// Mappings of its process by increasing address, if requested.
    pub mappings: Vec<TaskMapping>,
}

/// A mapping of a process, or a part of one that no later mapping overrides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskMapping {
    /// The first address.
    pub start: u64,
    /// The end address, exclusive.
    pub end: u64,
    /// `PROT_*` of mmap(2).
    pub prot: u32,
    /// Whether it is shared (`MAP_SHARED`).
    pub shared: bool,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// The file's inode number; 0 if it has none.
    pub inode: u64,
    /// The file's name.
    pub name: String,
}

/// The number of buckets of perf's thread table. Threads are added to the tree by bucket, the thread id modulo this number, then
/// by id.
const BUCKETS: u32 = 256;

/// Returns the threads of the host in `world` (the threads and mappings of a recording, by time), each after its creator; of a
/// reused thread id, only the last thread. Threads whose creator is unknown or skipped are roots.
///
/// Threads without a recorded process are skipped; without `with_mappings`, also those that have no FORK or COMM record, such as
/// threads known from a mapping only: perf does not read mappings then. A thread whose creators lead into a cycle is skipped,
/// too.
#[must_use]
pub fn task_tree(world: &World, with_mappings: bool) -> Vec<TaskEntry> {
    let threads = world.threads().filter(|thread| {
        let has_ids = thread.tid != u32::MAX && thread.pid != u32::MAX;
        has_ids && (with_mappings || thread.has_task_records)
    });
    let mut tree = TaskTree {
        world,
        with_mappings,
        threads: threads.map(|thread| (thread.tid, thread)).collect(),
    };
    tree.list()
}

struct TaskTree<'w> {
    world: &'w World,
    with_mappings: bool,
    threads: BTreeMap<u32, ThreadInfo>,
}

impl TaskTree<'_> {
    /// Returns the threads from the roots down. Removes them from `threads`.
    fn list(&mut self) -> Vec<TaskEntry> {
        let mut ids: Vec<u32> = self.threads.keys().copied().collect();
        ids.sort_by_key(|tid| (tid % BUCKETS, *tid));
        let mut children: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
        for tid in self.in_perfs_order(ids) {
            children.entry(self.parent(tid)).or_default().push(tid);
        }
        let mut list = Vec::new();
        let mut stack: Vec<(u32, usize)> = Vec::new();
        let push = |stack: &mut Vec<(u32, usize)>, below: Vec<u32>, level| {
            stack.extend(below.into_iter().rev().map(|tid| (tid, level)));
        };
        let (roots, root_level) = (children.remove(&None).unwrap_or_default(), 0);
        push(&mut stack, roots, root_level);
        while let Some((tid, level)) = stack.pop() {
            let Some(thread) = self.threads.remove(&tid) else {
                continue;
            };
            list.push(self.entry(&thread, level));
            push(
                &mut stack,
                children.remove(&Some(tid)).unwrap_or_default(),
                level + 1,
            );
        }
        list
    }

    /// Returns the parent thread, if it is listed.
    fn parent(&self, tid: u32) -> Option<u32> {
        let parent = self.threads.get(&tid)?.parent?;
        self.threads.contains_key(&parent).then_some(parent)
    }

    fn entry(&self, thread: &ThreadInfo, level: usize) -> TaskEntry {
        let mappings = match self.with_mappings {
            true => self.world.mappings_of(thread.pid),
            false => Vec::new(),
        };
        TaskEntry {
            pid: thread.pid,
            tid: thread.tid,
            parent: thread.parent,
            comm: self.world.comm(thread.comm).to_owned(),
            level,
            mappings: mappings.iter().map(|part| self.mapping(part)).collect(),
        }
    }

    fn mapping(&self, part: &VisibleMapping) -> TaskMapping {
        let mapping = self.world.mapping(part.id);
        TaskMapping {
            start: part.start,
            end: part.end,
            prot: mapping.prot,
            shared: mapping.flags & MAP_SHARED != 0,
            offset: mapping.pgoff.wrapping_add(part.start - mapping.start),
            inode: mapping.inode,
            name: self.world.dso(mapping.dso).name.clone(),
        }
    }

    /// Orders threads like perf, which adds a thread to the tree together with its ancestors.
    fn in_perfs_order(&self, ids: Vec<u32>) -> Vec<u32> {
        let mut added = BTreeSet::new();
        let mut order = Vec::new();
        for id in ids {
            let mut next = Some(id);
            while let Some(tid) = next.filter(|tid| added.insert(*tid)) {
                order.push(tid);
                next = self.parent(tid);
            }
        }
        order
    }
}
