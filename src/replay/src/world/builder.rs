//! Growing a [`World`] record by record.

use rperf_perfdata::feature::BuildIdEntry;
use rperf_wire::{
    CpuMode, DecodeError, Endian, Ksymbol, Misc, Mmap, Mmap2, MmapId, RawRecord, Record,
    RecordKind, Task,
};

use super::naming::{UserMapping, kernel_file_name, kernel_name, module_name};
use super::space::{Parent, Space, SpaceId};
use super::{Lifetime, World};
use crate::{Dso, DsoId, DsoKind, Machine, Mapping, MappingId, Order};

const PROT_EXEC: u32 = 4;
const KSYMBOL_UNREGISTER: u16 = 1;

/// A [`World`] in the making. [`WorldBuilder::world`] answers questions at any time, so that live
/// commands and pipes can look samples up between records.
#[derive(Debug)]
pub struct WorldBuilder {
    world: World,
    endian: Endian,
    last: Order,
}

/// A mapping of a process, out of either MMAP record.
struct UserMmap<'a> {
    mmap: Mmap<'a>,
    prot: u32,
    flags: u32,
    build_id: Option<&'a [u8]>,
}

impl WorldBuilder {
    /// An empty World but for the idle task, for records in this byte order.
    #[must_use]
    pub fn new(endian: Endian) -> Self {
        let mut world = World::default();
        let swapper = world.comms.intern("swapper");
        world.threads.named(Order::default(), 0, 0, swapper);
        Self {
            world,
            endian,
            last: Order::default(),
        }
    }

    /// The World as far as records were pushed.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Whether records of this kind change the World.
    #[must_use]
    pub fn wants(kind: RecordKind) -> bool {
        matches!(
            kind,
            RecordKind::MMAP
                | RecordKind::MMAP2
                | RecordKind::COMM
                | RecordKind::FORK
                | RecordKind::KSYMBOL
        )
    }

    /// Adds the files of the BUILD_ID feature. To be called before records are pushed: perf takes the
    /// kernel's name from here.
    pub fn build_ids(&mut self, entries: &[BuildIdEntry]) {
        for entry in entries {
            let mode = entry.misc.cpu_mode();
            let machine = Machine::of(mode, entry.pid.cast_unsigned());
            let kernel = matches!(mode, CpuMode::Kernel | CpuMode::GuestKernel);
            let name = entry.filename.as_str();
            let build_id = Some(entry.id().to_vec()).filter(|id| id.iter().any(|byte| *byte != 0));
            let id = match self.world.dsos.named(machine, kernel, name) {
                Some(id) => id,
                None if kernel => self.add_kernel_dso(machine, name),
                None => {
                    let named = UserMapping {
                        filename: name,
                        prot: PROT_EXEC,
                        flags: 0,
                        pid: 0,
                    }
                    .name();
                    self.world.dsos.user(machine, named.kind, name, None)
                }
            };
            if let Some(dso) = self.world.dsos.get_mut(id) {
                dso.build_id = build_id;
            }
        }
    }

    /// A file of kernel space that the BUILD_ID feature names: perf keeps the path as its name.
    fn add_kernel_dso(&mut self, machine: Machine, name: &str) -> DsoId {
        match module_name(name) {
            Some(module) => {
                let mut dso = Dso::new(machine, DsoKind::KernelModule, name);
                dso.short_name.clone_from(&module);
                self.world.dsos.add(&module, dso)
            }
            None => self
                .world
                .dsos
                .add(name, Dso::new(machine, DsoKind::Kernel, name)),
        }
    }

    /// Takes one record; kinds that change nothing are ignored. Records should come in rising order;
    /// one that does not takes effect when it comes, as in perf.
    ///
    /// # Errors
    /// [`DecodeError`] for a record whose fields are not whole; nothing changes.
    pub fn push(&mut self, order: Order, raw: &RawRecord<'_>) -> Result<(), DecodeError> {
        if !Self::wants(raw.kind) {
            return Ok(());
        }
        let record = Record::decode(raw, self.endian)?;
        let order = order.max(self.last);
        self.last = order;
        match record {
            Record::Mmap(mmap) => self.mmap(order, raw.misc, mmap),
            Record::Mmap2(mmap2) => self.mmap2(order, raw.misc, &mmap2),
            Record::Comm(comm) => {
                let name = self.world.comms.intern(&String::from_utf8_lossy(comm.comm));
                self.world.threads.named(order, comm.pid, comm.tid, name);
            }
            Record::Fork(task) => self.fork(order, raw.misc, &task),
            Record::Ksymbol(ksymbol) => self.ksymbol(order, &ksymbol),
            _ => {}
        }
        Ok(())
    }

