//! `rperf script` on generated recordings; tests/differential/script.rs compares it with perf on real ones.

mod built_in;
mod columns;
mod exported;
mod json;
mod native;
mod optional_fields;
mod perl;
mod rows;
pub(crate) mod scripts;

use std::path::{Path, PathBuf};

use rperf_testkit::{Bytes, FileAttr, PerfFile, Scratch, assert_golden};

use super::recording::{MISC_EXEC, MISC_USER, Recording, Sampled};
use super::{rperf, without_notes};
use crate::tidy::root;

/// Markers in callchains: `PERF_CONTEXT_KERNEL`, `PERF_CONTEXT_USER` and `PERF_CONTEXT_GUEST`.
const KERNEL: u64 = (-128_i64).cast_unsigned();
const USER: u64 = (-512_i64).cast_unsigned();
const GUEST: u64 = (-2048_i64).cast_unsigned();

/// A recording with special cases of threads, names, orders and callchains that do not depend on the machine.
fn odd_recording() -> Vec<u8> {
    let mut file = Recording::new();
    // Address, length, and offset in the file.
    let program = (0x0040_0000, 0x1000, 0x1000);
    let sample = |ids, time, chain: &'static [u64]| Sampled { ids, time, chain };
    file.comm(0, (10, 10), "first", 0);
    file.mmap(10, program, "/nonexistent/program", 0);
    file.sample(sample(
        (10, 10),
        1_000_999_999,
        &[USER, 0x0040_0010, 0x0040_0ff0],
    ));
    // Earlier than the sample before it in the file: output is in time order.
    file.sample(sample((10, 10), 1_000_000_000, &[USER, 0x0040_0020]));
    // An address before any marker is in user space. Then an unmapped address, and the first one after a mapping.
    file.sample(sample(
        (10, 10),
        1_001_000_001,
        &[0x0040_0020, USER, 0x9999_0000, 0x0040_1000],
    ));
    // A guest marker invalidates the callchain: it is printed without frames, like an empty callchain.
    file.sample(sample(
        (10, 10),
        1_002_000_000,
        &[USER, 0x0040_0010, GUEST, 0x0040_0020],
    ));
    file.sample(sample((10, 10), 1_003_000_000, &[]));
    // Names: an unknown thread, one that inherits its name, one whose process executes another program.
    file.sample(sample((77, 78), 1_004_000_000, &[USER, 0x0040_0010]));
    file.fork((10, 10), (10, 11), 1_005_000_000);
    file.sample(sample((10, 11), 1_006_000_000, &[USER, 0x0040_0010]));
    file.comm(MISC_EXEC | MISC_USER, (10, 10), "second", 1_007_000_000);
    file.sample(sample((10, 10), 1_008_000_000, &[USER, 0x0040_0010]));
    // A new mapping overlaps the old one.
    file.mmap(
        10,
        (0x0040_0800, 0x400, 0),
        "/nonexistent/library.so",
        1_009_000_000,
    );
    let split = &[USER, 0x0040_07ff, 0x0040_0800, 0x0040_0bff, 0x0040_0c00];
    file.sample(sample((10, 10), 1_010_000_000, split));
    // Two samples with one time keep the file's order; a name that fills its column; the idle task.
    file.comm(0, (123_456, 123_456), "fifteen letters", 1_010_000_000);
    file.sample(sample(
        (123_456, 123_456),
        1_011_000_000,
        &[USER, 0x0040_0010],
    ));
    file.sample(sample(
        (0, 0),
        1_011_000_000,
        &[KERNEL, 0x8000_0000_0000_0000],
    ));
    file.finish()
}

fn golden(name: &str) -> PathBuf {
    root().join("tests/golden/script").join(name)
}

/// Runs `script` on a file of these bytes in its own folder.
fn script(bytes: &[u8], words: &[&str]) -> rperf_testkit::Outcome {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", bytes)
        .expect("a file can be written");
    rperf(&[&["script"], words].concat())
        .within(scratch.path())
        .finish()
        .expect("the binary starts")
}

/// Compares stdout with the golden file; stderr must have no messages but notes, and the status must be 0.
#[track_caller]
fn assert_script(bytes: &[u8], words: &[&str], name: &str) {
    let outcome = script(bytes, words);
    let messages = without_notes(&outcome.stderr);
    assert_eq!((outcome.status, messages.as_str()), (0, ""), "{words:?}");
    assert_golden(&golden(name), &outcome.stdout);
}

