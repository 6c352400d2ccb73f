//! What `rperf record` does for users whom the kernel allows little.

use std::fs;

use rperf_testkit::{Outcome, Scratch, skip};

use crate::kernel::{BUSY, Stranger};

/// What this kernel allows whom; `None` where it does not say.
fn paranoid() -> Option<i32> {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    text.trim().parse().ok()
}

#[test]
fn an_ordinary_user_gets_a_user_only_profile_and_is_told() {
    const NAME: &str = "record_stranger::an_ordinary_user_gets_a_user_only_profile_and_is_told";
    if paranoid() != Some(2) {
        return skip(NAME, "needs perf_event_paranoid 2");
    }
    let scratch = Scratch::new();
    let Some(stranger) = Stranger::new(NAME, &scratch) else {
        return;
    };
    let outcome = stranger.run(&[
        "./rperf",
        "record",
        "-o",
        "perf.data",
        "-e",
        "cs",
        "sleep",
        "0.1",
    ]);
    let note = "the kernel may not be profiled by this user (kernel.perf_event_paranoid is 2): recording user space only, as cs:u\n";
    assert!(outcome.stderr.starts_with(note), "{}", outcome.stderr);
    assert_eq!(outcome.status, 0);
    let outcome = stranger.run(&["./rperf", "record", "-o", "perf.data", "sh", "-c", BUSY]);
    assert!(
        outcome.stderr.contains("recording user space only\n"),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.ends_with(" samples) ]\n"),
        "{}",
        outcome.stderr
    );
    for (words, needed) in [
        (&["./rperf", "record", "-a", "true"][..], "at 0 or less"),
        (&["./rperf", "record", "-e", "cs:k", "true"], "at 1 or less"),
    ] {
        let outcome = stranger.run(words);
        assert_eq!(outcome.status, 255, "{}", outcome.stderr);
        for part in [
            "No permission to open event",
            needed,
            "and it is 2",
            "sudo sysctl kernel.perf_event_paranoid=",
        ] {
            assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
        }
    }
    let outcome = stranger.run(&["./rperf", "record", "-o", "perf.data", "-p", "1", "true"]);
    assert!(
        outcome
            .stderr
            .contains("the process belongs to another user"),
        "{}",
        outcome.stderr
    );
}

/// How many pages rings had in place of so many, as the recorder said; `None` where they had them.
fn halved(outcome: &Outcome, asked: usize) -> Option<usize> {
    let end = format!(
        " instead of {asked} pages: /proc/sys/kernel/perf_event_mlock_kb or RLIMIT_MEMLOCK allows no more\n"
    );
    let had = outcome.stderr.strip_prefix("rings have ")?;
    had.split_once(&end)?.0.parse().ok()
}

#[test]
fn rings_that_may_not_be_locked_are_halved_until_they_may() {
    const NAME: &str = "record_stranger::rings_that_may_not_be_locked_are_halved_until_they_may";
    if !matches!(paranoid(), Some(0..=2)) {
        return skip(NAME, "needs perf_event_paranoid 0 to 2");
    }
    let scratch = Scratch::new();
    let Some(stranger) = Stranger::new(NAME, &scratch) else {
        return;
    };
    // Without a limit of their own all users may lock as much for each processor, which rings of the usual size fit into.
    let record = |rings: &[&str]| {
        let command =
            "ulimit -l 0; exec ./rperf record -o perf.data -e cpu-clock:u \"$@\" sh -c \"$BUSY\"";
        let words = ["env", &format!("BUSY={BUSY}"), "sh", "-c", command, "sh"];
        let outcome = stranger.run(&[&words, rings].concat());
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let recorded = outcome.stderr.ends_with(" samples) ]\n");
        assert!(recorded, "{}", outcome.stderr);
        outcome
    };
    let usual = record(&[]);
    assert!(usual.stderr.starts_with("[ rperf record: "), "{usual:?}");
    let pages = (256 << 20) / rperf_sys::page_size();
    let outcome = record(&["-v", "-m", "256M"]);
    let had = halved(&outcome, pages).expect(&outcome.stderr);
    assert!(outcome.stderr.contains("\nrings of "), "{outcome:?}");
    assert!(had < pages && had.is_power_of_two(), "{had}");
    // As large as can be: rings of the size that they came to are mapped at once, those of twice the size are not.
    let again = record(&["-m", &had.to_string()]);
    assert!(again.stderr.starts_with("[ rperf record: "), "{again:?}");
    let twice = record(&["-m", &(2 * had).to_string()]);
    assert_eq!(halved(&twice, 2 * had), Some(had), "{twice:?}");
}
