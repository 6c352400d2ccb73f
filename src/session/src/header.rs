//! Header features: machine, command and events.

use std::io;
use std::path::Path;

use rperf_events::{EventSpec, GroupPosition, RecordDetails};
use rperf_perfdata::feature::{
    ClockData, CpuCache, CpuTopology, CpuTopologyEntry, GroupDesc, MemoryNode, MemoryTopology,
    NrCpus, NumaNode, PmuMapping,
};
use rperf_perfdata::{EventDesc, FeatureSet};
use rperf_sys::{CpuState, Proc, Sysfs, clock_resolution, clock_time, cpuid, uname};
use rperf_wire::Endian;

use crate::RecordRequest;
use crate::compressor::Compressor;
use crate::open::OpenEvent;

/// Keys of the processor name in `/proc/cpuinfo` of various architectures; the first one present is used.
const CPU_NAMES: [&str; 5] = ["model name", "Processor", "Hardware", "uarch", "cpu"];

/// Inputs of the header.
pub(crate) struct HeaderInputs<'a> {
    /// The mount point of procfs.
    pub(crate) proc: &'a Path,
    /// The mount point of sysfs.
    pub(crate) sysfs: &'a Path,
    /// The version of the program.
    pub(crate) version: &'a str,
    /// The command line of the program.
    pub(crate) command_line: &'a [String],
    /// The events.
    pub(crate) events: &'a [EventDesc],
}

/// Collects the features of machine, command and events. Features that can't be read are omitted.
pub(crate) fn features(
    request: &RecordRequest,
    events: &[EventDesc],
    open: &[OpenEvent],
) -> FeatureSet {
    let inputs = HeaderInputs {
        proc: &request.roots.proc,
        sysfs: &request.roots.sysfs,
        version: &request.output.version,
        command_line: &request.output.command_line,
        events,
    };
    let mut set = inputs.features();
    // The compression ratio is not known yet: when a file is completed, this feature is replaced by one with the ratio. A pipe
    // keeps the feature without a ratio.
    if request.output.compress {
        set.compressed(Compressor::default().feature());
    }
    let positions = open
        .iter()
        .map(|event| (&event.event.spec.group, event.event.leader));
    groups(&positions.collect::<Vec<_>>(), &mut set);
    let specs: Vec<_> = open.iter().map(|event| &event.event.spec).collect();
    if has_branches(&request.observe.details, &specs) {
        set.branch_stack();
    }
    if let Some(clockid) = request.observe.details.clockid {
        clock(clockid, &mut set);
    }
    set
}

impl HeaderInputs<'_> {
    /// Collects the features of machine, command and events that do not depend on the kind of recording.
    pub(crate) fn features(&self) -> FeatureSet {
        let (proc, sysfs) = (Proc::new(self.proc), Sysfs::new(self.sysfs));
        let mut set = FeatureSet::new(Endian::NATIVE);
        set.version(self.version).cmdline(self.command_line);
        // A recording of `/proc/schedstat` has no events.
        if !self.events.is_empty() {
            set.event_desc(self.events);
        }
        self.machine(&proc, &sysfs, &mut set);
        set
    }

    fn machine(&self, proc: &Proc, sysfs: &Sysfs, set: &mut FeatureSet) {
        if let Ok(names) = uname() {
            set.hostname(&names.nodename)
                .os_release(&names.release)
                .arch(&names.machine);
        }
        if let Ok(name) = proc.cpu_description(&CPU_NAMES) {
            set.cpudesc(&name);
        }
        if let Some(id) = cpuid(self.sysfs) {
            set.cpuid(&id);
        }
        if let Ok(kilobytes) = proc.total_memory() {
            set.total_mem(kilobytes);
        }
        cpus_and_caches(sysfs, set);
        memory(sysfs, set);
        if let Ok(pmus) = sysfs.pmu_types() {
            let pmus: Vec<_> = pmus
                .into_iter()
                .map(|(name, kind)| PmuMapping { kind, name })
                .collect();
            set.pmu_mappings(&pmus);
        }
    }
}

/// Whether the samples of all events except dummies have branch stacks: with `-b` or `-j`, or if each of these events has
/// `branch_type`.
fn has_branches(details: &RecordDetails, specs: &[&EventSpec]) -> bool {
    // `-b` or `-j`.
    let of_all = !details.samples.branches.is_empty();
    let mut sampled = specs.iter().filter(|spec| !spec.is_dummy()).peekable();
    let has = |spec: &&EventSpec| {
        spec.settings
            .branches
            .is_some_and(|kinds| !kinds.is_empty())
    };
    of_all || (sampled.peek().is_some() && sampled.all(has))
}

/// Adds the groups of more than one event. `events` has the group position of each event and, for members, the leader's index.
pub(crate) fn groups(events: &[(&GroupPosition, Option<usize>)], set: &mut FeatureSet) {
    let mut groups = Vec::new();
    for (index, (group, _)) in events.iter().enumerate() {
        let members = events.iter().filter(|(_, leader)| *leader == Some(index));
        let other_members = members.count();
        let GroupPosition::Leader { name } = group else {
            continue;
        };
        if other_members > 0 {
            groups.push(GroupDesc {
                name: if name.is_empty() {
                    GroupDesc::ANONYMOUS.to_owned()
                } else {
                    name.clone()
                },
                leader: u32::try_from(index).unwrap_or(u32::MAX),
                members: u32::try_from(other_members + 1).unwrap_or(u32::MAX),
            });
        }
    }
    if !groups.is_empty() {
        set.group_desc(&groups);
    }
}

