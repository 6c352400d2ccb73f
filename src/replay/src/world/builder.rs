//! Incremental construction of a [`World`], the processes and mappings of a recording, by time.

use std::ops::Range;

use rperf_wire::{
    CpuMode, DecodeError, Endian, Misc, Mmap, Mmap2, MmapId, PROT_EXEC, PROT_READ, PROT_WRITE,
    RawRecord, Record, RecordKind, Task, name_text,
};

use rustc_hash::FxHashMap;

use super::naming::RecordedName;
use super::space::{InheritedMappings, MappingSpace, SpaceId};
use super::threads::ThreadIds;
use super::{Lifetime, World};
use crate::{DsoId, DsoKind, Machine, Mapping, MappingId, Order};

/// A [`World`] under construction. [`WorldBuilder::world`] can be queried at any time, so that live
/// commands and pipes can process samples between records.
#[derive(Debug)]
pub struct WorldBuilder {
    pub(super) world: World,
    endian: Endian,
    /// The highest order of the records so far.
    last: Order,
    pub(super) kernel_dsos: FxHashMap<Machine, DsoId>,
    /// The addresses of each kernel's current mapping.
    pub(super) kernel_ranges: FxHashMap<DsoId, Range<u64>>,
    /// Whether this is the running system, whose kernel's object has a different short name than in recordings.
    pub(super) is_live: bool,
}

/// A mapping of a process, from an MMAP or MMAP2 record.
struct UserMmap<'a> {
    mmap: Mmap<'a>,
    prot: u32,
    flags: u32,
    inode: u64,
    build_id: Option<&'a [u8]>,
}

impl WorldBuilder {
    /// Creates a builder for records in this byte order; its World has only the idle task.
    #[must_use]
    pub fn new(endian: Endian) -> Self {
        let mut world = World::default();
        let swapper = world.comms.intern("swapper");
        let (idle_pid, idle_tid) = (0, 0);
        world
            .threads
            .named(Order::default(), idle_pid, idle_tid, swapper);
        Self {
            world,
            endian,
            last: Order::default(),
            kernel_dsos: FxHashMap::default(),
            kernel_ranges: FxHashMap::default(),
            is_live: false,
        }
    }

    /// Creates a builder for the running system.
    #[must_use]
    pub fn live(endian: Endian) -> Self {
        Self {
            is_live: true,
            ..Self::new(endian)
        }
    }

    /// The World after the records pushed so far.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Whether records of this type can change the World.
    #[must_use]
    pub fn changes_world(kind: RecordKind) -> bool {
        matches!(
            kind,
            RecordKind::MMAP
                | RecordKind::MMAP2
                | RecordKind::COMM
                | RecordKind::FORK
                | RecordKind::KSYMBOL
                | RecordKind::NAMESPACES
                | RecordKind::CGROUP
                | RecordKind::TEXT_POKE
        )
    }

