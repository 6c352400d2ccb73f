//! Properties of samples, besides thread, CPU and code, that sort keys use: recorded values and resolved addresses.

use std::sync::{Arc, Mutex, PoisonError};

use rperf_replay::{DsoId, Mapping, Sample, World};
use rperf_resolve::{AddressContext, Frame, Level, Resolver};
use rperf_wire::{BranchEntry, CpuMode, DataSource, MAP_SHARED, PROT_EXEC, SampleType};

use crate::keys::{CodeSite, Key, KeyDependency};
use crate::options::{CountedItems, HistogramOptions};
use crate::parallelism::Parallelism;
use crate::sites::SiteBuilder;
use crate::stacks::Interner;

/// A property of samples used by sort keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Property {
    /// The time.
    Time,
    /// The weight.
    Weight,
    /// The cgroup.
    Cgroup,
    /// The cgroup namespace, which the sort key `cgroup_id` shows.
    CgroupId,
    /// The transaction flags.
    Transaction,
    /// The page size of the code.
    CodePage,
    /// The memory access.
    Access,
    /// The branch.
    Branch,
    /// The number of running threads.
    Parallelism,
}

/// The properties and the optional sums that a report uses.
#[derive(Debug, Clone)]
pub(crate) struct UsedProperties {
    properties: Vec<Property>,
    /// In nanoseconds.
    time_quantum: u64,
    /// By event, whether weights have two parts besides the total (`PERF_SAMPLE_WEIGHT_STRUCT`).
    weight_parts: Vec<bool>,
    counts_branches: bool,
    /// Number of running threads over time, for latencies and the key `parallelism`; `None` if unknown or not needed.
    parallelism: Option<Arc<Parallelism>>,
    /// Whether the sums of sample weights ([`Weights::costs`](crate::histogram::Weights::costs)) are used.
    counts_costs: bool,
}

/// A sample's properties with unresolved addresses; unused properties have their default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct RawProperties {
    /// Nanoseconds, rounded down to the time quantum.
    time: u64,
    weight: SampleWeight,
    cgroup: u64,
    /// Device and inode of the cgroup namespace.
    cgroup_id: (u64, u64),
    transaction: u64,
    code_page_size: u64,
    access: Option<RawAccess>,
    /// Source, target and flags of the branch.
    branch: Option<(u64, u64, u64)>,
    parallelism: u32,
}

/// The weight of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct SampleWeight {
    /// In hardware units, usually cycles.
    pub(crate) total: u64,
    /// Latency of the instruction, for weights with parts.
    pub(crate) instruction: u64,
    /// For weights with parts, on x86: cycles between the retirement of the previous instruction and of this one.
    pub(crate) retirement: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct RawAccess {
    /// Data address.
    address: u64,
    /// Physical data address.
    physical: u64,
    /// `PERF_MEM_*`.
    source: u64,
    /// Page size of the data in bytes.
    data_page_size: u64,
}

impl UsedProperties {
    /// The properties and sums used by a report with these options and sort keys.
    pub(crate) fn new(options: &HistogramOptions, keys: &[&Key]) -> Self {
        let property = |key: &&Key| match key.reads {
            KeyDependency::Property(property) => Some(property),
            _ => None,
        };
        Self {
            properties: keys.iter().filter_map(property).collect(),
            time_quantum: options.time_quantum.max(1),
            weight_parts: options.weight_parts.clone(),
            counts_branches: options.counted == CountedItems::Branches,
            parallelism: options.parallelism.clone(),
            counts_costs: options.counts_costs(),
        }
    }

    /// Number of threads running at a sample; `None` if not used.
    pub(crate) fn parallelism(&self, sample: &Sample<'_>) -> Option<u32> {
        let parallelism = self.parallelism.as_ref();
        parallelism.map(|parallelism| parallelism.at(sample.order))
    }

    /// Whether costs and latencies are summed: both are if either is used. Latencies are 0 if the parallelism is unknown.
    pub(crate) fn any_optional_sum(&self) -> bool {
        self.counts_costs || self.parallelism.is_some()
    }

    /// The total weight of a sample and its two parts (0 for weights without parts), as summed in
    /// [`Weights::costs`](crate::histogram::Weights::costs).
    pub(crate) fn costs(&self, sample: &Sample<'_>) -> [u64; 3] {
        let weight = self.weight(sample);
        [weight.total, weight.instruction, weight.retirement]
    }

    /// Whether any property is used by a sort key.
    pub(crate) fn any_used(&self) -> bool {
        !self.properties.is_empty()
    }