    /// The finished World.
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
            return self.kernel_mmap(order, misc, &mmap, None);
        }
        let data = misc.contains(Misc::MMAP_DATA);
        let mapped = UserMmap {
            mmap,
            prot: if data { 0 } else { PROT_EXEC },
            flags: 0,
            build_id: None,
        };
        self.user_mmap(order, misc, &mapped);
    }

    fn mmap2(&mut self, order: Order, misc: Misc, mmap2: &Mmap2<'_>) {
        let build_id = match &mmap2.id {
            MmapId::BuildId { size, bytes } => bytes.get(..usize::from(*size)),
            MmapId::Inode { .. } => None,
        };
        let build_id = build_id.filter(|id| id.iter().any(|byte| *byte != 0));
        if is_kernel(misc) {
            return self.kernel_mmap(order, misc, &mmap2.mmap, build_id);
        }
        let mapped = UserMmap {
            mmap: mmap2.mmap,
            prot: mmap2.prot,
            flags: mmap2.flags,
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
        let filename = String::from_utf8_lossy(mmap.filename);
        let named = UserMapping {
            filename: &filename,
            prot: mapped.prot,
            flags: mapped.flags,
            pid,
        }
        .name();
        let dsos = &mut self.world.dsos;
        let dso = dsos.user(machine, named.kind, &named.name, mapped.build_id);
        let vdso = named.kind == DsoKind::Vdso;
        let space = self.process(order, machine, pid);
        self.insert(
            order,
            space,
            Mapping {
                start: mmap.start,
                end: mmap.start.saturating_add(mmap.len),
                pgoff: if vdso { 0 } else { mmap.pgoff },
                dso,
                prot: mapped.prot,
                flags: mapped.flags,
                identity: named.identity,
            },
        );
    }

    fn kernel_mmap(&mut self, order: Order, misc: Misc, mmap: &Mmap<'_>, build_id: Option<&[u8]>) {
        let machine = Machine::of(misc.cpu_mode(), mmap.pid.cast_unsigned());
        let filename = String::from_utf8_lossy(mmap.filename);
        let space = self.kernel(machine);
        let (start, mut end) = (mmap.start, mmap.start.saturating_add(mmap.len));
        let dso = if let Some(kernel) = kernel_name(&filename) {
            // Some recorders wrote an empty mapping: the kernel is everywhere.
            if (start, end) == (0, 0) {
                end = u64::MAX;
            }
            let dso = self.kernel_dso(machine, kernel.dso);
            self.unmap_kernel(order, space, dso);
            if let Some(dso) = self.world.dsos.get_mut(dso)
                && mmap.pgoff != 0
            {
                dso.relocation = Some((kernel.symbol.to_owned(), mmap.pgoff));
            }
            dso
        } else if filename.starts_with(['/', '[']) {
            self.module_dso(machine, &filename)
        } else {
            return;
        };
        if let Some(dso) = self.world.dsos.get_mut(dso)
            && build_id.is_some()
        {
            dso.build_id = build_id.map(<[u8]>::to_vec);
        }
        self.insert(
            order,
            space,
            Mapping {
                start,
                end,
                pgoff: mmap.pgoff,
                dso,
                prot: PROT_EXEC,
                flags: 0,
                identity: true,
            },
        );
    }

    /// The kernel has one mapping: a new record moves it.
    fn unmap_kernel(&mut self, order: Order, space: SpaceId, dso: DsoId) {
        let mut older = self.world.mappings.iter().rev();
        let range = older
            .find(|mapping| mapping.dso == dso)
            .map(|mapping| (mapping.start, mapping.end));
        if let Some(range) = range
            && let Some(space) = self.world.spaces.get_mut(space.0 as usize)
        {
            space.insert(order, range, None);
        }
    }

    /// The kernel that the build-ids name, else one of the record's name.
    fn kernel_dso(&mut self, machine: Machine, name: &str) -> DsoId {
        let kernel = |dso: &Dso| dso.machine == machine && dso.kind == DsoKind::Kernel;
        let known = self.world.dsos().iter().position(kernel);
        let id = match known.and_then(|index| u32::try_from(index).ok()) {
            Some(index) => DsoId(index),
            None => {
                let dso = Dso::new(machine, DsoKind::Kernel, name);
                self.world.dsos.add(name, dso)
            }
        };
        if let Some(dso) = self.world.dsos.get_mut(id)
            && dso.long_name.contains("vmlinux")
        {
            dso.short_name = "[kernel.vmlinux]".to_owned();
        }
        id
    }

    fn module_dso(&mut self, machine: Machine, filename: &str) -> DsoId {
        let name = module_name(filename).unwrap_or_else(|| kernel_file_name(filename));
        if let Some(id) = self.world.dsos.named(machine, true, &name) {
            return id;
        }
        let mut dso = Dso::new(machine, DsoKind::KernelModule, &name);
        filename.clone_into(&mut dso.long_name);
        self.world.dsos.add(&name, dso)
    }

    fn fork(&mut self, order: Order, misc: Misc, task: &Task) {
        let (parent, child) = ((task.ppid, task.ptid), (task.pid, task.tid));
        self.world.threads.forked(order, parent, child);
        // A thread uses the mappings of its process.
        if task.pid != task.tid {
            self.process(order, Machine::Host, task.pid);
            return;
        }
        let copies = task.pid != task.ppid && !misc.contains(Misc::FORK_EXEC);
        let parent = copies.then(|| Parent {
            space: self.process(order, Machine::Host, task.ppid),
            until: order,
        });
        let space = self.add_space(Space::forked(parent));
        let lives = self.world.processes.entry((Machine::Host, task.pid));
        lives.or_default().push(Lifetime {
            since: order,
            space,
        });
    }

    fn ksymbol(&mut self, order: Order, ksymbol: &Ksymbol<'_>) {
        let space = self.kernel(Machine::Host);
        let here = self.world.lookup_in(space, Order::MAX, ksymbol.addr);
        let here = here.map(|id| *self.world.mapping(id));
        let end = ksymbol.addr.saturating_add(u64::from(ksymbol.len));
        if ksymbol.flags & KSYMBOL_UNREGISTER != 0 {
            let kind = here.map(|mapping| self.world.dso(mapping.dso).kind);
            if let Some(mapping) = here
                && kind != Some(DsoKind::Kernel)
                && let Some(space) = self.world.spaces.get_mut(space.0 as usize)
            {
                space.insert(order, (mapping.start, mapping.end), None);
            }
            return;
        }
        if here.is_some() {
            return;
        }
        let name = String::from_utf8_lossy(ksymbol.name);
        let known = self.world.dsos.named(Machine::Host, true, &name);
        let dso = known.unwrap_or_else(|| {
            let mut dso = Dso::new(Machine::Host, DsoKind::Bpf, &name);
            dso.short_name.clone_from(&dso.name);
            dso.code_len = u64::from(ksymbol.len);
            self.world.dsos.add(&name, dso)
        });
        self.insert(
            order,
            space,
            Mapping {
                start: ksymbol.addr,
                end,
                pgoff: 0,
                dso,
                prot: PROT_EXEC,
                flags: 0,
                identity: false,
            },
        );
    }

    fn insert(&mut self, order: Order, space: SpaceId, mapping: Mapping) {
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
            space.insert(order, (mapping.start, mapping.end), Some(id));
        }
    }

    fn add_space(&mut self, space: Space) -> SpaceId {
        let id = SpaceId(u32::try_from(self.world.spaces.len()).unwrap_or(u32::MAX));
        self.world.spaces.push(space);
        id
    }

    /// The address space that the process has now; a process never heard of gets an empty one.
    fn process(&mut self, order: Order, machine: Machine, pid: u32) -> SpaceId {
        let lives = self.world.processes.get(&(machine, pid));
        if let Some(life) = lives.and_then(|lives| lives.last()) {
            return life.space;
        }
        let space = self.add_space(Space::default());
        let lives = self.world.processes.entry((machine, pid)).or_default();
        lives.push(Lifetime {
            since: order,
            space,
        });
        space
    }

    fn kernel(&mut self, machine: Machine) -> SpaceId {
        if let Some(space) = self.world.kernels.get(&machine) {
            return *space;
        }
        let space = self.add_space(Space::default());
        self.world.kernels.insert(machine, space);
        space
    }
}

fn is_kernel(misc: Misc) -> bool {
    matches!(misc.cpu_mode(), CpuMode::Kernel | CpuMode::GuestKernel)
}

/// A link past parents that had nothing mapped of their own: shells that fork and fork again would
/// else make long chains. Parents come before their children, so one step is enough.
fn shortened(spaces: &[Space], link: Option<Parent>) -> Option<Parent> {
    let link = link?;
    let parent = spaces.get(link.space.0 as usize)?;
    if parent.any_before(link.until) {
        return Some(link);
    }
    parent.parent.map(|grand| Parent {
        space: grand.space,
        until: grand.until.min(link.until),
    })
}
