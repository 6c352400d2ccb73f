//! The World: processes, threads and mappings at any point of the recording.

mod builder;
mod code;
mod comms;
mod dsos;
mod epoch;
mod kernel;
mod namespaces;
mod naming;
mod prune;
mod space;
mod text_pokes;
mod thread_cache;
mod threads;
mod visible;

pub use builder::WorldBuilder;
pub use code::RuntimeFunction;
pub(crate) use comms::Comms;
use dsos::Dsos;
pub use epoch::Epoch;
use namespaces::{Cgroups, Namespaces};
pub use naming::{DsoName, RecordedName, kernel_object, perf_map_name};
use rperf_wire::{CpuMode, Namespace};
use rustc_hash::FxHashMap;
use space::{InheritedMappings, MappingSpace, SpaceId};
use text_pokes::TextPokes;
pub use thread_cache::{OrderRange, ThreadCache, ThreadKey, ThreadState};
use threads::ThreadTable;
pub use threads::{CommChange, ThreadInfo};
pub use visible::VisibleMapping;

use crate::{CommId, Dso, DsoId, Machine, Mapping, MappingId, Order};

/// One of the successive address spaces of a process id.
#[derive(Debug, Clone, Copy)]
struct Lifetime {
    since: Order,
    space: SpaceId,
}

/// Processes, threads, mappings and DSOs of a recording, by time. Built by a [`WorldBuilder`], and shared by all
/// threads that process samples.
#[derive(Debug, Default)]
pub struct World {
    dsos: Dsos,
    mappings: Vec<Mapping>,
    comms: Comms,
    threads: ThreadTable,
    spaces: Vec<MappingSpace>,
    /// Address spaces of a process id, oldest first.
    processes: FxHashMap<(Machine, u32), Vec<Lifetime>>,
    kernels: FxHashMap<Machine, SpaceId>,
    /// JIT-compiled functions by address space.
    code: FxHashMap<SpaceId, MappingSpace>,
    namespaces: Namespaces,
    cgroups: Cgroups,
    pokes: TextPokes,
    /// Incremented by every change.
    version: u64,
}

impl World {
    /// A number that every change of this World increments. Results computed from the World are valid while the number is the
    /// same.
    #[inline]
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The mapping at `address` just before `order`, for code that runs in `mode` in the process
    /// `pid` of `machine`. `None` if there is none, and for modes without mappings (unknown, hypervisor).
    #[must_use]
    pub fn lookup(
        &self,
        machine: Machine,
        mode: CpuMode,
        pid: u32,
        order: Order,
        address: u64,
    ) -> Option<MappingId> {
        let space = match mode {
            CpuMode::Kernel | CpuMode::GuestKernel => *self.kernels.get(&machine)?,
            CpuMode::User | CpuMode::GuestUser => {
                let lifetimes = self.processes.get(&(machine, pid))?;
                let begun = lifetimes.partition_point(|life| life.since < order);
                lifetimes.get(begun.checked_sub(1)?)?.space
            }
            CpuMode::Unknown | CpuMode::Hypervisor => return None,
        };
        self.lookup_in(space, order, address)
    }

    /// The mapping at `address` of a space. In a known JIT-compiled function it is the mapping of that function.
    fn lookup_in(&self, space: SpaceId, order: Order, address: u64) -> Option<MappingId> {
        let (mapping, space, order) = self.mapping_in(space, order, address)?;
        Some(match self.code.is_empty() {
            true => mapping,
            false => self.function_in(space, order, address, mapping),
        })
    }

    /// Looks in the space's own mappings first, then in those that it inherited from its parent. Returns the mapping, the space
    /// that has it, and the order before which it was searched there.
    #[inline]
    fn mapping_in(
        &self,
        mut space: SpaceId,
        mut order: Order,
        address: u64,
    ) -> Option<(MappingId, SpaceId, Order)> {
        loop {
            let at = self.spaces.get(space.0 as usize)?;
            if let Some(mapping) = at.lookup(order, address) {
                // `Some(None)`: the mapping was removed, so the parent is not searched.
                return Some((mapping?, space, order));
            }
            let parent = at.parent?;
            order = order.min(parent.until);
            space = parent.space;
        }
    }

