//! Arbitrary features are decoded as they were encoded, in both byte orders, and rewriting a file from its parts yields
//! the same file.

use proptest::collection::vec;
use proptest::prelude::*;
use rperf_perfdata::feature::{
    AuxIndexEntry, BpfBtf, BpfProgram, BuildIdEntry, ClockData, CompressionInfo, CpuCache,
    CpuDomains, CpuTopology, CpuTopologyEntry, ElfMachine, GroupDesc, HybridPmu, MemoryNode,
    MemoryTopology, NrCpus, NumaNode, PmuCapabilities, PmuMapping, SchedDomain, SchedDomains,
};
use rperf_perfdata::{EventDesc, FeatureId, FeatureSet, PerfData};
use rperf_wire::{Attr, Endian, EventType, Misc};

use crate::generated::{self, finished_round};

/// Strings with lengths on both sides of padding boundaries.
fn text() -> impl Strategy<Value = String> {
    "[^\0]{0,70}"
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..4)
}

fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    vec((text(), text()), 0..4)
}

fn build_ids() -> impl Strategy<Value = Vec<BuildIdEntry>> {
    let entry = (any::<i32>(), any::<[u8; 20]>(), 0_u8..=20, text(), 0_u16..8);
    let entry = entry.prop_map(|(pid, build_id, size, filename, mode)| BuildIdEntry {
        pid,
        misc: Misc(mode | Misc::BUILD_ID_SIZE.0),
        build_id,
        size,
        filename,
    });
    vec(entry, 0..4)
}

fn topologies() -> impl Strategy<Value = CpuTopology> {
    let cpus = vec(any::<[i32; 3]>(), 0..5);
    (texts(), texts(), texts(), cpus, any::<bool>()).prop_map(
        |(core_siblings, thread_siblings, dies, cpus, has_dies)| {
            let place = |[core, socket, die]: [i32; 3]| CpuTopologyEntry {
                core,
                socket,
                die: has_dies.then_some(die),
            };
            CpuTopology {
                core_siblings,
                thread_siblings,
                die_siblings: if has_dies { dies } else { Vec::new() },
                cpus: cpus.into_iter().map(place).collect(),
            }
        },
    )
}

/// Domains with names, as from version 17 of `/proc/schedstat` on, and without.
fn sched_domains() -> impl Strategy<Value = SchedDomains> {
    let domain = (any::<u32>(), text(), text(), text());
    let cpu = (any::<u32>(), vec(domain, 0..3));
    (15_u32..19, any::<u32>(), vec(cpu, 0..4)).prop_map(|(version, max_domains, cpus)| {
        let domain = |(number, name, mask, list)| SchedDomain {
            number,
            name: (version >= 17).then_some(name),
            mask,
            list,
        };
        let cpu = |(cpu, domains): (u32, Vec<_>)| CpuDomains {
            cpu,
            domains: domains.into_iter().map(domain).collect(),
        };
        SchedDomains {
            version,
            max_domains,
            cpus: cpus.into_iter().map(cpu).collect(),
        }
    })
}

/// Nodes, each with a bitmap of memory blocks (`blocks`: the words of the bitmap; the last one need not be full).
fn memory() -> impl Strategy<Value = MemoryTopology> {
    let node = (any::<u64>(), vec(any::<u64>(), 0..4), 0_u64..64);
    let node = node.prop_map(|(node, blocks, less)| MemoryNode {
        node,
        bits: (blocks.len() as u64 * 64).saturating_sub(less),
        blocks,
    });
    (any::<u64>(), vec(node, 0..3))
        .prop_map(|(block_size, nodes)| MemoryTopology { block_size, nodes })
}

fn caches() -> impl Strategy<Value = Vec<CpuCache>> {
    let cache = (any::<[u32; 4]>(), text(), text(), text());
    let cache = cache.prop_map(
        |([level, line_size, sets, ways], kind, size, map)| CpuCache {
            level,
            line_size,
            sets,
            ways,
            kind,
            size,
            map,
        },
    );
    vec(cache, 0..4)
}

fn pmu_caps() -> impl Strategy<Value = Vec<PmuCapabilities>> {
    let pmu = (text(), pairs()).prop_map(|(name, values)| PmuCapabilities { name, values });
    vec(pmu, 0..3)
}

