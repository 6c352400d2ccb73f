//! Sample filters for events other than tracepoints, `--exclude-perf` with such events, and recording the output's own device.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use rperf_testkit::{Outcome, Scratch, real_perf, skip};

use super::record_faults::lines;
use crate::differential::settled;
use crate::kernel::{BUSY, Running, can_trace, is_root, rperf_in};

fn record(scratch: &Scratch, options: &[&str], workload: &[&str]) -> Outcome {
    let words = [&["record", "-N", "-o", "perf.data"], options, workload].concat();
    rperf_in(scratch, &words).finish().expect("rperf starts")
}

/// The numbers in the messages of a successful recording: of dropped samples, of all samples of events with a filter, and of
/// written samples.
fn sample_counts(outcome: &Outcome) -> [u64; 3] {
    let message = &outcome.stderr;
    assert_eq!(outcome.status, 0, "{message}");
    let counts = message.lines().find_map(|line| {
        let counts = line.strip_suffix(" samples did not match the filter of their event")?;
        counts.split_once(" of ")
    });
    let (dropped, all) = counts.expect(message);
    let written = message
        .split_once(" samples)")
        .and_then(|(before, _)| before.rsplit('(').next());
    [dropped, all, written.unwrap_or("0")].map(|count| count.parse().expect("a number"))
}

#[test]
fn filtered_samples_are_dropped_and_counted() {
    let test = "commands::record_filter::filtered_samples_are_dropped_and_counted";
    if real_perf().is_none() || !is_root() {
        return skip(test, "there is no perf, or no root");
    }
    let target = Running::spin();
    let pid = target.0.id();
    // A comma is `and`, which binds less tightly than `||`. BPF programs can test all these fields in the kernel.
    let filter = format!("cpu == 0 || pid == {pid}, pid != 0, period > 0");
    for options in [
        &[][..],
        &["-z"],
        &["-g"],
        &["--call-graph", "dwarf", "--unwind", "live"],
    ] {
        let scratch = Scratch::new();
        let events = ["-a", "-e", "cpu-clock", "-F", "499", "--filter", &filter];
        let outcome = record(
            &scratch,
            &[&events[..], options].concat(),
            &["sleep", "0.3"],
        );
        let [dropped, all, written] = sample_counts(&outcome);
        assert_eq!(all - dropped, written, "{options:?}: {}", outcome.stderr);
        // `lines` also asserts that perf prints the same.
        let rows =
            lines(&scratch, &["script", "-F", "pid,cpu,period", "-G"]).expect("perf is there");
        assert_eq!(rows.len() as u64, written, "{options:?}");
        for row in rows {
            let mut words = row.split_whitespace();
            let row_pid = words
                .next()
                .and_then(|word| word.parse::<u32>().ok())
                .expect("a pid");
            let cpu = words.next().expect("a CPU");
            assert!(
                row_pid != 0 && (row_pid == pid || cpu == "[000]"),
                "{options:?}: {row}"
            );
        }
    }
}

#[test]
fn a_filter_applies_only_to_the_preceding_event() {
    // The recorder applies these filters itself: BPF programs cannot test `ip`.
    for (filter, is_kept) in [("ip > 0, tid > 1", true), ("ip < 1", false)] {
        let failures = settled(|| {
            let scratch = Scratch::new();
            let events = [
                "-e",
                "page-faults:u",
                "-c",
                "1",
                "-e",
                "task-clock:u",
                "--filter",
                filter,
            ];
            let outcome = record(&scratch, &events, &["sh", "-c", BUSY]);
            let [dropped, all, written] = sample_counts(&outcome);
            assert_eq!(dropped == 0, is_kept || all == 0, "{}", outcome.stderr);
            let words = ["script", "-F", "event"];
            let rows = rperf_in(&scratch, &words)
                .finish()
                .expect("rperf starts")
                .stdout;
            let count = |event| rows.lines().filter(|row| row.contains(event)).count() as u64;
            assert_eq!(count("task-clock"), all - dropped, "{rows}");
            assert_eq!(
                count("page-faults") + count("task-clock"),
                written,
                "{rows}"
            );
            let has_too_few = all == 0 || count("page-faults") == 0;
            has_too_few.then_some(rows).into_iter().collect()
        });
        assert!(failures.is_empty(), "{filter}: {failures:?}");
    }
}

#[test]
fn exclude_perf_excludes_the_recorder() {
    let test = "commands::record_filter::exclude_perf_excludes_the_recorder";
    if !is_root() {
        return skip(test, "system-wide recording needs root");
    }
    let failures = settled(|| {
        let scratch = Scratch::new();
        let options = ["-a", "-e", "context-switches", "-c", "1", "--exclude-perf"];
        let outcome = record(&scratch, &options, &["sh", "-c", "echo $PPID; sleep 0.3"]);
        let [dropped, ..] = sample_counts(&outcome);
        let recorder = outcome.stdout.trim();
        let pids = rperf_in(&scratch, &["script", "-F", "pid"]).finish();
        let pids = pids.expect("rperf starts").stdout;
        assert!(
            pids.lines().all(|pid| pid.trim() != recorder),
            "{recorder}: {pids}"
        );
        let has_too_few = dropped == 0 || pids.is_empty();
        has_too_few.then_some(outcome.stderr).into_iter().collect()
    });
    assert!(failures.is_empty(), "{failures:?}");
}

