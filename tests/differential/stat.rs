//! `stat`: the output of both tools for the same command lines. Numbers are masked, column positions compared.

use regex::Regex;

use super::{Tool, Tools, assert_alike, difference, settled};
use crate::kernel::{Running, can_trace};

/// Command lines that any user may run. `PID` is replaced by the pid of a running process.
const LINES: &[&[&str]] = &[
    &["true"],
    &["-d", "true"],
    &["-dd", "true"],
    &["-d", "-d", "-d", "true"],
    &["-e", "cs", "true"],
    &["-e", "cs,task-clock", "-e", "page-faults", "true"],
    &[
        "-e",
        "cs,task-clock,page-faults,minor-faults,major-faults,migrations",
        "--",
        "sleep",
        "0.01",
    ],
    &[
        "-e",
        "alignment-faults,emulation-faults,dummy,bpf-output,cgroup-switches",
        "true",
    ],
    &["-e", "cycles:u,instructions:k,cs:u,faults:uk", "true"],
    &["-e", "r1c2,cycles,L1-dcache-load-misses", "true"],
    &["-e", "{cs,page-faults}", "true"],
    &["-e", "{cs,page-faults},{task-clock,faults:u}", "true"],
    &["-g", "-e", "cs,page-faults", "true"],
    &["-e", "msr/tsc/,task-clock", "true"],
    &["-e", "cpu-clock/name=mine/,cs", "true"],
    &[
        "--no-inherit",
        "-e",
        "cs,task-clock",
        "sh",
        "-c",
        "true; true",
    ],
    &["--no-scale", "-e", "cs,task-clock", "true"],
    &["--all-user", "-e", "faults,task-clock", "true"],
    &["--no-big-num", "-e", "cs,task-clock", "true"],
    &["-B", "-e", "cs,task-clock", "true"],
    &["-n", "sleep", "0.01"],
    &[
        "-r",
        "3",
        "-e",
        "task-clock,cs,page-faults,cycles",
        "sleep",
        "0.01",
    ],
    &["-r", "2", "-n", "sleep", "0.02"],
    &[
        "-r2",
        "-x,",
        "-e",
        "task-clock,cs,page-faults,cycles",
        "sleep",
        "0.01",
    ],
    &[
        "-r",
        "2",
        "-j",
        "-e",
        "task-clock,cs,page-faults",
        "sleep",
        "0.01",
    ],
    &["-x,", "true"],
    &["-x:", "-e", "cs,page-faults,cycles", "true"],
    &["-x", "\\t", "-e", "cs,task-clock", "true"],
    &["-j", "true"],
    &["-j", "-e", "cs,task-clock,cycles", "true"],
    &["-S", "-e", "cs", "true"],
    &[
        "-e",
        "cs,duration_time,user_time",
        "sh",
        "-c",
        "for i in 1 2 3 4 5 6 7 8 9; do :; done; sleep 0.01",
    ],
    &["-x,", "-e", "duration_time,cs", "sleep", "0.01"],
    &["-D", "10", "-e", "task-clock", "sleep", "0.05"],
    &["-D", "-1", "-e", "cs", "sleep", "0.01"],
    &["--timeout", "100", "-e", "task-clock", "-p", "PID"],
    &["-p", "PID", "-e", "task-clock,cs", "sleep", "0.05"],
    &["-t", "PID", "-e", "task-clock,cs", "sleep", "0.05"],
    &[
        "--per-thread",
        "-p",
        "PID",
        "-e",
        "task-clock,cycles",
        "sleep",
        "0.05",
    ],
    &[
        "--per-thread",
        "-p",
        "PID",
        "-x,",
        "-e",
        "task-clock,cycles",
        "sleep",
        "0.05",
    ],
    &[
        "--per-thread",
        "-p",
        "PID",
        "-j",
        "-e",
        "task-clock,cycles",
        "sleep",
        "0.05",
    ],
    &[
        "-I",
        "50",
        "--interval-count",
        "1",
        "-e",
        "task-clock,cs",
        "sleep",
        "0.1",
    ],
    &[
        "-I",
        "50",
        "--interval-count",
        "1",
        "-p",
        "PID",
        "-e",
        "task-clock,cycles",
        "sleep",
        "0.1",
    ],
    &[
        "-I",
        "50",
        "--interval-count",
        "1",
        "-p",
        "PID",
        "-j",
        "-e",
        "task-clock",
        "sleep",
        "0.1",
    ],
    &[
        "-I50",
        "--interval-count",
        "1",
        "--per-thread",
        "-p",
        "PID",
        "-e",
        "task-clock",
        "sleep",
        "0.1",
    ],
    &["-o", "/dev/stdout", "-e", "cs", "true"],
    &["--log-fd", "1", "-x,", "-e", "cs", "true"],
    &["-e", "cs", "sh", "-c", "exit 7"],
    &[
        "-e",
        "cs",
        "-o",
        "/dev/stdout",
        "--append",
        "sh",
        "-c",
        "exit 3",
    ],
    &["-e", "cs", "./no-such-program"],
    &["-e", "cs", "--log-fd", "99", "true"],
];

