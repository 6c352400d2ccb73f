//! `rperf diff` of files of `stat record`.

use std::fs;

use rperf_testkit::{Outcome, Scratch};

use crate::kernel::rperf_in;

fn run(scratch: &Scratch, words: &[&str]) -> Outcome {
    rperf_in(scratch, words).finish().expect("rperf starts")
}

/// Counts page faults and CPU time of a program with an array of this size, into a file.
fn count(scratch: &Scratch, file: &str, size: &str) {
    let array = format!("BEGIN {{ for (i = 0; i < {size}; i++) a[i] = i }}");
    let words = [
        "stat",
        "record",
        "--quiet",
        "-e",
        "faults:u,task-clock:u",
        "-o",
        file,
        "--",
    ];
    let outcome = run(scratch, &[&words[..], &["awk", &array]].concat());
    assert_eq!(outcome.status, 0, "{outcome:?}");
}

fn printed(scratch: &Scratch, words: &[&str]) -> String {
    let outcome = run(scratch, &[&["diff"], words].concat());
    assert_eq!(
        (outcome.status, &*outcome.stderr),
        (0, ""),
        "{words:?}: {outcome:?}"
    );
    outcome.stdout
}

/// The number of page faults that `stat report` prints.
fn reported_faults(scratch: &Scratch, file: &str) -> u64 {
    let table = run(scratch, &["stat", "report", "-x,", "-i", file]).stderr;
    let faults = table.lines().find(|line| line.contains("faults"));
    let count = faults.and_then(|line| line.split(',').next());
    count.expect("a count").parse().expect("a number")
}

