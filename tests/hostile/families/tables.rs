//! Vendor event tables, and PMUs in sysfs.

use crate::case::{Case, CaseInputs};
use crate::mutate;

/// The mapfile. The metrics in perf's format are read from `perf/skx_perf.json` beside the file that it names.
const MAP: &str = "Family-model,Version,Filename,EventType\nGenuineIntel-6-55-[01234],V1,/SKX/core.json,core\nGenuineIntel-6-55-[01234],V1,/SKX/metrics/skx.json,metrics\n";

const TABLE: &str = r#"{"Header": {"Info": "made by hand"}, "Events": [
{"EventName": "INST_RETIRED.ANY", "EventCode": "0x00", "UMask": "0x01", "SampleAfterValue": "2000003"},
{"EventName": "MEM_LOAD_RETIRED.L3_HIT", "EventCode": "0xD1", "UMask": "0x04", "SampleAfterValue": "50021", "PEBS": "1", "BriefDescription": "Loads.", "PublicDescription": "At length."},
{"EventName": "CYCLE_ACTIVITY.STALLS_TOTAL", "EventCode": "0xA3", "UMask": "0x04", "CounterMask": "4"},
{"EventName": "MEM_TRANS_RETIRED.GT_128", "EventCode": "0xCD", "UMask": "0x01", "MSRIndex": "0x3F6", "MSRValue": "0x80"},
{"EventName": "OFFCORE_RESPONSE.ANY", "EventCode": "0xB7, 0xBB", "UMask": "0x01", "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x10001"},
{"EventName": "UNC_M_CAS_COUNT.RD", "EventCode": "0x4", "UMask": "0x3", "Unit": "iMC", "PerPkg": "1", "ScaleUnit": "64Bytes"},
{"EventName": "BR_MISP_RETIRED.OLD", "EventCode": "0xC5", "Deprecated": "1"}
]}
"#;

const METRICS: &str = r#"[
{"MetricName": "ipc", "MetricExpr": "INST_RETIRED.ANY / CPU_CLK_UNHALTED.THREAD", "MetricGroup": "Ret;Summary", "BriefDescription": "Per cycle"},
{"MetricName": "cpi", "MetricExpr": "1 / ipc if #smt_on else max(ipc, min(1, d_ratio(ipc, 2)))", "MetricGroup": "Summary", "ScaleUnit": "1per_instr", "MetricThreshold": "cpi > 0.5 & ipc < 2"},
{"MetricName": "loop", "MetricExpr": "(loop2 + 1) * 100", "MetricGroup": "TopdownL1"},
{"MetricName": "loop2", "MetricExpr": "(ipc + 1) * 1e9 ^ 2 | 3", "MetricGroup": "TopdownL1"}
]
"#;

/// Files of PMUs, below the folder of devices.
const FILES: [(&str, &str); 12] = [
    ("cpu/type", "4\n"),
    ("cpu/format/event", "config:0-7\n"),
    ("cpu/format/umask", "config:8-15\n"),
    ("cpu/format/cmask", "config:24-31\n"),
    ("cpu/format/ldlat", "config1:0-15,32-33\n"),
    ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"),
    ("cpu/events/mem-loads.scale", "1.5e-3\n"),
    ("cpu/cpumask", "0-1,3\n"),
    ("uncore_imc_0/type", "20\n"),
    ("uncore_imc_0/format/event", "config:0-7\n"),
    (
        "uncore_imc_0/events/cas_count_read",
        "event=0x04,umask=0x03\n",
    ),
    ("uncore_imc_0/events/cas_count_read.unit", "MiB\n"),
];

const COMMANDS: &[&str] = &[
    "list",
    "list -v",
    "list --details",
    "list --json",
    "list --raw-dump",
    "list metric",
    "list pmu",
    "list --deprecated --unit iMC",
    "list *",
    "stat -M ipc,cpi,loop true",
    "stat -M Summary -x , true",
    "stat -e inst_retired.any,mem_load_retired.l3_hit,cpu/mem-loads/,uncore_imc/cas_count_read/ true",
    "record --dry-run -e cpu/event=0xc4,umask=1,cmask=2,ldlat=7/ true",
    "record --dry-run -e cycle_activity.stalls_total,offcore_response.any true",
];

/// Mutated event tables and files of PMUs.
pub(crate) fn of_events(inputs: &mut CaseInputs<'_>) -> Case {
    let random = &mut *inputs.random;
    let line = *random.pick(COMMANDS);
    let mut case = Case::new("tables of events", line);
    // `record --dry-run` prints nothing.
    case.may_be_silent = line.starts_with("record");
    // The damaged tables may lack the events and metrics of the arguments.
    case.may_be_misused = true;
    let mut files: Vec<(String, Vec<u8>)> = FILES
        .iter()
        .map(|(name, text)| {
            (
                format!("sys/bus/event_source/devices/{name}"),
                text.as_bytes().to_vec(),
            )
        })
        .collect();
    for (name, text) in [
        ("mapfile.csv", MAP),
        ("SKX/core.json", TABLE),
        ("SKX/metrics/perf/skx_perf.json", METRICS),
    ] {
        files.push((format!("tables/{name}"), text.as_bytes().to_vec()));
    }
    // The files of PMUs are followed by the mapfile, the events and the metrics.
    let mapfile = FILES.len();
    for _ in 0..1 + random.below(4) {
        let index = match random.one_in(3) {
            true => random.below(mapfile),
            false => mapfile + random.below(3),
        };
        let before = files[index].1.clone();
        mutate::text(&mut files[index].1, &before, random);
    }
    if line.starts_with("list") && random.one_in(10) {
        // A damaged mapfile may name no table; the valid one names the table that ends early.
        files[mapfile].1 = MAP.into();
        files[mapfile + 1].1 = TABLE[..TABLE.len() / 2].into();
        case.must_report_error = Some("a table that ends early");
    }
    for (name, text) in files {
        inputs.sandbox.write(&name, text);
    }
    case.env.push(("SYSFS_PATH", "sys".to_owned()));
    case.env.push(("RPERF_EVENTS", "tables".to_owned()));
    case.env
        .push(("PERF_CPUID", "GenuineIntel-6-55-4".to_owned()));
    case
}
