//! `stat --hist`: a tracepoint counted by ranges of a field.

use rperf_testkit::{Outcome, Scratch};

use crate::kernel::{can_trace, rperf_in};

const EVENT: &str = "syscalls:sys_exit_write";
/// The default ranges begin at 0 and at the powers of 4 up to 4^10; one more has the negative values.
const DEFAULT_RANGES: usize = 13;

fn run(scratch: &Scratch, words: &[&str]) -> Outcome {
    rperf_in(scratch, words).finish().expect("rperf starts")
}

/// Name and count of each row of `-x,` that has a count. Its first cells are count, unit and name.
fn counts(text: &str) -> Vec<(String, u64)> {
    let rows = text.lines().filter_map(|row| {
        let mut cells = row.split(',');
        let count = cells.next()?.parse().ok()?;
        Some((cells.nth(1)?.to_owned(), count))
    });
    rows.collect()
}

/// The two starts in `ret:4096,4097` define three ranges: one more has the values below the first start.
#[test]
fn ranges_of_a_field_are_counted_by_the_kernel() {
    let test = "commands::stat_hist::ranges_of_a_field_are_counted_by_the_kernel";
    if !can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    // 50 calls of write(2), each of which returns 4096.
    let copy = [
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=4k",
        "count=50",
        "status=none",
    ];
    let counts_with = |options: &[&str]| {
        let words = [&["stat", "-x,", "-e", EVENT], options, &["--"], &copy].concat();
        let outcome = run(&scratch, &words);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        counts(&outcome.stderr)
    };
    let all: u64 = counts_with(&[]).iter().map(|(_, count)| count).sum();
    let rows = counts_with(&["--hist", "ret"]);
    assert_eq!(rows.len(), DEFAULT_RANGES, "{rows:?}");
    assert_eq!(
        rows.iter().map(|(_, count)| count).sum::<u64>(),
        all,
        "{rows:?}"
    );
    let count_of = |rows: &[(String, u64)], range: &str| {
        let name = format!("{EVENT} ret {range}");
        rows.iter()
            .find(|(row, _)| *row == name)
            .map(|(_, count)| *count)
    };
    assert_eq!(count_of(&rows, "4096 -> 16383"), Some(50), "{rows:?}");
    assert_eq!(count_of(&rows, "-> -1"), Some(0), "{rows:?}");
    let chosen = counts_with(&["--hist", "ret:4096,4097"]);
    assert_eq!(count_of(&chosen, "4096 -> 4096"), Some(50), "{chosen:?}");
    assert_eq!(chosen.len(), 3, "{chosen:?}");
    // A filter given by the user applies, too.
    let filtered = counts_with(&["--filter", "ret < 100", "--hist", "ret:0,4096"]);
    assert_eq!(count_of(&filtered, "4096 ->"), Some(0), "{filtered:?}");
    // The counts are recorded with their ranges.
    let words = [
        &[
            "stat", "record", "--quiet", "-o", "counts", "-e", EVENT, "--hist", "ret", "--",
        ][..],
        &copy,
    ]
    .concat();
    assert_eq!(run(&scratch, &words).status, 0);
    let report = run(&scratch, &["stat", "report", "-x,", "-i", "counts"]);
    assert_eq!(
        count_of(&counts(&report.stderr), "4096 -> 16383"),
        Some(50),
        "{report:?}"
    );
}

#[test]
fn unusable_events_fields_and_ranges_are_refused() {
    let test = "commands::stat_hist::unusable_events_fields_and_ranges_are_refused";
    if !can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    for (words, message) in [
        (
            &["--hist", "ret"][..],
            "--hist needs a tracepoint\nhint: name it with -e",
        ),
        (
            &["-e", "cpu-clock", "--hist", "ret"],
            "--hist ret: cpu-clock is not a tracepoint",
        ),
        (
            &["-e", EVENT, "--hist", "rte"],
            "has no field 'rte' with a number\nhint: its fields with numbers, most similar first: ret,",
        ),
        (
            &["-e", EVENT, "--hist", "ret:1,x"],
            "--hist: '1,x' is not a list of at most 64 numbers",
        ),
        (
            &["-e", "{syscalls:sys_exit_write,cs}", "--hist", "ret"],
            "--hist and groups of events exclude each other",
        ),
    ] {
        let outcome = run(&scratch, &[&["stat"], words, &["true"]].concat());
        assert_eq!(outcome.status, 129, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{words:?}: {outcome:?}");
    }
}
