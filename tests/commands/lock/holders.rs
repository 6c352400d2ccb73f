//! `lock contention --holders`: what the holders of locks did while other threads waited. The recorded
//! programs sleep or run while they hold locks.

use rperf_testkit::{Scratch, may_trace, skip};
use serde_json::Value;

use super::owners::compile;
use super::{folder_with_waits, run};

/// Records a program with the holders (also called owners) of its locks. Returns `false`, and prints the reason, if the kernel
/// does not run the BPF programs that find them.
fn record(test: &str, scratch: &Scratch, program: &str) -> bool {
    let words = format!("lock record --user --holders -o perf.data -- {program}");
    let made = run(scratch, &words);
    if made.stderr.contains("owners of futexes are not recorded") {
        skip(test, &made.stderr);
        return false;
    }
    assert_eq!(made.status, 0, "{made:?}");
    true
}

/// Returns the time that threads waited, and the sum of the times of the rows that `is_selected` accepts by state and name, in
/// microseconds.
fn times(report: &Value, is_selected: impl Fn(&str, &str) -> bool) -> (u64, u64) {
    let rows = report["holders"].as_array().expect("rows").iter();
    let rows = rows.filter(|row| {
        let [state, name] = ["state", "name"].map(|key| row[key].as_str().expect("text"));
        is_selected(state, name)
    });
    let sum = rows
        .map(|row| row["total_ns"].as_u64().expect("a time"))
        .sum::<u64>();
    (
        report["waited_ns"].as_u64().expect("a time") / 1000,
        sum / 1000,
    )
}

#[test]
fn holders_run_or_sleep_while_others_wait() {
    const NAME: &str = "commands::lock::holders::holders_run_or_sleep_while_others_wait";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch, "chains") {
        return;
    }
    if !record(NAME, &scratch, "./chains busy") {
        return;
    }
    let json = || {
        let made = run(&scratch, "lock contention --holders --json");
        assert_eq!(made.status, 0, "{made:?}");
        serde_json::from_str::<Value>(&made.stdout).expect("JSON")
    };
    let report = json();
    // 20 times the holder sleeps for 1 ms, and then takes 5 ms of processor time, sampled 997 times per second.
    let (waited, burnt) = times(&report, |state, name| {
        state == "running" && name == "burn_processor"
    });
    assert!((60_000..=140_000).contains(&burnt), "{burnt}: {report}");
    assert!(waited > 80_000, "{waited}: {report}");
    let (_, slept) = times(&report, |state, _| state == "sleeping");
    assert!(slept > 5_000, "{slept}: {report}");
    // The rows divide up the time that others waited. Since running time is an estimate from samples, the sum is not exact.
    let every_row = |_: &str, _: &str| true;
    let (_, total) = times(&report, every_row);
    assert!(
        (waited / 2..=waited + waited / 4).contains(&total),
        "{total}: {report}"
    );
    let text = run(&scratch, "lock contention --holders -v").stderr;
    assert!(text.starts_with("others waited "), "{text}");
    let rows = text
        .lines()
        .filter(|row| row.ends_with("   running   burn_processor"));
    assert_eq!(rows.count(), 1, "{text}");
    // Flame graphs of holders, and of waits: some of their frames, and a title.
    for (options, texts) in [
        ("--holders", ["[running]", "burn_processor", "be_busy"]),
        ("-Y futex", ["[futex]", "start_thread", "Waits for Locks"]),
    ] {
        let drawn = run(
            &scratch,
            &format!("lock contention {options} --svg waits.svg"),
        );
        assert_eq!(drawn.status, 0, "{options}: {drawn:?}");
        let svg = std::fs::read_to_string(scratch.path().join("waits.svg")).expect("a file");
        for text in texts {
            assert!(svg.contains(text), "{options}: {text} is missing");
        }
    }
    // A thread that sleeps while it holds a lock, 20 times for 5 ms; two threads wait for it.
    assert!(record(NAME, &scratch, "./chains rwlock"));
    let report = json();
    let (waited, slept) = times(&report, |state, _| state == "sleeping");
    assert!(waited > 50_000 && slept > waited / 2, "{slept}: {report}");
    assert!(slept <= waited, "{slept}: {report}");
}

#[test]
fn recordings_without_holders_and_conflicting_options_are_refused() {
    let scratch = folder_with_waits();
    for (words, status, message) in [
        (
            "lock contention --holders",
            255,
            "perf.data: the recording has no owners of locks\nhint: 'rperf lock record --user' records",
        ),
        (
            "lock contention --holders -b true",
            129,
            "--holders reads a recording\nhint: ",
        ),
        (
            "lock contention --holders -t",
            129,
            "--holders excludes -t, -l, -o and --lock-cgroup",
        ),
        (
            "lock contention --svg x -l",
            129,
            "--svg excludes -t, -l, -o and --lock-cgroup",
        ),
        (
            "lock contention --svg x --json",
            129,
            "--svg and --json exclude each other",
        ),
        (
            "lock contention --holders -Y mutex",
            129,
            "--holders and -Y exclude each other",
        ),
    ] {
        let refused = run(&scratch, words);
        assert_eq!(refused.status, status, "{words}: {refused:?}");
        assert!(refused.stderr.contains(message), "{words}: {refused:?}");
    }
    // Without --holders the same recording is drawn: its finished waits are for a spinlock and a mutex.
    let drawn = run(&scratch, "lock contention --svg waits.svg");
    assert_eq!(drawn.status, 0, "{drawn:?}");
    let svg = std::fs::read_to_string(scratch.path().join("waits.svg")).expect("a file");
    assert!(
        svg.contains("[spinlock]") && svg.contains("[mutex]"),
        "{svg}"
    );
}

#[test]
fn recordings_without_known_holders_say_so() {
    const NAME: &str = "commands::lock::holders::recordings_without_known_holders_say_so";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !record(NAME, &scratch, "true") {
        return;
    }
    let message = "perf.data: no thread waited for a futex with a known holder; record with 'rperf lock record --user --holders' as root while threads wait for mutexes\n";
    let table = run(&scratch, "lock contention --holders");
    assert_eq!((table.status, table.stderr.as_str()), (0, message));
    // With --svg this is an error: there is nothing to draw.
    let drawn = run(&scratch, "lock contention --holders --svg holders.svg");
    assert_eq!((drawn.status, drawn.stderr.as_str()), (255, message));
    assert!(!scratch.path().join("holders.svg").exists());
    let json = run(&scratch, "lock contention --holders --json").stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["holders"], serde_json::json!([]));
}
