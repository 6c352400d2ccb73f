//! What keys read of a sample besides its code, its thread and its processor: as recorded, and with its addresses looked up.

use std::sync::{Arc, Mutex, PoisonError};

use rperf_replay::{DsoId, Mapping, Sample, World};
use rperf_resolve::{Frame, Level, Place, Resolver};
use rperf_wire::{BranchEntry, CpuMode, DataSource, SampleType};

use crate::keys::{Key, Reads, Site};
use crate::options::{Counted, Options};
use crate::parallelism::Parallelism;
use crate::sites::Sites;
use crate::stacks::Interner;

/// One thing that keys read of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    /// When it was taken.
    Time,
    /// What it cost.
    Weight,
    /// Its cgroup.
    Cgroup,
    /// The namespace that stands for its cgroup.
    CgroupId,
    /// The hardware transaction.
    Transaction,
    /// The size of the page that its code is in.
    CodePage,
    /// The memory access.
    Access,
    /// The branch.
    Branch,
    /// How many threads ran.
    Parallelism,
}

/// Which of them are read.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    facts: Vec<Fact>,
    time_quantum: u64,
    weight_parts: Vec<bool>,
    branches: bool,
    parallelism: Option<Arc<Parallelism>>,
    costs: bool,
}

/// A sample's facts as recorded; what nobody reads is left at its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct RawFacts {
    time: u64,
    weight: Weight,
    cgroup: u64,
    cgroup_id: (u64, u64),
    transaction: u64,
    code_page: u64,
    access: Option<RawAccess>,
    branch: Option<(u64, u64, u64)>,
    parallelism: u32,
}

/// What a sample cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Weight {
    /// In units of the hardware, cycles as a rule.
    pub(crate) whole: u64,
    /// Latency of the instruction, where weights have parts.
    pub(crate) instruction: u64,
    /// The third part: the time until it retired.
    pub(crate) retirement: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct RawAccess {
    address: u64,
    physical: u64,
    source: u64,
    page: u64,
}

impl Wanted {
    /// What `keys` read.
    pub(crate) fn new(options: &Options, keys: &[&Key]) -> Self {
        let fact = |key: &&Key| match key.reads {
            Reads::Fact(fact) => Some(fact),
            _ => None,
        };
        Self {
            facts: keys.iter().filter_map(fact).collect(),
            time_quantum: options.time_quantum.max(1),
            weight_parts: options.weight_parts.clone(),
            branches: options.counted == Counted::Branches,
            parallelism: options.parallelism.clone(),
            costs: options.counts_costs(),
        }
    }

    /// How many threads ran when a sample was taken; `None` if that is not asked for.
    pub(crate) fn parallelism(&self, sample: &Sample<'_>) -> Option<u32> {
        let parallelism = self.parallelism.as_ref();
        parallelism.map(|parallelism| parallelism.at(sample.order))
    }

    /// Whether more than events and samples is added up.
    pub(crate) fn any_extra(&self) -> bool {
        self.costs || self.parallelism.is_some()
    }

    /// The parts of what a sample cost.
    pub(crate) fn costs(&self, sample: &Sample<'_>) -> [u64; 3] {
        let weight = self.weight(sample);
        [weight.whole, weight.instruction, weight.retirement]
    }

    /// Whether anything is read.
    pub(crate) fn any(&self) -> bool {
        !self.facts.is_empty()
    }

    /// What a sample cost: a number of 64 bits, or of 32 with two more behind it (`PERF_SAMPLE_WEIGHT_STRUCT`).
    pub(crate) fn weight(&self, sample: &Sample<'_>) -> Weight {
        let weight = sample.wire.weight.unwrap_or_default();
        match self.weight_parts.get(sample.event.0 as usize) {
            Some(true) => Weight {
                whole: weight & u64::from(u32::MAX),
                instruction: weight >> 32 & 0xffff,
                retirement: weight >> 48,
            },
            _ => Weight {
                whole: weight,
                ..Weight::default()
            },
        }
    }

