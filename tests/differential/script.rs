//! `script` of both tools, on recordings of every kind.

use std::fs;

use rperf_testkit::{Run, may_trace, skip};

use super::compare::with_lost_mappings;
use super::recordings::{FinishedRecording, RECORDINGS, Recording, Target};
use super::workloads::Workloads;
use super::{Tool, Tools, assert_alike, difference, settled};

/// Options of `script` for every recording.
const SCRIPT: &[&[&str]] = &[&[], &["-F", "comm,pid,tid,time,event,ip,sym,dso"]];

/// Additional options for perf's recordings `frames, with callchains` and `frames, flat`.
const FRAMES_OPTIONS: &[&[&str]] = &[
    &["-F", "comm"],
    &["-F", "pid"],
    &["-F", "event,ip"],
    &["-F", "time,period"],
    &["-F", "ip,sym,symoff"],
    &["-F", "sym"],
    &["-F", "-dso"],
    &["-F", "-ip"],
    &["-F", "-symoff,-period"],
    &["-F", "+pid"],
    &["-F", "-comm,-tid"],
    &["-F", "sw:comm,ip,dso"],
    &["-F", "sw:-time"],
    &["-F", "sw:comm", "-F", "hw:time"],
    &["--fields", "tid", "--fields", "comm,time"],
    &["--ns"],
    &["--reltime"],
    &["--deltatime", "--ns", "-F", "comm,time,ip"],
    &["-G"],
    &["--max-stack", "2"],
    &["--max-stack", "0"],
    &["--stop-bt", "do_syscall_64,main"],
    &["--show-kernel-path"],
    &["--no-inline"],
    &["--comms", "frames,perf-exec"],
    &["--dsos", "[kernel.kallsyms]"],
    &["-S", "leaf,clear_page_erms,ffffffff81000000"],
    &["--time", "10%/2"],
    &["--time", "0%-10%,40%-50%"],
    &["--reltime", "--time", "0.01,0.02 0.05,0.06"],
];

/// Options that both tools refuse with the same status, and a part of their messages.
const REFUSED: &[(&[&str], &str)] = &[
    (&["-F", "nosuch"], "Invalid field requested."),
    (
        &["-F", "+time,comm"],
        "Cannot mix +-field with overridden fields",
    ),
    (
        &["-F", "nosuch:comm"],
        "Invalid event type in field string.",
    ),
    (
        &["-F", ""],
        "Cannot set fields to 'none' for all event types.",
    ),
    (
        &["-F", "sw:trace"],
        "'trace' not valid for software events.",
    ),
    (
        &["-F", "hw:"],
        "hardware events do not exist. Remove corresponding -F option to proceed.",
    ),
    (
        &["-F", "comm,addr"],
        "event do not have ADDR attribute set. Cannot print 'addr' field.",
    ),
    (
        &["-F", "comm,cpu"],
        "event do not have CPU attribute set. Cannot print 'cpu' field.",
    ),
    (
        &["-F", "-sym"],
        "Display of offsets requested but symbol is notselected.",
    ),
    (
        &["-C", "0"],
        "File does not contain CPU events. Remove -C option to proceed.",
    ),
    (
        &["--reltime", "--deltatime"],
        "reltime and deltatime - the two don't get along well.",
    ),
    (&["--time", "5,4"], "Invalid time string"),
];

#[test]
fn script_prints_the_same_lines() {
    let Some(tools) = Tools::find() else {
        return skip("script_prints_the_same_lines", "there is no perf");
    };
    let workloads = Workloads::build(tools.path());
    let mut differences = Vec::new();
    for recording in RECORDINGS {
        for recorder in [Tool::Perf, Tool::Rperf] {
            let is_thorough = recorder == Tool::Perf && recording.name.starts_with("frames, ");
            let more: &[&[&str]] = if is_thorough { FRAMES_OPTIONS } else { &[] };
            let lines = || SCRIPT.iter().chain(more);
            // `made` has the file and, for `compare_system_wide`, the pid of the process that ran throughout the recording.
            let compare = |made: &FinishedRecording| {
                let is_system_wide = recording.is_system_wide();
                let mismatches = lines().filter_map(|words| match is_system_wide {
                    true => compare_system_wide(&tools, made, words),
                    false => compare_script(&tools, &made.file, words),
                });
                mismatches.collect()
            };
            let mismatches =
                recording.differences_with_process(&tools, &workloads, recorder, compare);
            differences.extend(mismatches);
        }
    }
    workloads.clean_up();
    assert_alike(&differences);
}

