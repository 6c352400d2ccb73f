//! Events of sysfs and of vendor tables of a fake machine: the attrs equal those of `perf record -vv`, and `list` prints the
//! events.

use std::fs;
use std::path::Path;
use std::thread;

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use super::record_events::first_attr;
use crate::kernel::rperf_in;

/// The CPUID of a processor (Skylake server) whose tables are built into perf.
const CPUID: &str = "GenuineIntel-6-55-4";

/// Format terms of the core PMU, as on Intel.
const FORMATS: [(&str, &str); 11] = [
    ("event", "config:0-7"),
    ("umask", "config:8-15"),
    ("edge", "config:18"),
    ("pc", "config:19"),
    ("any", "config:21"),
    ("inv", "config:23"),
    ("cmask", "config:24-31"),
    ("in_tx", "config:32"),
    ("ldlat", "config1:0-15"),
    ("offcore_rsp", "config1:0-63"),
    ("frontend", "config1:0-23"),
];

/// Other sysfs files of PMUs.
const FILES: [(&str, &str); 17] = [
    ("cpu/type", "4"),
    ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
    ("cpu/events/instructions", "event=0xc0"),
    (
        "cpu/events/topdown-total-slots",
        "event=0x3c,umask=0x0,any=1",
    ),
    ("cpu/events/topdown-total-slots.scale", "4"),
    ("uncore_imc_0/type", "20"),
    ("uncore_imc_0/format/event", "config:0-7"),
    ("uncore_imc_0/format/umask", "config:8-15"),
    (
        "uncore_imc_0/events/cas_count_read",
        "event=0x04,umask=0x03",
    ),
    ("uncore_imc_0/events/cas_count_read.unit", "MiB"),
    ("uncore_imc_1/type", "21"),
    ("uncore_imc_1/format/event", "config:0-7"),
    ("uncore_imc_1/format/umask", "config:8-15"),
    (
        "uncore_imc_1/events/cas_count_read",
        "event=0x04,umask=0x03",
    ),
    ("power/type", "9"),
    ("power/format/event", "config:0-7"),
    ("power/events/energy-pkg", "event=0x02"),
];

/// A vendor table. Most codes are those of the tables that are built into perf, which does not read this one.
const TABLE: &str = r#"{"Header": {"Info": "made by hand"}, "Events": [
    {"EventName": "INST_RETIRED.ANY", "EventCode": "0x00", "UMask": "0x01", "SampleAfterValue": "2000003"},
    {"EventName": "CPU_CLK_UNHALTED.THREAD", "EventCode": "0x00", "UMask": "0x02", "SampleAfterValue": "2000003"},
    {"EventName": "CPU_CLK_UNHALTED.THREAD_ANY", "EventCode": "0x00", "UMask": "0x02", "AnyThread": "1", "SampleAfterValue": "2000003"},
    {"EventName": "CPU_CLK_UNHALTED.REF_TSC", "EventCode": "0x00", "UMask": "0x03", "SampleAfterValue": "2000003"},
    {"EventName": "MEM_LOAD_RETIRED.L1_HIT", "EventCode": "0xD1", "UMask": "0x01", "SampleAfterValue": "2000003"},
    {"EventName": "MEM_LOAD_RETIRED.L3_HIT", "EventCode": "0xD1", "UMask": "0x04", "SampleAfterValue": "50021",
     "PEBS": "1", "Data_LA": "1", "BriefDescription": "Loads that retired and hit the third level cache.", "PublicDescription": "At length."},
    {"EventName": "MEM_INST_RETIRED.ALL_LOADS", "EventCode": "0xD0", "UMask": "0x81", "SampleAfterValue": "2000003"},
    {"EventName": "BR_INST_RETIRED.ALL_BRANCHES", "EventCode": "0xC4", "UMask": "0x00", "SampleAfterValue": "400009"},
    {"EventName": "CYCLE_ACTIVITY.STALLS_TOTAL", "EventCode": "0xA3", "UMask": "0x04", "CounterMask": "4", "SampleAfterValue": "2000003"},
    {"EventName": "UOPS_ISSUED.STALL_CYCLES", "EventCode": "0x0E", "UMask": "0x01", "CounterMask": "1", "Invert": "1", "SampleAfterValue": "2000003"},
    {"EventName": "MACHINE_CLEARS.COUNT", "EventCode": "0xC3", "UMask": "0x01", "CounterMask": "1", "EdgeDetect": "1", "SampleAfterValue": "100003"},
    {"EventName": "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128", "EventCode": "0xCD", "UMask": "0x01", "MSRIndex": "0x3F6", "MSRValue": "0x80", "SampleAfterValue": "1009"},
    {"EventName": "FRONTEND_RETIRED.L2_MISS", "EventCode": "0xC6", "UMask": "0x01", "MSRIndex": "0x3F7", "MSRValue": "0x13", "SampleAfterValue": "100007"},
    {"EventName": "OFFCORE_RESPONSE.DEMAND_DATA_RD.ANY_RESPONSE", "EventCode": "0xB7, 0xBB", "UMask": "0x01", "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x0000010001", "SampleAfterValue": "100003"},
    {"EventName": "UNC_M_CAS_COUNT.RD", "EventCode": "0x4", "UMask": "0x3", "Unit": "iMC", "PerPkg": "1", "ScaleUnit": "64Bytes",
     "BriefDescription": "Reads of memory"},
    {"EventName": "BR_MISP_RETIRED.OLD", "EventCode": "0xC5", "Deprecated": "1", "BriefDescription": "Take another"}
]}"#;