    /// Decodes the weight of a sample: 64 bits, or 32 bits followed by two parts of 16 bits
    /// (`PERF_SAMPLE_WEIGHT_STRUCT`).
    pub(crate) fn weight(&self, sample: &Sample<'_>) -> SampleWeight {
        let weight = sample.wire.weight.unwrap_or_default();
        match self.weight_parts.get(sample.event.0 as usize) {
            Some(true) => SampleWeight {
                total: weight & u64::from(u32::MAX),
                instruction: weight >> 32 & 0xffff,
                retirement: weight >> 48,
            },
            _ => SampleWeight {
                total: weight,
                ..SampleWeight::default()
            },
        }
    }

    /// The properties of a sample, or of one of its branches.
    pub(crate) fn properties(
        &self,
        world: &World,
        sample: &Sample<'_>,
        branch: Option<BranchEntry>,
    ) -> RawProperties {
        let mut raw = RawProperties::default();
        let wire = &sample.wire;
        for property in &self.properties {
            match property {
                Property::Time => {
                    let time = wire.time.unwrap_or_default();
                    raw.time = time / self.time_quantum * self.time_quantum;
                }
                // As in perf, the weight of a branch is its cycles, at least 1.
                Property::Weight if self.counts_branches => {
                    let cycles = branch.map_or(0, |branch| branch.cycles());
                    raw.weight.total = cycles.max(1);
                }
                Property::Weight => raw.weight = self.weight(sample),
                Property::Cgroup => raw.cgroup = wire.cgroup.unwrap_or_default(),
                Property::CgroupId => raw.cgroup_id = cgroup_id(world, sample),
                Property::Transaction => raw.transaction = wire.transaction.unwrap_or_default(),
                Property::CodePage => raw.code_page_size = wire.code_page_size.unwrap_or_default(),
                Property::Access => {
                    raw.access = Some(RawAccess {
                        address: wire.addr.unwrap_or_default(),
                        physical: wire.phys_addr.unwrap_or_default(),
                        source: wire.data_src.unwrap_or_default(),
                        data_page_size: wire.data_page_size.unwrap_or_default(),
                    });
                }
                Property::Parallelism => {
                    raw.parallelism = self.parallelism(sample).unwrap_or_default();
                }
                Property::Branch => {
                    raw.branch = branch.map(|branch| (branch.from, branch.to, branch.flags));
                }
            }
        }
        raw
    }
}

/// Whether weights of events with this sample type have parts.
#[must_use]
pub fn has_weight_parts(sample_type: SampleType) -> bool {
    sample_type.contains(SampleType::WEIGHT_STRUCT)
}

/// Index of the cgroup namespace among the namespaces of a thread.
const CGROUP_NAMESPACE: usize = 6;

fn cgroup_id(world: &World, sample: &Sample<'_>) -> (u64, u64) {
    let links = world.namespaces_at(sample.tid, sample.order);
    let link = links.get(CGROUP_NAMESPACE);
    link.map_or((0, 0), |link| (link.dev, link.inode))
}

/// A sample's properties with resolved addresses; unused properties have their default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Properties {
    /// Nanoseconds, rounded down to the time quantum.
    pub(crate) time: u64,
    pub(crate) weight: SampleWeight,
    /// Id of the cgroup, 0 if not recorded.
    pub(crate) cgroup: u64,
    /// Device and inode of the cgroup namespace.
    pub(crate) cgroup_id: (u64, u64),
    /// `PERF_TXN_*`.
    pub(crate) transaction: u64,
    /// Page size of the code in bytes.
    pub(crate) code_page_size: u64,
    pub(crate) access: Option<MemoryAccess>,
    pub(crate) branch: Option<BranchProperty>,
    /// Number of running threads.
    pub(crate) parallelism: u32,
}

/// A memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MemoryAccess {
    /// The code address.
    pub(crate) code: PropertyAddress,
    pub(crate) data: PropertyAddress,
    pub(crate) cacheline: Cacheline,
    /// Physical data address.
    pub(crate) physical: u64,
    pub(crate) source: DataSource,
    /// Page size of the data in bytes.
    pub(crate) data_page_size: u64,
}

/// Identity of the cache line of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cacheline {
    /// Privilege level of the code that accessed the memory.
    level: Level,
    /// Whether the address is unmapped.
    pub(crate) unmapped: bool,
    object: Option<DsoId>,
    /// For private memory without a file, the process; otherwise 0.
    pid: u32,
    /// Address in the object, rounded down to the cache line.
    pub(crate) address: u64,
    /// Whether it is in a shared, non-executable user mapping of a file.
    pub(crate) shared: bool,
}

/// A branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BranchProperty {
    pub(crate) from: PropertyAddress,
    pub(crate) to: PropertyAddress,
    /// Flags as in [`BranchEntry`].
    pub(crate) flags: u64,
}