#[test]
fn script_refuses_with_the_same_words() {
    let Some(tools) = Tools::find() else {
        return skip("script_refuses_with_the_same_words", "there is no perf");
    };
    let recording = Recording {
        name: "a shell",
        options: &["-e", "cpu-clock:u", "-c", "50000"],
        target: Target::Command(&[
            "sh",
            "-c",
            "i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done",
        ]),
    };
    let workloads = Workloads::none();
    let file = recording.make(&tools, &workloads, Tool::Perf);
    let file = file.expect("perf records a shell");
    for (words, message) in REFUSED {
        let line = [&["script", "-i", &file], *words].concat();
        // perf's outcome, then rperf's. What perf prints to the standard output before it refuses is not compared.
        let outcomes = tools.outcomes(&line, &[]);
        for outcome in &outcomes {
            assert!(outcome.stderr.contains(message), "{line:?}: {outcome:?}");
        }
        assert_ne!(outcomes[0].status, 0, "{line:?}");
        assert_eq!(outcomes[0].status, outcomes[1].status, "{line:?}");
        assert_eq!(outcomes[1].stdout, "", "{line:?}");
    }
}

/// Runs `script` on one file with both tools; returns the differences with the command line.
pub(crate) fn compare_script(tools: &Tools, file: &str, words: &[&str]) -> Option<String> {
    let line = [&["script", "-i", file], words].concat();
    compare_line(tools, &line, &[])
}

/// Like `compare_script`, for a system-wide recording, from which perf may have lost mappings of any process except
/// `made.steady`, which ran throughout the recording.
fn compare_system_wide(tools: &Tools, made: &FinishedRecording, words: &[&str]) -> Option<String> {
    let line = [&["script", "-i", &made.file], words].concat();
    compare_outcomes(tools, &line, &[], |perf, rperf| {
        difference(perf, &with_lost_mappings(perf, rperf, made.steady))
    })
}

/// Compares the text that both tools print for a command line.
fn compare_line(tools: &Tools, line: &[&str], stdin: &[u8]) -> Option<String> {
    compare_outcomes(tools, line, stdin, difference)
}

/// Like `compare_line`, but `compare` returns the differences between perf's text and rperf's, in this order.
fn compare_outcomes(
    tools: &Tools,
    line: &[&str],
    stdin: &[u8],
    compare: impl Fn(&str, &str) -> Option<String>,
) -> Option<String> {
    let [perf, rperf] = tools.outcomes(line, stdin);
    let command = line.join(" ");
    assert_eq!(perf.status, 0, "perf {command}: {}", perf.stderr);
    if rperf.status != 0 {
        return Some(format!(
            "{command}\n  status {}: {}",
            rperf.status, rperf.stderr
        ));
    }
    // Without filters, perf prints something for every recording.
    let filters = ["--comms", "--dsos", "--time", "-S", "--switch-on"];
    let is_filtered = line.iter().any(|word| filters.contains(word));
    assert!(
        is_filtered || !perf.stdout.is_empty(),
        "{command} prints nothing: the recording is empty"
    );
    let mismatch = compare(&perf.stdout, &rperf.stdout)?;
    Some(format!("{command}\n{mismatch}"))
}

/// A shell that opens files, starts programs and sleeps.
const SHELL: Target = Target::Command(&[
    "sh",
    "-c",
    "for i in 1 2 3; do sleep 0.002; done; ls / > /dev/null; ls /proc > /dev/null",
]);

/// Recordings with tracepoints alone and with other events, and with side-band records.
const MIXED: &[Recording] = &[
    Recording {
        name: "openat and switches",
        options: &["-e", "sched:sched_switch,syscalls:sys_enter_openat"],
        target: SHELL,
    },
    Recording {
        name: "clock, faults and openat with callchains and registers",
        options: &[
            "-g",
            "-d",
            "-W",
            "--phys-data",
            "--data-page-size",
            "--code-page-size",
            "-I",
            "-k",
            "monotonic",
            "-e",
            "cpu-clock,page-faults",
            "-e",
            "syscalls:sys_enter_openat",
        ],
        target: SHELL,
    },
    Recording {
        name: "side-band",
        options: &[
            "--switch-events",
            "--namespaces",
            "--all-cgroups",
            "-F",
            "4999",
        ],
        target: SHELL,
    },
];