#[test]
fn the_odd_recording_is_printed_like_the_golden_files() {
    for (words, name) in GOLDEN_CASES {
        assert_script(&odd_recording(), words, name);
    }
}

/// Options and the golden file of the output.
const GOLDEN_CASES: &[(&[&str], &str)] = &[
    (&[], "default.txt"),
    (&["-F", "comm,pid,tid,time,event"], "line.txt"),
    (&["-F", "ip,sym,dso"], "frames.txt"),
    (&RECORDS, "records.txt"),
];

/// Options that print non-sample records, too.
const RECORDS: [&str; 4] = [
    "--show-task-events",
    "--show-mmap-events",
    "-F",
    "comm,tid,time,misc,event",
];

/// The golden files equal perf's output, if perf is available.
#[test]
fn golden_files_equal_perfs_output() {
    let Some(perf) = rperf_testkit::real_perf() else {
        return rperf_testkit::skip("golden_files_equal_perfs_output", "there is no perf");
    };
    assert_perf(&perf, &odd_recording(), GOLDEN_CASES);
}

/// Compares perf's output with the golden files.
fn assert_perf(perf: &Path, bytes: &[u8], cases: &[(&[&str], &str)]) {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", bytes)
        .expect("a file can be written");
    for (words, name) in cases {
        let outcome = rperf_testkit::Run::new(perf)
            .args([&["script", "-f"], *words].concat())
            .within(scratch.path())
            .finish()
            .expect("perf starts");
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        assert_golden(&golden(name), &outcome.stdout);
    }
}

