//! Feature sections are decoded as they were encoded, and the real perf prints the same.

use rperf_perfdata::feature::{
    BuildIdEntry, ClockData, CpuCache, CpuTopology, CpuTopologyEntry, GroupDesc, MemoryNode,
    MemoryTopology, NrCpus, NumaNode, PmuMapping,
};
use rperf_perfdata::{EventDesc, FeatureSet, PerfData};
use rperf_testkit::{Run, Scratch, real_perf, skip};
use rperf_wire::{Attr, AttrFlags, Endian, EventType, Misc, ReadFormat, SampleType};

use crate::generated::{self, BOTH, finished_round};

fn build_ids() -> Vec<BuildIdEntry> {
    let entry = |name: &str, misc| BuildIdEntry {
        pid: -1,
        misc: Misc(misc | Misc::BUILD_ID_SIZE.0),
        build_id: [0xab; 20],
        size: 20,
        filename: name.to_owned(),
    };
    // The CPU modes kernel and user.
    vec![
        entry("[kernel.kallsyms]", 1),
        entry(&"/usr/lib/x".repeat(20), 2),
    ]
}

fn topology() -> CpuTopology {
    let place = |core| CpuTopologyEntry {
        core,
        socket: 0,
        die: Some(0),
    };
    CpuTopology {
        core_siblings: vec!["0-1".to_owned()],
        thread_siblings: vec!["0".to_owned(), "1".to_owned()],
        die_siblings: vec!["0-1".to_owned()],
        cpus: vec![place(0), place(1)],
    }
}

fn nodes() -> Vec<NumaNode> {
    vec![NumaNode {
        node: 0,
        total: 6_252_756,
        free: 3_988_268,
        cpus: "0-1".to_owned(),
    }]
}

fn pmus() -> Vec<PmuMapping> {
    let pmu = |kind, name: &str| PmuMapping {
        kind,
        name: name.to_owned(),
    };
    vec![pmu(1, "software"), pmu(9, "msr")]
}

fn groups() -> Vec<GroupDesc> {
    vec![GroupDesc {
        name: String::new(),
        leader: 0,
        members: 2,
    }]
}

fn caches() -> Vec<CpuCache> {
    vec![CpuCache {
        level: 1,
        line_size: 64,
        sets: 64,
        ways: 8,
        kind: "Data".to_owned(),
        size: "32K".to_owned(),
        map: "0".to_owned(),
    }]
}

fn memory() -> MemoryTopology {
    MemoryTopology {
        block_size: 0x800_0000,
        nodes: vec![MemoryNode {
            node: 0,
            bits: 200,
            blocks: vec![u64::MAX ^ 0xff00_0000, u64::MAX, u64::MAX, 0xff],
        }],
    }
}

fn clock() -> ClockData {
    ClockData {
        clockid: 1,
        wall_clock: 1_700_000_000_000_000_000,
        clockid_time: 6_400_000_000_000,
    }
}

