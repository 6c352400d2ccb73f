//! The part of a [`WorldBuilder`] (which collects the processes and mappings at each time) for the kernel, its modules and
//! generated code ([`DsoKind::Bpf`]), and for all build-ids from the header.

use std::ops::Range;

use rperf_perfdata::feature::BuildIdEntry;
use rperf_wire::{CpuMode, Ksymbol, Misc, Mmap, PROT_EXEC, name_text};

use super::WorldBuilder;
use super::naming::{RecordedName, is_module_file, kernel_file_name, kernel_name, module_name};
use super::space::{MappingSpace, SpaceId};
use crate::{Dso, DsoId, DsoKind, Machine, Mapping, Order};

/// Name of the kernel in live views.
const LIVE_KERNEL: &str = "[kernel]";

/// `PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER`.
const KSYMBOL_UNREGISTER: u16 = 1;

impl WorldBuilder {
    /// Adds the entries of the BUILD_ID feature. Should be called before records are pushed: as in perf, the kernel gets its name
    /// from its entry, if there is one.
    pub fn add_build_ids(&mut self, entries: &[BuildIdEntry]) {
        for entry in entries {
            let mode = entry.misc.cpu_mode();
            let machine = Machine::of(mode, entry.pid.cast_unsigned());
            // Also for modules: names of DSOs in kernel mode are separate from those in user mode.
            let is_kernel = matches!(mode, CpuMode::Kernel | CpuMode::GuestKernel);
            let name = entry.filename.as_str();
            let build_id = Some(entry.id().to_vec()).filter(|id| id.iter().any(|byte| *byte != 0));
            let module = module_name(name).filter(|_| is_kernel);
            let find = |name: &str| self.world.dsos.named(machine, is_kernel, name);
            let id = match find(name).or_else(|| find(&module?)) {
                Some(id) => id,
                None if is_kernel => self.add_kernel_dso(machine, name),
                None => {
                    // Of these fields, an entry has only the name. With these values of the others, the name alone determines
                    // the kind.
                    let named = RecordedName {
                        filename: name,
                        end: u64::MAX,
                        prot: PROT_EXEC,
                        flags: 0,
                        pid: 0,
                    }
                    .interpret();
                    // No build-id to look for: it is set below.
                    self.world
                        .dsos
                        .find_or_add_user(machine, named.kind, name, None)
                }
            };
            if let Some(dso) = self.world.dsos.get_mut(id) {
                dso.build_id = build_id;
            }
        }
        // Results that readers cached before are no longer valid.
        self.world.version += 1;
    }

    /// Adds a kernel or a module from the BUILD_ID feature. As in perf, its name is the path; but a module is added under its
    /// module name, by which its mappings look it up.
    fn add_kernel_dso(&mut self, machine: Machine, name: &str) -> DsoId {
        match module_name(name) {
            Some(module) => {
                let mut dso = Dso::new(machine, DsoKind::KernelModule, name);
                dso.short_name.clone_from(&module);
                self.world.dsos.add(&module, dso)
            }
            None => {
                let dso = Dso::new(machine, DsoKind::Kernel, name);
                let id = self.world.dsos.add(name, dso);
                self.kernel_dsos.entry(machine).or_insert(id);
                id
            }
        }
    }

