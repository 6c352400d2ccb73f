//! `rperf diff` of samples: missing files, refused options, `--fail-above`, JSON, and groups of runs.

use std::io;

use rperf_testkit::{Bytes, Outcome, PerfFile, Scratch};

use super::generated_files::{Attr, ID, file, record};
use super::rperf;

/// `PERF_SAMPLE_IP | TID | TIME | IDENTIFIER`.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 1 << 16;

/// A recording of several threads: `hits` has the id and the number of samples of each.
fn recording(hits: &[(u32, usize)]) -> Vec<u8> {
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        ..Attr::default()
    };
    let sample = |tid: u32| {
        record(
            PerfFile::SAMPLE,
            PerfFile::USER,
            Bytes::new().u64(ID).u64(0x1000).u32(7).u32(tid).u64(10),
        )
    };
    let samples = hits
        .iter()
        .flat_map(|(tid, count)| vec![sample(*tid); *count]);
    let finished_round = record(PerfFile::FINISHED_ROUND, 0, Bytes::new());
    let records: Vec<Vec<u8>> = samples.chain([finished_round]).collect();
    file(&attr, "x86_64", &records.concat())
}

/// A folder with two recordings of one thread that differ only in the number of samples, and a recording without samples.
fn recordings() -> io::Result<Scratch> {
    let scratch = Scratch::new();
    scratch.write("old.data", recording(&[(8, 4)]))?;
    scratch.write("new.data", recording(&[(8, 8)]))?;
    scratch.write("none.data", recording(&[]))?;
    Ok(scratch)
}

fn run(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = rperf(&[&["diff"], words].concat());
    run.within(scratch.path()).finish().expect("rperf starts")
}

#[track_caller]
fn assert_fails(scratch: &Scratch, words: &[&str], status: i32, message: &str) {
    let outcome = run(scratch, words);
    assert_eq!(outcome.status, status, "{words:?}: {outcome:?}");
    assert!(outcome.stderr.contains(message), "{words:?}: {outcome:?}");
}

/// A recording of one sample of a thread named `sh`, whose program is a file that does not exist.
fn recording_of_missing_file() -> Vec<u8> {
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        ..Attr::default()
    };
    let task = |body: Bytes| body.u32(7).u32(7);
    let trailer = |body: Bytes| task(body).u64(5).u64(ID);
    let comm = trailer(task(Bytes::new()).raw(b"sh\0\0\0\0\0\0"));
    let range = task(Bytes::new()).u64(0x1000).u64(0x1000).u64(0);
    let mapping = trailer(range.raw(b"/none/program\0\0\0"));
    let sample = task(Bytes::new().u64(ID).u64(0x1010)).u64(10);
    let records = [
        record(PerfFile::COMM, 0, comm),
        record(PerfFile::MMAP, PerfFile::USER, mapping),
        record(PerfFile::SAMPLE, PerfFile::USER, sample),
        record(PerfFile::FINISHED_ROUND, 0, Bytes::new()),
    ];
    file(&attr, "x86_64", &records.concat())
}

/// With `-b` and absolute percentages, the samples of each file are counted twice: with the filter `-C`, and without it for the
/// total. There is still one warning for each file.
#[test]
fn counting_unfiltered_totals_does_not_repeat_warnings() -> io::Result<()> {
    let scratch = Scratch::new();
    scratch.write("old.data", recording_of_missing_file())?;
    scratch.write("new.data", recording_of_missing_file())?;
    let words = ["-b", "-C", "sh", "--percentage", "absolute"];
    let outcome = run(&scratch, &[&words[..], &["old.data", "new.data"]].concat());
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let note = "functions without names: /none/program (not found)\n";
    assert_eq!(outcome.stderr.matches(note).count(), 2, "{outcome:?}");
    Ok(())
}

#[test]
fn the_default_files_are_compared_or_reported_as_missing() -> io::Result<()> {
    let scratch = recordings()?;
    let missing = "failed to open perf.data.old: No such file or directory\nhint: name both files:";
    assert_fails(&scratch, &[], 255, missing);
    assert_fails(&scratch, &["new.data"], 255, missing);
    let other = "failed to open no.data: No such file or directory\n";
    assert_fails(&scratch, &["old.data", "no.data"], 255, other);
    scratch.write("perf.data.old", recording(&[(8, 4)]))?;
    scratch.write("perf.data", recording(&[(8, 4)]))?;
    let outcome = run(&scratch, &["-s", "tid"]);
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{outcome:?}");
    assert!(
        outcome.stdout.contains("   100.00%     +0.00%  "),
        "{outcome:?}"
    );
    Ok(())
}

