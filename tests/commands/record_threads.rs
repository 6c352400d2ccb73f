//! `rperf record --threads` and `--affinity`: which threads drain the rings, and the resulting directory.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rperf_testkit::{Outcome, Scratch, real_perf, skip};

use super::record::start;
// Runs perf and rperf, asserts that their output is equal, and returns its lines; `None` without perf.
use super::record_faults::lines;
use crate::kernel::{BUSY, Running, is_root, perf_in, rperf_in};

fn record(scratch: &Scratch, options: &[&str], workload: &[&str]) -> Outcome {
    let words = [
        &["record", "-o", "perf.data", "-e", "cpu-clock"],
        options,
        workload,
    ];
    let outcome = rperf_in(scratch, &words.concat()).finish();
    outcome.expect("rperf starts")
}

fn succeed(scratch: &Scratch, options: &[&str], workload: &[&str]) -> Outcome {
    let outcome = record(scratch, options, workload);
    assert_eq!(outcome.status, 0, "{options:?}: {}", outcome.stderr);
    outcome
}

/// The number of online CPUs, for each of which a recording with `--threads` has a file.
fn online_cpus() -> usize {
    let cpus = fs::read_to_string("/sys/devices/system/cpu/online").expect("sysfs");
    let ranges = cpus.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |word: &str| word.parse::<usize>().expect("a CPU");
        number(last) - number(first) + 1
    });
    ranges.sum()
}