/// Adds the clock of timestamps: its resolution, and its time and the wall-clock time at one moment.
fn clock(clockid: i32, set: &mut FeatureSet) {
    if let Ok(resolution) = clock_resolution(clockid) {
        set.clockid(resolution);
    }
    if let (Ok(wall_clock), Ok(clockid_time)) =
        (clock_time(libc::CLOCK_REALTIME), clock_time(clockid))
    {
        set.clock_data(&ClockData {
            clockid: clockid.cast_unsigned(),
            wall_clock,
            clockid_time,
        });
    }
}

/// Adds the number of CPUs, their topology and their caches.
fn cpus_and_caches(sysfs: &Sysfs, set: &mut FeatureSet) {
    // The number of CPUs in this state, and the highest CPU number among them plus 1.
    let count = |which| -> io::Result<(u32, u32)> {
        let cpus = sysfs.cpus(which)?;
        let count = u32::try_from(cpus.numbers().len()).unwrap_or(u32::MAX);
        Ok((count, cpus.numbers().last().map_or(0, |last| last + 1)))
    };
    if let (Ok((online, _)), Ok((_, available))) =
        (count(CpuState::Online), count(CpuState::Present))
    {
        set.nr_cpus(NrCpus { online, available });
        if let Ok(groups) = sysfs.cpu_groups() {
            let dies = !groups.dies.is_empty();
            let entry = |cpu| {
                let ids = sysfs.cpu_ids(cpu);
                let die = dies.then_some(ids.die);
                CpuTopologyEntry {
                    core: ids.core,
                    socket: ids.package,
                    die,
                }
            };
            // In perf's terms, "core siblings" are the CPUs of a package, and "thread siblings" those of a core.
            set.cpu_topology(&CpuTopology {
                core_siblings: groups.packages,
                thread_siblings: groups.cores,
                die_siblings: groups.dies,
                cpus: (0..available).map(entry).collect(),
            });
        }
    }
    let caches: Vec<CpuCache> = sysfs
        .caches()
        .unwrap_or_default()
        .into_iter()
        .map(cache)
        .collect();
    if !caches.is_empty() {
        set.cache(&caches);
    }
}

fn cache(cache: rperf_sys::CacheLevel) -> CpuCache {
    CpuCache {
        level: cache.level,
        line_size: cache.line_size,
        sets: cache.sets,
        ways: cache.ways,
        kind: cache.kind,
        size: cache.size,
        map: cache.shared,
    }
}

/// Adds the NUMA nodes and their memory blocks.
fn memory(sysfs: &Sysfs, set: &mut FeatureSet) {
    if let Ok(nodes) = sysfs.nodes() {
        let node = |node: rperf_sys::NumaNodeCpus| NumaNode {
            node: node.number,
            total: node.total_kb,
            free: node.free_kb,
            cpus: node.cpus,
        };
        let nodes: Vec<_> = nodes.into_iter().map(node).collect();
        set.numa_topology(&nodes);
    }
    if let Ok((block_size, nodes)) = sysfs.memory_blocks() {
        let nodes = nodes
            .into_iter()
            .map(|(node, blocks)| memory_node(node, &blocks))
            .collect();
        set.mem_topology(&MemoryTopology { block_size, nodes });
    }
}

/// Returns a node with the bitmap of its `blocks`, which are in ascending order. The bitmap ends with the last of them.
fn memory_node(node: u32, blocks: &[u32]) -> MemoryNode {
    let bits = blocks.last().map_or(0, |last| u64::from(*last) + 1);
    let mut words = vec![0_u64; usize::try_from(bits.div_ceil(64)).unwrap_or_default()];
    for block in blocks {
        if let Some(word) = words.get_mut(*block as usize / 64) {
            *word |= 1 << (block % 64);
        }
    }
    MemoryNode {
        node: u64::from(node),
        bits,
        blocks: words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_events::{Catalogue, parse};
    use rperf_wire::BranchSampleType;

    #[test]
    fn branch_recordings_have_the_branch_stack_feature() {
        let event = |branches| {
            let mut spec = parse("cycles", &Catalogue::default()).unwrap().remove(0);
            spec.settings.branches = branches;
            spec
        };
        let any = BranchSampleType::ANY;
        let has = |all, own: &[Option<BranchSampleType>]| {
            let mut details = RecordDetails::default();
            details.samples.branches = all;
            let specs: Vec<_> = own.iter().map(|own| event(*own)).collect();
            has_branches(&details, &specs.iter().collect::<Vec<_>>())
        };
        let none = BranchSampleType::default();
        assert!(has(any, &[None, Some(none)]), "-b");
        assert!(has(none, &[Some(any)]), "branch_type=any");
        assert!(!has(none, &[Some(any), None]));
        assert!(!has(none, &[None]) && !has(none, &[]));
    }

    #[test]
    fn memory_blocks_are_bits() {
        let node = memory_node(1, &[0, 3, 64]);
        assert_eq!((node.bits, node.blocks), (65, vec![0b1001, 1]));
        assert!(memory_node(0, &[]).blocks.is_empty());
    }
}