    /// The facts of a sample, or of one of its branches.
    pub(crate) fn facts(
        &self,
        world: &World,
        sample: &Sample<'_>,
        branch: Option<BranchEntry>,
    ) -> RawFacts {
        let mut raw = RawFacts::default();
        let wire = &sample.wire;
        for fact in &self.facts {
            match fact {
                Fact::Time => {
                    let time = wire.time.unwrap_or_default();
                    raw.time = time / self.time_quantum * self.time_quantum;
                }
                // perf takes the cycles before a branch for its weight.
                Fact::Weight if self.branches => {
                    let cycles = branch.map_or(0, |branch| branch.cycles());
                    raw.weight.whole = cycles.max(1);
                }
                Fact::Weight => raw.weight = self.weight(sample),
                Fact::Cgroup => raw.cgroup = wire.cgroup.unwrap_or_default(),
                Fact::CgroupId => raw.cgroup_id = cgroup_id(world, sample),
                Fact::Transaction => raw.transaction = wire.transaction.unwrap_or_default(),
                Fact::CodePage => raw.code_page = wire.code_page_size.unwrap_or_default(),
                Fact::Access => {
                    raw.access = Some(RawAccess {
                        address: wire.addr.unwrap_or_default(),
                        physical: wire.phys_addr.unwrap_or_default(),
                        source: wire.data_src.unwrap_or_default(),
                        page: wire.data_page_size.unwrap_or_default(),
                    });
                }
                Fact::Parallelism => {
                    raw.parallelism = self.parallelism(sample).unwrap_or_default();
                }
                Fact::Branch => {
                    raw.branch = branch.map(|branch| (branch.from, branch.to, branch.flags));
                }
            }
        }
        raw
    }
}

/// Whether weights of events that record `kinds` have parts.
#[must_use]
pub fn has_weight_parts(kinds: SampleType) -> bool {
    kinds.contains(SampleType::WEIGHT_STRUCT)
}

/// Place of the cgroup namespace among those of a thread.
const CGROUP_NAMESPACE: usize = 6;

fn cgroup_id(world: &World, sample: &Sample<'_>) -> (u64, u64) {
    // A thread is in the namespaces that a record of that very moment tells of.
    let links = world.namespaces_at(sample.tid, sample.order);
    let link = links.get(CGROUP_NAMESPACE);
    link.map_or((0, 0), |link| (link.dev, link.inode))
}

/// A sample's facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Facts {
    /// Nanoseconds, in steps of the time quantum.
    pub(crate) time: u64,
    pub(crate) weight: Weight,
    /// Its id, 0 where none was recorded.
    pub(crate) cgroup: u64,
    /// Device and inode of the cgroup namespace.
    pub(crate) cgroup_id: (u64, u64),
    /// `PERF_TXN_*`.
    pub(crate) transaction: u64,
    /// Bytes of the page that the code is in.
    pub(crate) code_page: u64,
    pub(crate) access: Option<Access>,
    pub(crate) branch: Option<Branch>,
    /// How many threads ran.
    pub(crate) parallelism: u32,
}

/// A memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Access {
    /// The instruction.
    pub(crate) code: Spot,
    pub(crate) data: Spot,
    pub(crate) line: Cacheline,
    /// Physical address of the data.
    pub(crate) physical: u64,
    pub(crate) source: DataSource,
    /// Bytes of the page that the data is in.
    pub(crate) page: u64,
}

/// What tells the cache line of an access from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cacheline {
    /// Of the code.
    level: Level,
    /// Whether nothing is known of the address.
    pub(crate) unmapped: bool,
    object: Option<DsoId>,
    /// Of memory without a file: each process has its own.
    pid: u32,
    /// In terms of the object.
    pub(crate) address: u64,
    /// Whether processes share the data, by way of a file.
    pub(crate) shared: bool,
}

/// A branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Branch {
    pub(crate) from: Spot,
    pub(crate) to: Spot,
    /// As in [`BranchEntry`].
    pub(crate) flags: u64,
}

/// An address and what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Spot {
    pub(crate) site: Site,
    /// As recorded.
    pub(crate) ip: u64,
    /// In terms of the object.
    pub(crate) address: u64,
}

/// `cl_address` of the machines that there are: lines of 64 bytes.
const LINE: u64 = 64;