/// Command lines that only root may run.
const ROOT_LINES: &[&[&str]] = &[
    &["-a", "sleep", "0.02"],
    &["-C", "0", "-e", "cs,task-clock,cycles", "sleep", "0.02"],
    &["-aA", "-e", "cs,cpu-clock,cycles", "sleep", "0.02"],
    &["-aAC0", "-e", "cs,cpu-clock", "sleep", "0.02"],
    &["-x,", "-aA", "-e", "cs,cpu-clock,cycles", "sleep", "0.02"],
    &["-x,", "-aA", "-e", "cs,duration_time", "sleep", "0.02"],
    &["-j", "-aA", "-e", "cs,cpu-clock,cycles", "sleep", "0.02"],
    &["-aA", "-e", "msr/tsc,percore/,msr/tsc/", "sleep", "0.02"],
    &[
        "-x,",
        "-aA",
        "-e",
        "msr/tsc,percore/,msr/tsc/",
        "sleep",
        "0.02",
    ],
    &[
        "-a",
        "--per-core",
        "-e",
        "cs,cpu-clock,cycles",
        "sleep",
        "0.02",
    ],
    &[
        "-a",
        "--per-core",
        "-x,",
        "-e",
        "cs,cpu-clock,cycles",
        "sleep",
        "0.02",
    ],
    &[
        "-a",
        "--per-core",
        "-j",
        "-e",
        "cs,cpu-clock,cycles",
        "sleep",
        "0.02",
    ],
    &[
        "-a",
        "--per-die",
        "-e",
        "cs,cpu-clock,cycles",
        "sleep",
        "0.02",
    ],
    &[
        "-a",
        "--per-die",
        "-x,",
        "-e",
        "cs,cpu-clock,cycles",
        "sleep",
        "0.02",
    ],
    &[
        "-a",
        "--per-socket",
        "-e",
        "cs,cpu-clock,cycles",
        "sleep",
        "0.02",
    ],
    &[
        "-a",
        "--per-socket",
        "-j",
        "-e",
        "cs,cpu-clock,cycles",
        "sleep",
        "0.02",
    ],
    &[
        "-a",
        "--per-node",
        "-e",
        "cs,cpu-clock,cycles",
        "sleep",
        "0.02",
    ],
    &[
        "-a",
        "--per-node",
        "-x,",
        "-e",
        "cs,cpu-clock,cycles",
        "sleep",
        "0.02",
    ],
    &[
        "-a",
        "-I",
        "50",
        "--interval-count",
        "1",
        "-e",
        "cs,cpu-clock,cycles",
        "sleep",
        "0.1",
    ],
    &[
        "-aA",
        "-I",
        "50",
        "--interval-count",
        "1",
        "-e",
        "cs,cpu-clock,cycles",
        "sleep",
        "0.1",
    ],
    &[
        "-a",
        "--per-core",
        "-I",
        "50",
        "--interval-count",
        "1",
        "-e",
        "cs,cpu-clock",
        "sleep",
        "0.1",
    ],
    &[
        "-a",
        "--per-die",
        "-I",
        "50",
        "--interval-count",
        "1",
        "-e",
        "cs,cpu-clock",
        "sleep",
        "0.1",
    ],
    &[
        "-a",
        "--per-socket",
        "-I",
        "50",
        "--interval-count",
        "1",
        "-e",
        "cs",
        "sleep",
        "0.1",
    ],
    &[
        "-a",
        "--per-node",
        "-I",
        "50",
        "--interval-count",
        "1",
        "-e",
        "cs",
        "sleep",
        "0.1",
    ],
    &[
        "-a",
        "-I",
        "50",
        "--interval-count",
        "1",
        "--summary",
        "-e",
        "cs,cpu-clock",
        "sleep",
        "0.1",
    ],
    &[
        "-a",
        "-I",
        "50",
        "--interval-count",
        "1",
        "--summary",
        "-x,",
        "-e",
        "cs",
        "sleep",
        "0.1",
    ],
    &[
        "-a",
        "-I",
        "50",
        "--interval-count",
        "1",
        "--summary",
        "--no-csv-summary",
        "-x,",
        "-e",
        "cs",
        "sleep",
        "0.1",
    ],
    &[
        "-aA",
        "-I",
        "50",
        "--interval-count",
        "1",
        "-x,",
        "-e",
        "cs,cycles",
        "sleep",
        "0.1",
    ],
    &[
        "-aA",
        "-I",
        "50",
        "--interval-count",
        "1",
        "-j",
        "-e",
        "cs,cpu-clock",
        "sleep",
        "0.1",
    ],
    &["-a", "-e", "cs,cpu-clock", "-G", "/", "sleep", "0.02"],
    &[
        "-a",
        "-e",
        "cs,cpu-clock",
        "-G",
        "/",
        "-x,",
        "sleep",
        "0.02",
    ],
    &[
        "-a",
        "--for-each-cgroup",
        "/",
        "-e",
        "cs,cpu-clock",
        "sleep",
        "0.02",
    ],
    &[
        "-e",
        "sched:sched_process_e*,sched:sched_process_fork",
        "sh",
        "-c",
        "true; true",
    ],
    &[
        "-e",
        "sched:sched_switch",
        "--filter",
        "prev_pid > 1",
        "true",
    ],
    &["-e", "mem:0x1000:w,cs", "true"],
];

