//! Failures and heavy load during a recording, the counts of lost samples, and the clocks.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use crate::kernel::{BUSY, is_root, record_in, rperf_in};
use crate::tools::without_zero_config;

/// Runs perf and rperf with `words`, asserts that their output is equal, except for `config: 0` of an event, which only rperf
/// prints ([`without_zero_config`]), and returns perf's lines. `None` without perf.
pub(super) fn lines(scratch: &Scratch, words: &[&str]) -> Option<Vec<String>> {
    let perf = real_perf()?;
    let theirs = Run::new(perf).args(words).within(scratch.path());
    let theirs = theirs
        .env("HOME", scratch.path())
        .finish()
        .expect("perf starts");
    let ours = rperf_in(scratch, words).finish().expect("rperf starts");
    assert_eq!(theirs.status, 0, "{}", theirs.stderr);
    assert_eq!(without_zero_config(&ours.stdout), theirs.stdout);
    Some(theirs.stdout.lines().map(str::to_owned).collect())
}

#[test]
fn a_process_may_end_while_the_recording_starts() {
    let scratch = Scratch::new();
    for millis in ["0.001", "0.01", "0.03", "0.05"] {
        let child = Command::new("sleep")
            .arg(millis)
            .stdin(Stdio::null())
            .spawn();
        let mut child = child.expect("sleep starts");
        let pid = child.id().to_string();
        let outcome = record_in(&scratch, &["-e", "cs", "-p", &pid], &[]);
        child.wait().expect("a child");
        // 244: perf's status for a process that does not exist. 255: a later step failed, since the process had ended.
        match outcome.status {
            0 => assert!(
                outcome.stderr.contains("Captured and wrote"),
                "{}",
                outcome.stderr
            ),
            244 | 255 => assert!(
                outcome.stderr.contains("No such process"),
                "{}",
                outcome.stderr
            ),
            status => panic!("{status}: {}", outcome.stderr),
        }
    }
}

/// The existing `perf.data` cannot be renamed to `perf.data.old`, since that is a folder with a file. The rename is only tried
/// after the workload was started.
#[test]
fn a_failed_recording_ends_its_workload() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path().join("perf.data.old")).expect("a folder");
    let write = |path: &str| scratch.write(path, "kept").expect("a scratch file");
    for path in ["perf.data", "perf.data.old/file"] {
        write(path);
    }
    let followed = write("followed");
    let followed = followed.to_str().expect("a path of text");
    let workload = ["tail", "-f", followed];
    let outcome = record_in(&scratch, &["-e", "cpu-clock"], &workload);
    assert_eq!(outcome.status, 255, "{}", outcome.stderr);
    let message = "failed to open perf.data.old : Directory not empty";
    assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    let runs = || {
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        let mut words = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        words.any(|words| String::from_utf8_lossy(&words).contains(followed))
    };
    for _ in 0..600 {
        if !runs() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("{workload:?} is still running");
}

#[test]
fn a_thousand_threads_are_followed() {
    let scratch = Scratch::new();
    let end = Arc::new(Barrier::new(1001));
    let spawn = |_| {
        let end = Arc::clone(&end);
        let thread = thread::Builder::new().stack_size(64 << 10);
        let wait = move || {
            end.wait();
        };
        thread.spawn(wait).expect("a thread")
    };
    let threads: Vec<_> = (0..1000).map(spawn).collect();
    let own = std::process::id().to_string();
    let outcome = record_in(&scratch, &["-e", "cs:u", "-p", &own], &["true"]);
    end.wait();
    for thread in threads {
        thread.join().expect("a thread");
    }
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let Some(printed) = lines(
        &scratch,
        &["script", "--show-mmap-events", "--show-task-events"],
    ) else {
        return skip(
            "commands::record_faults::a_thousand_threads_are_followed",
            "there is no perf",
        );
    };
    let comms = printed
        .iter()
        .filter(|line| line.contains("PERF_RECORD_COMM: "));
    // One for each thread, and those of the main thread and the workload.
    assert!(comms.count() > 1000);
}

/// The sum of the counts of lost samples in perf's dump of a file.
pub(super) fn lost_samples(perf: &Path, scratch: &Scratch, file: &str) -> usize {
    let dump = Run::new(perf).args(["script", "-D", "-i", file]);
    let dump = dump.within(scratch.path()).env("HOME", scratch.path());
    let dump = dump.finish().expect("perf starts").stdout;
    let counts = dump
        .lines()
        .filter_map(|line| line.split("lost samples :").nth(1));
    let count = |count: &str| count.trim().parse::<usize>().expect("a number");
    counts.map(count).sum()
}