    /// Possible boundaries of the mappings that a child inherits from `parent` and its ancestors, ascending.
    fn borders(&self, parent: InheritedMappings) -> Vec<u64> {
        let mut borders = Vec::new();
        let mut link = Some(parent);
        let mut until = parent.until;
        while let Some(ancestor) = link {
            until = until.min(ancestor.until);
            let space = self.spaces.get(ancestor.space.0 as usize);
            borders.extend(space.iter().flat_map(|space| space.borders(until)));
            link = space.and_then(|space| space.parent);
        }
        borders.sort_unstable();
        borders.dedup();
        borders
    }

    /// Returns the bytes that the host kernel's code at `address` had just before `order`; `None` if no TEXT_POKE record modifies
    /// them. `code` is the content of the kernel's memory at `address` as read at any time; the result has its length.
    #[must_use]
    pub fn code_at(&self, order: Order, address: u64, code: &[u8]) -> Option<Vec<u8>> {
        self.pokes.code_at(order, address, code)
    }

    /// A mapping.
    ///
    /// # Panics
    /// If the id comes from another World.
    #[must_use]
    pub fn mapping(&self, id: MappingId) -> &Mapping {
        &self.mappings[id.0 as usize]
    }

    /// All mappings: those of records, then those of JIT-compiled functions; [`MappingId`] is the index.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// A DSO.
    ///
    /// # Panics
    /// If the id comes from another World.
    #[must_use]
    pub fn dso(&self, id: DsoId) -> &Dso {
        &self.dsos()[id.0 as usize]
    }

    /// All DSOs in the order in which they occur first; those with a build-id in the header of the recording's file
    /// precede the others. [`DsoId`] is the index. In a World from which [`WorldBuilder::forget`] removed DSOs, those of
    /// [`World::removed_dsos`] have no name, and their ids are reused.
    #[must_use]
    pub fn dsos(&self) -> &[Dso] {
        self.dsos.all()
    }

    /// The ids of removed DSOs that were not yet given to a new DSO; see [`WorldBuilder::forget`].
    #[must_use]
    pub fn removed_dsos(&self) -> &[DsoId] {
        self.dsos.removed()
    }

    /// The name of the thread at `order` as shown by script and live views: `:TID` before it has
    /// one.
    #[must_use]
    pub fn comm_at(&self, tid: u32, order: Order) -> CommId {
        self.threads.comm_at(tid, order)
    }

    /// The name of the thread at `order`, or its first later name if it has none at that time; otherwise `:TID`. Aggregated
    /// reports show this name.
    #[must_use]
    pub fn comm_at_or_later(&self, tid: u32, order: Order) -> CommId {
        self.threads.comm_at_or_later(tid, order)
    }

    /// The last name of the thread that has this id at `order`; `:TID` if it has none.
    #[must_use]
    pub fn comm_last(&self, tid: u32, order: Order) -> CommId {
        self.threads.comm_last(tid, order)
    }

    /// The namespaces of the thread just before `order`: net, uts, ipc, pid, user, mnt, cgroup, as
    /// far as recorded; empty if not recorded.
    #[must_use]
    pub fn namespaces_at(&self, tid: u32, order: Order) -> &[Namespace] {
        self.namespaces.at(tid, order)
    }

    /// The path of a cgroup, from the root of its hierarchy; `None` if not recorded.
    #[must_use]
    pub fn cgroup(&self, id: u64) -> Option<&str> {
        self.cgroups.path(id)
    }

    /// The ids and paths of all recorded cgroups, in no particular order.
    pub fn cgroups(&self) -> impl Iterator<Item = (u64, &str)> {
        self.cgroups.all()
    }

    /// The last thread of each thread id of the host, in no particular order.
    pub fn threads(&self) -> impl Iterator<Item = ThreadInfo> + '_ {
        self.threads.all()
    }

    /// The starts and new names of the host's threads: those of one thread id in order, thread ids in no particular order.
    pub fn comm_changes(&self) -> impl Iterator<Item = CommChange> + '_ {
        self.threads.comm_changes()
    }

    /// The text of a name.
    #[must_use]
    pub fn comm(&self, id: CommId) -> &str {
        self.comms.text(id)
    }
}