    /// Applies one record; types that change nothing are ignored. Records should be pushed in
    /// order; late ones take effect immediately, as in perf.
    ///
    /// # Errors
    /// [`DecodeError`] for a record that cannot be decoded, which changes nothing.
    pub fn push(&mut self, order: Order, raw: &RawRecord<'_>) -> Result<(), DecodeError> {
        if !Self::changes_world(raw.kind) {
            return Ok(());
        }
        let record = Record::decode(raw, self.endian)?;
        let order = order.max(self.last);
        self.last = order;
        self.world.version += 1;
        match record {
            Record::Mmap(mmap) => self.mmap(order, raw.misc, mmap),
            Record::Mmap2(mmap2) => self.mmap2(order, raw.misc, &mmap2),
            Record::Comm(comm) => {
                let name = self.world.comms.intern(&name_text(comm.comm));
                self.world.threads.named(order, comm.pid, comm.tid, name);
            }
            Record::Fork(task) => self.fork(order, raw.misc, &task),
            Record::Ksymbol(ksymbol) => self.ksymbol(order, &ksymbol),
            Record::Namespaces(record) => {
                let namespaces = &mut self.world.namespaces;
                namespaces.entered(order, record.tid, record.links);
            }
            Record::Cgroup(cgroup) => {
                let path = name_text(cgroup.path);
                self.world.cgroups.appeared(cgroup.id, &path);
            }
            Record::TextPoke(poke) if raw.misc.cpu_mode() == CpuMode::Kernel => {
                self.world.pokes.add(order, &poke);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the finished World, with shorter links between parents and children and with complete indexes of the mappings,
    /// so that lookups are faster.
    #[must_use]
    pub fn finish(self) -> World {
        let mut world = self.world;
        for index in 0..world.spaces.len() {
            let link = world.spaces.get(index).and_then(|space| space.parent);
            let shorter = shortened(&world.spaces, link);
            if let Some(space) = world.spaces.get_mut(index) {
                space.parent = shorter;
                space.reindex();
            }
        }
        world
    }

    fn mmap(&mut self, order: Order, misc: Misc, mmap: Mmap<'_>) {
        if is_kernel(misc) {
            let build_id = None;
            return self.kernel_mmap(order, misc, &mmap, build_id);
        }
        let is_data = misc.contains(Misc::MMAP_DATA);
        let mapped = UserMmap {
            mmap,
            prot: if is_data {
                PROT_READ | PROT_WRITE
            } else {
                PROT_EXEC
            },
            flags: 0,
            inode: 0,
            build_id: None,
        };
        self.user_mmap(order, misc, &mapped);
    }

    fn mmap2(&mut self, order: Order, misc: Misc, mmap2: &Mmap2<'_>) {
        let (inode, build_id) = match &mmap2.id {
            MmapId::BuildId { size, bytes } => (0, bytes.get(..usize::from(*size))),
            MmapId::Inode { inode, .. } => (*inode, None),
        };
        let build_id = build_id.filter(|id| id.iter().any(|byte| *byte != 0));
        if is_kernel(misc) {
            return self.kernel_mmap(order, misc, &mmap2.mmap, build_id);
        }
        let mapped = UserMmap {
            mmap: mmap2.mmap,
            prot: mmap2.prot,
            flags: mmap2.flags,
            inode,
            build_id,
        };
        self.user_mmap(order, misc, &mapped);
    }

    fn user_mmap(&mut self, order: Order, misc: Misc, mapped: &UserMmap<'_>) {
        let mmap = &mapped.mmap;
        let pid = mmap.pid.cast_unsigned();
        let machine = Machine::of(misc.cpu_mode(), pid);
        if machine == Machine::Host {
            self.world.threads.seen(pid, mmap.tid);
        }
        let filename = name_text(mmap.filename);
        let end = mmap.start.saturating_add(mmap.len);
        let named = RecordedName {
            filename: &filename,
            end,
            prot: mapped.prot,
            flags: mapped.flags,
            pid,
        }
        .interpret();
        let dsos = &mut self.world.dsos;
        let dso = dsos.find_or_add_user(machine, named.kind, &named.name, mapped.build_id);
        if let Some(dso) = dsos.get_mut(dso) {
            dso.add_process(pid);
        }
        let is_vdso = matches!(named.kind, DsoKind::Vdso | DsoKind::Vdso32);
        let space = self.process_space(order, machine, pid);
        self.insert(
            order,
            space,
            Mapping {
                start: mmap.start,
                end,
                pgoff: if is_vdso { 0 } else { mmap.pgoff },
                dso,
                prot: mapped.prot,
                flags: mapped.flags,
                inode: mapped.inode,
                identity: named.identity,
                // Only mappings of JIT-compiled functions have one.
                function: None,
            },
        );
    }

    /// Handles a FORK record. Its tasks are always taken for tasks of the host: the kernel writes no FORK records of guests.
    fn fork(&mut self, order: Order, misc: Misc, task: &Task) {
        let parent = ThreadIds {
            pid: task.ppid,
            tid: task.ptid,
        };
        let child = ThreadIds {
            pid: task.pid,
            tid: task.tid,
        };
        self.world.threads.forked(order, parent, child);
        self.world.namespaces.started(order, task.tid);
        // A thread uses the address space of its process, which is created here if the process is unknown.
        if task.pid != task.tid {
            self.process_space(order, Machine::Host, task.pid);
            return;
        }
        // FORK_EXEC: perf synthesized the record from /proc, and the child's mappings follow as MMAP records. A process that is
        // its own parent has nothing to inherit.
        let inherits = task.pid != task.ppid && !misc.contains(Misc::FORK_EXEC);
        let space = if inherits {
            let space = self.process_space(order, Machine::Host, task.ppid);
            let until = order;
            self.child_of(InheritedMappings { space, until })
        } else {
            MappingSpace::default()
        };
        let space = self.add_space(space);
        let lifetimes = self.world.processes.entry((Machine::Host, task.pid));
        lifetimes.or_default().push(Lifetime {
            since: order,
            space,
        });
    }

    /// Returns the address space of a forked process. It links to that of the parent, or has a copy of the visible mappings if
    /// forks of forks have created a long chain of links, so that lookups stay fast. Copying is only considered at chain lengths
    /// that are powers of two, and only done if it takes at most `MAX_BORDERS_PER_LINK` lookups per link of the chain, so that
    /// it costs little per fork.
    fn child_of(&self, parent: InheritedMappings) -> MappingSpace {
        const LONG_CHAIN: u32 = 32;
        const MAX_BORDERS_PER_LINK: usize = 8;
        let parent_space = self.world.spaces.get(parent.space.0 as usize);
        let depth = parent_space.map_or(0, |space| space.depth + 1);
        if depth < LONG_CHAIN || !depth.is_power_of_two() {
            return MappingSpace::forked(parent, depth);
        }
        // The addresses at which mappings visible to the child may begin or end. Copying takes a lookup for each.
        let borders = self.world.borders(parent);
        if borders.len() > MAX_BORDERS_PER_LINK * depth as usize {
            return MappingSpace::forked(parent, depth);
        }
        let mut copy = MappingSpace::default();
        for (start, end) in borders.iter().zip(borders.iter().skip(1)) {
            let visible = self.world.lookup_in(parent.space, parent.until, *start);
            if visible.is_some() {
                copy.insert(parent.until, *start..*end, visible);
            }
        }
        copy
    }

    /// Adds a mapping to an address space, unless the mapping is empty.
    pub(super) fn insert(&mut self, order: Order, space: SpaceId, mapping: Mapping) {
        if mapping.start >= mapping.end {
            return;
        }
        if let Some(dso) = self.world.dsos.get_mut(mapping.dso)
            && dso.map_start == 0
        {
            dso.map_start = mapping.start;
        }
        let id = MappingId(u32::try_from(self.world.mappings.len()).unwrap_or(u32::MAX));
        self.world.mappings.push(mapping);
        if let Some(space) = self.world.spaces.get_mut(space.0 as usize) {
            space.insert(order, mapping.start..mapping.end, Some(id));
        }
    }

    pub(super) fn add_space(&mut self, space: MappingSpace) -> SpaceId {
        let id = SpaceId(u32::try_from(self.world.spaces.len()).unwrap_or(u32::MAX));
        self.world.spaces.push(space);
        id
    }

    /// The current address space of the process; an unknown process gets an empty one.
    fn process_space(&mut self, order: Order, machine: Machine, pid: u32) -> SpaceId {
        let lifetimes = self.world.processes.get(&(machine, pid));
        if let Some(life) = lifetimes.and_then(|lifetimes| lifetimes.last()) {
            return life.space;
        }
        let space = self.add_space(MappingSpace::default());
        let lifetimes = self.world.processes.entry((machine, pid)).or_default();
        lifetimes.push(Lifetime {
            since: order,
            space,
        });
        space
    }
}

fn is_kernel(misc: Misc) -> bool {
    matches!(misc.cpu_mode(), CpuMode::Kernel | CpuMode::GuestKernel)
}

/// Returns `link`, a child's link to its parent. If the parent inserted no mappings before the fork, returns a link to the
/// grandparent instead, or `None` without one: shells that fork repeatedly would otherwise create long chains. Parents are
/// created, and so come in `spaces`, before their children: the parent's own link is already shortened, and one step is enough.
fn shortened(
    spaces: &[MappingSpace],
    link: Option<InheritedMappings>,
) -> Option<InheritedMappings> {
    let link = link?;
    let parent = spaces.get(link.space.0 as usize)?;
    if parent.any_before(link.until) {
        return Some(link);
    }
    parent.parent.map(|grand| InheritedMappings {
        space: grand.space,
        until: grand.until.min(link.until),
    })
}