#[test]
fn a_truncated_recording_prints_complete_records_and_fails() {
    let recording = odd_recording();
    let complete = script(&recording, &[]).stdout;
    // Bytes removed from the end.
    for missing in [1, 8, 40, 77] {
        let outcome = script(&recording[..recording.len() - missing], &[]);
        assert_eq!(outcome.status, 255, "{missing}: {}", outcome.stderr);
        assert!(
            complete.starts_with(&outcome.stdout),
            "{missing}: {}",
            outcome.stdout
        );
        assert!(
            outcome.stdout.contains("first"),
            "{missing}: {}",
            outcome.stdout
        );
        assert!(
            outcome.stderr.contains("perf.data"),
            "{missing}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn foreign_files_and_truncated_headers_are_refused_in_one_line() {
    for (bytes, cause) in [
        (&b"#!/bin/sh\necho\n"[..], "not a perf.data file"),
        (&b"PERFILE2"[..], "truncated inside its header"),
    ] {
        let outcome = script(bytes, &[]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (255, ""));
        assert!(
            outcome
                .stderr
                .starts_with("incompatible file format (perf.data): "),
            "{}",
            outcome.stderr
        );
        assert!(outcome.stderr.contains(cause), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
}

#[test]
fn an_unknown_field_lists_the_known_ones() {
    let outcome = script(&odd_recording(), &["-F", "comm,nosuch"]);
    assert_eq!(outcome.status, 129);
    assert!(
        outcome
            .stderr
            .starts_with("Invalid field requested.\nunknown field 'nosuch'"),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("hint: the fields are comm, tid, "),
        "{}",
        outcome.stderr
    );
}

#[test]
fn events_of_one_name_have_files_of_their_own() {
    let attr = FileAttr {
        kind: 1,
        period: 1000,
        // TID and IDENTIFIER.
        sample_type: 1 << 1 | 1 << 16,
        // `exclude_guest`: otherwise the name would have modifiers.
        flags: 1 << 20,
        ..FileAttr::default()
    };
    let mut recording = PerfFile::new();
    recording.event(&attr, &[1]).event(&attr, &[2]);
    for (id, tid) in [(1, 71), (2, 72), (2, 72)] {
        let body = Bytes::new().u64(id).u32(7).u32(tid);
        recording.record(PerfFile::SAMPLE, PerfFile::USER, body.done());
    }
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording.finish())
        .expect("a file");
    let words = ["script", "--per-event-dump", "-F", "tid"];
    let outcome = rperf(&words).within(scratch.path()).finish();
    let outcome = outcome.expect("rperf starts");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    for (name, tid, samples) in [
        ("perf.data.cpu-clock.dump", "71", 1),
        ("perf.data.cpu-clock.2.dump", "72", 2),
    ] {
        let text = std::fs::read_to_string(scratch.path().join(name)).expect(name);
        let tids: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(tids, vec![tid; samples], "{name}");
        let line = format!(" MB {name} ({samples} samples) ]\n");
        assert!(outcome.stdout.contains(&line), "{outcome:?}");
    }
}

#[test]
fn options_that_conflict_or_lack_another_are_refused() {
    for (words, message) in [
        (
            &["-D", "--debug-mode"][..],
            "-D and --debug-mode exclude each other",
        ),
        (
            &["-D", "--per-event-dump"],
            "-D and --per-event-dump exclude each other",
        ),
        (
            &["-d", "--per-event-dump"],
            "--debug-mode and --per-event-dump exclude each other",
        ),
        (&["--addr-range", "16"], "--addr-range needs -S ADDRESS"),
    ] {
        let outcome = script(&odd_recording(), words);
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (129, ""),
            "{words:?}"
        );
        assert!(
            outcome.stderr.contains(message),
            "{words:?}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn options_that_need_a_file_are_refused_for_streams() {
    // The header of a stream is only the magic number and the header's size.
    let mut head = b"PERFILE2".to_vec();
    head.extend(16_u64.to_le_bytes());
    for option in ["--per-event-dump", "--show-round-events"] {
        let run = rperf(&["script", "-i", "-", option]).stdin(head.clone());
        let outcome = run.finish().expect("the binary starts");
        let message = format!(
            "-: {option} needs a file, this is a stream\n\
             hint: write the stream to a file, and read that with -i\n"
        );
        assert_eq!((outcome.status, outcome.stderr), (255, message));
    }
}

#[test]
fn a_closed_pipe_is_silent() {
    let scratch = Scratch::new();
    let mut file = Recording::new();
    // More output than fits into a pipe.
    for time in 0..20_000 {
        file.sample(Sampled {
            ids: (1, 1),
            time,
            chain: &[USER, 1, 2, 3],
        });
    }
    scratch
        .write("perf.data", file.finish())
        .expect("a file can be written");
    let line = format!(
        "{} script | head -n 1",
        Path::new(env!("CARGO_BIN_EXE_rperf")).display()
    );
    let outcome = rperf_testkit::Run::new("sh")
        .args(["-c", &line])
        .within(scratch.path())
        .finish()
        .expect("a shell starts");
    assert_eq!(
        outcome.stdout,
        ":1     1     0.000000:     250000 cpu-clock:HG: \n"
    );
    assert_eq!(outcome.stderr, "");
}

/// `deferred.data` was recorded by perf 7.2 with `--call-graph fp,defer`.
#[test]
fn deferred_callchains_belong_to_their_samples() {
    let folder = root().join("tests/golden/script");
    let file = folder.join("deferred.data");
    let file = file.to_string_lossy();
    let words = [
        "script",
        "-f",
        "-F",
        "comm,tid,time,event,ip,dso",
        "-i",
        &file,
    ];
    let outcome = rperf(&words).finish().expect("the binary starts");
    let messages = without_notes(&outcome.stderr);
    assert_eq!((outcome.status, messages.as_str()), (0, ""));
    assert_golden(&folder.join("deferred.txt"), &outcome.stdout);
    // 61 samples, some taken in user space and some in the kernel, have frames of the program; one has only frames of the kernel.
    let stacks = outcome
        .stdout
        .split("\n\n")
        .filter(|stack| !stack.is_empty());
    let complete = stacks
        .clone()
        .filter(|stack| stack.contains("/payload/deep"));
    assert_eq!((stacks.count(), complete.count()), (62, 61));
}

/// Browsers show samples by running `script`, with some of the options of the command that opened the browser: `PASSED_VALUES`
/// and `PASSED_SWITCHES` in src/cli/shared/browser.rs.
#[test]
fn options_that_browsers_pass_on_are_known() {
    let list = super::outcome(&["script", "--list-opts"]).stdout;
    let known: Vec<&str> = list.split_whitespace().collect();
    let passed = "vmlinux kallsyms symfs debuginfod itrace dsos comms pid tid cpu time switch-on switch-off force ignore-vmlinux \
                  demangle demangle-kernel inline mark-truncated show-on-off-events full-source-path ns";
    for id in passed.split_whitespace() {
        assert!(known.contains(&&*format!("--{id}")), "{id}: {list}");
    }
}
