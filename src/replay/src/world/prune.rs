//! Pruning of a World (threads, processes and mappings by time) for long live sessions.

use rustc_hash::{FxHashMap, FxHashSet};

use super::space::{MappingSpace, SpaceId};
use super::{Lifetime, VisibleMapping, World, WorldBuilder};
use crate::{Machine, Mapping, MappingId, Order};

impl World {
    /// Number of the entries that memory usage mostly depends on.
    pub(crate) fn size(&self) -> usize {
        let mapped = self.mappings.len() + self.dsos.len() + self.spaces.len();
        let tasks = self.threads.len() + self.comms.len() + self.namespaces.len();
        mapped + tasks + self.cgroups.len() + self.pokes.len()
    }
}

impl WorldBuilder {
    /// Removes what later samples do not need:
    /// - the threads in `ended`, each given with the time of its exit: a later thread with the same id stays;
    /// - processes without threads, and names that no thread has;
    /// - overridden mappings, namespaces and modifications of code;
    /// - DSOs without a mapping, except kernels and modules;
    /// - some cgroups if there are very many.
    ///
    /// What remains applies from the beginning, except modifications of code (TEXT_POKE records), which keep their time. Ids of
    /// mappings and [`Epoch`](super::Epoch)s change; ids of the remaining DSOs and names don't. Ids of removed DSOs are reused.
    ///
    /// Does nothing if there are JIT-compiled functions (`code` of the World), which only occur in recordings.
    pub fn forget(&mut self, ended: &[(Order, u32)]) {
        let world = &mut self.world;
        if !world.code.is_empty() {
            return;
        }
        for (order, tid) in ended {
            if world.threads.end(*order, *tid) {
                world.namespaces.ended(*tid);
            }
        }
        world.threads.keep_last_names();
        let names = world.threads.names().collect();
        world.comms.keep(&names);
        let alive: FxHashSet<u32> = world.threads.processes().collect();
        let mut pruned = PrunedMappings {
            world,
            new_ids: FxHashMap::default(),
            mappings: Vec::new(),
            spaces: Vec::new(),
        };
        let kernels = world.kernels.iter();
        let kernels: FxHashMap<_, _> = kernels
            .map(|(machine, space)| (*machine, pruned.copy_space(*space)))
            .collect();
        let kept = world.processes.iter().filter(|((machine, pid), _)| {
            // A World only has the threads of the host: exits of a guest's processes are not known. The host's process 0 never
            // exits, and `u32::MAX` is an unknown process.
            let has_no_exit = *machine != Machine::Host || *pid == 0 || *pid == u32::MAX;
            has_no_exit || alive.contains(pid)
        });
        let processes = kept.filter_map(|(process, lifetimes)| {
            let life = Lifetime {
                since: Order::default(),
                space: pruned.copy_space(lifetimes.last()?.space),
            };
            Some((*process, vec![life]))
        });
        let processes: FxHashMap<_, _> = processes.collect();
        let PrunedMappings {
            mappings, spaces, ..
        } = pruned;
        let used = mappings.iter().map(|mapping| mapping.dso).collect();
        world.dsos.keep(&used);
        world.namespaces.keep_last();
        world.cgroups.prune();
        world.pokes.keep_last();
        world.processes = processes;
        world.kernels = kernels;
        world.mappings = mappings;
        world.spaces = spaces;
        // For caches of results from the World, which are invalid now.
        world.version += 1;
    }
}

/// The visible mappings, copied from `world` with new ids.
struct PrunedMappings<'w> {
    world: &'w World,
    /// The id of each copy by the id in `world`.
    new_ids: FxHashMap<MappingId, MappingId>,
    mappings: Vec<Mapping>,
    spaces: Vec<MappingSpace>,
}