const METRICS: &str = r#"[
    {"MetricName": "ipc", "MetricExpr": "INST_RETIRED.ANY / CPU_CLK_UNHALTED.THREAD", "MetricGroup": "Ret;Summary", "BriefDescription": "Instructions per cycle"},
    {"MetricName": "cpi", "MetricExpr": "1 / ipc", "MetricGroup": "Summary", "ScaleUnit": "1per_instr", "BriefDescription": "Cycles per instruction."}
]"#;

/// The events that both tools record, as in `-e`.
const EVENTS: [&str; 44] = [
    "inst_retired.any",
    "INST_RETIRED.ANY:u",
    "cpu_clk_unhalted.thread",
    "cpu_clk_unhalted.thread_any:k",
    "cpu_clk_unhalted.ref_tsc",
    "mem_load_retired.l1_hit:pp",
    "mem_load_retired.l3_hit",
    "mem_load_retired.l3_hit:ppu",
    "mem_inst_retired.all_loads",
    "br_inst_retired.all_branches",
    "cycle_activity.stalls_total",
    "uops_issued.stall_cycles",
    "machine_clears.count",
    "mem_trans_retired.load_latency_gt_128",
    "frontend_retired.l2_miss",
    "offcore_response.demand_data_rd.any_response",
    "cpu/inst_retired.any/",
    "cpu/INST_RETIRED.ANY/u",
    "cpu/mem_load_retired.l3_hit,period=1000/",
    "cpu/inst_retired.any,cmask=2/",
    "cpu/inst_retired.any,name=mine/k",
    "cpu/event=0xc4,umask=1,cmask=2,inv/",
    "cpu/event=0xc4,edge,any=0/",
    "cpu/event=0xc4,in_tx=1/p",
    "cpu/config=0x1c4/",
    "cpu/config=0x1c4,config1=7,config2=9/",
    "cpu/r1c4/",
    "cpu/mem-loads/P",
    "cpu/instructions/",
    "mem-loads",
    "topdown-total-slots",
    "r01c4",
    "r20000038f:k",
    "power/energy-pkg/",
    "power/event=2/",
    "uncore_imc_0/cas_count_read/",
    "uncore_imc/cas_count_read/",
    "uncore_imc_1/event=4,umask=3/",
    "L1-dcache-load-misses",
    "LLC-loads:u",
    "dTLB-store-misses:k",
    "instructions:ppp",
    "branch-misses:Du",
    "cpu/event=0xc4/D",
];

/// The sysfs and the event tables of a fake machine.
struct FakeMachine {
    sysfs: String,
    tables: String,
}

