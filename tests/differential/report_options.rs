//! Options of `report` that select samples by socket or from the sample of one event to that of another (`--switch-on`,
//! `--switch-off`), change the details of rows, or print counts and dumps; and reference call graphs.

use rperf_testkit::skip;

use super::difference;
use super::recordings::{Recording, Target};
use super::report::compare_report;
use super::script_options::nameless;
use super::workloads::Workloads;
use super::{Tool, Tools, assert_alike};

/// Threads and processes with per-thread counts (`-s`), and events that switch the samples of other events on and off.
const RECORDING: Recording = Recording {
    name: "threads and their counts",
    options: &[
        "-s",
        "-g",
        "-e",
        "cpu-clock,page-faults,context-switches",
        "-F",
        "999",
        "-d",
        "--sample-cpu",
    ],
    target: Target::Command(&["family"]),
};

/// Options that select samples or keep the order of the file, used together with `-g none --no-children`.
const SELECTIONS: &[&[&str]] = &[
    &["--switch-on", "context-switches"],
    &["--switch-on", "page-faults", "--show-on-off-events"],
    &[
        "--switch-on",
        "context-switches",
        "--switch-off",
        "page-faults",
    ],
    &[
        "--switch-on",
        "context-switches",
        "--switch-off",
        "page-faults",
        "--show-on-off-events",
    ],
    &["--socket-filter", "0"],
    &["--socket-filter", "1", "-n"],
    &["--disable-order"],
];

/// Options for verbose rows, colours and memory accesses.
const DETAILS: &[&[&str]] = &[
    &["-v"],
    &["-v", "--no-children", "-n"],
    &["-v", "-s", "dso,sym", "-g", "none"],
    &["-v", "--hierarchy", "-g", "none"],
    &["--stdio-color=always"],
    &["--stdio-color=always", "--hierarchy", "-n", "-g", "folded"],
    &["--stdio-color", "-g", "none", "--show-cpu-utilization"],
    &["--stdio-color=never", "-g", "flat", "--no-children"],
    &["--mem-mode"],
    &["--mem-mode", "-g", "callee"],
    &["--mem-mode", "-v", "-s", "sym,dso,dso_daddr"],
];

#[test]
fn report_options_print_the_same_text() {
    let Some(tools) = Tools::find() else {
        return skip("report_options_print_the_same_text", "there is no perf");
    };
    let workloads = Workloads::build(tools.path());
    let compare = |file: &str| {
        let selections = SELECTIONS.iter().map(|words| {
            let words = [words, &["-g", "none", "--no-children"][..]].concat();
            compare_report(&tools, file, &words)
        });
        let details = DETAILS.iter();
        let details = details.map(|words| compare_report(&tools, file, words));
        let counts = compare_counts(&tools, file);
        let dump = compare_dump(&tools, file);
        selections
            .chain(details)
            .chain([counts, dump])
            .flatten()
            .collect()
    };
    let differences = RECORDING.differences(&tools, &workloads, Tool::Perf, compare);
    workloads.clean_up();
    assert_alike(&differences);
}

/// Compares records in file order. rperf does not report FINISHED_ROUND records as unhandled, and prints threads and objects as
/// of the record's time, while perf uses what it has read so far: docs/compatibility.md.
fn compare_dump(tools: &Tools, file: &str) -> Option<String> {
    let line = ["report", "-D", "--disable-order", "-i", file];
    let [perf, rperf] = tools.outcomes(&line, b"");
    let perf = perf.stdout.replace("_ROUND: unhandled!", "_ROUND");
    assert!(perf.contains("PERF_RECORD_SAMPLE"), "{perf}");
    let [perf, rperf] = [&perf, &rperf.stdout].map(|text| nameless(text));
    let mismatch = difference(&perf, &rperf)?;
    Some(format!("{}\n{mismatch}", line.join(" ")))
}

/// Compares the counts of each thread, which `--threads` prints after the tables.
fn compare_counts(tools: &Tools, file: &str) -> Option<String> {
    let line = ["report", "--stdio", "-T", "-i", file];
    let [perf, rperf] = tools.outcomes(&line, b"");
    let counts = |text: &str| {
        let start = text.lines().skip_while(|line| !line.contains(" TID"));
        start.collect::<Vec<_>>().join("\n")
    };
    let (perf, rperf) = (counts(&perf.stdout), counts(&rperf.stdout));
    assert!(perf.lines().count() > 2, "perf counts no threads: {perf}");
    let mismatch = difference(&perf, &rperf)?;
    Some(format!("{}\n{mismatch}", line.join(" ")))
}

/// Both tools mention reference call graphs at the end of the title, but only rperf prints the call graphs.
#[test]
fn events_without_callchains_show_reference_call_graphs() {
    const NAME: &str = "events_without_callchains_show_reference_call_graphs";
    let Some(tools) = Tools::find() else {
        return skip(NAME, "there is no perf");
    };
    let workloads = Workloads::build(tools.path());
    let recording = Recording {
        name: "two kinds",
        options: &[
            "-e",
            "cpu-clock/call-graph=fp/u",
            "-e",
            "task-clock/call-graph=no/u",
        ],
        target: Target::Command(&["frames", "150"]),
    };
    let file = recording.make(&tools, &workloads, Tool::Perf);
    let file = file.expect("perf records a program");
    let words = [
        "report",
        "--stdio",
        "-i",
        &file,
        "--no-children",
        "-S",
        "leaf",
    ];
    let plain = tools.outcome(Tool::Rperf, &words);
    let words = [&words[..], &["--show-ref-call-graph"]].concat();
    let [perf, rperf] = tools.outcomes(&words, &[]);
    let titles = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("# Samples:"));
        lines.map(str::to_owned).collect()
    };
    assert!(rperf.stdout.contains(", show reference callgraph"));
    assert_eq!(titles(&rperf.stdout), titles(&perf.stdout));
    let task_clock_has_main = |text: &str| {
        let (_, table) = text.split_once("of event 'task-clock").expect("its table");
        table.lines().any(|line| line.trim_end().ends_with(" main"))
    };
    assert!(
        !task_clock_has_main(&plain.stdout) && task_clock_has_main(&rperf.stdout),
        "{}",
        rperf.stdout
    );
}
