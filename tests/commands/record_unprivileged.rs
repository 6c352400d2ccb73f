//! `rperf record` for unprivileged users.

use std::fs;

use rperf_testkit::{Outcome, Scratch, skip};

use crate::kernel::{BUSY, UnprivilegedUser};

/// The kernel's `perf_event_paranoid`; `None` if unknown.
fn paranoid() -> Option<i32> {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    text.trim().parse().ok()
}

#[test]
fn unprivileged_users_can_delay_events_and_overwrite_rings() {
    const NAME: &str =
        "commands::record_unprivileged::unprivileged_users_can_delay_events_and_overwrite_rings";
    if paranoid() != Some(2) {
        return skip(NAME, "needs perf_event_paranoid 2");
    }
    let scratch = Scratch::new();
    let Some(user) = UnprivilegedUser::new(NAME, &scratch) else {
        return;
    };
    // With these options a separate side-band event, `dummy`, is added, which is restricted to user space without a message.
    for options in [&["-D", "10"][..], &["--overwrite"]] {
        let record = ["./rperf", "record", "-o", "perf.data", "-e", "faults:u"];
        let words = [&record[..], options, &["sleep", "0.1"]].concat();
        let outcome = user.run(&words);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("dummy"), "{}", outcome.stderr);
    }
}

#[test]
fn unprivileged_users_record_user_space_only_or_get_an_error() {
    const NAME: &str =
        "commands::record_unprivileged::unprivileged_users_record_user_space_only_or_get_an_error";
    if paranoid() != Some(2) {
        return skip(NAME, "needs perf_event_paranoid 2");
    }
    let scratch = Scratch::new();
    let Some(user) = UnprivilegedUser::new(NAME, &scratch) else {
        return;
    };
    let outcome = user.run(&[
        "./rperf",
        "record",
        "-o",
        "perf.data",
        "-e",
        "cs",
        "sleep",
        "0.1",
    ]);
    let messages = "this user may not profile the kernel (kernel.perf_event_paranoid is 2): recording user space only, as cs:u\n\
        Warning: cs:u never counts: cs happens in the kernel, ";
    assert!(outcome.stderr.starts_with(messages), "{}", outcome.stderr);
    assert_eq!(outcome.status, 0);
    let counted = user.run(&["./rperf", "stat", "-e", "page-faults,cs", "true"]);
    // The note is printed once, with the first event; the warning is printed for each event that never counts.
    let messages = messages
        .replace("recording", "counting")
        .replace("as cs:u", "as page-faults:u");
    assert!(counted.stderr.starts_with(&messages), "{}", counted.stderr);
    // For the default event, the note does not name an event.
    let outcome = user.run(&["./rperf", "record", "-o", "perf.data", "sh", "-c", BUSY]);
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
        let outcome = user.run(words);
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
    let outcome = user.run(&["./rperf", "record", "-o", "perf.data", "-p", "1", "true"]);
    assert!(
        outcome
            .stderr
            .contains("the process belongs to another user"),
        "{}",
        outcome.stderr
    );
}

/// The number of pages that rings have instead of `requested`, as reported; `None` if nothing is reported.
fn reduced_pages(outcome: &Outcome, requested: usize) -> Option<usize> {
    let limit = fs::read_to_string("/proc/sys/kernel/perf_event_mlock_kb").ok()?;
    let end = format!(
        " instead of {requested} pages: limited by /proc/sys/kernel/perf_event_mlock_kb ({}) or RLIMIT_MEMLOCK\n",
        limit.trim()
    );
    let granted = outcome.stderr.strip_prefix("ring buffers have ")?;
    granted.split_once(&end)?.0.parse().ok()
}

#[test]
fn rings_are_halved_until_their_memory_may_be_locked() {
    const NAME: &str =
        "commands::record_unprivileged::rings_are_halved_until_their_memory_may_be_locked";
    if !matches!(paranoid(), Some(0..=2)) {
        return skip(NAME, "needs perf_event_paranoid 0 to 2");
    }
    let scratch = Scratch::new();
    let Some(user) = UnprivilegedUser::new(NAME, &scratch) else {
        return;
    };
    // With RLIMIT_MEMLOCK 0 users may still lock perf_event_mlock_kb per CPU, which rings of the default size fit into.
    let record = |ring_options: &[&str]| {
        let command =
            "ulimit -l 0; exec ./rperf record -o perf.data -e cpu-clock:u \"$@\" sh -c \"$BUSY\"";
        let words = ["env", &format!("BUSY={BUSY}"), "sh", "-c", command, "sh"];
        let outcome = user.run(&[&words, ring_options].concat());
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let recorded = outcome.stderr.ends_with(" samples) ]\n");
        assert!(recorded, "{}", outcome.stderr);
        outcome
    };
    let usual = record(&[]);
    assert!(usual.stderr.starts_with("[ rperf record: "), "{usual:?}");
    let pages = (256 << 20) / rperf_sys::page_size();
    let outcome = record(&["-v", "-m", "256M"]);
    let granted = reduced_pages(&outcome, pages).expect(&outcome.stderr);
    // With -v, the size of all rings is reported at the end.
    assert!(outcome.stderr.contains("\nring buffers of "), "{outcome:?}");
    assert!(granted < pages && granted.is_power_of_two(), "{granted}");
    // The reduced size is the largest possible: rings of this size are not reduced, rings of twice the size are.
    let again = record(&["-m", &granted.to_string()]);
    assert!(again.stderr.starts_with("[ rperf record: "), "{again:?}");
    let twice = record(&["-m", &(2 * granted).to_string()]);
    assert_eq!(
        reduced_pages(&twice, 2 * granted),
        Some(granted),
        "{twice:?}"
    );
}