fn programs() -> impl Strategy<Value = Vec<BpfProgram>> {
    let program = (
        any::<u64>(),
        vec(any::<u8>(), 0..240),
        vec(any::<u8>(), 0..60),
    );
    let program = program.prop_map(|(array_mask, info, data)| BpfProgram {
        array_mask,
        info,
        data,
    });
    vec(program, 0..3)
}

fn events() -> impl Strategy<Value = Vec<EventDesc>> {
    let event = (
        any::<u32>(),
        any::<u64>(),
        vec(any::<u64>(), 0..4),
        "[^\0]{1,70}",
    );
    let event = event.prop_map(|(kind, config, ids, name)| EventDesc {
        attr: Attr {
            kind: EventType(kind),
            config,
            ..Attr::default()
        },
        ids,
        name,
    });
    vec(event, 1..4)
}

fn endians() -> impl Strategy<Value = Endian> {
    prop_oneof![Just(Endian::Little), Just(Endian::Big)]
}

fn file(events: &[EventDesc], features: &FeatureSet, endian: Endian) -> Vec<u8> {
    generated::file(events, &finished_round(endian), features, endian)
}

/// A file of one event with HOSTNAME and the features that `put` adds. The bit of HOSTNAME shows the reader the word size of a
/// big-endian bitmap of features.
fn file_with(endian: Endian, put: impl FnOnce(&mut FeatureSet)) -> Vec<u8> {
    let mut features = FeatureSet::new(endian);
    features.hostname("machine");
    put(&mut features);
    file(
        &[EventDesc::new(Attr::default(), vec![7])],
        &features,
        endian,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn texts_and_lists_are_decoded_as_encoded(
        endian in endians(), name in text(), words in texts(), meta in pairs(),
        times in any::<[u64; 2]>(), pmus in vec((any::<u32>(), text()), 0..4),
        groups in vec((text(), any::<[u32; 2]>()), 0..4),
        hybrid in vec((text(), text()), 0..3),
    ) {
        let pmus = pmus.into_iter().map(|(kind, name)| PmuMapping { kind, name });
        let pmus: Vec<PmuMapping> = pmus.collect();
        let groups = groups.into_iter().map(|(name, [leader, members])| GroupDesc { name, leader, members });
        let groups: Vec<GroupDesc> = groups.collect();
        let hybrid = hybrid.into_iter().map(|(name, cpus)| HybridPmu { name, cpus });
        let hybrid: Vec<HybridPmu> = hybrid.collect();
        let bytes = file_with(endian, |set| {
            set.cpudesc(&name).cmdline(&words).meta_info(&meta).sample_time(times[0], times[1])
                .pmu_mappings(&pmus).group_desc(&groups).hybrid_topology(&hybrid);
        });
        let data = PerfData::parse(&bytes).unwrap();
        let decoded = data.features();
        prop_assert_eq!(decoded.cpudesc(), Some(name));
        prop_assert_eq!(decoded.cmdline(), Some(words));
        prop_assert_eq!(decoded.meta_info(), Some(meta));
        prop_assert_eq!(decoded.sample_time(), Some((times[0], times[1])));
        prop_assert_eq!(decoded.pmu_mappings(), Some(pmus));
        prop_assert_eq!(decoded.group_desc(), Some(groups));
        prop_assert_eq!(decoded.hybrid_topology(), Some(hybrid));
        prop_assert_eq!(data.findings(), &[]);
    }

    #[test]
    fn properties_of_machines_are_decoded_as_encoded(
        endian in endians(), topology in topologies(), online in any::<u32>(), caches in caches(),
        memory in memory(), nodes in vec((any::<u32>(), any::<[u64; 2]>(), text()), 0..3),
        caps in pmu_caps(), numbers in any::<[u64; 4]>(),
    ) {
        // The reader takes the number of CPUs of the topology from `available`.
        let cpus = NrCpus { online, available: u32::try_from(topology.cpus.len()).unwrap() };
        let nodes = nodes.into_iter().map(|(node, [total, free], cpus)| NumaNode { node, total, free, cpus });
        let nodes: Vec<NumaNode> = nodes.collect();
        let [kilobytes, resolution, wall_clock, clockid_time] = numbers;
        // The clock id can be any number: `online` is used again.
        let clock = ClockData { clockid: online, wall_clock, clockid_time };
        let cpu_caps = PmuCapabilities { name: "cpu".to_owned(), values: caps.first().map_or_else(Vec::new, |pmu| pmu.values.clone()) };
        let bytes = file_with(endian, |set| {
            set.nr_cpus(cpus).cpu_topology(&topology).cache(&caches).mem_topology(&memory)
                .numa_topology(&nodes).pmu_caps(&caps).cpu_pmu_caps(&cpu_caps)
                .total_mem(kilobytes).clockid(resolution).clock_data(&clock);
        });
        let data = PerfData::parse(&bytes).unwrap();
        let decoded = data.features();
        prop_assert_eq!(decoded.nr_cpus(), Some(cpus));
        prop_assert_eq!(decoded.cpu_topology(), Some(topology));
        prop_assert_eq!(decoded.cache(), Some(caches));
        prop_assert_eq!(decoded.mem_topology(), Some(memory));
        prop_assert_eq!(decoded.numa_topology(), Some(nodes));
        prop_assert_eq!(decoded.pmu_caps(), Some(caps));
        prop_assert_eq!(decoded.cpu_pmu_caps(), Some(cpu_caps));
        prop_assert_eq!(decoded.total_mem(), Some(kilobytes));
        prop_assert_eq!(decoded.clockid(), Some(resolution));
        prop_assert_eq!(decoded.clock_data(), Some(clock));
    }

    /// The formats are those of the compression and of the recording's directory. Also tests the AUX index, the scheduling
    /// domains, E_MACHINE and CLN_SIZE.
    #[test]
    fn files_programs_and_formats_are_decoded_as_encoded(
        endian in endians(), build_ids in build_ids(), programs in programs(),
        types in vec((any::<u32>(), vec(any::<u8>(), 0..50)), 0..3),
        index in vec(any::<[u64; 2]>(), 0..4), compression in any::<[u32; 4]>(), version in any::<u64>(),
        domains in sched_domains(),
    ) {
        let types = types.into_iter().map(|(id, data)| BpfBtf { id, data });
        let types: Vec<BpfBtf> = types.collect();
        let index = index.into_iter().map(|[file_offset, size]| AuxIndexEntry { file_offset, size });
        let index: Vec<AuxIndexEntry> = index.collect();
        // The same arbitrary numbers are also used for E_MACHINE and CLN_SIZE.
        let [kind, level, ratio, mmap_len] = compression;
        let compression = CompressionInfo { kind, level, ratio, mmap_len };
        let bytes = file_with(endian, |set| {
            set.build_ids(&build_ids).bpf_programs(&programs).btf(&types).aux_index(&index)
                .compressed(compression).dir_format(version).sched_domains(&domains)
                .elf_machine(ElfMachine { machine: kind, flags: level }).cache_line(ratio);
        });
        let data = PerfData::parse(&bytes).unwrap();
        let decoded = data.features();
        prop_assert_eq!(decoded.build_ids(), build_ids);
        prop_assert_eq!(decoded.bpf_programs(), Some(programs.clone()));
        prop_assert_eq!(decoded.btf(), Some(types.clone()));
        prop_assert_eq!(decoded.aux_index(), Some(index));
        prop_assert_eq!(decoded.compressed(), Some(compression));
        prop_assert_eq!(decoded.dir_format(), Some(version));
        prop_assert_eq!(decoded.sched_domains(), Some(domains));
        prop_assert_eq!(decoded.elf_machine(), Some(ElfMachine { machine: kind, flags: level }));
        prop_assert_eq!(decoded.cache_line(), Some(ratio));
        // Arbitrary contents must not panic.
        for program in &programs {
            // Small type ids are more likely to exist.
            for function in program.functions(endian).into_iter().flatten() {
                let _names: Vec<_> = types.iter().map(|set| set.type_name(function.type_id % 9, endian)).collect();
            }
        }
    }

    /// The copy is made from raw sections, including those of unknown features: numbers between those of perf and simpleperf.
    #[test]
    fn a_file_written_anew_is_the_same(
        endian in endians(), events in events(), unknown in vec((35_u8..128, vec(any::<u8>(), 0..40)), 0..3),
    ) {
        let mut features = FeatureSet::new(endian);
        features.hostname("machine").event_desc(&events);
        for (number, bytes) in &unknown {
            features.opaque(FeatureId(*number), bytes);
        }
        let bytes = file(&events, &features, endian);
        let data = PerfData::parse(&bytes).unwrap();
        prop_assert_eq!(data.events(), events.as_slice());
        let mut again = FeatureSet::new(endian);
        for feature in data.features().present() {
            again.opaque(feature, data.features().raw(feature).unwrap());
        }
        prop_assert_eq!(file(data.events(), &again, endian), bytes);
    }
}
