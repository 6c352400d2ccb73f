//! `--tasks`, `--mmaps`: who ran, who started whom, and what each had mapped at the end.

use std::collections::{BTreeMap, BTreeSet};

use rperf_perfdata::PerfData;
use rperf_replay::{Replay, UserMapping, What};
use rperf_view::report::{Task, TaskMapping};
use rperf_wire::{CpuMode, Misc, Mmap, MmapId, RawRecord, Record};

/// The threads of a recording, by id, as they were when it ended.
pub(super) struct Tasks {
    threads: BTreeMap<u32, Thread>,
    /// By process, by rising address.
    spaces: BTreeMap<u32, Vec<TaskMapping>>,
    /// Whether memory is wanted.
    with_memory: bool,
}

#[derive(Debug, Clone, Default)]
struct Thread {
    pid: u32,
    parent: Option<u32>,
    comm: Option<String>,
}

/// Of mmap(2).
const MAP_SHARED: u32 = 1;
const PROT_READ: u32 = 1;
const PROT_WRITE: u32 = 2;
const PROT_EXEC: u32 = 4;

/// Siblings stand by the remainder of their ids first, as in perf's table of threads.
const ROWS: u32 = 256;

impl Tasks {
    /// Reads all records.
    pub(super) fn read(replay: &Replay<'_>, data: &PerfData<'_>, with_memory: bool) -> Self {
        let mut tasks = Self {
            threads: BTreeMap::new(),
            spaces: BTreeMap::new(),
            with_memory,
        };
        tasks.thread(0, 0).comm = Some("swapper".to_owned());
        for turn in replay.turns() {
            let What::Kernel { side, .. } = &turn.what else {
                continue;
            };
            // What cannot be decoded was counted when the file was opened.
            if let Ok(record) = Record::decode(&side.raw, data.endian()) {
                tasks.take(&record, &side.raw);
            }
        }
        tasks
    }

    fn take(&mut self, record: &Record<'_>, raw: &RawRecord<'_>) {
        match record {
            Record::Comm(comm) => {
                let name = String::from_utf8_lossy(comm.comm).into_owned();
                self.thread(comm.pid, comm.tid).comm = Some(name);
            }
            Record::Fork(task) => self.fork((task.ppid, task.ptid), (task.pid, task.tid)),
            Record::Mmap(mmap) if self.is_user(mmap, raw) => {
                let prot = if raw.misc.contains(Misc::MMAP_DATA) {
                    PROT_READ | PROT_WRITE
                } else {
                    PROT_EXEC
                };
                self.map(mmap, prot, 0, 0);
            }
            Record::Mmap2(mmap) if self.is_user(&mmap.mmap, raw) => {
                let inode = match mmap.id {
                    MmapId::Inode { inode, .. } => inode,
                    MmapId::BuildId { .. } => 0,
                };
                self.map(&mmap.mmap, mmap.prot, mmap.flags, inode);
            }
            _ => {}
        }
    }

    fn is_user(&self, mmap: &Mmap<'_>, raw: &RawRecord<'_>) -> bool {
        self.with_memory && mmap.pid != -1 && raw.misc.cpu_mode() == CpuMode::User
    }

    /// The thread, new if it was not heard of.
    fn thread(&mut self, pid: u32, tid: u32) -> &mut Thread {
        self.threads.entry(tid).or_insert_with(|| Thread {
            pid,
            ..Thread::default()
        })
    }

    fn fork(&mut self, (ppid, ptid): (u32, u32), (pid, tid): (u32, u32)) {
        let comm = self.thread(ppid, ptid).comm.clone();
        let thread = Thread {
            pid,
            parent: Some(ptid),
            comm,
        };
        self.threads.insert(tid, thread);
        if pid != ppid {
            let memory = self.spaces.get(&ppid).cloned();
            self.spaces.insert(pid, memory.unwrap_or_default());
        }
    }

    fn map(&mut self, mmap: &Mmap<'_>, prot: u32, flags: u32, inode: u64) {
        let pid = mmap.pid.cast_unsigned();
        self.thread(pid, mmap.tid);
        let filename = String::from_utf8_lossy(mmap.filename);
        let end = mmap.start.saturating_add(mmap.len);
        let named = UserMapping {
            filename: &filename,
            end,
            prot,
            flags,
            pid,
        };
        let new = TaskMapping {
            start: mmap.start,
            end,
            prot,
            shared: flags & MAP_SHARED != 0,
            offset: mmap.pgoff,
            inode,
            name: named.dso_name(),
        };
        insert(self.spaces.entry(pid).or_default(), new);
    }

