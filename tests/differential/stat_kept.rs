//! `stat record` and `stat report`: each tool shows what the other has kept, by every part of the machine.

use std::ffi::OsStr;
use std::process::Command;

use regex::Regex;

use super::{Tool, Tools, assert_alike, difference};
use crate::kernel::is_root;

/// What is counted, and whether it needs root.
const COUNTED: &[(&[&str], bool)] = &[
    (&["-e", "{cs,faults},task-clock,cycles", "true"], false),
    (&["-e", "cs,task-clock", "-I", "20", "sleep", "0.05"], false),
    (
        &[
            "-a",
            "--per-core",
            "-e",
            "cs,cpu-clock,cycles",
            "sleep",
            "0.02",
        ],
        true,
    ),
    (
        &["-a", "-e", "cs,cpu-clock", "-I", "20", "sleep", "0.03"],
        true,
    ),
    (&["-C", "0", "-e", "cs,msr/tsc/", "sleep", "0.02"], true),
];

/// By what it is shown.
const SHOWN: [&[&str]; 6] = [
    &[],
    &["-A"],
    &["--per-core"],
    &["--per-die"],
    &["--per-socket"],
    &["--per-node"],
];

/// Metrics of intervals divide by the time of their own interval: docs/compatibility.md.
fn without_metrics_of_intervals(text: &str, in_intervals: bool) -> String {
    let metric = Regex::new("(?m)( *#  .*| +)$").expect("a pattern");
    match in_intervals {
        true => metric.replace_all(text, "").into_owned(),
        false => text.to_owned(),
    }
}

fn differences(tools: &Tools, words: &[&str], recorder: Tool) -> Vec<String> {
    let words = [&["stat", "record", "-o", "counts.data"], words].concat();
    let made = tools.outcome(recorder, &words);
    assert_eq!(made.status, 0, "{recorder:?} {words:?}: {}", made.stderr);
    // Tasks are not of parts of the machine, which is said.
    let of_cpus = words
        .iter()
        .any(|word| word.starts_with("-a") || *word == "-C");
    let shown = SHOWN.iter().take(if of_cpus { SHOWN.len() } else { 2 });
    let shown = shown.filter_map(|shown| {
        let shown = [&["stat", "report", "-i", "counts.data"], *shown].concat();
        let [perf, rperf] = tools.outcomes(&shown, b"").map(|outcome| {
            let text = format!("status {}\n{}", outcome.status, outcome.stderr);
            without_metrics_of_intervals(&text, words.contains(&"-I"))
        });
        let found = difference(&perf, &rperf)?;
        let recorder = format!("{recorder:?} {}", words.join(" "));
        Some(format!("{recorder}\n{}\n{found}", shown.join(" ")))
    });
    shown.collect()
}

#[test]
fn kept_counts_are_shown_alike_whoever_kept_them() {
    let Some(tools) = Tools::find() else { return };
    let counted = COUNTED.iter().filter(|(_, root)| !root || is_root());
    let mut found = Vec::new();
    for (words, _) in counted {
        for recorder in [Tool::Perf, Tool::Rperf] {
            found.extend(differences(&tools, words, recorder));
        }
    }
    assert_alike(&found);
}

#[test]
fn kept_counts_pass_through_a_pipe() {
    let Some(tools) = Tools::find() else { return };
    let words = [
        "stat",
        "record",
        "-o",
        "-",
        "-e",
        "cs,task-clock,cycles",
        "true",
    ];
    for recorder in [Tool::Perf, Tool::Rperf] {
        let program = match recorder {
            Tool::Perf => tools.perf.as_os_str(),
            Tool::Rperf => OsStr::new(env!("CARGO_BIN_EXE_rperf")),
        };
        let made = Command::new(program).args(words).output();
        let made = made.expect("the recorder starts");
        let [perf, rperf] = tools.outcomes(&["stat", "report", "-i", "-"], &made.stdout);
        assert_eq!(perf, rperf, "{recorder:?}");
        assert!(rperf.stderr.contains("task-clock"), "{}", rperf.stderr);
    }
}
