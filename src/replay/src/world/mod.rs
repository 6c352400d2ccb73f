//! The World: who was running and what was mapped where, at any point of the recording.

mod builder;
mod code;
mod comms;
mod dsos;
mod epoch;
mod forget;
mod kernel;
mod namespaces;
mod naming;
mod pokes;
mod recent;
mod space;
mod threads;

pub use builder::WorldBuilder;
pub use code::Function;
pub(crate) use comms::Comms;
use dsos::Dsos;
pub use epoch::Epoch;
use namespaces::{Cgroups, Namespaces};
pub use naming::UserMapping;
use pokes::Pokes;
pub use recent::{Moment, Recent, Who};
use rperf_wire::{CpuMode, Namespace};
use rustc_hash::FxHashMap;
use space::{Parent, Space, SpaceId};
use threads::Threads;

use crate::{CommId, Dso, DsoId, Machine, Mapping, MappingId, Order};

/// `PROT_EXEC` of mmap(2).
const PROT_EXEC: u32 = 4;

/// A process id has one address space after the other.
#[derive(Debug, Clone, Copy)]
struct Lifetime {
    since: Order,
    space: SpaceId,
}

/// Processes, threads, mappings and files of a recording, by time. Made by a [`WorldBuilder`],
/// immutable, and shared by all threads that look at samples.
#[derive(Debug, Default)]
pub struct World {
    dsos: Dsos,
    mappings: Vec<Mapping>,
    comms: Comms,
    threads: Threads,
    spaces: Vec<Space>,
    /// Address spaces of a process id, oldest first.
    processes: FxHashMap<(Machine, u32), Vec<Lifetime>>,
    kernels: FxHashMap<Machine, SpaceId>,
    /// Functions that runtimes made, by the space that they are in.
    code: FxHashMap<SpaceId, Space>,
    namespaces: Namespaces,
    cgroups: Cgroups,
    pokes: Pokes,
    /// Rises with every record that changes anything.
    version: u64,
}

impl World {
    /// What is mapped at `address` just before `order`, for code that runs in `mode` in the process
    /// `pid` of `machine`. `None` where nothing is, and for modes without mappings (hypervisor).
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
                let lives = self.processes.get(&(machine, pid))?;
                let alive = lives.partition_point(|life| life.since < order);
                lives.get(alive.checked_sub(1)?)?.space
            }
            CpuMode::Unknown | CpuMode::Hypervisor => return None,
        };
        self.lookup_in(space, order, address)
    }

    /// The space's own mappings first, then what its parent had when it forked.
    fn lookup_in(&self, mut space: SpaceId, mut order: Order, address: u64) -> Option<MappingId> {
        loop {
            let at = self.spaces.get(space.0 as usize)?;
            if let Some(found) = at.lookup(order, address) {
                let found = found?;
                return Some(match self.code.is_empty() {
                    true => found,
                    false => self.function_in(space, order, address, found),
                });
            }
            let parent = at.parent?;
            order = order.min(parent.until);
            space = parent.space;
        }
    }

    /// Where mappings that a child of `parent` inherits may begin and end, rising.
    fn borders(&self, parent: Parent) -> Vec<u64> {
        let mut borders = Vec::new();
        let mut link = Some(parent);
        let mut until = parent.until;
        while let Some(parent) = link {
            until = until.min(parent.until);
            let space = self.spaces.get(parent.space.0 as usize);
            borders.extend(space.iter().flat_map(|space| space.borders(until)));
            link = space.and_then(|space| space.parent);
        }
        borders.sort_unstable();
        borders.dedup();
        borders
    }

    /// What `code`, which was read from the host's kernel at `address` some time before or after the recording, was just
    /// before `order`; `None` if no record tells of a change there.
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

    /// All mappings, in the order of their records; [`MappingId`] is the index.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// A file.
    ///
    /// # Panics
    /// If the id comes from another World.
    #[must_use]
    pub fn dso(&self, id: DsoId) -> &Dso {
        &self.dsos()[id.0 as usize]
    }

    /// All files: those with a build-id in the header, then the others as they were first mapped;
    /// [`DsoId`] is the index.
    #[must_use]
    pub fn dsos(&self) -> &[Dso] {
        self.dsos.all()
    }

    /// The name of the thread at `order` as script and live views show it: `:TID` before it got one.
    #[must_use]
    pub fn comm_at(&self, _pid: u32, tid: u32, order: Order) -> CommId {
        self.threads.comm_at(tid, order)
    }

    /// The name of the thread at `order` as aggregated reports show it: its first name counts for
    /// the time before, too.
    #[must_use]
    pub fn comm_final(&self, _pid: u32, tid: u32, order: Order) -> CommId {
        self.threads.comm_final(tid, order)
    }

    /// The last name of the thread that has this id at `order`.
    #[must_use]
    pub fn comm_last(&self, _pid: u32, tid: u32, order: Order) -> CommId {
        self.threads.comm_last(tid, order)
    }

    /// The namespaces of the thread just before `order`: net, uts, ipc, pid, user, mnt, cgroup, as many as
    /// the recorder told; none where it told nothing.
    #[must_use]
    pub fn namespaces_at(&self, tid: u32, order: Order) -> &[Namespace] {
        self.namespaces.at(tid, order)
    }

    /// The path of a cgroup, from the root of its hierarchy.
    #[must_use]
    pub fn cgroup(&self, id: u64) -> Option<&str> {
        self.cgroups.path(id)
    }

    /// The text of a name.
    #[must_use]
    pub fn comm(&self, id: CommId) -> &str {
        self.comms.text(id)
    }
}