/// A resolved address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PropertyAddress {
    pub(crate) site: CodeSite,
    /// The recorded address.
    pub(crate) ip: u64,
    /// Address in the object.
    pub(crate) address: u64,
}

/// The assumed cache line size in bytes.
const CACHE_LINE: u64 = 64;

/// Resolves the addresses of properties.
pub(crate) struct PropertyResolver<'f, 'a, 'w> {
    pub(crate) builder: &'f SiteBuilder<'a, 'w>,
    pub(crate) resolver: &'a Resolver<'w>,
    pub(crate) at: AddressContext,
    pub(crate) mode: CpuMode,
}

impl PropertyResolver<'_, '_, '_> {
    /// The properties of a sample at `ip`.
    pub(crate) fn properties(&self, raw: &RawProperties, ip: u64) -> Properties {
        Properties {
            time: raw.time,
            weight: raw.weight,
            cgroup: raw.cgroup,
            cgroup_id: raw.cgroup_id,
            transaction: raw.transaction,
            code_page_size: raw.code_page_size,
            parallelism: raw.parallelism,
            access: raw.access.map(|access| self.access(&access, ip)),
            branch: raw.branch.map(|(from, to, flags)| BranchProperty {
                from: self.resolved(&self.resolve_code(from)),
                to: self.resolved(&self.resolve_code(to)),
                flags,
            }),
        }
    }

    /// Resolves a code address whose CPU mode is unknown.
    pub(crate) fn resolve_code(&self, ip: u64) -> Frame {
        locate_anywhere(self.resolver, self.at, ip)
    }

    fn resolved(&self, frame: &Frame) -> PropertyAddress {
        PropertyAddress {
            site: self.builder.leaf(frame),
            ip: frame.ip,
            address: frame.address,
        }
    }

    fn access(&self, raw: &RawAccess, ip: u64) -> MemoryAccess {
        // As in perf, the data address is resolved in the mode of the code: kernel accesses to
        // user space stay unresolved.
        let data = self.resolver.locate(self.at, self.mode, raw.address);
        MemoryAccess {
            code: self.resolved(&self.resolver.locate(self.at, self.mode, ip)),
            data: self.resolved(&data),
            cacheline: self.cacheline(&data),
            physical: raw.physical,
            source: DataSource(raw.source),
            data_page_size: raw.data_page_size,
        }
    }

    fn cacheline(&self, data: &Frame) -> Cacheline {
        let world = self.resolver.world();
        let mapping: Option<&Mapping> = data.mapping.map(|mapping| world.mapping(mapping));
        let kernel = self.mode == CpuMode::Kernel;
        let is_file = data
            .dso
            .is_some_and(|dso| world.dso(dso).long_name.starts_with('/'));
        let shared = mapping.is_some_and(|mapping| mapping.flags & MAP_SHARED != 0);
        let executable = mapping.is_some_and(|mapping| mapping.prot & PROT_EXEC != 0);
        let private = mapping.is_some() && !kernel && !shared && !is_file;
        Cacheline {
            level: self.mode.into(),
            unmapped: mapping.is_none(),
            object: data.dso,
            pid: if private { self.at.pid } else { 0 },
            address: data.address / CACHE_LINE * CACHE_LINE,
            shared: !kernel && !executable && shared && is_file,
        }
    }
}

/// Resolves `ip` in the first CPU mode that has a mapping, otherwise as a user address.
pub(crate) fn locate_anywhere(resolver: &Resolver<'_>, at: AddressContext, ip: u64) -> Frame {
    let modes = [
        CpuMode::Kernel,
        CpuMode::User,
        CpuMode::GuestKernel,
        CpuMode::GuestUser,
    ];
    let mapped = modes
        .into_iter()
        .find(|mode| resolver.mapping(at, *mode, ip).is_some());
    resolver.locate(at, mapped.unwrap_or(CpuMode::User), ip)
}

/// Index of a sample's properties. It differs between runs, so output must not be ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PropertiesId(pub(crate) u32);

/// All distinct properties of a recording, filled by several threads.
#[derive(Debug, Default)]
pub(crate) struct PropertyPool(Mutex<Interner<Properties>>);

impl PropertyPool {
    /// The index of `properties`.
    pub(crate) fn intern(&self, properties: Properties) -> PropertiesId {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        PropertiesId(all.intern(properties))
    }

    /// The properties by index.
    pub(crate) fn finish(self) -> Vec<Properties> {
        let all = self.0.into_inner();
        all.unwrap_or_else(PoisonError::into_inner).into_items()
    }
}