/// Samples do not have `uid` and `gid`: only BPF programs in the kernel can test them, with `--threads`, too. Combined with `ip`,
/// which BPF programs cannot test, such a filter is refused.
#[test]
fn the_kernel_filters_by_user_and_with_threads() {
    let test = "commands::record_filter::the_kernel_filters_by_user_and_with_threads";
    let scratch = Scratch::new();
    let Some(unprivileged) = crate::kernel::UnprivilegedUser::new(test, &scratch) else {
        return;
    };
    let user = unprivileged.run(&["id", "-u"]).stdout.trim().to_owned();
    let events = ["-a", "-e", "cpu-clock", "-c", "1000000", "--filter"];
    let filter = format!("uid == {user}, gid == {user}");
    let child_command = format!(
        "/usr/bin/setpriv --reuid {user} --regid {user} --clear-groups sh -c 'echo $$; {BUSY}'"
    );
    for options in [&[][..], &["--threads"]] {
        let options = [&events[..], &[&filter], options].concat();
        // The parent is busy, too, but belongs to root. The last `:` keeps the shell from executing the child without a fork.
        let work = format!("{BUSY}; {child_command}; :");
        let outcome = record(&scratch, &options, &["sh", "-c", &work]);
        let message = &outcome.stderr;
        assert_eq!(outcome.status, 0, "{message}");
        assert!(
            message.contains(" samples did not match the filter"),
            "{message}"
        );
        let child = outcome.stdout.trim();
        let pids = rperf_in(&scratch, &["script", "-F", "pid"]).finish();
        let pids = pids.expect("rperf starts").stdout;
        assert!(!pids.is_empty(), "{options:?}");
        assert!(
            pids.lines().all(|pid| pid.trim() == child),
            "{child}: {pids}"
        );
    }
    let options = ["-e", "cpu-clock", "--filter", "uid == 0, ip > 1"];
    let refused = record(&scratch, &options, &["true"]);
    let line = "samples cannot be filtered by 'uid'\nhint: combine it with pid, ";
    assert!(refused.stderr.starts_with(line), "{}", refused.stderr);
}

#[test]
fn unsupported_filters_are_refused() {
    let scratch = Scratch::new();
    for (words, status, message) in [
        (
            &["--filter", "cpus == 1"][..],
            255,
            "failed to set filter \"cpus == 1\" on event cs\nunknown field 'cpus'\nhint: choose from ip, ",
        ),
        (
            &["--filter", "cpu == 1, mem_lvl == l9"],
            255,
            "failed to set filter \"cpu == 1, mem_lvl == l9\" on event cs\n'l9' is not a value of mem_lvl\nhint: ",
        ),
        // The recorder would have to apply the next two filters: BPF programs cannot test `ip` and `time`.
        (
            &["--filter", "ip > 1", "--threads"],
            129,
            "filters of events other than tracepoints cannot be combined with --threads\nhint: omit --threads\n",
        ),
        (
            &["--filter", "cpu == 1 || time > 1", "--overwrite"],
            129,
            "filters of events other than tracepoints cannot be combined with --overwrite\n",
        ),
    ] {
        let outcome = record(&scratch, &[&["-e", "cs"], words].concat(), &["true"]);
        assert!(
            outcome.stderr.starts_with(message),
            "{words:?}: {}",
            outcome.stderr
        );
        assert_eq!(outcome.status, status, "{words:?}");
    }
    assert!(!scratch.path().join("perf.data").exists());
    let words = ["stat", "-e", "cs", "--filter", "cpu == 1", "true"];
    let outcome = rperf_in(&scratch, &words).finish().expect("rperf starts");
    let message = "event cs takes no filter: only tracepoints have fields\n";
    assert!(outcome.stderr.starts_with(message), "{}", outcome.stderr);
    assert_eq!(outcome.status, 129);
}

#[test]
fn a_recording_of_the_device_that_it_is_written_to_is_reported() -> io::Result<()> {
    const NAME: &str =
        "commands::record_filter::a_recording_of_the_device_that_it_is_written_to_is_reported";
    if !can_trace(NAME) {
        return Ok(());
    }
    let scratch = Scratch::new();
    // Major 0 is that of file systems without a block device number, such as tmpfs.
    let on_disk = libc::major(fs::metadata(scratch.path())?.dev()) != 0;
    let in_memory = format!("/dev/shm/rperf-test-{}.data", std::process::id());
    for (options, output, is_reported) in [
        (&[][..], "perf.data", on_disk),
        (&["--filter", "dev != 0"], "perf.data", false),
        (&[], &in_memory, false),
    ] {
        let words = ["record", "-a", "-e", "block:block_rq_issue"];
        let words = [&words[..], options, &["-o", output, "true"]].concat();
        let recorded = rperf_in(&scratch, &words).finish()?;
        assert_eq!(recorded.status, 0, "{recorded:?}");
        let warning = format!(
            "block:block_rq_issue also records the writes to {output}, which is on device "
        );
        assert_eq!(
            recorded.stderr.contains(&warning),
            is_reported,
            "{recorded:?}"
        );
        let hint = "or add --filter 'dev != ";
        assert_eq!(recorded.stderr.contains(hint), is_reported, "{recorded:?}");
    }
    fs::remove_file(in_memory)
}
