//! The table of feature sections and typed access to each.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use rperf_tracepoint::Formats;
use rperf_wire::{Cursor, DecodeError, Endian};

use super::{
    AuxIndexEntry, BpfBtf, BpfProgram, BuildIdEntry, ClockData, CompressionInfo, CpuCache,
    CpuTopology, ElfMachine, FeatureId, GroupDesc, HybridPmu, MemoryTopology, NrCpus, NumaNode,
    PmuCapabilities, PmuMapping, SchedDomains, event_desc, text,
};
use crate::header::Section;
use crate::{Error, EventDesc, FileFinding, FileHeader};

/// The feature sections of a recording. Getters that return an `Option` return `None` for a feature that is absent or cannot
/// be decoded; [`Features::malformed`] lists those that cannot be decoded.
#[derive(Debug, Clone)]
pub struct Features<'a> {
    sections: Vec<(FeatureId, Section, Cow<'a, [u8]>)>,
    /// Build-ids from separate records, in pipe mode.
    build_ids: Vec<BuildIdEntry>,
    endian: Endian,
    /// Tracepoint formats of all `TRACING_DATA` sections so far, once [`Features::formats`] has parsed them.
    formats: OnceLock<Arc<Formats>>,
    /// Those of the `TRACING_DATA` sections that later ones replaced.
    earlier_formats: Arc<Formats>,
}

impl<'a> Features<'a> {
    /// No features: for events that are not from a recording, and for recordings without a table of features.
    #[must_use]
    pub fn none(endian: Endian) -> Self {
        Self {
            sections: Vec::new(),
            build_ids: Vec::new(),
            endian,
            formats: OnceLock::new(),
            earlier_formats: Arc::default(),
        }
    }

    /// Decodes the table after the data; sections outside the file are skipped and reported.
    pub(crate) fn decode(
        file: &'a [u8],
        header: &FileHeader,
        findings: &mut Vec<FileFinding>,
    ) -> Self {
        let mut features = Self::none(header.endian);
        let offset = header.data.end();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let at = &mut Cursor::new(file.get(start..).unwrap_or_default(), header.endian);
        let mut present = header.present();
        while let Some(feature) = present.next() {
            let Ok(section) = Section::decode(at) else {
                let lost = 1 + present.count();
                findings.push(FileFinding::FeatureTableTruncated { offset, lost });
                break;
            };
            match section.of(file) {
                Some(bytes) => features.put(feature, section, Cow::Borrowed(bytes)),
                None => findings.push(FileFinding::FeatureTruncated {
                    feature,
                    offset: section.offset,
                    size: section.size,
                }),
            }
        }
        features
    }

    /// Adds a section, replacing an earlier one of the same feature.
    pub(crate) fn put(&mut self, feature: FeatureId, section: Section, bytes: Cow<'a, [u8]>) {
        if feature == FeatureId::TRACING_DATA {
            // Keeps the formats so far: those of earlier sections, and those of the replaced section unless it is damaged.
            if let Ok(formats) = self.formats() {
                self.earlier_formats = formats;
            }
            self.formats = OnceLock::new();
        }
        self.sections.retain(|(known, ..)| *known != feature);
        self.sections.push((feature, section, bytes));
    }

    /// Adds a build-id from a separate record.
    pub(crate) fn add_build_id(&mut self, entry: BuildIdEntry) {
        self.build_ids.push(entry);
    }

