//! `sched latency --live`: waits of the running system.

mod programs;

use std::collections::BTreeMap;

use rperf_testkit::{Scratch, copy_program, skip};

use super::run;
use crate::commands::outcome;
use crate::kernel::can_trace;

/// The numbers that `sched latency` reports for a thread, with `--live` and from a recording. Times are nanoseconds.
struct Waits {
    comm: String,
    count: u64,
    runtime: u64,
    max_delay: u64,
}

/// The rows of `sched latency -p --json` by thread.
fn threads(printed: &str) -> BTreeMap<u64, Waits> {
    let json: serde_json::Value = serde_json::from_str(printed).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    let number = |row: &serde_json::Value, key: &str| row[key].as_u64().expect("a number");
    let rows = rows.iter().map(|row| {
        let waits = Waits {
            comm: row["comm"].as_str().expect("a name").to_owned(),
            count: number(row, "waits"),
            runtime: number(row, "runtime_ns"),
            max_delay: number(row, "max_delay_ns"),
        };
        (number(row, "tid"), waits)
    });
    rows.collect()
}

/// For each thread that began and ended while `--live` and a recording ran, the recording has at most as many waits as `--live`;
/// for most of these threads, it has as many.
#[test]
fn the_waits_are_those_of_a_recording() {
    const NAME: &str = "commands::sched::live::the_waits_are_those_of_a_recording";
    const SLEEPS: usize = 10;
    if !can_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    // Other tests run sleep(1), too.
    copy_program("/bin/sleep", scratch.path().join("live-sleep"));
    let sleeps = "for i in 1 2 3 4 5 6 7 8 9 10; do ./live-sleep 0.01; done";
    let live_command = format!(
        "{} sched latency --live -p --json -- sh -c '{sleeps}' > live.json",
        env!("CARGO_BIN_EXE_rperf")
    );
    let words = [
        "sched",
        "record",
        "-q",
        "-m",
        "1024",
        "-o",
        "s.data",
        "--",
        "sh",
        "-c",
        &live_command,
    ];
    let recorded = run(&scratch, &words);
    if recorded.status != 0 {
        return skip(NAME, &recorded.stderr);
    }
    let printed = std::fs::read_to_string(scratch.path().join("live.json")).unwrap();
    let live_threads = threads(&printed);
    let analysed = run(
        &scratch,
        &["sched", "latency", "-i", "s.data", "-p", "--json"],
    );
    let recorded_threads = threads(&analysed.stdout);
    let (mut compared, mut equal) = (0, 0);
    let rows = live_threads.iter();
    for (tid, live) in rows.filter(|(_, waits)| waits.comm == "live-sleep") {
        let from_recording = &recorded_threads[tid];
        assert_eq!(from_recording.comm, "live-sleep", "{tid}");
        // If a task is woken on its way to sleep, the recording has the wakeup before the switch; only `--live` counts a wait.
        assert!(from_recording.count <= live.count, "{tid}");
        compared += 1;
        if from_recording.count == live.count {
            // The clock is read at different places of the same switch.
            assert!(
                from_recording.max_delay.abs_diff(live.max_delay) < 1_000_000,
                "{tid}"
            );
            // `--live` adds the times between switches; in the recording, the kernel's own sum is read (`sched_stat_runtime`).
            assert!(
                from_recording.runtime.abs_diff(live.runtime) < 3_000_000,
                "{tid}"
            );
            equal += 1;
        }
    }
    assert!(2 * equal > compared, "{equal} of {compared}");
    assert!(compared >= SLEEPS, "{compared} threads");
}

#[test]
fn live_latency_has_formats_and_the_status_of_the_command() {
    const NAME: &str =
        "commands::sched::live::live_latency_has_formats_and_the_status_of_the_command";
    if !can_trace(NAME) {
        return;
    }
    let live = ["sched", "latency", "--live"];
    let table = outcome(&[&live[..], &["--", "sh", "-c", "sleep 0.01; exit 7"]].concat());
    assert_eq!(table.status, 7, "{table:?}");
    assert!(table.stdout.contains("  sleep:"), "{table:?}");
    assert!(table.stdout.contains("  TOTAL:  "), "{table:?}");
    let histogram = outcome(&[&live[..], &["--histogram", "--", "sleep", "0.01"]].concat());
    let first = histogram.stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("# all tasks: "), "{histogram:?}");
    // No CPU has this number.
    let without_cpus = outcome(&[&live[..], &["-C", "9999", "--", "true"]].concat());
    assert!(
        without_cpus
            .stdout
            .contains("  TOTAL:                |      0.000 ms |        0 |")
    );
    let absent = outcome(&[&live[..], &["--", "no-such-program"]].concat());
    assert_eq!(absent.status, 255, "{absent:?}");
    assert!(absent.stderr.starts_with("no-such-program: "), "{absent:?}");
}

#[test]
fn live_refuses_options_of_recordings_and_is_needed_for_commands() {
    for (words, message) in [
        (
            &["--live", "-i", "x"][..],
            "--input needs a recording; --live has none",
        ),
        (
            &["--live", "--antagonists"],
            "--antagonists needs a recording",
        ),
        (&["--live", "-D"], "--dump-raw-trace needs a recording"),
        (&["sleep", "1"], "a command is only run with --live"),
    ] {
        let refused = outcome(&[&["sched", "latency"], words].concat());
        assert_eq!((refused.status, &*refused.stdout), (129, ""), "{refused:?}");
        assert!(refused.stderr.starts_with(message), "{refused:?}");
    }
}
