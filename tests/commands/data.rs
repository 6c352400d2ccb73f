//! `rperf data check` on intact and damaged recordings.

use rperf_testkit::{Bytes, Outcome, Scratch};

use super::generated_files::{Attr, ID, file, record};
use super::{assert_refused, rperf};
use crate::tools::{BOTH, Tools};

/// `PERF_SAMPLE_IP | TID | TIME | IDENTIFIER`.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 1 << 16;
const LOST: u32 = 2;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const EVENT_UPDATE: u32 = 78;
/// A type that no record has.
const UNKNOWN: u32 = 201;
/// `PERF_RECORD_MISC_USER`.
const USER: u16 = 2;

#[test]
fn recordings_of_both_tools_are_complete() {
    let Some(tools) = Tools::find_for("recordings_of_both_tools_are_complete") else {
        return;
    };
    for tool in BOTH {
        let words = ["-g", "-e", "cpu-clock,page-faults", "true"];
        let Some(file) = tools.record(tool, "whole", &words) else {
            continue;
        };
        let outcome = tools.outcome(crate::tools::Tool::Rperf, &["data", "check", &file]);
        let line = outcome.stdout.lines().last().unwrap_or_default();
        assert!(line.ends_with(": complete"), "{outcome:?}");
        assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{file}");
    }
}

fn sample(id: u64, time: u64) -> Vec<u8> {
    let body = Bytes::new().u64(id).u64(0x1004).u32(7).u32(8);
    record(SAMPLE, USER, body.u64(time))
}

fn comm(body: &[u8]) -> Vec<u8> {
    let trailer = Bytes::new().u32(7).u32(8).u64(10).u64(ID).done();
    record(COMM, 0, Bytes::new().raw(body).raw(trailer))
}

fn recording(records: &[Vec<u8>]) -> Vec<u8> {
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        ..Attr::default()
    };
    file(&attr, "x86_64", &records.concat())
}

fn check(bytes: &[u8], words: &[&str]) -> Outcome {
    let scratch = Scratch::new();
    scratch.write("perf.data", bytes).expect("a file");
    let run = rperf(&[&["data", "check"], words].concat());
    run.within(scratch.path()).finish().expect("rperf starts")
}

#[test]
fn faults_are_named_with_their_place() {
    // The first record is at offset 256. Of the three COMM records, the last two end within pid (before their trailer).
    let records = [
        sample(ID, 20),
        comm(b"\x07\0\0\0\x08\0\0\0name\0\0\0\0"),
        comm(b"\x07\0"),
        comm(b"\x07"),
        record(SAMPLE, USER, Bytes::new().u64(ID).u32(7)),
        record(EVENT_UPDATE, 0, Bytes::new().u64(0)),
        record(UNKNOWN, 0, Bytes::new().u64(1)),
        record(UNKNOWN, 0, Bytes::new().u64(1)),
        record(LOST, 0, Bytes::new().u64(ID).u64(3).raw([0; 24])),
    ];
    let outcome = check(&recording(&records), &[]);
    // Faults of one kind are one line, and are counted once in the last line.
    let expected = "\
perf.data: PERF_RECORD_COMM at offset 0x158 cannot be decoded: pid needs 4 bytes at offset 0 of the body, 2 are left; 1 more of this kind (PERF_RECORD_COMM)
perf.data: PERF_RECORD_SAMPLE at offset 0x19b cannot be decoded: ip needs 8 bytes at offset 8 of the body, 4 are left
perf.data: PERF_RECORD_EVENT_UPDATE at offset 0x1af cannot be decoded: event id needs 8 bytes at offset 8 of the body, 0 are left
perf.data: note: record type 201 at offset 0x1bf has an unknown type; 1 more of this kind (record type 201)
perf.data: note: 3 records were lost while recording (LOST records: 1)
perf.data: 9 records, 1 sample of 1 event, 1 header feature: 3 faults
";
    assert_eq!((outcome.stdout.as_str(), &*outcome.stderr), (expected, ""));
    assert_eq!(outcome.status, 1);
    let quiet = check(&recording(&records), &["-q"]);
    assert_eq!((quiet.status, &*quiet.stdout, &*quiet.stderr), (1, "", ""));
}

#[test]
fn a_truncated_recording_is_never_complete() {
    let complete = recording(&[sample(ID, 20), sample(ID, 30)]);
    let outcome = check(&complete, &[]);
    let line = "perf.data: 2 records, 2 samples of 1 event, 1 header feature: complete\n";
    assert_eq!((outcome.status, &*outcome.stdout), (0, line));
    // Not every length is tried: each takes one run of rperf.
    for length in (0..complete.len()).step_by(7) {
        let outcome = check(&complete[..length], &[]);
        // Truncated in its header or before the end of its attrs, it is not a recording.
        let status = if length < 256 { 255 } else { 1 };
        assert_eq!(outcome.status, status, "{length}: {outcome:?}");
        assert_eq!(outcome.stdout.is_empty(), status == 255, "{length}");
    }
}

#[test]
fn missing_files_and_other_formats_are_refused() {
    let outcome = check(b"#!/bin/sh\n", &[]);
    assert_eq!((outcome.status, &*outcome.stdout), (255, ""));
    assert!(
        outcome.stderr.contains("not a perf.data file"),
        "{outcome:?}"
    );
    assert_refused(
        &["data", "check", "/nonexistent/file"],
        255,
        "failed to open /nonexistent/file: No such file or directory\n",
    );
}

#[test]
fn missing_and_unexpected_words_are_refused() {
    for (words, message) in [
        (
            &["data"][..],
            "rperf data: no subcommand given: use 'data convert' or 'data check'\n",
        ),
        (
            &["data", "chekc"],
            "rperf data: unknown subcommand 'chekc': use 'data convert' or 'data check'\n",
        ),
        (
            &["data", "check", "a", "b"],
            "rperf data check: unexpected word 'b': one file can be checked at a time\n",
        ),
        (
            &["data", "check", "-i", "a", "b"],
            "rperf data check: unexpected word 'b': one file can be checked at a time\n",
        ),
    ] {
        let outcome = super::outcome(words);
        assert_eq!((outcome.status, &*outcome.stdout), (129, ""), "{words:?}");
        assert!(
            outcome.stderr.starts_with(message),
            "{words:?}: {outcome:?}"
        );
    }
}