#[test]
fn all_losses_of_a_full_ring_are_counted() {
    let test = "commands::record_faults::all_losses_of_a_full_ring_are_counted";
    let Some(perf) = real_perf().filter(|_| is_root()) else {
        return skip(test, "needs perf and root");
    };
    let calls = 5000;
    // The recorder is stopped, so that the ring overflows on any machine.
    let script = format!(
        "kill -STOP $PPID; dd if=/dev/zero of=/dev/null bs=1 count={calls} status=none; kill -CONT $PPID"
    );
    let event = ["-m", "2", "-e", "syscalls:sys_enter_write"];
    for threads in [&[][..], &["--threads"]] {
        let scratch = Scratch::new();
        let options = [&event, threads].concat();
        let outcome = record_in(&scratch, &options, &["sh", "-c", &script]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let is_reported = outcome.stderr.contains(" lost ") && outcome.stderr.contains("-m ");
        assert!(is_reported, "{}", outcome.stderr);
        let comms = lines(&scratch, &["script", "-F", "comm"]).unwrap_or_default();
        let written = comms.iter().filter(|line| line.trim() == "dd").count();
        let lost = lost_samples(&perf, &scratch, "perf.data");
        assert!(written > 0 && written < calls / 2, "{written}");
        // The kernel counts lost side-band records as lost samples, too.
        assert!(
            (calls..calls + 20).contains(&(written + lost)),
            "{written} samples were written, {lost} reported as lost"
        );
    }
}

#[test]
fn the_recorder_makes_few_system_calls_and_its_memory_is_bounded() {
    let test =
        "commands::record_faults::the_recorder_makes_few_system_calls_and_its_memory_is_bounded";
    if !is_root() {
        return skip(test, "needs root");
    }
    let memory = "grep RssAnon /proc/$PPID/status";
    let calls = "dd if=/dev/zero of=/dev/null bs=1 count=200000 status=none";
    let script = format!("echo $PPID; {memory}; {calls}; {memory}");
    for threads in [&[][..], &["--threads"]] {
        let scratch = Scratch::new();
        let options = [&["-a", "-e", "raw_syscalls:sys_enter"], threads].concat();
        let outcome = record_in(&scratch, &options, &["sh", "-c", &script]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        // The recorder's pid, then twice `RssAnon: N kB`.
        let words: Vec<&str> = outcome.stdout.split_whitespace().collect();
        let [recorder, _, before, _, _, after, _] = words[..] else {
            panic!("{}", outcome.stdout);
        };
        let grown = kilobytes(after).saturating_sub(kilobytes(before));
        assert!(grown < 4 << 10, "{before} KiB became {after}");
        let words = ["report", "--stdio", "-q", "-n", "-s", "pid"];
        let report = rperf_in(&scratch, &words).finish().expect("rperf starts");
        let rows = report.stdout.lines().map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let count: usize = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            let process = words.next().unwrap_or_default();
            (count, process.starts_with(&format!("{recorder}:")))
        });
        let (own, others): (Vec<_>, Vec<_>) = rows.partition(|(_, is_own)| *is_own);
        let sum = |rows: &[(usize, bool)]| rows.iter().map(|(count, _)| count).sum::<usize>();
        let (own, others) = (sum(&own), sum(&others));
        assert!(
            own * 100 < others,
            "{own} system calls of the recorder, {others} of others"
        );
        assert!(others > 100_000, "{}", report.stdout);
    }
}

fn kilobytes(word: &str) -> u64 {
    word.parse().expect("a number")
}

/// Checks that `expected` of the `lines` contain `word`, or fewer if the recorder reports losses.
fn assert_line_count(outcome: &Outcome, lines: &[String], word: &str, expected: usize) {
    let count = lines.iter().filter(|line| line.contains(word)).count();
    let is_lossy = outcome.stderr.contains(" lost ");
    assert!(
        count == expected || is_lossy && count < expected,
        "{count} of {expected}: {}",
        outcome.stderr
    );
}

#[test]
fn many_forks_and_execs_are_recorded_completely() {
    let test = "commands::record_faults::many_forks_and_execs_are_recorded_completely";
    let scratch = Scratch::new();
    let script = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); (:) & done; wait; \
                  i=0; while [ $i -lt 50 ]; do i=$((i+1)); /bin/true; done";
    let outcome = record_in(&scratch, &["-e", "cs", "-c", "1"], &["sh", "-c", script]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let Some(printed) = lines(&scratch, &["script", "--show-task-events"]) else {
        return skip(test, "there is no perf");
    };
    assert_line_count(&outcome, &printed, "PERF_RECORD_FORK(", 250);
    assert_line_count(&outcome, &printed, "PERF_RECORD_COMM exec: true:", 50);
}

#[test]
fn recordings_with_every_clock_are_read_as_by_perf() {
    for clock in ["monotonic", "monotonic_raw", "realtime", "boottime", "tai"] {
        let scratch = Scratch::new();
        let outcome = record_in(
            &scratch,
            &["-e", "cpu-clock", "-k", clock],
            &["sh", "-c", BUSY],
        );
        assert_eq!(outcome.status, 0, "{clock}: {}", outcome.stderr);
        let Some(printed) = lines(&scratch, &["script", "-F", "comm,time,ip"]) else {
            return skip(
                "commands::record_faults::recordings_with_every_clock_are_read_as_by_perf",
                "there is no perf",
            );
        };
        assert!(printed.len() > 5, "{clock}: {printed:?}");
    }
}

#[test]
fn a_recorder_bound_to_one_cpu_records_all_cpus() {
    let test = "commands::record_faults::a_recorder_bound_to_one_cpu_records_all_cpus";
    let cpus = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    if !is_root() || cpus.trim() == "0" {
        return skip(test, "needs root and more than one CPU");
    }
    let scratch = Scratch::new();
    let words = [
        "-c",
        "0",
        env!("CARGO_BIN_EXE_rperf"),
        "record",
        "-o",
        "perf.data",
        "-a",
        "-e",
        "cpu-clock",
        "sleep",
        "0.2",
    ];
    let bound = Run::new("taskset").args(words).within(scratch.path());
    let Ok(outcome) = bound.env("HOME", scratch.path()).finish() else {
        return skip(test, "there is no taskset");
    };
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let Some(printed) = lines(&scratch, &["script", "-F", "cpu"]) else {
        return skip(test, "there is no perf");
    };
    for cpu in ["[000]", "[001]"] {
        assert!(printed.iter().any(|line| line.trim() == cpu), "{cpu}");
    }
}