/// `PROT_EXEC` and `MAP_SHARED` of mmap(2).
const PROT_EXEC: u32 = 4;
const MAP_SHARED: u32 = 1;

/// Looks addresses up.
pub(crate) struct Finder<'f, 'a, 'w> {
    pub(crate) sites: &'f Sites<'a, 'w>,
    pub(crate) resolver: &'a Resolver<'w>,
    pub(crate) at: Place,
    pub(crate) mode: CpuMode,
}

impl Finder<'_, '_, '_> {
    /// The facts of a sample that fell on `ip`.
    pub(crate) fn facts(&self, raw: &RawFacts, ip: u64) -> Facts {
        Facts {
            time: raw.time,
            weight: raw.weight,
            cgroup: raw.cgroup,
            cgroup_id: raw.cgroup_id,
            transaction: raw.transaction,
            code_page: raw.code_page,
            parallelism: raw.parallelism,
            access: raw.access.map(|access| self.access(&access, ip)),
            branch: raw.branch.map(|(from, to, flags)| Branch {
                from: self.spot(&self.anywhere(from)),
                to: self.spot(&self.anywhere(to)),
                flags,
            }),
        }
    }

    /// What is at an address of code of any side of the border between kernel and user space.
    pub(crate) fn anywhere(&self, ip: u64) -> Frame {
        locate_anywhere(self.resolver, self.at, ip)
    }

    fn spot(&self, frame: &Frame) -> Spot {
        Spot {
            site: self.sites.leaf(frame),
            ip: frame.ip,
            address: frame.address,
        }
    }

    fn access(&self, raw: &RawAccess, ip: u64) -> Access {
        // As in perf, in the mode of the code: the kernel's accesses to user space are known nothing of.
        let data = self.resolver.locate(self.at, self.mode, raw.address);
        Access {
            code: self.spot(&self.resolver.locate(self.at, self.mode, ip)),
            data: self.spot(&data),
            line: self.line(&data),
            physical: raw.physical,
            source: DataSource(raw.source),
            page: raw.page,
        }
    }

    fn line(&self, data: &Frame) -> Cacheline {
        let world = self.resolver.world();
        let mapping: Option<&Mapping> = data.mapping.map(|mapping| world.mapping(mapping));
        let kernel = self.mode == CpuMode::Kernel;
        let is_file = data
            .dso
            .is_some_and(|dso| world.dso(dso).long_name.starts_with('/'));
        let shared = mapping.is_some_and(|mapping| mapping.flags & MAP_SHARED != 0);
        let runs = mapping.is_some_and(|mapping| mapping.prot & PROT_EXEC != 0);
        let private = mapping.is_some() && !kernel && !shared && !is_file;
        Cacheline {
            level: self.mode.into(),
            unmapped: mapping.is_none(),
            object: data.dso,
            pid: if private { self.at.pid } else { 0 },
            address: data.address / LINE * LINE,
            shared: !kernel && !runs && shared && is_file,
        }
    }
}

/// What is at `ip`, whichever side of the border between kernel and user space knows it.
pub(crate) fn locate_anywhere(resolver: &Resolver<'_>, at: Place, ip: u64) -> Frame {
    let modes = [
        CpuMode::Kernel,
        CpuMode::User,
        CpuMode::GuestKernel,
        CpuMode::GuestUser,
    ];
    let known = modes
        .into_iter()
        .find(|mode| resolver.mapping(at, *mode, ip).is_some());
    resolver.locate(at, known.unwrap_or(CpuMode::User), ip)
}

/// The number of facts. It differs from run to run, so nothing that is shown may be ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FactsId(pub(crate) u32);

/// All facts of a recording, filled by several threads.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Interner<Facts>>);

impl Pool {
    /// The number of `facts`.
    pub(crate) fn number(&self, facts: Facts) -> FactsId {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        FactsId(all.number(facts))
    }

    /// The facts, when there will be no more.
    pub(crate) fn finish(self) -> Vec<Facts> {
        let all = self.0.into_inner();
        all.unwrap_or_else(PoisonError::into_inner).into_items()
    }
}
