//! `stat record` and `stat report` by themselves.

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use crate::kernel::rperf_in;

fn rperf(scratch: &Scratch, words: &[&str]) -> Outcome {
    rperf_in(scratch, words).finish().expect("rperf starts")
}

/// The rows of a table of CSV, without the names of summaries and the metrics, which end a row.
fn rows(text: &str) -> Vec<String> {
    let row = |line: &str| line.split(',').take(3).collect::<Vec<_>>().join(",");
    text.lines().map(row).collect()
}

#[test]
fn what_is_shown_later_is_what_was_shown() {
    let scratch = Scratch::new();
    let events = "cs,faults,{task-clock,faults:u},duration_time,cycles";
    let record = [
        "stat", "record", "-x,", "-e", events, "-o", "counts", "sh", "-c", "exit 7",
    ];
    let shown = rperf(&scratch, &record);
    assert_eq!(shown.status, 7, "{}", shown.stderr);
    let report = ["stat", "report", "-x,", "-i", "counts", "-o", "table"];
    let again = rperf(&scratch, &report);
    assert_eq!((again.status, again.stderr.as_str()), (0, ""));
    let table = std::fs::read_to_string(scratch.path().join("table")).expect("a table");
    let (date, table) = table.split_once("\n\n").expect("a dated table");
    assert!(date.starts_with("# started on "), "{date}");
    assert_eq!(rows(table), rows(&shown.stderr));
    assert!(table.contains(",ns,duration_time,"), "{table}");
}

/// Both tools read what there is of times and cgroups.
#[test]
fn cgroups_and_times_are_kept_by_name() {
    let scratch = Scratch::new();
    let record = [
        "stat",
        "record",
        "-x,",
        "-a",
        "-o",
        "counts",
        "-e",
        "cs,duration_time",
        "-G",
        "/,",
        "--",
        "true",
    ];
    let shown = rperf(&scratch, &record);
    if !crate::kernel::is_root() {
        return;
    }
    assert_eq!(shown.status, 0, "{}", shown.stderr);
    let again = rperf(&scratch, &["stat", "report", "-x,", "-i", "counts"]);
    let all = |text: &str| -> Vec<String> {
        let rows = text
            .lines()
            .map(|row| row.split(',').take(5).collect::<Vec<_>>().join(","));
        rows.collect()
    };
    assert_eq!(all(&again.stderr), all(&shown.stderr), "{again:?}");
    assert!(shown.stderr.contains(",cs,/,"), "{}", shown.stderr);
    let Some(perf) = real_perf() else {
        return skip("cgroups_and_times_are_kept_by_name", "there is no perf");
    };
    let words = ["stat", "report", "-i", "counts"];
    let theirs = Run::new(perf).args(words).within(scratch.path()).finish();
    let theirs = theirs.expect("perf starts");
    assert_eq!(theirs.status, 0, "{}", theirs.stderr);
    for row in ["cs\t/", " ns   duration_time "] {
        assert!(theirs.stderr.contains(row), "{}", theirs.stderr);
    }
}

#[test]
fn options_may_stand_on_both_sides_of_the_word() {
    let scratch = Scratch::new();
    let made = rperf(
        &scratch,
        &["stat", "-e", "cs", "record", "-o", "counts", "--", "true"],
    );
    assert_eq!(
        (made.status, made.stdout.as_str()),
        (0, ""),
        "{}",
        made.stderr
    );
    let shown = rperf(
        &scratch,
        &["stat", "--json-output", "report", "-i", "counts"],
    );
    let row: serde_json::Value = serde_json::from_str(&shown.stderr).expect("an object");
    assert_eq!(row["event"], "cs");
    // Behind two dashes is the name of a program.
    let program = rperf(&scratch, &["stat", "-e", "cs", "--", "report"]);
    assert_eq!(program.status, 255);
    assert!(
        program.stderr.starts_with("Workload failed: "),
        "{}",
        program.stderr
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let scratch = Scratch::new();
    let refusals = [
        (
            &["record", "-r", "2", "-e", "cs", "true"][..],
            129,
            "Cannot use -r option with rperf stat record.",
        ),
        (
            &["record", "-n", "true"][..],
            129,
            "there is nothing to keep but times",
        ),
        (&["report", "-i", "none"][..], 255, "failed to open none"),
        (
            &["report", "-A", "--per-core", "-i", "samples"][..],
            129,
            "rows are of one thing",
        ),
        (
            &["report", "-i", "samples"][..],
            255,
            "samples: there are no counts in it",
        ),
        (&["report", "-e", "cs"][..], 129, "unknown switch"),
    ];
    let samples = ["record", "-q", "-e", "cpu-clock", "-o", "samples", "true"];
    assert_eq!(rperf(&scratch, &samples).status, 0);
    let counts = ["stat", "record", "-e", "cs", "-o", "counts", "true"];
    assert_eq!(rperf(&scratch, &counts).status, 0);
    for (words, status, said) in refusals {
        let refused = rperf(&scratch, &[&["stat"], words].concat());
        assert_eq!(refused.status, status, "{words:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains(said),
            "{words:?}: {}",
            refused.stderr
        );
    }
}