#[test]
fn recordings_of_the_scheduler_get_a_hint_to_sched_diff() {
    let test = "commands::diff::recordings_of_the_scheduler_get_a_hint_to_sched_diff";
    if !rperf_testkit::may_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let words = [
        "record",
        "-q",
        "-e",
        "sched:sched_switch",
        "-o",
        "a.data",
        "--",
        "sleep",
        "0.01",
    ];
    let recorded = rperf(&words).within(scratch.path()).finish();
    let recorded = recorded.expect("rperf starts");
    if recorded.status != 0 {
        return rperf_testkit::skip(test, &recorded.stderr);
    }
    let outcome = run(&scratch, &["-s", "pid", "a.data", "a.data"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let hint = "sched diff' compares how long tasks waited for a CPU\n";
    assert!(outcome.stderr.contains(hint), "{outcome:?}");
}

#[test]
fn unreadable_identical_and_empty_files_are_named() -> io::Result<()> {
    let scratch = recordings()?;
    scratch.write("junk", "no recording")?;
    let mut truncated = recording(&[(8, 8)]);
    truncated.truncate(400);
    scratch.write("truncated.data", truncated)?;
    assert_fails(
        &scratch,
        &["old.data", "junk"],
        255,
        "incompatible file format (junk)",
    );
    let damage = "truncated.data: record at offset 0x178 needs 40 bytes, but 24 are left\n";
    assert_fails(&scratch, &["old.data", "truncated.data"], 255, damage);
    let same = run(&scratch, &["old.data", "./old.data"]);
    assert_eq!(same.status, 0, "{same:?}");
    assert!(
        same.stderr.contains("./old.data is compared with itself"),
        "{same:?}"
    );
    let empty = run(&scratch, &["none.data", "new.data", "-s", "tid", "-q"]);
    assert_eq!(empty.status, 0, "{empty:?}");
    assert!(empty.stdout.contains("  +100.00%  "), "{empty:?}");
    let warned = run(&scratch, &["none.data", "new.data", "-s", "tid"]);
    assert!(
        warned.stderr.contains("none.data has no samples"),
        "{warned:?}"
    );
    assert_fails(
        &scratch,
        &["none.data", "none.data"],
        255,
        "no file has samples",
    );
    Ok(())
}

#[test]
fn invalid_options_are_refused() -> io::Result<()> {
    let scratch = recordings()?;
    let refused: &[(&[&str], i32, &str)] = &[
        (&["-c", "ratoi"], 129, "hint: did you mean 'ratio'?"),
        (
            &["-c", "wdiff:1"],
            129,
            "Failed: wrong weight data, use 'wdiff:w1,w2'",
        ),
        (
            &["-c", "delta:1"],
            129,
            "Failed: extra option specified '1'",
        ),
        (
            &["-c", "cycles"],
            255,
            "-c cycles: old.data has no branch stacks",
        ),
        (
            &["--stream"],
            255,
            "--stream: old.data has neither branch stacks nor callchains\nhint: record with 'record -b' or 'record -g'",
        ),
        (
            &["--stream", "-s", "dso"],
            129,
            "--stream and --sort exclude each other",
        ),
        (&["--cycles-hist"], 129, "--cycles-hist needs -c cycles"),
        (
            &["-o", "2"],
            255,
            "Order option out of limit.\nhint: give 0",
        ),
        (&["-s", "colour"], 129, "Unknown --sort key: `colour'"),
        (&["-s", "sample"], 129, "--sort takes keys, not numbers"),
        (&["-s", "mem"], 129, "Invalid --sort key: `mem'"),
        (
            &["-t", "."],
            129,
            "'.' is the only non valid --field-separator argument",
        ),
        (
            &["--json", "-t,"],
            129,
            "--json and --field-separator exclude each other",
        ),
        (
            &["--time", "1,2:3,4:5,6"],
            129,
            "--time: 3 time ranges separated by colons for 2 files",
        ),
        (
            &["--percentage", "both"],
            129,
            "neither relative nor absolute",
        ),
        (
            &["--fail-above", "x"],
            129,
            "--fail-above: 'x' is not a percentage",
        ),
        (
            &["--fail-above=-1%"],
            129,
            "--fail-above: '-1%' is not a percentage",
        ),
    ];
    for (words, status, message) in refused {
        let words = [*words, &["old.data", "new.data"]].concat();
        assert_fails(&scratch, &words, *status, message);
    }
    Ok(())
}

#[test]
fn fail_above_exits_with_1_if_a_row_grew() -> io::Result<()> {
    let scratch = recordings()?;
    scratch.write("other.data", recording(&[(8, 7), (9, 1)]))?;
    let words = ["-s", "tid", "-q", "old.data", "other.data"];
    let grown = run(&scratch, &[&["--fail-above", "12%"], &words[..]].concat());
    assert_eq!(grown.status, 1, "{grown:?}");
    assert!(
        grown
            .stderr
            .starts_with("1 row grew by more than 12 percentage points: "),
        "{grown:?}"
    );
    assert!(grown.stderr.contains("(+12.50%)"), "{grown:?}");
    assert!(grown.stdout.contains("   +12.50%  "), "{grown:?}");
    let calm = run(&scratch, &[&["--fail-above", "13"], &words[..]].concat());
    assert_eq!(calm.status, 0, "{calm:?}");
    // A row that shrank or vanished is no failure: thread 8 loses 40 percentage points, the others gain 20 each.
    scratch.write("peak.data", recording(&[(8, 8), (9, 1), (10, 1)]))?;
    scratch.write("even.data", recording(&[(8, 4), (9, 3), (10, 3)]))?;
    scratch.write("gone.data", recording(&[(9, 5), (10, 5)]))?;
    for files in [["peak.data", "even.data"], ["even.data", "gone.data"]] {
        let words = [&["--fail-above", "25", "-s", "tid"][..], &files].concat();
        let shrunk = run(&scratch, &words);
        assert_eq!(shrunk.status, 0, "{shrunk:?}");
    }
    Ok(())
}

#[test]
fn json_has_periods_shares_and_values() -> io::Result<()> {
    let scratch = recordings()?;
    let outcome = run(
        &scratch,
        &["--json", "-c", "ratio", "-s", "tid", "old.data", "new.data"],
    );
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{outcome:?}");
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(json["version"], 1);
    assert_eq!(json["files"], serde_json::json!(["old.data", "new.data"]));
    let event = &json["events"][0];
    let row = &event["rows"][0];
    assert_eq!(row["values"], serde_json::json!([2.0]), "{json}");
    assert_eq!(row["percent"], serde_json::json!([100.0, 100.0]), "{json}");
    // The events of these files have a period of 1000.
    let periods = serde_json::json!([4000, 8000]);
    assert_eq!(row["periods"], periods, "{json}");
    assert_eq!(event["totals"], periods, "{json}");
    Ok(())
}

#[test]
fn groups_of_runs_are_compared_by_their_means() -> io::Result<()> {
    let scratch = Scratch::new();
    // Thread 8 takes 50, 48 and 52 percent before, 30 to 31 after; the shares of threads 9 and 10 vary too much for a significant
    // difference.
    let runs = [
        ("a1", [50, 20, 30]),
        ("a2", [96, 60, 44]),
        ("a3", [52, 9, 39]),
        ("b1", [31, 19, 50]),
        ("b2", [60, 18, 122]),
        ("b3", [30, 33, 37]),
    ];
    for (name, [eight, nine, ten]) in runs {
        scratch.write(name, recording(&[(8, eight), (9, nine), (10, ten)]))?;
    }
    let words = [
        "--runs", "-s", "tid", "a1", "a2", "a3", "--", "b1", "b2", "b3",
    ];
    let outcome = run(&scratch, &words);
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{outcome:?}");
    let text = &outcome.stdout;
    assert!(text.contains("# Mean shares of 3 and 3 runs"), "{text}");
    assert!(
        text.contains("    50.00%    30.33%   -19.67%   +-4.53%  "),
        "{text}"
    );
    assert!(!text.contains("     9:"), "{text}");
    assert!(
        text.contains("# Rows that are not shown because their difference is not significant: 2 ("),
        "{text}"
    );
    let all = run(&scratch, &[&["--all", "-q"], &words[..]].concat());
    let marked = all
        .stdout
        .lines()
        .filter(|line| line.contains("  *    "))
        .count();
    assert_eq!((all.stdout.lines().count(), marked), (3, 1), "{all:?}");
    let json = run(&scratch, &[&["--json"], &words[..]].concat());
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["new"], serde_json::json!(["b1", "b2", "b3"]));
    let row = &json["events"][0]["rows"][0];
    assert_eq!(
        (&row["significant"], &row["baseline"]),
        (&true.into(), &50.0.into())
    );
    // Only significant growth fails: thread 10 grew by 19 percentage points, but not significantly.
    let options = ["--runs", "--fail-above", "10", "-q", "-s", "tid"];
    let calm = run(
        &scratch,
        &[&options[..], &["a1", "a2", "a3", "--", "b1", "b2", "b3"]].concat(),
    );
    assert_eq!(calm.status, 0, "{calm:?}");
    // From b to a, thread 8 grew significantly.
    let words = [&options[..], &["b1", "b2", "b3", "--", "a1", "a2", "a3"]].concat();
    assert_fails(
        &scratch,
        &words,
        1,
        "1 row grew by more than 10 percentage points",
    );
    Ok(())
}

#[test]
fn invalid_groups_of_runs_are_refused() {
    let scratch = Scratch::new();
    for (words, message) in [
        (
            &["--runs", "a1", "a2", "--", "b1"][..],
            "at least two recordings of each group",
        ),
        (
            &["--runs", "a1", "a2", "b1", "b2"],
            "at least two recordings of each group",
        ),
        (&["--all", "a1", "b1"], "--all needs --runs"),
        (
            &["--runs", "-p", "a1", "a2", "--", "b1", "b2"],
            "--runs and --period exclude each other",
        ),
        (
            &["--runs", "-c", "ratio", "a1", "a2", "--", "b1", "b2"],
            "--runs and --compute exclude",
        ),
    ] {
        assert_fails(&scratch, words, 129, message);
    }
}
