//! `rperf evlist`: recordings of both tools, compared with perf; a stream (pipe format), compared with a file; refused words; and
//! a generated file that is truncated.

use std::fs;

use rperf_testkit::{Scratch, assert_golden, may_trace};

use super::recording::Recording;
use super::{assert_refused, rperf};
use crate::kernel::rperf_in;
use crate::tidy::root;
use crate::tools::{BOTH, Tool, Tools};

/// The options with which each file is listed.
const OPTIONS: &[&[&str]] = &[
    &[],
    &["-F"],
    &["-v"],
    &["-vF"],
    &["-g"],
    &["--trace-fields"],
    &["-F", "--trace-fields"],
    &["-v", "--trace-fields"],
];

/// The names of the recordings that perf makes as well. There are few of them, since perf takes long to record.
const BY_BOTH: &[&str] = &["groups", "mixed", "breakpoint"];

/// Names of recordings and the options that make them.
const RECORDINGS: &[(&str, &[&str])] = &[
    ("default", &["true"]),
    ("chains", &["-g", "-F", "99", "-e", "cpu-clock:u", "true"]),
    (
        "groups",
        &["-e", "{cpu-clock,page-faults},task-clock", "true"],
    ),
    (
        "period",
        &["-c", "1000", "-e", "page-faults", "-e", "cs:k", "true"],
    ),
    ("system", &["-a", "-e", "task-clock", "-d", "true"]),
    ("breakpoint", &["-e", "mem:0x1000:rw", "true"]),
];

/// Like [`RECORDINGS`], with events that need tracefs.
const TRACEPOINTS: &[(&str, &[&str])] = &[
    (
        "mixed",
        &[
            "-e",
            "sched:sched_switch,cs,sched:sched_process_exec",
            "true",
        ],
    ),
    ("wide", &["-e", "syscalls:sys_*_openat", "true"]),
];

#[test]
fn evlist_matches_perf() {
    let Some(tools) = Tools::find_for("evlist_matches_perf") else {
        return;
    };
    let more = match may_trace("evlist_matches_perf") {
        true => TRACEPOINTS,
        false => &[],
    };
    for (name, options) in RECORDINGS.iter().chain(more) {
        for tool in BOTH {
            if tool == Tool::Perf && !BY_BOTH.contains(name) {
                continue;
            }
            let Some(file) = tools.record(tool, name, options) else {
                continue;
            };
            for words in OPTIONS {
                let text = tools.assert_same(&[&["evlist", "-i", &file], *words].concat());
                assert!(!text.is_empty(), "{file} has events");
            }
        }
    }
}

#[test]
fn a_pipe_and_a_file_have_the_same_events() {
    let test = "a_pipe_and_a_file_have_the_same_events";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    if !may_trace(test) {
        return;
    }
    // Only rperf lists the events: of a stream, perf's evlist shows neither the names of tracepoints nor groups, and it crashes
    // on --trace-fields (docs/compatibility.md).
    let events = ["-e", "{cpu-clock,page-faults},sched:sched_switch"];
    let words = [&events[..], &["-o", "-", "true"]].concat();
    let stream = tools.path().join("stream");
    let shell = format!("perf record -q {} > stream", words.join(" "));
    let recorded = rperf_testkit::Run::new("sh").args(["-c", &shell]);
    let recorded = recorded.within(tools.path()).finish().expect("sh starts");
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let words = [&events[..], &["true"]].concat();
    let recording = tools.record(Tool::Perf, "file", &words);
    let recording = recording.expect("perf records");
    let bytes = fs::read(&stream).expect("perf wrote a stream");
    for words in [&[][..], &["-F"], &["-g"], &["--trace-fields"]] {
        let command = |input| [&["evlist", "-i", input], words].concat();
        let file = tools.outcome(Tool::Rperf, &command(&recording));
        assert_eq!(file.status, 0, "{words:?}: {file:?}");
        assert!(!file.stdout.is_empty(), "{words:?}: {file:?}");
        // The stream in a file, and below through a pipe.
        let stored = tools.outcome(Tool::Rperf, &command("stream"));
        assert_eq!(file, stored, "{words:?}");
        let piped = tools.run(Tool::Rperf, &command("-")).stdin(bytes.clone());
        assert_eq!(piped.finish().expect("rperf starts"), file, "{words:?}");
    }
}

#[test]
fn exclusive_options_and_unexpected_words_are_refused() {
    let stderr = "  Error: --group option is not compatible with other options\nhint: use -g without -F and -v\n";
    assert_refused(&["evlist", "-g", "-F"], 129, stderr);
    assert_refused(&["evlist", "-vg"], 129, stderr);
    assert_refused(
        &["evlist", "nosuch"],
        129,
        "  Error: unexpected word 'nosuch'\n Usage: rperf evlist [<options>]\nhint: 'rperf evlist -h' lists the options\n",
    );
}

#[test]
fn a_file_given_without_the_option_i_gets_a_hint() {
    let scratch = Scratch::new();
    scratch.write("old.data", "").expect("a scratch file");
    for command in ["evlist", "buildid-list", "heatmap"] {
        let refused = rperf_in(&scratch, &[command, "old.data"]).finish();
        let refused = refused.expect("rperf starts");
        assert_eq!(refused.status, 129, "{refused:?}");
        let hint = "\nhint: -i old.data reads this file\n";
        assert!(refused.stderr.ends_with(hint), "{refused:?}");
    }
    // `flamegraph` takes the word as a command to record, which fails.
    let refused = rperf_in(&scratch, &["flamegraph", "old.data"]).finish();
    let refused = refused.expect("rperf starts");
    assert_eq!(refused.status, 255, "{refused:?}");
    let hint = "\nhint: -i old.data draws this file\n";
    assert!(refused.stderr.ends_with(hint), "{refused:?}");
}

#[test]
fn truncated_files_are_reported() {
    let scratch = Scratch::new();
    let complete = Recording::new().finish();
    let list = |bytes: &[u8]| {
        scratch.write("perf.data", bytes).expect("a file");
        let run = rperf(&["evlist", "-v", "--trace-fields"]);
        run.within(scratch.path()).finish().expect("rperf starts")
    };
    let outcome = list(&complete);
    assert_eq!(outcome.status, 0);
    assert_golden(
        &root().join("tests/golden/evlist/attr.txt"),
        &outcome.stdout,
    );
    // Wherever a file is truncated, the command lists its events or fails, and always reports the damage. Every ninth length is
    // enough: 9 is 8 + 1, so the end moves through every byte of an 8-byte word.
    for length in (0..complete.len()).step_by(9) {
        let outcome = list(&complete[..length]);
        assert!(matches!(outcome.status, 0 | 255), "{length}: {outcome:?}");
        assert!(!outcome.stderr.is_empty(), "{length}: {outcome:?}");
        assert_eq!(outcome.status == 0, !outcome.stdout.is_empty());
    }
}
