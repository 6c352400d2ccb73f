//! `report` of recordings written to a pipe, by either tool.

use std::process::{Command, Stdio};

use rperf_testkit::skip;

use super::report::compare_runs;
use super::{Tool, Tools, assert_alike, settled};

/// Options of each recording: one event by perf, and events of several types by rperf, both with callchains.
const RECORDINGS: &[&[&str]] = &[
    &["-g", "-F", "1999", "-e", "cpu-clock"],
    &[
        "-g",
        "-F",
        "999",
        "-e",
        "cpu-clock,sched:sched_switch,minor-faults",
    ],
];

/// The recorded command.
const SHELL: &[&str] = &[
    "sh",
    "-c",
    "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; ls / > /dev/null",
];

/// Options of `report`.
const REPORT: &[&[&str]] = &[
    &[],
    &["--no-children", "-n"],
    &["-g", "none", "-s", "comm,dso", "--show-total-period"],
    &["-g", "fractal"],
    &["-g", "folded,0", "-s", "comm"],
    &["-G", "--comms", "sh"],
    &["-F", "comm,sample,sym", "--percent-limit", "2"],
    &["--max-stack", "3", "-s", "sym"],
    &["-s", "comm,trace", "-g", "none"],
];

#[test]
fn pipes_are_reported_alike() {
    const NAME: &str = "pipes_are_reported_alike";
    let Some(tools) = Tools::find() else {
        return skip(NAME, "there is no perf");
    };
    let mut differences = Vec::new();
    for (options, recorder) in RECORDINGS.iter().zip([Tool::Perf, Tool::Rperf]) {
        // Repeats the recording a few times if there are differences.
        differences.extend(settled(|| compare(&tools, recorder, options)));
    }
    assert_alike(&differences);
}

/// Records with `recorder`, then compares the reports of both tools with each set of options in [`REPORT`].
fn compare(tools: &Tools, recorder: Tool, options: &[&str]) -> Vec<String> {
    let Some(bytes) = record(tools, recorder, options) else {
        skip("pipes_are_reported_alike", "the recording fails here");
        return Vec::new();
    };
    let mismatches = REPORT.iter().filter_map(|words| {
        let line = [&["report", "--stdio", "-i", "-"], *words].concat();
        let mismatch = compare_runs(tools, &line, |run| run.stdin(bytes.clone()))?;
        Some(format!("{options:?} {mismatch}"))
    });
    mismatches.collect()
}

/// The output of `record -o -`; `None` if it fails.
fn record(tools: &Tools, recorder: Tool, options: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new(tools.program(recorder));
    let home = tools.path();
    command.args(["record", "-q", "-o", "-"]).args(options);
    command.args(SHELL).current_dir(home).env("HOME", home);
    let output = command.stdin(Stdio::null()).output();
    let output = output.expect("the recorder starts");
    output.status.success().then_some(output.stdout)
}
