//! Whom `rperf record` observes and how often, and what the header says of the machine.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rperf_testkit::{Scratch, real_perf, skip};

use super::record::{signal, start};
use super::record_faults::lines;
use crate::differential::{difference, settled};
use crate::kernel::{BUSY, Running, is_root, perf_in, rperf_in};

/// The samples of a recording, by these fields of `script`.
fn samples(scratch: &Scratch, words: &[&str], fields: &str) -> Vec<String> {
    let words = [&["record", "-N", "-o", "perf.data"], words].concat();
    let done = rperf_in(scratch, &words).finish().expect("rperf starts");
    assert_eq!(done.status, 0, "{words:?}: {}", done.stderr);
    let script = ["script", "-F", fields];
    let script = rperf_in(scratch, &script).finish().expect("rperf starts");
    assert_eq!(script.status, 0, "{words:?}: {}", script.stderr);
    script.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn without_workload_and_target_everything_is_recorded_until_a_signal() {
    let test = "record_targets::without_workload_and_target_everything_is_recorded_until_a_signal";
    if !is_root() {
        return skip(test, "whole CPUs need root");
    }
    let _busy = Running::spin();
    for options in [
        &["-e", "cpu-clock:u"][..],
        &["-e", "sched:sched_switch", "--filter", "prev_pid >= 0"],
    ] {
        let scratch = Scratch::new();
        let mut recording = start(&scratch, &[&["-N"], options].concat());
        signal(&recording, "-INT");
        let status = recording.0.wait().expect("a child");
        assert_eq!(status.signal(), Some(2), "{options:?}");
        let Some(perf) = real_perf() else {
            return skip(test, "there is no perf");
        };
        let events = perf_in(&perf, &scratch, &["evlist"]).stdout;
        assert!(events.contains("\ndummy:HG\n"), "{events}");
        let cpus = lines(&scratch, &["script", "-F", "cpu"]).unwrap_or_default();
        assert!(
            cpus.iter().all(|cpu| cpu.trim().starts_with('[')),
            "{cpus:?}"
        );
        assert!(!cpus.is_empty(), "{options:?}");
    }
}

#[test]
fn lists_of_processes_and_threads_are_recorded_whole() {
    let targets = [Running::spin(), Running::spin()];
    let pids = targets.each_ref().map(|target| target.0.id().to_string());
    let list = pids.join(",");
    for option in ["-p", "-t"] {
        let found = settled(|| {
            let scratch = Scratch::new();
            let words = ["-e", "cpu-clock:u", option, &list, "sleep", "0.3"];
            let seen = samples(&scratch, &words, "pid");
            assert!(seen.iter().all(|pid| pids.contains(&pid.trim().to_owned())));
            let missing = pids
                .iter()
                .filter(|pid| !seen.iter().any(|seen| seen.trim() == *pid));
            missing.cloned().collect()
        });
        assert!(found.is_empty(), "{option}: no samples of {found:?}");
    }
}

#[test]
fn a_users_processes_are_recorded_and_no_others() {
    let test = "record_targets::a_users_processes_are_recorded_and_no_others";
    if !is_root() || !Path::new("/usr/bin/setpriv").exists() {
        return skip(test, "needs root and setpriv");
    }
    // One that nobody else has.
    let user = (4_000_000 + std::process::id()).to_string();
    let child = Command::new("/usr/bin/setpriv")
        .args(["--reuid", &user, "--clear-groups", "sh", "-c"])
        .arg("while :; do :; done")
        .stdin(Stdio::null())
        .spawn();
    let target = Running(child.expect("setpriv starts"));
    let pid = target.0.id().to_string();
    let _other = Running::spin();
    let found = settled(|| {
        let scratch = Scratch::new();
        let words = ["-e", "cpu-clock:u", "-u", &user, "sleep", "0.2"];
        let seen = samples(&scratch, &words, "pid");
        let is_right = !seen.is_empty() && seen.iter().all(|seen| seen.trim() == pid);
        (!is_right)
            .then(|| format!("{seen:?}"))
            .into_iter()
            .collect()
    });
    assert!(found.is_empty(), "of {pid}: {found:?}");
}

#[test]
fn children_are_left_out_where_nothing_is_inherited() {
    let script = format!("sh -c '{BUSY}; :'; {BUSY}");
    for (options, several) in [
        (&["-e", "cpu-clock"][..], true),
        (&["-e", "cpu-clock", "-i"], false),
    ] {
        let scratch = Scratch::new();
        let words = [options, &["sh", "-c", &script]].concat();
        let mut pids = samples(&scratch, &words, "pid");
        pids.sort();
        pids.dedup();
        assert_eq!(pids.len() > 1, several, "{options:?}: {pids:?}");
    }
}

#[test]
fn samples_are_as_many_as_the_rate() {
    let target = Running::spin();
    let pid = target.0.id().to_string();
    let found = settled(|| {
        let count = |rate: &str| {
            let scratch = Scratch::new();
            let words = ["-e", "cpu-clock", "-F", rate, "-p", &pid, "sleep", "0.5"];
            samples(&scratch, &words, "pid").len()
        };
        let (few, many) = (count("50"), count("4000"));
        // Eighty times as many, of a program that gets any part of a processor.
        let is_right = few > 0 && many > 8 * few;
        (!is_right)
            .then(|| format!("{few}, {many}"))
            .into_iter()
            .collect()
    });
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn headers_say_what_perfs_say() {
    let test = "record_targets::headers_say_what_perfs_say";
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    let scratch = Scratch::new();
    let words = [
        "record",
        "-g",
        "-e",
        "cpu-clock,page-faults",
        "-k",
        "mono",
        "-o",
        "perf.data",
        "true",
    ];
    let header = || {
        let read = perf_in(&perf, &scratch, &["report", "--header-only", "-I"]);
        assert_eq!((read.status, read.stderr.as_str()), (0, ""));
        // What differs from one recording to the next, and from one program to the other.
        let own = [
            "captured on",
            "data offset",
            "data size",
            "feat offset",
            "perf version",
            "cmdline",
            "event",
            "time of ",
            "sample duration",
            "missing features",
            "clockid",
            "reference time",
            "node",
        ];
        let is_own = |line: &&str| {
            let line = line.trim_start_matches(['#', ' ']);
            own.iter().any(|own| line.starts_with(own))
        };
        let lines = read.stdout.lines().filter(|line| !is_own(line));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let theirs = perf_in(&perf, &scratch, &words);
    assert_eq!(theirs.status, 0, "{}", theirs.stderr);
    let theirs = header();
    let ours = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(ours.status, 0, "{}", ours.stderr);
    assert!(theirs.lines().count() > 10, "{theirs}");
    assert_eq!(difference(&theirs, &header()), None);
}
