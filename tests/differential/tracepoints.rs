//! Recordings of tracepoints, alone and with other events, recorded and read by both tools.

use rperf_testkit::may_trace;

use super::recordings::{Recording, Target};
use super::report::compare_report;
use super::workloads::Workloads;
use super::{Tool, Tools, assert_alike, compare_script};

/// Starts programs and waits for them, opens files and sleeps.
const SHELL: Target = Target::Command(&[
    "sh",
    "-c",
    "for i in 1 2 3; do sleep 0.002; done; ls / > /dev/null; ls /proc > /dev/null",
]);

const RECORDINGS: &[Recording] = &[
    Recording {
        name: "patterns",
        options: &[
            "-e",
            "sched:sched_process_[ef]*",
            "-e",
            "syscalls:sys_*_openat",
        ],
        target: SHELL,
    },
    Recording {
        name: "tracepoints with callchains",
        options: &["-g", "-e", "sched:sched_switch,syscalls:sys_enter_openat"],
        target: SHELL,
    },
    Recording {
        name: "tracepoints and other events with callchains",
        options: &[
            "-g",
            "-F",
            "4999",
            "-e",
            "cpu-clock,page-faults",
            "-e",
            "syscalls:sys_enter_openat",
        ],
        target: SHELL,
    },
    Recording {
        name: "tracepoints and other events, raw, modified, filtered",
        options: &[
            "-R",
            "-c",
            "1",
            "-e",
            "context-switches",
            "-e",
            "sched:sched_switch:k,sched:sched_waking",
            "--filter",
            "common_pid != 0",
            "--filter",
            "common_flags < 256 || COMM ~ \"s*\"",
        ],
        target: SHELL,
    },
    Recording {
        name: "tracepoints of the whole system",
        options: &[
            "-a",
            "-e",
            "sched:sched_switch,timer:timer_start,timer:hrtimer_start,irq:softirq_entry",
        ],
        target: Target::Command(&["sleep", "0.05"]),
    },
];

/// Options of `script` for every recording.
const SCRIPT: &[&[&str]] = &[&[], &["-F", "comm,tid,event,trace"]];
/// Options of `report` for every recording.
const REPORT: &[&[&str]] = &[&[]];

/// Additional options of `script` for rperf's recordings with callchains.
const MORE_SCRIPT: &[&[&str]] = &[
    &["-F", "trace"],
    &["-F", "+trace"],
    &["-F", "-trace"],
    &["-F", "-ip"],
    &["-F", "+period,-cpu"],
    &["-F", "ip,sym,event,trace"],
    &["-F", "trace:comm,trace"],
];
/// Additional options of `report` for rperf's recordings with callchains.
const MORE_REPORT: &[&[&str]] = &[
    &["-s", "trace,comm", "-n", "-g", "none"],
    &["-s", "comm,trace", "--no-children"],
    &["-s", "sym,trace", "--no-children", "-g", "none"],
    &["-s", "comm,dso,sym", "-g", "caller"],
    &["-F", "sample,trace", "-s", "comm", "-g", "none"],
    &["--comms", "sh", "-s", "comm,trace", "-n", "-g", "none"],
    &["-g", "fractal,0", "-s", "comm"],
    &["-g", "folded,0,count", "--no-children"],
    &[
        "--percent-limit",
        "10",
        "--no-children",
        "--max-stack",
        "4",
        "-s",
        "comm,sym",
    ],
    &["--stats"],
    &["--raw-trace"],
    &["-s", "comm,trace", "--raw-trace", "--no-children"],
    &["-s", "trace_fields/raw,comm", "-n", "-g", "none"],
    &["-s", "common_pid,sym", "--no-children"],
    &["-s", "__syscall_nr,flags/raw,comm", "-n", "-g", "none"],
];

/// Additional options of `report` for rperf's recording `tracepoints with callchains`, which has `sched_switch`.
const SWITCHES: &[&[&str]] = &[
    &["-s", "next_pid", "--no-children"],
    &["-s", "sched:sched_switch.next_pid,comm", "-g", "none"],
    &["-s", "sched_switch.*", "-n", "-g", "none"],
    &["-s", "+prev_state/raw", "-g", "none"],
    &["-s", "%1.next_comm,sym", "--no-children", "-g", "caller"],
    &["-s", "switch.prev_comm", "--raw-trace", "--no-children"],
    &["-s", "parent,sym", "-p", "wait|exec", "--no-children"],
    &["-s", "comm", "-p", "^do_sys", "-x"],
];

/// Invalid sort keys, and a part of rperf's message about each.
const INVALID_SORT_KEYS: &[(&str, &str)] = &[
    ("nxt_pid", "the keys, most similar first: next_pid, "),
    (
        "sched_switch.nextcomm",
        "its fields, most similar first: next_comm, ",
    ),
    ("swich.next_pid", "tracepoints: sched:sched_switch, "),
    ("s.next_pid", "'s' does not select exactly one"),
    ("next_pid/hex", "Unknown --sort key: `next_pid/hex'"),
];

#[test]
fn tracepoints_are_shown_alike() {
    const NAME: &str = "tracepoints_are_shown_alike";
    let (Some(tools), true) = (Tools::find_for(NAME), may_trace(NAME)) else {
        return;
    };
    let mut differences = Vec::new();
    for recording in RECORDINGS {
        for recorder in [Tool::Perf, Tool::Rperf] {
            let compare = |file: &str| compare(&tools, recording, recorder, file);
            let mismatches = recording.differences(&tools, &Workloads::none(), recorder, compare);
            differences.extend(mismatches);
        }
    }
    assert_alike(&differences);
}

/// Compares the output of the command lines for one recording, and checks rperf's messages about invalid sort keys. perf's
/// `evlist` must read the recording without a message.
fn compare(tools: &Tools, recording: &Recording, recorder: Tool, file: &str) -> Vec<String> {
    let is_thorough = recorder == Tool::Rperf && recording.options.contains(&"-g");
    let more = |lines: &'static [_]| if is_thorough { lines } else { &[] };
    let script = SCRIPT.iter().chain(more(MORE_SCRIPT));
    let mut mismatches: Vec<String> = script
        .filter_map(|words| compare_script(tools, file, words))
        .collect();
    let report = REPORT.iter().chain(more(MORE_REPORT));
    mismatches.extend(report.filter_map(|words| compare_report(tools, file, words)));
    if is_thorough && recording.name == "tracepoints with callchains" {
        let switches = SWITCHES.iter();
        mismatches.extend(switches.filter_map(|words| compare_report(tools, file, words)));
        for (key, message) in INVALID_SORT_KEYS {
            let refused = tools.outcome(Tool::Rperf, &["report", "-i", file, "-s", key]);
            assert_eq!(refused.status, 129, "{}", refused.stderr);
            assert!(refused.stderr.contains(message), "{}", refused.stderr);
        }
    }
    let read = tools.outcome(Tool::Perf, &["evlist", "-i", file]);
    assert_eq!((read.status, &*read.stderr), (0, ""), "{file}");
    mismatches
}