/// Masks everything in the output of `stat` that depends on the run. In lines with columns, a number and the blanks before it are
/// replaced by their width; in other lines (CSV, JSON, digits grouped by commas), the number is replaced by `#`.
pub(crate) fn masked(text: &str) -> String {
    let rules = [
        // Intended differences: docs/compatibility.md.
        (r"(?m)^hint: .*\n", ""),
        (r"(?m)^Warning: the group of .*\n", ""),
        (r#""metric-unit" : "\(null\)""#, r#""metric-unit" : """#),
        // Multiplexing percentages depend on timing.
        (r" *\([0-9.]+%\)", ""),
        // Standard deviations depend on the runs, and one of zero is not printed.
        (r" *\( \+- *[0-9.]+% \)", ""),
        // The elapsed time and its deviation, with varying numbers of digits.
        (r"[0-9.]+ \+- [0-9.]+", "M"),
        (r"(?m)^ +M", "M"),
        // The unit depends on the rate.
        (r"[KMG]/sec", "/sec"),
        (r"# started on .*", "# started on T"),
    ];
    let mut text = text.to_owned();
    for (pattern, instead) in rules {
        let rule = Regex::new(pattern).expect("a pattern");
        text = rule.replace_all(&text, instead).into_owned();
    }
    let number = Regex::new(r"( *)(-?[0-9][0-9.]*)").expect("a pattern");
    let lines = text.lines().map(|line| {
        let is_columns = line.contains("  ") && !line.contains(',');
        let mask = |number: &regex::Captures<'_>| match is_columns {
            true => format!("<{}>", number[0].len()),
            false => format!("{}#", &number[1]),
        };
        number.replace_all(line, mask).trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Compares the outcomes of command lines. The tools run one after the other: if both ran at once, each would also count the
/// other's events in system-wide lines. A line whose outcomes differ is tried again a few times ([`settled`]). Skips `test` and
/// returns no differences if there is no perf.
fn differences(test: &str, lines: &[&[&str]]) -> Vec<String> {
    let Some(tools) = Tools::find_for(test) else {
        return Vec::new();
    };
    let spinning = Running::spin();
    let pid = spinning.0.id().to_string();
    let mut mismatches = Vec::new();
    for line in lines {
        let words = line
            .iter()
            .map(|word| if *word == "PID" { &pid } else { *word });
        let words: Vec<&str> = std::iter::once("stat").chain(words).collect();
        mismatches.extend(settled(|| {
            let outcome = |tool| {
                let outcome = tools.outcome(tool, &words);
                format!(
                    "status {}\n{}{}",
                    outcome.status,
                    masked(&outcome.stdout),
                    masked(&outcome.stderr)
                )
            };
            let mismatch = difference(&outcome(Tool::Perf), &outcome(Tool::Rperf));
            let mismatch = mismatch.map(|mismatch| format!("{}\n{mismatch}", words.join(" ")));
            mismatch.into_iter().collect()
        }));
    }
    mismatches
}

#[test]
fn tables_match_perf() {
    assert_alike(&differences("differential::stat::tables_match_perf", LINES));
}

#[test]
fn tables_that_need_root_match_perf() {
    let test = "differential::stat::tables_that_need_root_match_perf";
    if can_trace(test) {
        assert_alike(&differences(test, ROOT_LINES));
    }
}

/// Counts of a deterministic program are exactly equal.
#[test]
fn counts_of_a_program_match_perf() {
    let test = "differential::stat::counts_of_a_program_match_perf";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    if !can_trace(test) {
        return;
    }
    let events = "syscalls:sys_enter_write,syscalls:sys_enter_read,sched:sched_process_exec";
    let copy = [
        "if=/dev/zero",
        "of=/dev/null",
        "bs=1",
        "count=1000",
        "status=none",
    ];
    let words = [&["stat", "-x,", "-e", events, "dd"][..], &copy].concat();
    let counts = |tool| -> Vec<String> {
        let outcome = tools.outcome(tool, &words);
        let first = |line: &str| line.split(',').next().unwrap_or_default().to_owned();
        outcome.stderr.lines().map(first).collect()
    };
    let rperf = counts(Tool::Rperf);
    assert_eq!(rperf, counts(Tool::Perf));
    assert_eq!(rperf[0], "1000");
}

#[test]
fn masks_keep_columns() {
    let row = |number: &str| format!("  {number} msec task-clock  #    0.5 CPUs utilized   \n");
    assert_eq!(masked(&row("   1")), masked(&row("1234")));
    assert_ne!(masked(&row("   1")), masked(&row("12345")));
    assert_eq!(masked("1,,cs,22,1.5,K/sec\n"), masked("9,,cs,1,0.7,/sec\n"));
    assert_ne!(masked("1,,cs,22\n"), masked("<not counted>,,cs,22\n"));
}