/// Options for each recording of [`MIXED`]. Every third is also used to read a recording through a pipe.
const OPTIONS: &[&[&str]] = &[
    &["--ns"],
    &["--reltime"],
    &["--deltatime"],
    &["--max-stack", "2"],
    &["--comms", "sh,sleep"],
    &["--stop-bt", "do_syscall_64"],
    &[
        "--show-task-events",
        "--show-mmap-events",
        "-F",
        "comm,pid,tid,time,misc",
    ],
    &["--show-task-events", "--reltime"],
    &[
        "--show-switch-events",
        "--show-namespace-events",
        "--show-cgroup-events",
    ],
    &["--show-lost-events", "--show-bpf-events", "-F", "-time"],
    &["-F", "+misc,+flags,+pid"],
];

/// Additional options for each recording of [`MIXED`], for files only: perf refuses some for pipes (`50%/2`, relative times).
const FILE_OPTIONS: &[&[&str]] = &[
    &["-G"],
    &["--time", "50%/2"],
    &["--time", "0%-40%,50%-90%"],
    &["--reltime", "--time", "0,0.04"],
    &["--show-task-events", "-F", "comm,event"],
    &["-F", "comm,tid,event,bpf-output,brstack"],
    &["--header-only"],
    &["-I", "--header-only"],
];

/// Additional options for the file of the recording with registers, addresses and a clock (`-k`).
const DETAIL_OPTIONS: &[&[&str]] = &[
    &["-F", "comm,iregs"],
    &["-F", "+addr,+weight"],
    &["-F", "+tod", "--ns"],
    &["-F", "addr,phys_addr,data_page_size,code_page_size"],
    &["-F", "sw:comm,addr,iregs", "-F", "trace:comm,trace"],
];

/// The output of `perf record -o -`, which a shell writes into a file.
fn piped(tools: &Tools, recording: &Recording) -> Vec<u8> {
    let Target::Command(target) = recording.target else {
        panic!(
            "{}: only commands are recorded through pipes",
            recording.name
        );
    };
    let file = "piped.data";
    let line = format!("\"$0\" record -q -o - \"$@\" > {file}");
    let outcome = Run::new("sh")
        .args(["-c", &line])
        .args([tools.program(Tool::Perf)])
        .args([recording.options, &["--"], target].concat())
        .within(tools.path())
        .env("HOME", tools.path())
        .finish()
        .expect("a shell starts");
    assert_eq!(outcome.status, 0, "{}: {}", recording.name, outcome.stderr);
    fs::read(tools.path().join(file)).expect("the recording was written")
}

#[test]
fn script_shows_tracepoints_mixtures_and_pipes_alike() {
    const NAME: &str = "script_shows_tracepoints_mixtures_and_pipes_alike";
    let Some(tools) = Tools::find() else {
        return skip(NAME, "there is no perf");
    };
    if !may_trace(NAME) {
        return;
    }
    let mut differences = Vec::new();
    for recording in MIXED {
        // Recorded and compared again if there are differences, a few times at most.
        differences.extend(settled(|| compare_mixed(&tools, recording)));
    }
    assert_alike(&differences);
}

/// Compares every command line that applies to the recording on a file, and every third of [`OPTIONS`] on a pipe. The pipe has a
/// recording of its own.
fn compare_mixed(tools: &Tools, recording: &Recording) -> Vec<String> {
    let stream = piped(tools, recording);
    let lines = OPTIONS.iter().step_by(3);
    let mut mismatches: Vec<String> = lines
        .filter_map(|words| {
            let line = [&["script", "-i", "-"], *words].concat();
            compare_line(tools, &line, &stream)
        })
        .collect();
    let file = recording.make(tools, &Workloads::none(), Tool::Perf);
    let file = file.expect("perf records a shell");
    let has_registers = recording.options.contains(&"-I");
    let more: &[_] = if has_registers { DETAIL_OPTIONS } else { &[] };
    let lines = OPTIONS.iter().chain(FILE_OPTIONS).chain(more);
    mismatches.extend(lines.filter_map(|words| compare_script(tools, &file, words)));
    mismatches
}
