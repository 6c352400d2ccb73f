//! `stat record` and `stat report`: recorded counts, their tables, and refusals.

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use crate::kernel::rperf_in;

fn rperf(scratch: &Scratch, words: &[&str]) -> Outcome {
    rperf_in(scratch, words).finish().expect("rperf starts")
}

/// The first three cells of each row of a CSV table.
fn rows(text: &str) -> Vec<String> {
    let row = |line: &str| line.split(',').take(3).collect::<Vec<_>>().join(",");
    text.lines().map(row).collect()
}

#[test]
fn stat_report_matches_the_printed_counts() {
    let scratch = Scratch::new();
    let events = "cs,faults,{task-clock,faults:u},duration_time,cycles";
    let record = [
        "stat", "record", "-x,", "-e", events, "-o", "counts", "sh", "-c", "exit 7",
    ];
    let recorded = rperf(&scratch, &record);
    assert_eq!(recorded.status, 7, "{}", recorded.stderr);
    let report = ["stat", "report", "-x,", "-i", "counts", "-o", "table"];
    let reported = rperf(&scratch, &report);
    assert_eq!((reported.status, reported.stderr.as_str()), (0, ""));
    let table = std::fs::read_to_string(scratch.path().join("table")).expect("a table");
    let (date, table) = table.split_once("\n\n").expect("a dated table");
    assert!(date.starts_with("# started on "), "{date}");
    assert_eq!(rows(table), rows(&recorded.stderr));
    assert!(table.contains(",ns,duration_time,"), "{table}");
}

/// `stat report` of both tools prints the recorded rows. `-G /,` counts `cs` in the root cgroup and `duration_time` in none.
#[test]
fn rows_of_cgroups_and_of_duration_time_are_recorded() {
    let test = "rows_of_cgroups_and_of_duration_time_are_recorded";
    if !crate::kernel::is_root() {
        return skip(test, "needs root");
    }
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
    let recorded = rperf(&scratch, &record);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let reported = rperf(&scratch, &["stat", "report", "-x,", "-i", "counts"]);
    let first_cells = |text: &str| -> Vec<String> {
        let rows = text
            .lines()
            .map(|row| row.split(',').take(5).collect::<Vec<_>>().join(","));
        rows.collect()
    };
    assert_eq!(
        first_cells(&reported.stderr),
        first_cells(&recorded.stderr),
        "{reported:?}"
    );
    assert!(recorded.stderr.contains(",cs,/,"), "{}", recorded.stderr);
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    let words = ["stat", "report", "-i", "counts"];
    let theirs = Run::new(perf).args(words).within(scratch.path()).finish();
    let theirs = theirs.expect("perf starts");
    assert_eq!(theirs.status, 0, "{}", theirs.stderr);
    // rperf stores the name of the event with a tab and the cgroup after it; perf prints it as it is.
    for row in ["cs\t/", " ns   duration_time "] {
        assert!(theirs.stderr.contains(row), "{}", theirs.stderr);
    }
}

#[test]
fn options_may_precede_and_follow_the_subcommand() {
    let scratch = Scratch::new();
    let recorded = rperf(
        &scratch,
        &["stat", "-e", "cs", "record", "-o", "counts", "--", "true"],
    );
    assert_eq!(
        (recorded.status, recorded.stdout.as_str()),
        (0, ""),
        "{}",
        recorded.stderr
    );
    let reported = rperf(
        &scratch,
        &["stat", "--json-output", "report", "-i", "counts"],
    );
    let row: serde_json::Value = serde_json::from_str(&reported.stderr).expect("an object");
    assert_eq!(row["event"], "cs");
    // A word after `--` is a program, not a subcommand.
    let program = rperf(&scratch, &["stat", "-e", "cs", "--", "report"]);
    assert_eq!(program.status, 255);
    assert!(
        program.stderr.starts_with("Workload failed: "),
        "{}",
        program.stderr
    );
}

#[test]
fn invalid_options_and_files_are_refused() {
    let scratch = Scratch::new();
    let samples = ["record", "-q", "-e", "cpu-clock", "-o", "samples", "true"];
    assert_eq!(rperf(&scratch, &samples).status, 0);
    for (words, status, message) in [
        (
            &["record", "-r", "2", "-e", "cs", "true"][..],
            129,
            "Cannot use -r option with rperf stat record.",
        ),
        (
            &["record", "--append", "-o", "x", "-e", "cs", "true"][..],
            129,
            "--append: counts cannot be appended to a recording",
        ),
        (
            &["record", "-n", "true"][..],
            129,
            "no events to record: give events with -e",
        ),
        (&["report", "-i", "none"][..], 255, "failed to open none"),
        (
            &["report", "-A", "--per-core", "-i", "samples"][..],
            129,
            "-A and the --per-... options exclude each other",
        ),
        (
            &["report", "-i", "samples"][..],
            255,
            "samples: the file contains no counts",
        ),
        (&["report", "-e", "cs"][..], 129, "unknown switch"),
    ] {
        let refused = rperf(&scratch, &[&["stat"], words].concat());
        assert_eq!(refused.status, status, "{words:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains(message),
            "{words:?}: {}",
            refused.stderr
        );
    }
}

#[test]
fn script_refuses_json_of_counts_and_warns_of_sample_filters() {
    let scratch = Scratch::new();
    let recorded = rperf(
        &scratch,
        &["stat", "record", "-o", "perf.data", "-e", "cs", "true"],
    );
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let refused = rperf(&scratch, &["script", "--json"]);
    assert_eq!((refused.status, &*refused.stdout), (255, ""), "{refused:?}");
    let message = "--json: the recording has counts, no samples\n";
    assert!(refused.stderr.starts_with(message), "{refused:?}");
    let filtered = rperf(&scratch, &["script", "--comms", "sh", "-F", "ip"]);
    assert_eq!(filtered.status, 0, "{filtered:?}");
    // The titles of the columns, and the row of `cs`.
    assert_eq!(filtered.stdout.lines().count(), 2, "{filtered:?}");
    assert!(filtered.stdout.ends_with(" cs\n"), "{filtered:?}");
    let warning = "Warning: --comms selects samples and does not apply to counts\n";
    assert_eq!(filtered.stderr, warning);
}

#[test]
fn the_message_on_a_missing_file_names_the_command_that_writes_it() {
    let scratch = Scratch::new();
    for (words, recorder) in [
        (&["stat", "report"][..], "stat record"),
        (&["archive"], "record"),
        (&["report"], "record"),
    ] {
        let missing = rperf(&scratch, words);
        let message = format!(
            "failed to open perf.data: No such file or directory  (try 'rperf {recorder}' first)\n"
        );
        assert_eq!(
            (missing.status, missing.stderr),
            (255, message),
            "{words:?}"
        );
    }
}
