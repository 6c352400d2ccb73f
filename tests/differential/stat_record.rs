//! `stat record` and `stat report`: both tools read each other's and their own files, with the common aggregation modes.

use std::process::Command;

use regex::Regex;
use rperf_testkit::skip;

use super::{Tool, Tools, assert_alike, difference};
use crate::kernel::is_root;

/// Options and workload, and whether they need root.
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

/// Aggregation modes of `stat report`.
const MODES: [&[&str]; 6] = [
    &[],
    &["-A"],
    &["--per-core"],
    &["--per-die"],
    &["--per-socket"],
    &["--per-node"],
];

/// Removes the metrics, and blanks at the ends of lines, if the counts are those of intervals (`-I`). Metrics of intervals
/// differ from perf's: rperf divides by the length of the interval (docs/compatibility.md).
fn without_metrics_of_intervals(text: &str, in_intervals: bool) -> String {
    let metric = Regex::new("(?m)( *#  .*| +)$").expect("a pattern");
    match in_intervals {
        true => metric.replace_all(text, "").into_owned(),
        false => text.to_owned(),
    }
}

/// Differences in the output of `script`: the rows of counts from the file `counts.data`, its dump, and the rows from a pipe, for
/// which the options and workload `counted` are recorded again.
fn script_differences(tools: &Tools, counted: &[&str], recorder: Tool) -> Vec<String> {
    let file = "counts.data";
    let line = [&["stat", "record", "-o", "-"], counted].concat();
    let mut record = Command::new(tools.program(recorder));
    let piped = record.args(&line).output().expect("it starts").stdout;
    let scripts: [(&[&str], &[u8]); 3] = [
        (&["script", "-i", file], &[]),
        (&["script", "-D", "-i", file], &[]),
        (&["script", "-i", "-"], &piped),
    ];
    let mismatches = scripts.into_iter().filter_map(|(words, stdin)| {
        let [perf, rperf] = tools
            .outcomes(words, stdin)
            .map(|outcome| format!("status {}\n{}", outcome.status, outcome.stdout));
        // The heading of the rows shows that rperf's output is neither empty nor an error.
        assert!(rperf.contains("RUN            TIME EVENT\n"), "{rperf}");
        let mismatch = difference(&perf, &rperf)?;
        Some(format!(
            "{recorder:?} {line:?}\n{}\n{mismatch}",
            words.join(" ")
        ))
    });
    mismatches.collect()
}

/// Records counts with the options and workload `counted`; returns the differences between both tools' reports and scripts.
fn differences(tools: &Tools, counted: &[&str], recorder: Tool) -> Vec<String> {
    let words = [&["stat", "record", "-o", "counts.data"], counted].concat();
    let made = tools.outcome(recorder, &words);
    assert_eq!(made.status, 0, "{recorder:?} {words:?}: {}", made.stderr);
    // Counts of tasks cannot be aggregated by CPU. The first two modes are enough for them: the default and a refused one.
    let of_cpus = words.iter().any(|word| *word == "-a" || *word == "-C");
    let modes = MODES.iter().take(if of_cpus { MODES.len() } else { 2 });
    let reports = modes.filter_map(|mode| {
        let line = [&["stat", "report", "-i", "counts.data"], *mode].concat();
        let [perf, rperf] = tools.outcomes(&line, b"").map(|outcome| {
            // As in perf, `stat report` prints to stderr.
            let text = format!("status {}\n{}", outcome.status, outcome.stderr);
            without_metrics_of_intervals(&text, words.contains(&"-I"))
        });
        let mismatch = difference(&perf, &rperf)?;
        let recorder = format!("{recorder:?} {}", words.join(" "));
        Some(format!("{recorder}\n{}\n{mismatch}", line.join(" ")))
    });
    let scripts = script_differences(tools, counted, recorder);
    reports.chain(scripts).collect()
}

#[test]
fn recorded_counts_of_both_tools_are_shown_alike() {
    let test = "differential::stat_record::recorded_counts_of_both_tools_are_shown_alike";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    if !is_root() {
        // The other counts are compared nevertheless.
        skip(test, "system-wide counting needs root");
    }
    let counted = COUNTED.iter().filter(|(_, root)| !root || is_root());
    let mut mismatches = Vec::new();
    for (words, _) in counted {
        for recorder in [Tool::Perf, Tool::Rperf] {
            mismatches.extend(differences(&tools, words, recorder));
        }
    }
    assert_alike(&mismatches);
}

#[test]
fn recorded_counts_pass_through_a_pipe() {
    let test = "differential::stat_record::recorded_counts_pass_through_a_pipe";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
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
        let made = Command::new(tools.program(recorder)).args(words).output();
        let made = made.expect("the recorder starts");
        let [perf, rperf] = tools.outcomes(&["stat", "report", "-i", "-"], &made.stdout);
        assert_eq!(perf, rperf, "{recorder:?}");
        assert!(rperf.stderr.contains("task-clock"), "{}", rperf.stderr);
    }
}
