//! Encoding of feature sections.

use std::collections::BTreeMap;

use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::{Encoder, Endian};

use super::{
    AuxIndexEntry, BpfBtf, BpfProgram, BuildIdEntry, ClockData, CompressionInfo, CpuCache,
    CpuTopology, ElfMachine, FeatureId, GroupDesc, HybridPmu, MemoryTopology, NrCpus, NumaNode,
    PmuCapabilities, PmuMapping, SchedDomains, event_desc, text,
};
use crate::EventDesc;

/// Encoded feature sections by number. A method named after a feature or its content sets the section of that feature and
/// replaces an earlier one; features that aren't set are absent. The docs of these methods describe the content.
#[derive(Debug, Clone)]
pub struct FeatureSet {
    sections: BTreeMap<FeatureId, Vec<u8>>,
    endian: Endian,
}

impl FeatureSet {
    /// Creates an empty set for a file of this byte order.
    #[must_use]
    pub fn new(endian: Endian) -> Self {
        Self {
            sections: BTreeMap::new(),
            endian,
        }
    }

    /// The sections in file order.
    pub fn sections(&self) -> impl Iterator<Item = (FeatureId, &[u8])> {
        self.sections
            .iter()
            .map(|(feature, bytes)| (*feature, bytes.as_slice()))
    }

    /// Removes a section, if present.
    pub fn remove(&mut self, feature: FeatureId) -> &mut Self {
        self.sections.remove(&feature);
        self
    }