impl FakeMachine {
    fn new(folder: &Path) -> Self {
        let root = folder.join("sys");
        let write = |name: &str, text: &str| {
            let path = root.join("bus/event_source/devices").join(name);
            fs::create_dir_all(path.parent().expect("in a folder")).expect("created");
            fs::write(path, format!("{text}\n")).expect("written");
        };
        for (name, text) in FORMATS {
            write(&format!("cpu/format/{name}"), text);
        }
        for (name, text) in FILES {
            write(name, text);
        }
        fs::create_dir_all(root.join("devices")).expect("created");
        std::os::unix::fs::symlink("/sys/devices/system", root.join("devices/system"))
            .expect("linked");
        let tables = folder.join("tables");
        fs::create_dir_all(tables.join("SKX/metrics/perf")).expect("created");
        let map = "Family-model,Version,Filename,EventType\nGenuineIntel-6-55-[01234],V1,/SKX/core.json,core\nGenuineIntel-6-55-[01234],V1,/SKX/metrics/skx.json,metrics\n";
        fs::write(tables.join("mapfile.csv"), map).expect("written");
        fs::write(tables.join("SKX/core.json"), TABLE).expect("written");
        fs::write(tables.join("SKX/metrics/perf/skx_perf.json"), METRICS).expect("written");
        Self {
            sysfs: root.display().to_string(),
            tables: tables.display().to_string(),
        }
    }

    fn run(&self, run: Run) -> Outcome {
        let run = run.env("SYSFS_PATH", &self.sysfs).env("PERF_CPUID", CPUID);
        let run = run.env("RPERF_EVENTS", &self.tables);
        run.finish().expect("it starts")
    }

    /// Splits the core PMU into two, as on hybrid processors.
    fn hybrid(self, folder: &Path) -> Self {
        let devices = folder.join("sys/bus/event_source/devices");
        fs::rename(devices.join("cpu"), devices.join("cpu_core")).expect("renamed");
        let core = devices.join("cpu_core");
        for name in [
            "events/mem-loads",
            "format/event",
            "format/umask",
            "format/ldlat",
        ] {
            let copy = devices.join("cpu_atom").join(name);
            fs::create_dir_all(copy.parent().expect("in a folder")).expect("created");
            fs::copy(core.join(name), copy).expect("copied");
        }
        fs::write(core.join("cpus"), "0\n").expect("written");
        fs::write(devices.join("cpu_atom/type"), "10\n").expect("written");
        fs::write(devices.join("cpu_atom/cpus"), "1\n").expect("written");
        self
    }

    /// Checks that the first attr of each event equals perf's in the given fields; the field `""` selects all.
    fn assert_same_attrs(&self, perf: &Path, scratch: &Scratch, events: &[&str], fields: &[&str]) {
        let attr = |outcome: &Outcome| -> Vec<String> {
            let lines = first_attr(&outcome.stderr).into_iter();
            let is_compared = |line: &&str| {
                fields
                    .iter()
                    .any(|field| line.trim_start().starts_with(field))
            };
            lines.filter(is_compared).map(str::to_owned).collect()
        };
        // Several events are recorded in parallel, to save time: perf mostly waits for the kernel.
        thread::scope(|scope| {
            for events in events.chunks(events.len().div_ceil(WORKERS)) {
                let attr = &attr;
                scope.spawn(move || {
                    for event in events {
                        let words = ["record", "-vv", "-o", "/dev/null", "-e", event, "true"];
                        let theirs = self.run(Run::new(perf).args(words).within(scratch.path()));
                        let ours = self.run(rperf_in(scratch, &words));
                        let ours = attr(&ours);
                        assert!(!ours.is_empty(), "{event}");
                        assert_eq!(ours, attr(&theirs), "{event}");
                    }
                });
            }
        });
    }
}

#[test]
fn attrs_of_named_events_match_perf() {
    let test = "commands::event_tables::attrs_of_named_events_match_perf";
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    if cfg!(not(target_arch = "x86_64")) {
        return skip(test, "the fake PMU needs x86-64");
    }
    let scratch = Scratch::new();
    let machine = FakeMachine::new(scratch.path());
    let all_fields = [""];
    machine.assert_same_attrs(&perf, &scratch, &EVENTS, &all_fields);
}

/// The maximum number of events that are recorded at a time.
const WORKERS: usize = 6;