/// In JSON, the confidence interval of the difference is `margin`.
#[test]
fn single_counts_are_compared_without_a_confidence_interval() {
    let scratch = Scratch::new();
    count(&scratch, "old", "10");
    count(&scratch, "new", "200000");
    let [old, new] = ["old", "new"].map(|file| reported_faults(&scratch, file));
    assert!(new > old + 1000, "{old} {new}");
    let text = printed(&scratch, &["old", "new"]);
    assert!(
        text.starts_with("# Counts of one run each\n#\n# Baseline"),
        "{text}"
    );
    let row = text
        .lines()
        .find(|line| line.trim_end().ends_with("faults:u"));
    let row: Vec<&str> = row.expect("a row").split_whitespace().collect();
    let percent = 100.0 * (new as f64 - old as f64) / old as f64;
    let delta = format!("{percent:+.2}%");
    assert_eq!(
        row,
        [&*old.to_string(), &new.to_string(), &delta, "faults:u"]
    );
    assert!(text.contains("task-clock:u (msec)"), "{text}");
    let separated = printed(&scratch, &["-t;", "-q", "old", "new"]);
    assert!(
        separated.starts_with(&format!("{old};{new};{delta};faults:u\n")),
        "{separated}"
    );
    let json = printed(&scratch, &["--json", "old", "new"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let counts = &json["counts"][0];
    assert_eq!(
        (&counts["event"], &json["values"]),
        (&"faults:u".into(), &"counts".into())
    );
    assert_eq!(counts["new"]["values"], serde_json::json!([new as f64]));
    assert_eq!(
        (&json["version"], &counts["margin"]),
        (&1.into(), &serde_json::Value::Null)
    );
    let grown = run(
        &scratch,
        &["diff", "-q", "--fail-above", "50%", "old", "new"],
    );
    assert_eq!(grown.status, 1, "{grown:?}");
    assert!(
        grown.stderr.contains("grew by more than 50%: ") && grown.stderr.contains("faults:u (+"),
        "{grown:?}"
    );
    let shrunk = run(
        &scratch,
        &["diff", "-q", "--fail-above", "50%", "new", "old"],
    );
    assert_eq!(shrunk.status, 0, "{shrunk:?}");
    // Damage takes precedence over growth: the counts may be incomplete.
    let whole = fs::read(scratch.path().join("new")).expect("the file");
    // The header has the offset and the size of the records at 40 and 48.
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().expect("8 bytes"));
    let end = usize::try_from(number(40) + number(48)).expect("a size");
    scratch.write("damaged", &whole[..end - 4]).expect("a file");
    let damaged = run(
        &scratch,
        &["diff", "-q", "--fail-above", "50%", "old", "damaged"],
    );
    assert_eq!(damaged.status, 255, "{damaged:?}");
}

#[test]
fn groups_of_counts_have_confidence_intervals() {
    let scratch = Scratch::new();
    for (file, size) in [
        ("a1", "10"),
        ("a2", "10"),
        ("a3", "10"),
        ("b1", "200000"),
        ("b2", "200000"),
        ("b3", "200000"),
    ] {
        count(&scratch, file, size);
    }
    let words = ["--runs", "a1", "a2", "a3", "--", "b1", "b2", "b3"];
    let text = printed(&scratch, &words);
    assert!(
        text.starts_with("# Mean counts of 3 and 3 runs; 95% confidence"),
        "{text}"
    );
    // The `*` marks a significant difference.
    let row = text
        .lines()
        .find(|line| line.contains("faults:u"))
        .expect("a row");
    assert!(
        row.contains("  *    faults:u") && row.contains("+-"),
        "{text}"
    );
    // The same program: page faults hardly differ.
    count(&scratch, "a4", "10");
    count(&scratch, "a5", "10");
    count(&scratch, "a6", "10");
    let noise = ["--runs", "a1", "a2", "a3", "--", "a4", "a5", "a6"];
    let gate = run(
        &scratch,
        &[&["diff", "-q", "--fail-above", "50"][..], &noise].concat(),
    );
    assert_eq!(gate.status, 0, "{gate:?}");
    let gate = run(
        &scratch,
        &[&["diff", "-q", "--fail-above", "50"][..], &words].concat(),
    );
    assert_eq!(gate.status, 1, "{gate:?}");
    assert!(gate.stderr.contains("faults:u (+"), "{gate:?}");
}

#[test]
fn counts_of_time_intervals_are_compared_by_rates() {
    let scratch = Scratch::new();
    for file in ["old", "new"] {
        let words = [
            "stat",
            "record",
            "--quiet",
            "-I",
            "50",
            "-e",
            "task-clock:u",
            "-o",
            file,
            "--",
            "sh",
            "-c",
            "end=$(($(date +%s%N) / 1000000 + 300)); while [ $(($(date +%s%N) / 1000000)) -lt $end ]; do :; done",
        ];
        let outcome = run(&scratch, &words);
        assert_eq!(outcome.status, 0, "{outcome:?}");
    }
    let text = printed(&scratch, &["old", "new"]);
    assert!(text.starts_with("# Mean counts per second in "), "{text}");
    assert!(text.contains(" intervals; 95% confidence"), "{text}");
    let json = printed(&scratch, &["--json", "old", "new"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["values"], "counts per second");
    let values = json["counts"][0]["baseline"]["values"]
        .as_array()
        .expect("rates");
    assert!(values.len() > 3, "{json}");
    // A program on one CPU runs at most 1000 ms per second; 100 more for inexact times of the intervals. A mean in
    // seconds would be at most 1.
    let mean = json["counts"][0]["baseline"]["mean"]
        .as_f64()
        .expect("a mean");
    assert!(mean > 1.0 && mean < 1100.0, "{json}");
    // Groups of runs with intervals are compared by their totals. --all: also rows without a significant difference.
    let runs = ["diff", "--runs", "--all", "old", "new", "--", "new", "old"];
    let outcome = run(&scratch, &runs);
    assert!(
        outcome.stdout.contains("# Mean counts of 2 and 2 runs"),
        "{outcome:?}"
    );
}

#[test]
fn sample_options_and_files_that_cannot_be_compared_are_refused() {
    let scratch = Scratch::new();
    count(&scratch, "old", "10");
    count(&scratch, "new", "10");
    let record = ["record", "-q", "-e", "cpu-clock:u", "-o", "samples", "true"];
    assert_eq!(run(&scratch, &record).status, 0);
    for (words, status, message) in [
        (
            &["-s", "dso", "old", "new"][..],
            255,
            "--sort is for samples; the files have counts",
        ),
        (
            &["--time", "0%-50%", "old", "new"],
            255,
            "--time is for samples",
        ),
        (
            &["old", "new", "old"],
            255,
            "more than two files with counts can only be compared as groups\nhint: name them as --runs",
        ),
        (
            &["old", "samples"],
            255,
            "old has counts, samples has samples",
        ),
        (&["old", "none"], 255, "failed to open none"),
    ] {
        let outcome = run(&scratch, &[&["diff"], words].concat());
        assert_eq!(outcome.status, status, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{words:?}: {outcome:?}");
        assert_eq!(outcome.stdout, "", "{words:?}");
    }
}