impl PrunedMappings<'_> {
    /// Copies the final visible mappings of an address space, inherited or its own, and returns the id of the copy.
    fn copy_space(&mut self, old: SpaceId) -> SpaceId {
        let mut space = MappingSpace::default();
        for visible in self.world.visible_in(old) {
            self.insert(&mut space, visible);
        }
        let id = SpaceId(u32::try_from(self.spaces.len()).unwrap_or(u32::MAX));
        self.spaces.push(space);
        id
    }

    /// Adds a visible part of a mapping; the mapping itself is copied once.
    fn insert(&mut self, space: &mut MappingSpace, visible: VisibleMapping) {
        let VisibleMapping {
            start,
            end,
            id: old,
        } = visible;
        let next = MappingId(u32::try_from(self.mappings.len()).unwrap_or(u32::MAX));
        let new = *self.new_ids.entry(old).or_insert(next);
        let is_first_part = new == next;
        if is_first_part {
            self.mappings.push(*self.world.mapping(old));
        }
        space.insert(Order::default(), start..end, Some(new));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{
        Cgroup, Comm, CpuMode, Encoder, Endian, Misc, Mmap, Namespace, Namespaces, RawRecord,
        Record, Task, TextPoke,
    };

    fn push(builder: &mut WorldBuilder, time: u64, record: &Record<'_>) {
        push_in(builder, time, Misc::USER, record);
    }

    fn push_in(builder: &mut WorldBuilder, time: u64, mode: Misc, record: &Record<'_>) {
        let (kind, own) = record.kind_and_misc();
        let mut body = Vec::new();
        record.encode_body(&mut Encoder::new(&mut body, Endian::NATIVE));
        let raw = RawRecord {
            kind,
            misc: Misc(own.0 | mode.0),
            body: &body,
        };
        builder.push(at(time), &raw).expect("a whole record");
    }

    fn at(time: u64) -> Order {
        Order { time, position: 0 }
    }

    fn fork(parent: u32, child: u32) -> Record<'static> {
        Record::Fork(Task {
            pid: child,
            ppid: parent,
            tid: child,
            ptid: parent,
            time: 0,
        })
    }

    fn mmap(pid: i32, start: u64, filename: &'static [u8]) -> Record<'static> {
        Record::Mmap(Mmap {
            pid,
            tid: pid.cast_unsigned(),
            start,
            len: 0x1000,
            pgoff: 0,
            filename,
        })
    }

    /// The name of the DSO at an address of a process, after pruning: what remains then applies at any time, so also at 1.
    fn dso_name(world: &World, pid: u32, address: u64) -> Option<&str> {
        dso_name_at(world, pid, at(1), address)
    }

    fn dso_name_at(world: &World, pid: u32, order: Order, address: u64) -> Option<&str> {
        let mapping = world.lookup(Machine::Host, CpuMode::User, pid, order, address)?;
        Some(&world.dso(world.mapping(mapping).dso).name)
    }

    #[test]
    fn pruning_removes_exited_tasks_and_hidden_mappings() {
        let mut builder = WorldBuilder::live(Endian::NATIVE);
        let comm = Comm {
            pid: 7,
            tid: 7,
            comm: b"server",
        };
        push(&mut builder, 1, &Record::Comm(comm));
        push(&mut builder, 2, &mmap(7, 0x1000, b"/bin/server"));
        push(&mut builder, 3, &fork(7, 8));
        push(&mut builder, 4, &mmap(7, 0x1000, b"/bin/other"));
        push(&mut builder, 5, &fork(7, 9));
        push(&mut builder, 6, &fork(7, 10));
        builder.forget(&[(at(7), 9)]);
        let world = builder.world();
        assert_eq!(dso_name(world, 7, 0x1800), Some("/bin/other"));
        assert_eq!(
            dso_name(world, 8, 0x1800),
            Some("/bin/server"),
            "as of the fork"
        );
        assert_eq!(dso_name(world, 9, 0x1800), None);
        assert_eq!(dso_name(world, 10, 0x1800), Some("/bin/other"));
        assert_eq!(world.comm(world.comm_at(10, at(1))), "server");
        // `/bin/server` of process 8, and `/bin/other`, which 7 and 10 share.
        assert_eq!(world.mappings().len(), 2);
        // The exit is older than the fork that reused the id.
        push(&mut builder, 8, &fork(10, 9));
        builder.forget(&[(at(7), 9)]);
        assert_eq!(dso_name(builder.world(), 9, 0x1800), Some("/bin/other"));
    }

    #[test]
    fn memory_is_bounded_with_many_short_processes() {
        let mut builder = WorldBuilder::live(Endian::NATIVE);
        push(&mut builder, 1, &mmap(7, 0x1000, b"/bin/sh"));
        let mut sizes = Vec::new();
        for time in 1..2000_u64 {
            let child = 100 + u32::try_from(time % 50).expect("a small number");
            push(&mut builder, 4 * time, &fork(7, child));
            push(
                &mut builder,
                4 * time + 1,
                &mmap(child.cast_signed(), 0x5000, b"/bin/ls"),
            );
            builder.forget(&[(at(4 * time + 2), child)]);
            sizes.push(builder.world().size());
        }
        // What one process needs and some more; without pruning, it would be thousands.
        assert!(sizes.iter().all(|size| *size <= 10), "{sizes:?}");
    }

    #[test]
    fn objects_of_exited_processes_are_pruned() {
        let mut builder = WorldBuilder::live(Endian::NATIVE);
        push(&mut builder, 1, &mmap(7, 0x1000, b"/bin/make"));
        let name = |child: u64| format!("/tmp/build-{child}/test");
        for time in 1..100_u64 {
            let child = 100 + u32::try_from(time).expect("a small number");
            let pid = child.cast_signed();
            let path = name(time);
            push(&mut builder, 3 * time, &fork(7, child));
            push(
                &mut builder,
                3 * time + 1,
                &Record::Mmap(Mmap {
                    pid,
                    tid: child,
                    start: 0x5000,
                    len: 0x1000,
                    pgoff: 0,
                    filename: path.as_bytes(),
                }),
            );
            let world = builder.world();
            let now = at(3 * time + 2);
            assert_eq!(dso_name_at(world, child, now, 0x5800), Some(&*path));
            assert!(world.removed_dsos().is_empty());
            builder.forget(&[(now, child)]);
            let world = builder.world();
            // `/bin/make`, and the removed program, whose id the next one reuses.
            assert_eq!((world.dsos().len(), world.removed_dsos().len()), (2, 1));
            assert_eq!(dso_name(world, 7, 0x1800), Some("/bin/make"));
        }
    }

    #[test]
    fn namespaces_and_modified_code_are_pruned() {
        let mut builder = WorldBuilder::live(Endian::NATIVE);
        let link = |inode| Namespace { dev: 4, inode };
        for time in 1..200_u64 {
            push(
                &mut builder,
                2 * time,
                &Record::Namespaces(Namespaces {
                    pid: 7,
                    tid: 7,
                    links: vec![link(time)],
                }),
            );
            let (old, new) = (&b"\x90"[..], &b"\xcc"[..]);
            let poke = TextPoke {
                addr: 0x40,
                old,
                new,
            };
            push_in(
                &mut builder,
                2 * time + 1,
                Misc::KERNEL,
                &Record::TextPoke(poke),
            );
        }
        builder.forget(&[]);
        let world = builder.world();
        // Without pruning, it would be about 400.
        assert!(world.size() < 8, "{}", world.size());
        assert_eq!(world.namespaces_at(7, at(1)), [link(199)]);
        // Time 900 is after all modifications, which keep their time. The last argument is the code before them.
        assert_eq!(world.code_at(at(900), 0x40, b"\x90"), Some(vec![0xcc]));
    }

    #[test]
    fn the_number_of_cgroups_is_bounded() {
        let mut builder = WorldBuilder::live(Endian::NATIVE);
        for id in 1..100_000_u64 {
            let path = format!("/job-{id}");
            push(
                &mut builder,
                id,
                &Record::Cgroup(Cgroup {
                    id,
                    path: path.as_bytes(),
                }),
            );
        }
        builder.forget(&[]);
        let world = builder.world();
        // `Cgroups::prune` keeps 16384: the lowest 4096 ids and the highest 12288.
        assert!(world.size() < 20_000, "{}", world.size());
        assert_eq!(world.cgroup(1), Some("/job-1"));
        assert_eq!(world.cgroup(99_999), Some("/job-99999"));
        assert_eq!(world.cgroup(50_000), None);
    }

    #[test]
    fn names_of_exited_threads_are_pruned() {
        const THREADS: u64 = 10_000;
        let mut builder = WorldBuilder::live(Endian::NATIVE);
        let tid = |thread: u64| 100 + u32::try_from(thread).expect("a small number");
        for generation in 0..4 {
            let begin = generation * 10 * THREADS;
            for thread in 0..THREADS {
                push(&mut builder, begin + 2 * thread + 1, &fork(7, tid(thread)));
                let name = format!("job-{generation}-{thread}");
                let comm = Comm {
                    pid: tid(thread),
                    tid: tid(thread),
                    comm: name.as_bytes(),
                };
                push(&mut builder, begin + 2 * thread + 2, &Record::Comm(comm));
            }
            let now = at(begin + 3 * THREADS);
            let has_name = |builder: &WorldBuilder, thread| {
                let world = builder.world();
                let (tid, text) = (tid(thread), format!("job-{generation}-{thread}"));
                world.comm(world.comm_at(tid, now)) == text
            };
            // The first half of the threads has exited at the first pruning, the other half at the second. The next generation
            // has the same thread ids.
            let ended = |threads: std::ops::Range<u64>| -> Vec<(Order, u32)> {
                threads.map(|thread| (now, tid(thread))).collect()
            };
            builder.forget(&ended(0..THREADS / 2));
            assert!(
                !has_name(&builder, 0)
                    && has_name(&builder, THREADS / 2)
                    && has_name(&builder, THREADS - 1)
            );
            builder.forget(&ended(THREADS / 2..THREADS));
            // Without pruning, it would be more than the 10000 names of a generation.
            assert!(builder.world().size() < 100, "{}", builder.world().size());
        }
    }
}