#[test]
fn attrs_on_hybrid_machines_match_perf() {
    let test = "commands::event_tables::attrs_on_hybrid_machines_match_perf";
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    if cfg!(not(target_arch = "x86_64")) {
        return skip(test, "the fake PMUs need x86-64");
    }
    let scratch = Scratch::new();
    let machine = FakeMachine::new(scratch.path()).hybrid(scratch.path());
    let events = [
        "cycles",
        "instructions:u",
        "branch-misses:pp",
        "L1-dcache-load-misses",
        "r1c0:k",
        "cpu_core/cycles/",
        "cpu_core/event=0xc0,cmask=1/u",
        "cpu_atom/mem-loads/",
        "cpu_atom/r1c0/",
    ];
    // `cycles` becomes an event for each PMU; which of them carries the side-band records does not matter here.
    let fields = ["type", "config", "precise_ip"];
    machine.assert_same_attrs(&perf, &scratch, &events, &fields);
}

#[test]
fn events_are_counted_on_both_pmus_of_hybrid_machines_by_default() {
    let scratch = Scratch::new();
    let machine = FakeMachine::new(scratch.path()).hybrid(scratch.path());
    let outcome = machine.run(rperf_in(&scratch, &["stat", "-x,", "true"]));
    let names = outcome.stderr.lines().map(|line| line.split(',').nth(2));
    let names: Vec<&str> = names.map(|name| name.unwrap_or_default()).collect();
    let both = |name: &str| ["cpu_atom", "cpu_core"].map(|pmu| format!("{pmu}/{name}/"));
    let hardware = ["cycles", "instructions", "branches", "branch-misses"];
    let expected: Vec<String> = hardware.into_iter().flat_map(both).collect();
    // The first four are software events.
    assert_eq!(
        names.get(4..),
        Some(
            expected
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .as_slice()
        )
    );
}

#[test]
fn unknown_events_get_suggestions_and_absent_pmus_are_named() {
    let scratch = Scratch::new();
    let machine = FakeMachine::new(scratch.path());
    let error_of = |event: &str| {
        let outcome = machine.run(rperf_in(&scratch, &["record", "-e", event, "true"]));
        assert_eq!(outcome.status, 129, "{event}");
        outcome.stderr
    };
    let near = error_of("mem_load_retired.l3_hits");
    assert!(
        near.contains("did you mean `mem_load_retired.l3_hit'?"),
        "{near}"
    );
    let near = error_of("cpu/inst_retired.ani/");
    assert!(near.contains("did you mean `inst_retired.any'?"), "{near}");
    fs::remove_dir_all(scratch.path().join("sys/bus/event_source/devices/cpu")).expect("removed");
    let absent = error_of("inst_retired.any");
    assert!(
        absent.contains(
            "`inst_retired.any' is an event of the PMU `cpu', which this machine doesn't have"
        ),
        "{absent}"
    );
}

#[test]
fn a_damaged_table_is_reported_and_the_rest_is_used() {
    let scratch = Scratch::new();
    let machine = FakeMachine::new(scratch.path());
    let broken = TABLE.replace("\"EventCode\": \"0xD0\"", "\"EventCode\": \"D zero\"");
    fs::write(scratch.path().join("tables/SKX/core.json"), broken).expect("written");
    let words = [
        "record",
        "-vv",
        "-o",
        "/dev/null",
        "-e",
        "inst_retired.any",
        "true",
    ];
    let outcome = machine.run(rperf_in(&scratch, &words));
    // As in perf, `event=0xc0` replaces the encoding that the table has for `inst_retired.any`.
    assert!(
        outcome
            .stderr
            .contains("config                           0xc0"),
        "{}",
        outcome.stderr
    );
    let named = "SKX/core.json: mem_inst_retired.all_loads: `EventCode' is `D zero', which is not a number\n";
    assert!(outcome.stderr.contains(named), "{}", outcome.stderr);
}

/// The output of `rperf list` with `args` on the fake machine.
fn listed(args: &[&str]) -> String {
    let scratch = Scratch::new();
    let machine = FakeMachine::new(scratch.path());
    let outcome = machine.run(rperf_in(&scratch, &[&["list"], args].concat()));
    assert_eq!(
        (outcome.status, outcome.stderr.as_str()),
        (0, ""),
        "{args:?}"
    );
    outcome.stdout
}