fn events() -> Vec<EventDesc> {
    let attr = Attr {
        kind: EventType::SOFTWARE,
        sample_period: 4000,
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::ID,
        read_format: ReadFormat::ID | ReadFormat::LOST,
        flags: AttrFlags::DISABLED | AttrFlags::FREQ | AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let event = |name: &str, config, ids: Vec<u64>| EventDesc {
        attr: Attr {
            config,
            ..attr.clone()
        },
        ids,
        name: name.to_owned(),
    };
    vec![
        event("cpu-clock:ppp", 0, vec![100, 101]),
        event("cs", 3, vec![102]),
    ]
}

const CMDLINE: [&str; 4] = ["/usr/bin/rperf", "record", "-g", "a b"];

fn features(endian: Endian) -> FeatureSet {
    let mut set = FeatureSet::new(endian);
    set.build_ids(&build_ids())
        .hostname("machine")
        .os_release("6.18.44")
        .version("0.1.0")
        .arch("x86_64")
        .nr_cpus(NrCpus {
            online: 1,
            available: 2,
        })
        .cpudesc("AMD EPYC")
        .cpuid("AuthenticAMD,25,1,1")
        .total_mem(24_684_092)
        .cmdline(&CMDLINE)
        .event_desc(&events())
        .cpu_topology(&topology())
        .numa_topology(&nodes())
        .pmu_mappings(&pmus())
        .group_desc(&groups())
        .cache(&caches())
        .sample_time(6_400_304_795_000, 6_400_406_808_000)
        .mem_topology(&memory())
        // The resolution in nanoseconds; `ClockData::clockid` is the clock's id (1 is CLOCK_MONOTONIC).
        .clockid(1)
        .clock_data(&clock());
    set
}

fn file(endian: Endian) -> Vec<u8> {
    generated::file(
        &events(),
        // The only record: a file without any would be taken for one of a killed recorder.
        &finished_round(endian),
        &features(endian),
        endian,
    )
}

#[test]
fn features_round_trip_in_both_byte_orders() {
    for endian in BOTH {
        let bytes = file(endian);
        let data = PerfData::parse(&bytes).unwrap();
        assert!(data.findings().is_empty(), "{:?}", data.findings());
        let features = data.features();
        assert_eq!(features.build_ids(), build_ids());
        assert_eq!(features.hostname().as_deref(), Some("machine"));
        assert_eq!(features.os_release().as_deref(), Some("6.18.44"));
        assert_eq!(features.version().as_deref(), Some("0.1.0"));
        assert_eq!(features.arch().as_deref(), Some("x86_64"));
        let cpus = features.nr_cpus().unwrap();
        assert_eq!((cpus.online, cpus.available), (1, 2));
        assert_eq!(features.cpudesc().as_deref(), Some("AMD EPYC"));
        assert_eq!(features.cpuid().as_deref(), Some("AuthenticAMD,25,1,1"));
        assert_eq!(features.total_mem(), Some(24_684_092));
        assert_eq!(features.cmdline().unwrap(), CMDLINE);
        assert_eq!(features.event_desc(), Some(events()));
        assert_eq!(features.cpu_topology(), Some(topology()));
        assert_eq!(features.numa_topology(), Some(nodes()));
        assert_eq!(features.pmu_mappings(), Some(pmus()));
        assert_eq!(features.group_desc(), Some(groups()));
        assert_eq!(features.cache(), Some(caches()));
        assert_eq!(
            features.sample_time(),
            Some((6_400_304_795_000, 6_400_406_808_000))
        );
        assert_eq!(features.mem_topology(), Some(memory()));
        assert_eq!(features.clockid(), Some(1));
        assert_eq!(features.clock_data(), Some(clock()));
    }
}

/// This also checks that truncated files do not make the parser panic.
#[test]
fn truncation_neither_changes_the_hostname_nor_adds_build_ids() {
    let bytes = file(Endian::NATIVE);
    let complete = PerfData::parse(&bytes).unwrap();
    for end in 0..bytes.len() {
        let Ok(data) = PerfData::parse(&bytes[..end]) else {
            continue;
        };
        let hostname = data.features().hostname();
        assert!(
            hostname.is_none() || hostname == complete.features().hostname(),
            "truncated at {end}"
        );
        assert!(data.features().build_ids().len() <= build_ids().len());
    }
}

#[test]
fn perf_reads_written_features() {
    let Some(perf) = real_perf() else {
        return skip("perf_reads_written_features", "no perf here");
    };
    let scratch = Scratch::new();
    let path = scratch.write("written.data", file(Endian::NATIVE)).unwrap();
    let report = Run::new(&perf)
        .args(["report", "--header-only", "-I", "-i"])
        .args([&path])
        .finish()
        .unwrap();
    assert_eq!(report.status, 0, "{}", report.stderr);
    for line in [
        "# hostname : machine",
        "# os release : 6.18.44",
        "# perf version : 0.1.0",
        "# arch : x86_64",
        "# nrcpus online : 1",
        "# nrcpus avail : 2",
        "# cpudesc : AMD EPYC",
        "# cpuid : AuthenticAMD,25,1,1",
        "# total memory : 24684092 kB",
        "# cmdline : /usr/bin/rperf record -g a b ",
        "# event : name = cpu-clock:ppp, , id = { 100, 101 }, type = 1, size = 128, \
         { sample_period, sample_freq } = 4000, sample_type = IP|TID|TIME|ID, \
         read_format = ID|LOST, disabled = 1, freq = 1, sample_id_all = 1",
        "# sibling sockets : 0-1",
        "# sibling dies    : 0-1",
        "# CPU 1: Core ID 1, Die ID 0, Socket ID 0",
        "# node0 meminfo  : total = 6252756 kB, free = 3988268 kB",
        "# node0 cpu list : 0-1",
        "# pmu mappings: software = 1, msr = 9",
        "# group: {cpu-clock:ppp,cs}",
        "#  L1 Data                 32K [0]",
        "# time of first sample : 6400.304795",
        "#    0 [24G]: 0-23,32-199",
    ] {
        assert!(
            report.stdout.lines().any(|printed| printed == line),
            "{line}\n{}",
            report.stdout
        );
    }
    let listed = Run::new(&perf)
        .args(["buildid-list", "-i"])
        .args([&path])
        .finish()
        .unwrap();
    assert!(
        listed
            .stdout
            .contains("abababababababababababababababababababab [kernel.kallsyms]")
    );
}