    /// Each thread behind the one that started it. Threads whose starter is not known begin a tree.
    pub(super) fn list(mut self) -> Vec<Task> {
        let mut ids: Vec<u32> = self.threads.keys().copied().collect();
        ids.sort_by_key(|tid| (tid % ROWS, *tid));
        let mut children: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
        for tid in self.in_perfs_order(ids) {
            let parent = self.threads.get(&tid).and_then(|thread| thread.parent);
            let parent = parent.filter(|parent| self.threads.contains_key(parent));
            children.entry(parent).or_default().push(tid);
        }
        let mut list = Vec::new();
        let mut stack: Vec<(u32, usize)> = Vec::new();
        let push = |stack: &mut Vec<(u32, usize)>, below: Vec<u32>, level| {
            stack.extend(below.into_iter().rev().map(|tid| (tid, level)));
        };
        push(&mut stack, children.remove(&None).unwrap_or_default(), 0);
        while let Some((tid, level)) = stack.pop() {
            let Some(thread) = self.threads.remove(&tid) else {
                continue;
            };
            let memory = self.spaces.get(&thread.pid);
            list.push(Task {
                pid: thread.pid,
                tid,
                parent: thread.parent,
                comm: thread.comm.unwrap_or_else(|| format!(":{tid}")),
                level,
                mappings: memory.cloned().unwrap_or_default(),
            });
            push(
                &mut stack,
                children.remove(&Some(tid)).unwrap_or_default(),
                level + 1,
            );
        }
        list
    }

    /// perf hangs up a thread together with those that it descends from.
    fn in_perfs_order(&self, ids: Vec<u32>) -> Vec<u32> {
        let mut listed = BTreeSet::new();
        let mut order = Vec::new();
        for id in ids {
            let mut next = Some(id);
            while let Some(tid) = next.filter(|tid| listed.insert(*tid)) {
                order.push(tid);
                let parent = self.threads.get(&tid).and_then(|thread| thread.parent);
                next = parent.filter(|parent| self.threads.contains_key(parent));
            }
        }
        order
    }
}

/// Puts a mapping in the place of what was there.
fn insert(space: &mut Vec<TaskMapping>, new: TaskMapping) {
    let mut kept = Vec::with_capacity(space.len() + 2);
    for old in space.drain(..) {
        if old.end <= new.start || new.end <= old.start {
            kept.push(old);
            continue;
        }
        if old.start < new.start {
            kept.push(TaskMapping {
                end: new.start,
                ..old.clone()
            });
        }
        if new.end < old.end {
            kept.push(TaskMapping {
                start: new.end,
                offset: old.offset.wrapping_add(new.end - old.start),
                ..old
            });
        }
    }
    let place = kept.partition_point(|mapping| mapping.start <= new.start);
    kept.insert(place, new);
    *space = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, name: &str) -> TaskMapping {
        TaskMapping {
            start,
            end,
            prot: PROT_EXEC,
            shared: false,
            offset: 0,
            inode: 0,
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_mapping_takes_the_place_of_others() {
        let mut space = vec![mapping(0, 10, "a"), mapping(20, 30, "b")];
        insert(&mut space, mapping(5, 8, "c"));
        insert(&mut space, mapping(18, 40, "d"));
        let shown: Vec<_> = space
            .iter()
            .map(|mapping| (mapping.start, mapping.end, mapping.offset, &*mapping.name))
            .collect();
        assert_eq!(
            shown,
            [
                (0, 5, 0, "a"),
                (5, 8, 0, "c"),
                (8, 10, 8, "a"),
                (18, 40, 0, "d")
            ]
        );
    }

    #[test]
    fn threads_stand_behind_those_that_started_them() {
        let mut tasks = Tasks {
            threads: BTreeMap::new(),
            spaces: BTreeMap::new(),
            with_memory: false,
        };
        tasks.thread(10, 10).comm = Some("sh".to_owned());
        tasks.fork((10, 10), (12, 12));
        tasks.fork((12, 12), (11, 11));
        // Each says that the other one started it.
        tasks.fork((31, 31), (30, 30));
        tasks.fork((30, 30), (31, 31));
        let list = tasks.list();
        let shown: Vec<_> = list
            .iter()
            .map(|task| (task.tid, task.level, &*task.comm))
            .collect();
        assert_eq!(shown, [(10, 0, "sh"), (12, 1, "sh"), (11, 2, "sh")]);
    }
}