#[test]
fn listed_table_events_match_perf() {
    let Some(perf) = real_perf() else {
        return skip(
            "commands::event_tables::listed_table_events_match_perf",
            "there is no perf",
        );
    };
    let scratch = Scratch::new();
    let machine = FakeMachine::new(scratch.path());
    for words in [
        &["--no-desc", "mem_load_retired.l3_hit"][..],
        &["--no-desc", "load_latency_gt_128"],
        &["--raw-dump", "offcore_response.demand_data_rd.any_response"],
        &["--no-desc", "cas_count_read"],
        &["energy"],
    ] {
        let words = [&["list"], words].concat();
        let theirs = machine.run(Run::new(&perf).args(&words).within(scratch.path()));
        let ours = machine.run(rperf_in(&scratch, &words));
        assert!(!ours.stdout.is_empty(), "{words:?}: {}", ours.stderr);
        assert_eq!(ours.stdout, theirs.stdout, "{words:?}");
    }
}

#[test]
fn events_of_tables_are_listed_by_topic_with_descriptions() {
    let l3 = format!("  {:<50}\n       [", "mem_load_retired.l3_hit");
    let brief = "Loads that retired and hit the third level cache Supports address when\n        precise (Precise event)]\n";
    assert_eq!(listed(&["l3_hit"]), format!("\ncore:\n{l3}{brief}"));
    let long = "At length Supports address when precise (Precise event)]\n        cpu/event=0xd1,period=0xc365,umask=0x4/\n";
    assert_eq!(listed(&["-v", "l3_hit"]), format!("\ncore:\n{l3}{long}"));
    let memory = listed(&["unc_m_cas"]);
    assert!(
        memory.ends_with("       [Reads of memory. Unit: uncore_imc]\n"),
        "{memory}"
    );
    let both = listed(&["pmu"]);
    assert!(both.contains("uncore_imc_0/cas_count_read/") && both.contains("unc_m_cas_count.rd"));
    assert!(!both.contains("br_misp_retired.old"));
    assert!(listed(&["--deprecated", "pmu"]).contains("br_misp_retired.old"));
    assert_eq!(
        listed(&["--unit", "uncore_imc", "--no-desc", "retired", "unc_m"])
            .lines()
            .count(),
        1
    );
    let objects: serde_json::Value =
        serde_json::from_str(&listed(&["-j", "unc_m_cas", "metric"])).expect("JSON");
    assert_eq!(objects[0]["Encoding"], "uncore_imc/event=0x4,umask=0x3/");
    assert_eq!(
        (&objects[0]["ScaleUnit"], &objects[0]["Unit"]),
        (&"64Bytes".into(), &"uncore_imc".into())
    );
    assert_eq!(objects[1]["MetricName"], "cpi");
}

#[test]
fn metrics_are_listed_by_name_and_by_group() {
    let cpi = "  cpi\n       [Cycles per instruction]\n";
    let ipc = "  ipc\n       [Instructions per cycle]\n";
    assert_eq!(listed(&["metric"]), format!("\nMetrics:\n\n{cpi}{ipc}"));
    assert_eq!(
        listed(&["metricgroup"]),
        "\nMetric Groups:\n\nRet\nSummary\n"
    );
    let groups = format!("\nMetric Groups:\n\nRet:\n{ipc}Summary:\n{cpi}{ipc}");
    assert_eq!(listed(&["metric", "metricgroup"]), groups);
    assert!(listed(&[]).ends_with(&groups));
    let formula = "       [INST_RETIRED.ANY / CPU_CLK_UNHALTED.THREAD]\n";
    assert_eq!(
        listed(&["--details", "ipc"]),
        format!("\nMetric Groups:\n\nRet:\n{ipc}{formula}Summary:\n{ipc}{formula}")
    );
    assert_eq!(listed(&["--raw-dump", "metric"]), "cpi ipc ");
}

#[test]
fn raw_codes_are_decoded_to_event_names() {
    let row = |name: &str| format!("  {name:<50} [Raw hardware event descriptor]\n");
    let decoded = "       cpu/event=0xd1,umask=0x4/\n       alias mem_load_retired.l3_hit\n";
    assert_eq!(listed(&["r04d1"]), format!("{}{decoded}", row("r4d1")));
    let unknown_bits = "       cpu/event=0xc4,inv=0x1,cmask=0x2,config=0x8000000000000000/\n";
    assert_eq!(
        listed(&["r80000000028000c4"]),
        format!("{}{unknown_bits}", row("r80000000028000c4"))
    );
}