    /// Adds the mapping of the kernel or a module; `identity: true`, as their symbols have the mapped addresses.
    pub(super) fn kernel_mmap(
        &mut self,
        order: Order,
        misc: Misc,
        mmap: &Mmap<'_>,
        build_id: Option<&[u8]>,
    ) {
        let machine = Machine::of(misc.cpu_mode(), mmap.pid.cast_unsigned());
        let filename = name_text(mmap.filename);
        let space = self.kernel_space(machine);
        let (start, mut end) = (mmap.start, mmap.start.saturating_add(mmap.len));
        let dso = if let Some(kernel) = kernel_name(&filename) {
            // Some recorders wrote an empty mapping: treated as all addresses.
            if (start, end) == (0, 0) {
                end = u64::MAX;
            }
            let dso = self.kernel_dso(machine, kernel.dso);
            self.move_kernel(order, space, dso, start..end);
            if let Some(dso) = self.world.dsos.get_mut(dso)
                && mmap.pgoff != 0
            {
                dso.relocation = Some((kernel.symbol.to_owned(), mmap.pgoff));
            }
            dso
        } else if is_module_file(&filename) {
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
                inode: 0,
                identity: true,
                function: None,
            },
        );
    }

    /// The kernel has one mapping, which a new record moves: removes the mapping at the range of the earlier record, if any. The
    /// caller inserts the new one.
    fn move_kernel(&mut self, order: Order, space: SpaceId, kernel: DsoId, range: Range<u64>) {
        if let Some(older) = self.kernel_ranges.insert(kernel, range)
            && let Some(space) = self.world.spaces.get_mut(space.0 as usize)
        {
            let removal = None;
            space.insert(order, older, removal);
        }
    }

    /// The kernel from the build-ids or an earlier record, otherwise a new one named `name`.
    fn kernel_dso(&mut self, machine: Machine, name: &str) -> DsoId {
        let known = self.kernel_dsos.get(&machine).copied();
        let id = known.unwrap_or_else(|| {
            let mut dso = Dso::new(machine, DsoKind::Kernel, name);
            if self.is_live && machine == Machine::Host {
                LIVE_KERNEL.clone_into(&mut dso.short_name);
            }
            self.world.dsos.add(name, dso)
        });
        self.kernel_dsos.insert(machine, id);
        if let Some(dso) = self.world.dsos.get_mut(id)
            && dso.long_name.contains("vmlinux")
        {
            dso.short_name = "[kernel.vmlinux]".to_owned();
        }
        id
    }

    fn module_dso(&mut self, machine: Machine, filename: &str) -> DsoId {
        let name = module_name(filename).unwrap_or_else(|| kernel_file_name(filename));
        let is_kernel = true;
        if let Some(id) = self.world.dsos.named(machine, is_kernel, &name) {
            return id;
        }
        let mut dso = Dso::new(machine, DsoKind::KernelModule, &name);
        filename.clone_into(&mut dso.long_name);
        self.world.dsos.add(&name, dso)
    }

    /// Adds or removes generated code; `identity: false`, as its only symbol is at address 0.
    pub(super) fn ksymbol(&mut self, order: Order, ksymbol: &Ksymbol<'_>) {
        let space = self.kernel_space(Machine::Host);
        // `Order::MAX`: after all records so far.
        let existing = self.world.lookup_in(space, Order::MAX, ksymbol.addr);
        let existing = existing.map(|id| *self.world.mapping(id));
        let end = ksymbol.addr.saturating_add(u64::from(ksymbol.len));
        let unregisters = ksymbol.flags & KSYMBOL_UNREGISTER != 0;
        if let Some(mapping) = existing {
            let kind = self.world.dso(mapping.dso).kind;
            // An unregistration removes anything except the kernel. A registration replaces generated code at its address, whose
            // unregistration may be missing, and is ignored inside the kernel or a module, which have symbol tables.
            let removes_existing = match unregisters {
                true => kind != DsoKind::Kernel,
                false => kind == DsoKind::Bpf,
            };
            if !removes_existing {
                return;
            }
            if let Some(space) = self.world.spaces.get_mut(space.0 as usize) {
                let removal = None;
                space.insert(order, mapping.start..mapping.end, removal);
            }
        }
        if unregisters {
            return;
        }
        let name = name_text(ksymbol.name);
        let is_kernel = true;
        let known = self.world.dsos.named(Machine::Host, is_kernel, &name);
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
                inode: 0,
                identity: false,
                function: None,
            },
        );
    }

    /// The address space of a machine's kernel, created if necessary.
    fn kernel_space(&mut self, machine: Machine) -> SpaceId {
        if let Some(space) = self.world.kernels.get(&machine) {
            return *space;
        }
        let space = self.add_space(MappingSpace::default());
        self.world.kernels.insert(machine, space);
        space
    }
}