    fn set(&mut self, feature: FeatureId, encode: impl FnOnce(&mut Encoder<'_>)) -> &mut Self {
        let mut bytes = Vec::new();
        encode(&mut Encoder::new(&mut bytes, self.endian));
        self.sections.insert(feature, bytes);
        self
    }

    /// Descriptions of the recorded tracepoints.
    pub fn tracing_data(&mut self, data: &TracingDataBuilder) -> &mut Self {
        self.set(FeatureId::TRACING_DATA, |to| to.bytes(&data.encode()))
    }

    /// Build-ids of mapped files.
    pub fn build_ids(&mut self, entries: &[BuildIdEntry]) -> &mut Self {
        self.set(FeatureId::BUILD_ID, |to| {
            BuildIdEntry::encode_list(entries, to);
        })
    }

    /// Appends build-ids to the section, which is created if absent.
    pub fn add_build_ids(&mut self, entries: &[BuildIdEntry]) -> &mut Self {
        if !entries.is_empty() {
            let section = self.sections.entry(FeatureId::BUILD_ID).or_default();
            BuildIdEntry::encode_list(entries, &mut Encoder::new(section, self.endian));
        }
        self
    }

    /// Name of the machine.
    pub fn hostname(&mut self, name: &str) -> &mut Self {
        self.set(FeatureId::HOSTNAME, |to| text::put(to, name))
    }

    /// Release of the kernel.
    pub fn os_release(&mut self, release: &str) -> &mut Self {
        self.set(FeatureId::OSRELEASE, |to| text::put(to, release))
    }

    /// Version of the recorder.
    pub fn version(&mut self, version: &str) -> &mut Self {
        self.set(FeatureId::VERSION, |to| text::put(to, version))
    }

    /// Architecture from uname(2).
    pub fn arch(&mut self, arch: &str) -> &mut Self {
        self.set(FeatureId::ARCH, |to| text::put(to, arch))
    }

    /// Numbers of available and of online CPUs. CPU_TOPOLOGY must describe `cpus.available` CPUs, since it doesn't store its own
    /// number of CPUs.
    pub fn nr_cpus(&mut self, cpus: NrCpus) -> &mut Self {
        self.set(FeatureId::NRCPUS, |to| cpus.encode(to))
    }

    /// Name of the CPU.
    pub fn cpudesc(&mut self, name: &str) -> &mut Self {
        self.set(FeatureId::CPUDESC, |to| text::put(to, name))
    }

    /// Identifier of the CPU: on x86 vendor, family, model and stepping, as in `AuthenticAMD,25,1,1`.
    pub fn cpuid(&mut self, cpuid: &str) -> &mut Self {
        self.set(FeatureId::CPUID, |to| text::put(to, cpuid))
    }

    /// Memory of the machine in kB.
    pub fn total_mem(&mut self, kilobytes: u64) -> &mut Self {
        self.set(FeatureId::TOTAL_MEM, |to| to.u64(kilobytes))
    }

    /// The recorder's command line, split into words; the first is the recorder's path.
    pub fn cmdline<T: AsRef<str>>(&mut self, words: &[T]) -> &mut Self {
        self.set(FeatureId::CMDLINE, |to| text::put_list(to, words))
    }

    /// Attrs, ids and names of the events.
    pub fn event_desc(&mut self, events: &[EventDesc]) -> &mut Self {
        self.set(FeatureId::EVENT_DESC, |to| event_desc::encode(events, to))
    }

    /// Cores, sockets and dies.
    pub fn cpu_topology(&mut self, topology: &CpuTopology) -> &mut Self {
        self.set(FeatureId::CPU_TOPOLOGY, |to| topology.encode(to))
    }

    /// NUMA nodes with their memory.
    pub fn numa_topology(&mut self, nodes: &[NumaNode]) -> &mut Self {
        self.set(FeatureId::NUMA_TOPOLOGY, |to| {
            NumaNode::encode_list(nodes, to);
        })
    }

    /// Numbers and names of PMUs.
    pub fn pmu_mappings(&mut self, pmus: &[PmuMapping]) -> &mut Self {
        self.set(FeatureId::PMU_MAPPINGS, |to| {
            PmuMapping::encode_list(pmus, to);
        })
    }

    /// Samples have branch stacks, which `report` shows by default. The section is empty.
    pub fn branch_stack(&mut self) -> &mut Self {
        self.set(FeatureId::BRANCH_STACK, |_| {})
    }

    /// Groups of events.
    pub fn group_desc(&mut self, groups: &[GroupDesc]) -> &mut Self {
        self.set(FeatureId::GROUP_DESC, |to| {
            GroupDesc::encode_list(groups, to);
        })
    }

    /// Caches of the CPUs.
    pub fn cache(&mut self, caches: &[CpuCache]) -> &mut Self {
        self.set(FeatureId::CACHE, |to| CpuCache::encode_list(caches, to))
    }

    /// Times of the first and the last sample in nanoseconds.
    pub fn sample_time(&mut self, first: u64, last: u64) -> &mut Self {
        self.set(FeatureId::SAMPLE_TIME, |to| {
            to.u64(first);
            to.u64(last);
        })
    }

    /// Physical memory blocks of the nodes.
    pub fn mem_topology(&mut self, topology: &MemoryTopology) -> &mut Self {
        self.set(FeatureId::MEM_TOPOLOGY, |to| topology.encode(to))
    }

    /// Resolution of the timestamps' clock in nanoseconds.
    pub fn clockid(&mut self, resolution: u64) -> &mut Self {
        self.set(FeatureId::CLOCKID, |to| to.u64(resolution))
    }

    /// Relation of the timestamps' clock to the time of day.
    pub fn clock_data(&mut self, data: &ClockData) -> &mut Self {
        self.set(FeatureId::CLOCK_DATA, |to| data.encode(to))
    }

    /// Offsets of the AUX area traces in the file.
    pub fn aux_index(&mut self, entries: &[AuxIndexEntry]) -> &mut Self {
        self.set(FeatureId::AUXTRACE, |to| {
            AuxIndexEntry::encode_list(entries, to);
        })
    }

    /// Version of the directory format.
    pub fn dir_format(&mut self, version: u64) -> &mut Self {
        self.set(FeatureId::DIR_FORMAT, |to| to.u64(version))
    }

    /// BPF programs.
    pub fn bpf_programs(&mut self, programs: &[BpfProgram]) -> &mut Self {
        self.set(FeatureId::BPF_PROG_INFO, |to| {
            BpfProgram::encode_list(programs, to);
        })
    }

    /// Type information of BPF programs.
    pub fn btf(&mut self, sets: &[BpfBtf]) -> &mut Self {
        self.set(FeatureId::BPF_BTF, |to| BpfBtf::encode_list(sets, to))
    }

    /// Compression of the records.
    pub fn compressed(&mut self, info: CompressionInfo) -> &mut Self {
        self.set(FeatureId::COMPRESSED, |to| info.encode(to))
    }

    /// Capabilities of the `cpu` PMU.
    pub fn cpu_pmu_caps(&mut self, pmu: &PmuCapabilities) -> &mut Self {
        self.set(FeatureId::CPU_PMU_CAPS, |to| pmu.encode_values(to))
    }

    /// PMUs of a machine with several kinds of cores.
    pub fn hybrid_topology(&mut self, pmus: &[HybridPmu]) -> &mut Self {
        self.set(FeatureId::HYBRID_TOPOLOGY, |to| {
            HybridPmu::encode_list(pmus, to);
        })
    }

    /// Capabilities of PMUs other than `cpu`.
    pub fn pmu_caps(&mut self, pmus: &[PmuCapabilities]) -> &mut Self {
        self.set(FeatureId::PMU_CAPS, |to| {
            PmuCapabilities::encode_list(pmus, to);
        })
    }

    /// Domains of the scheduler.
    pub fn sched_domains(&mut self, domains: &SchedDomains) -> &mut Self {
        self.set(FeatureId::CPU_DOMAIN_INFO, |to| domains.encode(to))
    }

    /// ELF machine of the recorded programs.
    pub fn elf_machine(&mut self, machine: ElfMachine) -> &mut Self {
        self.set(FeatureId::E_MACHINE, |to| machine.encode(to))
    }

    /// Size of a cache line in bytes.
    pub fn cache_line(&mut self, bytes: u32) -> &mut Self {
        self.set(FeatureId::CLN_SIZE, |to| to.u32(bytes))
    }

    /// Keys and values of simpleperf.
    pub fn meta_info(&mut self, pairs: &[(String, String)]) -> &mut Self {
        self.set(FeatureId::SIMPLEPERF_META_INFO, |to| {
            text::put_pairs(to, pairs);
        })
    }

    /// Sets the section of any feature, known or not, to `bytes`, which must be in the byte order of this set.
    pub fn opaque(&mut self, feature: FeatureId, bytes: &[u8]) -> &mut Self {
        self.set(feature, |to| to.bytes(bytes))
    }
}
