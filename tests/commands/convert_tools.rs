//! Converted recordings as other tools read them: names, units, the event that is converted.

use std::process::Command;

use rperf_testkit::{Scratch, skip};

use super::convert::{converted, json, list, pprof, ran, recorded};
use super::{perfetto_trace, rperf};
use crate::tidy::root;

#[test]
fn page_faults_have_neither_weights_nor_cpu_time_in_firefox() {
    let scratch = Scratch::new();
    recorded(&scratch, &["-c", "1", "-e", "page-faults:u"]);
    let file = json(&converted(&scratch, "firefox", &[]));
    assert!(!list(&file["threads"]).is_empty());
    for thread in list(&file["threads"]) {
        let samples = &thread["samples"];
        assert_eq!(samples["weightType"], "samples");
        assert!(samples["weight"].is_null() && samples.get("threadCPUDelta").is_none());
    }
}

#[test]
fn the_event_with_most_samples_is_the_main_one_in_firefox() {
    let scratch = Scratch::new();
    // The first event usually has fewer samples; then its samples must be the markers.
    let events = "cpu-clock:u,page-faults/period=1/u";
    recorded(&scratch, &["-F", "200", "-e", events]);
    let file = json(&converted(&scratch, "firefox", &[]));
    let threads = list(&file["threads"]);
    let rows = |table: &str| -> u64 {
        let lengths = threads.iter().map(|thread| &thread[table]["length"]);
        lengths
            .map(|length| length.as_u64().expect("a number"))
            .sum()
    };
    let (samples, markers) = (rows("samples"), rows("markers"));
    assert!(samples >= markers && markers > 0, "{file}");
}

#[test]
fn folded_text_has_one_event_and_a_note_names_the_others() {
    let scratch = Scratch::new();
    recorded(
        &scratch,
        &["-g", "-F", "999", "-e", "cpu-clock:u,page-faults:u"],
    );
    // The sum of the weights of all stacks, and the standard error.
    let folded = |words: &[&str]| {
        let run = rperf(words)
            .within(scratch.path())
            .env("HOME", scratch.path());
        let outcome = run.finish().expect("rperf starts");
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let weight = |line: &str| line.rsplit_once(' ')?.1.parse::<u64>().ok();
        let sum: u64 = outcome.stdout.lines().filter_map(weight).sum();
        (sum, outcome.stderr)
    };
    for words in [
        &["data", "convert", "--to-folded", "-"][..],
        &["script", "report", "stackcollapse"],
        &["flamegraph", "--folded"],
    ] {
        let with_event = |event: &str| folded(&[words, &["-e", event]].concat());
        let (clock, silent) = with_event("cpu-clock");
        assert!(!silent.contains("not used"), "{words:?}: {silent}");
        let (faults, _) = with_event("page-faults:u");
        let (drawn, note) = folded(words);
        assert_eq!(drawn, clock.max(faults), "{words:?}");
        let (used, unused, unused_count) = match clock >= faults {
            true => ("cpu-clock:u", "page-faults:u", faults),
            false => ("page-faults:u", "cpu-clock:u", clock),
        };
        let line =
            format!("using the {drawn} samples of {used}; not used: {unused} ({unused_count})\n");
        assert!(note.contains(&line), "{words:?}: {note}");
        assert!(
            note.contains("hint: -e NAME selects another event\n"),
            "{note}"
        );
    }
}

#[test]
fn processes_and_renamed_threads_have_their_names() {
    let test = "commands::convert_tools::processes_and_renamed_threads_have_their_names";
    let scratch = Scratch::new();
    let compiled = Command::new("gcc")
        .args(["-O1", "-pthread", "-o", "renamed"])
        .arg(root().join("tests/workloads/renamed.c"))
        .current_dir(scratch.path())
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        return skip(test, "there is no C compiler");
    }
    let words = ["record", "-q", "-F", "997", "-e", "cpu-clock:u"];
    ran(
        &scratch,
        &[&words[..], &["-o", "perf.data", "--", "./renamed"]].concat(),
    );
    // The first thread has no samples, or a few while the program is loaded.
    let firefox = json(&converted(&scratch, "firefox", &[]));
    let threads = list(&firefox["threads"]).iter();
    let names: Vec<_> = threads
        .filter(|thread| thread["isMainThread"] == false)
        .map(|thread| [&thread["processName"], &thread["name"]].map(|name| name.as_str()))
        .collect();
    let [before, after] = ["z before", "a after"].map(|name| [Some("renamed"), Some(name)]);
    assert!(
        names.contains(&before) && names.contains(&after),
        "{names:?}"
    );
    assert!(
        names.iter().all(|[process, _]| *process == Some("renamed")),
        "{names:?}"
    );
    let perfetto = perfetto_trace::decode(&converted(&scratch, "perfetto", &[]));
    let processes: Vec<_> = perfetto.processes.values().collect();
    assert_eq!(processes, ["renamed"]);
    // The renamed thread has the highest thread id; `threads` has its last name.
    let (_, last) = perfetto.threads.last_key_value().expect("a thread");
    assert_eq!(last, "a after", "{:?}", perfetto.threads);
}

#[test]
fn pprof_shows_demangled_names_as_they_are() {
    let test = "commands::convert_tools::pprof_shows_demangled_names_as_they_are";
    let scratch = Scratch::new();
    let source = root().join("tests/workloads/shapes.cpp");
    let compiled = Command::new("g++")
        .args(["-O1", "-fno-omit-frame-pointer", "-o", "shapes"])
        .arg(source)
        .current_dir(scratch.path())
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        return skip(test, "there is no C++ compiler");
    }
    let words = [
        "record",
        "-q",
        "-F",
        "1999",
        "-e",
        "cpu-clock:u",
        "-o",
        "perf.data",
    ];
    ran(&scratch, &[&words[..], &["--", "./shapes"]].concat());
    converted(&scratch, "pprof", &[]);
    let Some(sorted) = pprof(scratch.path(), "-top") else {
        return skip(test, "there is no pprof");
    };
    assert!(sorted.contains("File: shapes\n"), "{sorted}");
    let raw = pprof(scratch.path(), "-raw").expect("it was there");
    let period = raw.lines().find_map(|line| line.strip_prefix("Period: "));
    assert_eq!(period, Some("500250"), "the period of 1999 Hz: {raw}");
    // If a name is equal to its `system_name`, pprof drops template arguments and the text before them.
    let name = "geometry::Grid<double, 1000>::operator()";
    assert!(sorted.contains(name), "{sorted}");
}