    /// The features in section order: numerical order, or in pipe mode the order of their records. If a feature has several
    /// records, the last one counts. In a file of simpleperf, which has `TRACING_DATA` in a record, this feature comes last.
    pub fn present(&self) -> impl Iterator<Item = FeatureId> + '_ {
        self.sections.iter().map(|(feature, ..)| *feature)
    }

    /// Whether the recording has a section of this feature.
    #[must_use]
    pub fn has(&self, feature: FeatureId) -> bool {
        self.present().any(|present| present == feature)
    }

    /// The undecoded section.
    #[must_use]
    pub fn raw(&self, feature: FeatureId) -> Option<&[u8]> {
        let mut sections = self.sections.iter();
        sections
            .find(|(id, ..)| *id == feature)
            .map(|(.., bytes)| bytes.as_ref())
    }

    fn get<'s, T>(
        &'s self,
        feature: FeatureId,
        decode: impl FnOnce(&mut Cursor<'s>) -> Result<T, DecodeError>,
    ) -> Option<T> {
        decode(&mut Cursor::new(self.raw(feature)?, self.endian)).ok()
    }

    fn string(&self, feature: FeatureId) -> Option<String> {
        self.get(feature, text::take)
    }

    /// Formats of the recorded tracepoints; empty without the section. Parsed once; in pipe mode
    /// each section adds to the earlier ones.
    ///
    /// # Errors
    /// [`Error::Tracepoints`] if the last section is damaged.
    pub fn formats(&self) -> Result<Arc<Formats>, Error> {
        if let Some(known) = self.formats.get() {
            return Ok(Arc::clone(known));
        }
        let mut formats = (*self.earlier_formats).clone();
        if let Some(section) = self.raw(FeatureId::TRACING_DATA) {
            formats.add(section, self.endian)?;
        }
        Ok(Arc::clone(self.formats.get_or_init(|| Arc::new(formats))))
    }

    /// Name of the machine.
    #[must_use]
    pub fn hostname(&self) -> Option<String> {
        self.string(FeatureId::HOSTNAME)
    }

    /// Release of the kernel.
    #[must_use]
    pub fn os_release(&self) -> Option<String> {
        self.string(FeatureId::OSRELEASE)
    }

    /// Version of the recorder.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.string(FeatureId::VERSION)
    }

    /// Architecture from uname(2).
    #[must_use]
    pub fn arch(&self) -> Option<String> {
        self.string(FeatureId::ARCH)
    }

    /// Numbers of available and of online CPUs.
    #[must_use]
    pub fn nr_cpus(&self) -> Option<NrCpus> {
        self.get(FeatureId::NRCPUS, NrCpus::decode)
    }

    /// Name of the CPU.
    #[must_use]
    pub fn cpudesc(&self) -> Option<String> {
        self.string(FeatureId::CPUDESC)
    }

    /// Identifier of the CPU: on x86 vendor, family, model and stepping.
    #[must_use]
    pub fn cpuid(&self) -> Option<String> {
        self.string(FeatureId::CPUID)
    }

    /// Memory in kB.
    #[must_use]
    pub fn total_mem(&self) -> Option<u64> {
        self.get(FeatureId::TOTAL_MEM, |at| at.u64("total memory"))
    }

    /// The recorder's command line, split into words.
    #[must_use]
    pub fn cmdline(&self) -> Option<Vec<String>> {
        self.get(FeatureId::CMDLINE, text::take_list)
    }

    /// Attrs, ids and names of the events.
    #[must_use]
    pub fn event_desc(&self) -> Option<Vec<EventDesc>> {
        self.get(FeatureId::EVENT_DESC, |at| {
            event_desc::decode(at, self.endian)
        })
    }

    /// Size of each attr in EVENT_DESC, in bytes.
    #[must_use]
    pub fn described_attr_size(&self) -> Option<u32> {
        const SIZE_OFFSET: usize = 4;
        let section = self.raw(FeatureId::EVENT_DESC)?;
        self.endian.u32_at(section, SIZE_OFFSET)
    }

    /// Cores, sockets and dies.
    #[must_use]
    pub fn cpu_topology(&self) -> Option<CpuTopology> {
        let cpus = self.nr_cpus().map(|cpus| cpus.available);
        self.get(FeatureId::CPU_TOPOLOGY, |at| CpuTopology::decode(at, cpus))
    }

    /// NUMA nodes with their memory.
    #[must_use]
    pub fn numa_topology(&self) -> Option<Vec<NumaNode>> {
        self.get(FeatureId::NUMA_TOPOLOGY, NumaNode::decode_list)
    }

    /// Numbers and names of PMUs.
    #[must_use]
    pub fn pmu_mappings(&self) -> Option<Vec<PmuMapping>> {
        self.get(FeatureId::PMU_MAPPINGS, PmuMapping::decode_list)
    }

    /// Groups of events.
    #[must_use]
    pub fn group_desc(&self) -> Option<Vec<GroupDesc>> {
        self.get(FeatureId::GROUP_DESC, GroupDesc::decode_list)
    }

    /// Build-ids of recorded files: those of the feature, if it is present and can be decoded, and in pipe mode those of
    /// HEADER_BUILD_ID records.
    #[must_use]
    pub fn build_ids(&self) -> Vec<BuildIdEntry> {
        let decode = |at: &mut Cursor<'_>| BuildIdEntry::decode_list(at.rest(), self.endian);
        let mut entries = self.get(FeatureId::BUILD_ID, decode).unwrap_or_default();
        entries.extend_from_slice(&self.build_ids);
        entries
    }

    /// Caches of the CPUs.
    #[must_use]
    pub fn cache(&self) -> Option<Vec<CpuCache>> {
        self.get(FeatureId::CACHE, CpuCache::decode_list)
    }

    /// Times of the first and the last sample in nanoseconds.
    #[must_use]
    pub fn sample_time(&self) -> Option<(u64, u64)> {
        self.get(FeatureId::SAMPLE_TIME, |at| {
            Ok((at.u64("first sample time")?, at.u64("last sample time")?))
        })
    }

    /// Physical memory blocks of the nodes.
    #[must_use]
    pub fn mem_topology(&self) -> Option<MemoryTopology> {
        self.get(FeatureId::MEM_TOPOLOGY, MemoryTopology::decode)
    }

    /// Resolution of the timestamps' clock in nanoseconds.
    #[must_use]
    pub fn clockid(&self) -> Option<u64> {
        self.get(FeatureId::CLOCKID, |at| at.u64("clock resolution"))
    }

    /// Relation of the timestamps' clock to the time of day.
    #[must_use]
    pub fn clock_data(&self) -> Option<ClockData> {
        self.get(FeatureId::CLOCK_DATA, ClockData::decode)
    }

    /// Version of the directory format.
    #[must_use]
    pub fn dir_format(&self) -> Option<u64> {
        self.get(FeatureId::DIR_FORMAT, |at| at.u64("directory format"))
    }

    /// Compression of the records.
    #[must_use]
    pub fn compressed(&self) -> Option<CompressionInfo> {
        self.get(FeatureId::COMPRESSED, CompressionInfo::decode)
    }

    /// Capabilities of the `cpu` PMU.
    #[must_use]
    pub fn cpu_pmu_caps(&self) -> Option<PmuCapabilities> {
        self.get(FeatureId::CPU_PMU_CAPS, PmuCapabilities::decode_cpu)
    }

    /// PMUs of a machine with several kinds of cores.
    #[must_use]
    pub fn hybrid_topology(&self) -> Option<Vec<HybridPmu>> {
        self.get(FeatureId::HYBRID_TOPOLOGY, HybridPmu::decode_list)
    }

    /// Capabilities of PMUs other than `cpu`.
    #[must_use]
    pub fn pmu_caps(&self) -> Option<Vec<PmuCapabilities>> {
        self.get(FeatureId::PMU_CAPS, PmuCapabilities::decode_list)
    }

    /// Domains of the scheduler.
    #[must_use]
    pub fn sched_domains(&self) -> Option<SchedDomains> {
        self.get(FeatureId::CPU_DOMAIN_INFO, SchedDomains::decode)
    }

    /// ELF machine of the recorded programs.
    #[must_use]
    pub fn elf_machine(&self) -> Option<ElfMachine> {
        self.get(FeatureId::E_MACHINE, ElfMachine::decode)
    }

    /// Size of a cache line in bytes.
    #[must_use]
    pub fn cache_line(&self) -> Option<u32> {
        self.get(FeatureId::CLN_SIZE, |at| at.u32("cache line size"))
    }

    /// Offsets of the AUX area traces in the file.
    #[must_use]
    pub fn aux_index(&self) -> Option<Vec<AuxIndexEntry>> {
        self.get(FeatureId::AUXTRACE, AuxIndexEntry::decode_list)
    }

    /// BPF programs.
    #[must_use]
    pub fn bpf_programs(&self) -> Option<Vec<BpfProgram>> {
        self.get(FeatureId::BPF_PROG_INFO, BpfProgram::decode_list)
    }

    /// Type information of BPF programs.
    #[must_use]
    pub fn btf(&self) -> Option<Vec<BpfBtf>> {
        self.get(FeatureId::BPF_BTF, BpfBtf::decode_list)
    }

    /// Keys and values of simpleperf.
    #[must_use]
    pub fn meta_info(&self) -> Option<Vec<(String, String)>> {
        self.get(FeatureId::SIMPLEPERF_META_INFO, text::take_pairs)
    }

    /// The features that cannot be decoded, except `TRACING_DATA`, whose error [`Features::formats`] returns, and those with
    /// an empty section.
    #[must_use]
    pub fn malformed(&self) -> Vec<FileFinding> {
        // Recorders write an empty section if they have no data.
        let broken = self
            .sections
            .iter()
            .filter(|(id, _, bytes)| !bytes.is_empty() && !self.decodes(*id));
        broken
            .map(|(feature, section, _)| FileFinding::FeatureMalformed {
                feature: *feature,
                offset: section.offset,
            })
            .collect()
    }

    /// Whether the section of a present feature can be decoded; also true for `TRACING_DATA` and features without a getter.
    pub(crate) fn decodes(&self, feature: FeatureId) -> bool {
        match feature {
            FeatureId::HOSTNAME
            | FeatureId::OSRELEASE
            | FeatureId::VERSION
            | FeatureId::ARCH
            | FeatureId::CPUDESC
            | FeatureId::CPUID => self.string(feature).is_some(),
            FeatureId::BUILD_ID => self
                .get(feature, |at| {
                    BuildIdEntry::decode_list(at.rest(), self.endian)
                })
                .is_some(),
            FeatureId::NRCPUS => self.nr_cpus().is_some(),
            FeatureId::TOTAL_MEM => self.total_mem().is_some(),
            FeatureId::CMDLINE => self.cmdline().is_some(),
            FeatureId::EVENT_DESC => self.event_desc().is_some(),
            FeatureId::CPU_TOPOLOGY => self.cpu_topology().is_some(),
            FeatureId::NUMA_TOPOLOGY => self.numa_topology().is_some(),
            FeatureId::PMU_MAPPINGS => self.pmu_mappings().is_some(),
            FeatureId::GROUP_DESC => self.group_desc().is_some(),
            FeatureId::CACHE => self.cache().is_some(),
            FeatureId::SAMPLE_TIME => self.sample_time().is_some(),
            FeatureId::MEM_TOPOLOGY => self.mem_topology().is_some(),
            FeatureId::CLOCKID => self.clockid().is_some(),
            FeatureId::CLOCK_DATA => self.clock_data().is_some(),
            FeatureId::DIR_FORMAT => self.dir_format().is_some(),
            FeatureId::COMPRESSED => self.compressed().is_some(),
            FeatureId::CPU_PMU_CAPS => self.cpu_pmu_caps().is_some(),
            FeatureId::HYBRID_TOPOLOGY => self.hybrid_topology().is_some(),
            FeatureId::PMU_CAPS => self.pmu_caps().is_some(),
            FeatureId::CPU_DOMAIN_INFO => self.sched_domains().is_some(),
            FeatureId::E_MACHINE => self.elf_machine().is_some(),
            FeatureId::CLN_SIZE => self.cache_line().is_some(),
            FeatureId::AUXTRACE => self.aux_index().is_some(),
            FeatureId::BPF_PROG_INFO => self.bpf_programs().is_some(),
            FeatureId::BPF_BTF => self.btf().is_some(),
            FeatureId::SIMPLEPERF_META_INFO => self.meta_info().is_some(),
            _ => true,
        }
    }
}