/// Checks that a directory has a file with the header and one for each CPU, and that all are accessible to their owner only.
fn assert_parts(folder: &Path) {
    let mode = fs::metadata(folder).expect("a folder").permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    let names = fs::read_dir(folder).expect("a folder").map(|entry| {
        let entry = entry.expect("an entry");
        assert_eq!(
            entry.metadata().expect("a file").permissions().mode() & 0o777,
            0o600
        );
        entry.file_name().to_string_lossy().into_owned()
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    let parts = (0..online_cpus()).map(|number| format!("data.{number}"));
    let mut expected: Vec<String> = std::iter::once("data".to_owned()).chain(parts).collect();
    expected.sort();
    assert_eq!(names, expected);
}

#[test]
fn each_ring_has_a_file_and_perf_reads_the_directory() {
    const NAME: &str =
        "commands::record_threads::each_ring_has_a_file_and_perf_reads_the_directory";
    let scratch = Scratch::new();
    let work = ["sh", "-c", BUSY];
    for options in [
        &["--threads"][..],
        &["--threads=core", "-g"],
        &["--threads=package", "-z"],
        &["--threads=numa", "-m", "16"],
    ] {
        let outcome = succeed(&scratch, options, &work);
        let folder = scratch.path().join("perf.data");
        assert_parts(&folder);
        let Some(samples) = lines(&scratch, &["script", "-F", "comm,tid,time"]) else {
            return skip(NAME, "there is no perf");
        };
        assert!(
            samples.len() > 5
                && outcome
                    .stderr
                    .contains(&format!("({} samples)", samples.len())),
            "{options:?}: {} {}",
            samples.len(),
            outcome.stderr
        );
        let reports_compression = outcome.stderr.contains(", compressed (original ");
        assert_eq!(
            reports_compression,
            options.contains(&"-z"),
            "{}",
            outcome.stderr
        );
        // To save time, the other commands read the first recording only.
        if options.len() > 1 {
            continue;
        }
        let events = lines(&scratch, &["evlist"]);
        assert_eq!(events.as_deref(), Some(&["cpu-clock".to_owned()][..]));
        let header = lines(&scratch, &["report", "--header-only"]).unwrap_or_default();
        assert!(
            header
                .iter()
                .any(|line| line == "# directory data version : 1")
        );
        let report =
            lines(&scratch, &["report", "--stdio", "-q", "-g", "none"]).unwrap_or_default();
        assert!(
            report
                .iter()
                .any(|line| line.contains("% ") && line.contains(" sh "))
        );
    }
    // The previous recording, a directory, is kept as perf.data.old, and a file takes its place.
    succeed(&scratch, &[], &["true"]);
    assert!(scratch.path().join("perf.data").is_file());
    assert!(scratch.path().join("perf.data.old/data.0").is_file());
    let stamped = succeed(&scratch, &["--threads", "--timestamp-filename"], &["true"]);
    // The timestamp begins with the year.
    assert!(
        stamped.stderr.contains("record: Dump perf.data.2"),
        "{}",
        stamped.stderr
    );
}

#[test]
fn threads_end_with_the_tasks_and_at_the_size_limit() {
    let scratch = Scratch::new();
    let target = Running::spin();
    let pid = target.0.id().to_string();
    let options = [
        "--threads",
        "-m",
        "8",
        "-F",
        "5000",
        "--max-size",
        "64K",
        "-p",
        &pid,
    ];
    let outcome = succeed(&scratch, &options, &[]);
    let message = "[ rperf record: perf size limit reached (";
    assert!(outcome.stderr.starts_with(message), "{}", outcome.stderr);
    drop(target);
    let script = format!("{BUSY}; sleep 0.2");
    let child = std::process::Command::new("sh")
        .args(["-c", &script])
        .spawn();
    let mut child = child.expect("sh starts");
    let outcome = record(&scratch, &["--threads", "-p", &child.id().to_string()], &[]);
    child.wait().expect("a child");
    // On a busy machine the child may have exited before the recording begins.
    assert!(
        outcome.status == 0 || outcome.stderr.contains("No such process"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn the_directory_of_a_killed_recorder_is_readable() {
    let scratch = Scratch::new();
    let target = Running::spin();
    let pid = target.0.id().to_string();
    let words = ["--threads", "-e", "cpu-clock", "-m", "1", "-F", "5000"];
    let mut recording = start(&scratch, &[&words[..], &["-p", &pid]].concat());
    let folder = scratch.path().join("perf.data");
    let written = || {
        let parts = (0..online_cpus()).map(|number| folder.join(format!("data.{number}")));
        let sizes = parts.filter_map(|part| Some(part.metadata().ok()?.len()));
        sizes.sum::<u64>()
    };
    let began = Instant::now();
    while written() < 32 << 10 {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "the recording does not grow"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    recording.0.kill().expect("it runs");
    recording.0.wait().expect("a child");
    let ours = rperf_in(&scratch, &["script", "-F", "pid"]).finish();
    let ours = ours.expect("rperf starts");
    let samples_of_target = ours.stdout.lines().filter(|line| line.trim() == pid);
    assert!(samples_of_target.count() > 10, "{}", ours.stdout);
    // A killed recorder has not written the directory feature, without which perf reads only the file with the header.
    let Some(perf) = real_perf() else {
        return skip(
            "commands::record_threads::the_directory_of_a_killed_recorder_is_readable",
            "there is no perf to compare with",
        );
    };
    let theirs = perf_in(&perf, &scratch, &["script", "-F", "pid"]);
    assert_eq!(theirs.stdout, "");
}

#[test]
fn masks_share_out_all_rings() {
    if online_cpus() != 2 {
        return skip(
            "commands::record_threads::masks_share_out_all_rings",
            "needs two CPUs",
        );
    }
    let scratch = Scratch::new();
    // Each thread has two masks: the CPUs whose rings it drains, and after the slash the CPUs on which it runs. CPUs 7 and 4000
    // do not exist here. A CPU that is not recorded is ignored in the first mask if the mask has others.
    for masks in ["0/1:1/0", "0-1/0", "1,0,7/0-1"] {
        let option = format!("--threads={masks}");
        let outcome = succeed(&scratch, &[&option], &["sh", "-c", BUSY]);
        assert!(
            outcome.stderr.ends_with(" samples) ]\n"),
            "{}",
            outcome.stderr
        );
    }
    for (masks, message) in [
        ("0/0", "no thread reads the ring buffer of CPU 1\n"),
        (
            "7/0:0-1/1",
            "a thread would read only CPUs 7, which are not recorded\n",
        ),
        ("0-1/4000", "this process may not run on CPUs 4000: "),
    ] {
        let outcome = record(&scratch, &[&format!("--threads={masks}")], &["true"]);
        assert_eq!(outcome.status, 255);
        assert!(outcome.stderr.starts_with(message), "{}", outcome.stderr);
    }
}

#[test]
fn affinities_are_accepted_and_conflicting_options_refused() {
    let scratch = Scratch::new();
    for place in ["node", "cpu"] {
        let option = format!("--affinity={place}");
        let outcome = succeed(&scratch, &[&option, "-m", "4"], &["sh", "-c", BUSY]);
        assert!(
            outcome.stderr.ends_with(" samples) ]\n"),
            "{}",
            outcome.stderr
        );
    }
    for (options, message) in [
        (
            &["--affinity=moon"][..],
            "--affinity: unknown value 'moon'\nhint: choose from sys, node, cpu\n",
        ),
        (
            &["--threads", "--affinity=cpu"],
            "--threads and --affinity exclude each other: ",
        ),
        (
            &["--threads", "--overwrite"],
            "--threads and --overwrite exclude each other: ",
        ),
        (
            &["--threads", "--per-thread"],
            "--threads and --per-thread exclude each other: ",
        ),
        (
            &["--threads", "--switch-output"],
            "--threads and --switch-output exclude each other: ",
        ),
        (
            &["--threads", "--call-graph", "dwarf", "--unwind", "live"],
            "--unwind live cannot be combined with --threads\n",
        ),
        (
            &["--threads", "-o", "-"],
            "--threads writes a directory: name it with -o",
        ),
    ] {
        let outcome = record(&scratch, options, &["true"]);
        assert_eq!(outcome.status, 129);
        assert!(outcome.stderr.starts_with(message), "{}", outcome.stderr);
    }
}

#[test]
fn system_wide_recordings_with_threads_are_directories() {
    const NAME: &str =
        "commands::record_threads::system_wide_recordings_with_threads_are_directories";
    if !is_root() {
        return skip(NAME, "needs root");
    }
    let scratch = Scratch::new();
    succeed(
        &scratch,
        &["--threads", "-a", "-C", "0"],
        &["sh", "-c", BUSY],
    );
    let files = fs::read_dir(scratch.path().join("perf.data")).expect("a folder");
    // Samples are of CPU 0 only, but COMM and MMAP records come from the rings of all CPUs.
    assert_eq!(
        files.count(),
        1 + online_cpus(),
        "the header, and the rings"
    );
    let Some(samples) = lines(&scratch, &["script", "-F", "cpu,time"]) else {
        return skip(NAME, "there is no perf");
    };
    assert!(samples.len() > 5 && samples.iter().all(|line| line.contains("[000]")));
}
