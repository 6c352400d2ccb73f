//! Targets and sampling rates of `rperf record`, the description of the machine in the header, and deleted programs.
//!
//! `settled` repeats a recording, up to a limit, until its closure returns no failures: a sample may be missing by chance.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rperf_testkit::{Scratch, real_perf, skip};

use super::record::{signal, start};
use super::record_faults::lines;
use crate::differential::{difference, settled};
use crate::kernel::{BUSY, Running, is_root, perf_in, rperf_in};

/// The samples of a recording, with these fields of `script`.
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
    let test = "commands::record_targets::without_workload_and_target_everything_is_recorded_until_a_signal";
    if !is_root() {
        return skip(test, "system-wide recording needs root");
    }
    let _busy = Running::spin();
    // With events on CPUs, record adds a `dummy` that generates the side-band records.
    for options in [
        &["-e", "cpu-clock:u"][..],
        &["-e", "sched:sched_switch", "--filter", "prev_pid >= 0"],
    ] {
        let scratch = Scratch::new();
        // Returns after the recording has begun.
        let mut recording = start(&scratch, &[&["-N"], options].concat());
        signal(&recording, "-INT");
        let status = recording.0.wait().expect("a child");
        let sigint = 2;
        assert_eq!(status.signal(), Some(sigint), "{options:?}");
        let Some(perf) = real_perf() else {
            return skip(test, "there is no perf");
        };
        let events = perf_in(&perf, &scratch, &["evlist"]).stdout;
        assert!(events.contains("\ndummy:HG\n"), "{events}");
        // `lines` also asserts that perf prints the same.
        let cpus = lines(&scratch, &["script", "-F", "cpu"]).unwrap_or_default();
        assert!(
            cpus.iter().all(|cpu| cpu.trim().starts_with('[')),
            "{cpus:?}"
        );
        assert!(!cpus.is_empty(), "{options:?}");
    }
}

#[test]
fn lists_of_processes_and_threads_are_recorded() {
    let targets = [Running::spin(), Running::spin()];
    let pids = targets.each_ref().map(|target| target.0.id().to_string());
    let list = pids.join(",");
    for option in ["-p", "-t"] {
        let missing_pids = settled(|| {
            let scratch = Scratch::new();
            let words = ["-e", "cpu-clock:u", option, &list, "sleep", "0.3"];
            let sampled_pids = samples(&scratch, &words, "pid");
            assert!(
                sampled_pids
                    .iter()
                    .all(|pid| pids.contains(&pid.trim().to_owned()))
            );
            let missing = pids
                .iter()
                .filter(|pid| !sampled_pids.iter().any(|sampled| sampled.trim() == *pid));
            missing.cloned().collect()
        });
        assert!(
            missing_pids.is_empty(),
            "{option}: no samples of {missing_pids:?}"
        );
    }
}

#[test]
fn a_users_processes_are_recorded_and_no_others() {
    let test = "commands::record_targets::a_users_processes_are_recorded_and_no_others";
    if !is_root() || !Path::new("/usr/bin/setpriv").exists() {
        return skip(test, "needs root and setpriv");
    }
    // A user id that no other test uses.
    let user = (4_000_000 + std::process::id()).to_string();
    let child = Command::new("/usr/bin/setpriv")
        .args(["--reuid", &user, "--clear-groups", "sh", "-c"])
        .arg("while :; do :; done")
        .stdin(Stdio::null())
        .spawn();
    let target = Running(child.expect("setpriv starts"));
    let pid = target.0.id().to_string();
    // Before setpriv has run, the user has no process.
    let status = format!("/proc/{pid}/status");
    let belongs_to_user = || {
        std::fs::read_to_string(&status).is_ok_and(|text| text.contains(&format!("Uid:\t{user}")))
    };
    for _ in 0..1000 {
        if belongs_to_user() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(belongs_to_user(), "setpriv has not changed the user");
    let _other = Running::spin();
    let failures = settled(|| {
        let scratch = Scratch::new();
        let words = ["-e", "cpu-clock:u", "-u", &user, "sleep", "0.2"];
        let sampled_pids = samples(&scratch, &words, "pid");
        let is_right =
            !sampled_pids.is_empty() && sampled_pids.iter().all(|sampled| sampled.trim() == pid);
        (!is_right)
            .then(|| format!("{sampled_pids:?}"))
            .into_iter()
            .collect()
    });
    assert!(failures.is_empty(), "of {pid}: {failures:?}");
}

#[test]
fn no_inherit_excludes_children() {
    let script = format!("sh -c '{BUSY}; :'; {BUSY}");
    for (options, includes_children) in [
        (&["-e", "cpu-clock"][..], true),
        (&["-e", "cpu-clock", "-i"], false),
    ] {
        let scratch = Scratch::new();
        let words = [options, &["sh", "-c", &script]].concat();
        let mut pids = samples(&scratch, &words, "pid");
        pids.sort();
        pids.dedup();
        assert_eq!(pids.len() > 1, includes_children, "{options:?}: {pids:?}");
    }
}

#[test]
fn the_number_of_samples_follows_the_rate() {
    let target = Running::spin();
    let pid = target.0.id().to_string();
    let failures = settled(|| {
        let count = |rate: &str| {
            let scratch = Scratch::new();
            let words = ["-e", "cpu-clock", "-F", rate, "-p", &pid, "sleep", "0.5"];
            samples(&scratch, &words, "pid").len()
        };
        let (few, many) = (count("50"), count("4000"));
        // The rate is 80 times as high, but on a busy machine the program does not get a whole CPU.
        let is_right = few > 0 && many > 8 * few;
        (!is_right)
            .then(|| format!("{few}, {many}"))
            .into_iter()
            .collect()
    });
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn headers_match_perf() {
    let test = "commands::record_targets::headers_match_perf";
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
        // Fields that differ between recordings or between the tools.
        let excluded = [
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
        let is_excluded = |line: &&str| {
            let line = line.trim_start_matches(['#', ' ']);
            excluded.iter().any(|field| line.starts_with(field))
        };
        let lines = read.stdout.lines().filter(|line| !is_excluded(line));
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

#[test]
fn mappings_on_other_cpus_are_recorded() {
    let test = "commands::record_targets::mappings_on_other_cpus_are_recorded";
    if !is_root() || std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        return skip(test, "needs root and two CPUs");
    }
    let scratch = Scratch::new();
    for threads in [&[][..], &["--threads"], &["--threads=0/0"]] {
        let words = [
            &["record", "-C", "0", "-e", "cpu-clock", "-o", "perf.data"],
            threads,
            &["--", "taskset", "-c", "1", "true"],
        ];
        let recorded = rperf_in(&scratch, &words.concat()).finish();
        let recorded = recorded.expect("rperf starts");
        assert_eq!(recorded.status, 0, "{}", recorded.stderr);
        let words = ["script", "--show-mmap-events", "-C", "1", "-F", "cpu,comm"];
        let script = rperf_in(&scratch, &words).finish().expect("rperf starts");
        assert!(
            script.stdout.contains("PERF_RECORD_MMAP2"),
            "{threads:?}: {}",
            script.stdout
        );
    }
}

/// The program is deleted while it runs.
#[test]
fn a_deleted_program_keeps_its_names() {
    let scratch = Scratch::new();
    let source = "volatile long sum; __attribute__((noinline)) void spin_here(void) \
                  { for (long i = 0; i < 1000000; i++) sum += i; } int main() { for (;;) spin_here(); }";
    let file = |name: &str| scratch.path().join(name);
    std::fs::write(file("spin.c"), source).expect("writable");
    let cc = ["-O1", "-Wl,--build-id", "-o", "spin", "spin.c"];
    let mut compiler = Command::new("cc");
    compiler.args(cc).current_dir(scratch.path());
    assert!(compiler.status().expect("a C compiler").success());
    let running = Command::new(file("spin")).spawn().expect("it starts");
    let running = Running(running);
    std::fs::remove_file(file("spin")).expect("it exists");
    let pid = running.0.id().to_string();
    let words = ["record", "-o", "perf.data", "-e", "cpu-clock:u", "-p", &pid];
    let words = [&words[..], &["--duration", "0.3"]].concat();
    let recorded = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    drop(running);
    let words = ["report", "--stdio", "-s", "dso,sym"];
    let report = rperf_in(&scratch, &words).finish().expect("rperf starts");
    let row = report
        .stdout
        .lines()
        .find(|line| line.contains("spin (deleted)"));
    assert!(
        row.is_some_and(|row| row.contains("spin_here")),
        "{}",
        report.stdout
    );
}

/// The program loads a library that it has deleted.
#[test]
fn a_deleted_library_keeps_its_names() {
    let scratch = Scratch::new();
    let file = |name: &str| scratch.path().join(name);
    let library =
        "volatile long sum; void spin_here(void) { for (long i = 0; i < 1000000; i++) sum += i; }";
    let program = r#"#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char path[64];
    sprintf(path, "/proc/self/fd/%d", open(argv[1], O_RDONLY));
    unlink(argv[1]);
    void (*spin)(void) = (void (*)(void))dlsym(dlopen(path, RTLD_NOW), "spin_here");
    for (;;) spin();
}"#;
    std::fs::write(file("library.c"), library).expect("writable");
    std::fs::write(file("program.c"), program).expect("writable");
    let compile = |words: &[&str]| {
        let mut compiler = Command::new("cc");
        compiler.arg("-O1").args(words).current_dir(scratch.path());
        assert!(compiler.status().expect("a C compiler").success());
    };
    compile(&["-o", "program", "program.c", "-ldl"]);
    // One file, or with `--threads` a directory of files.
    for layout in [&[][..], &["--threads"]] {
        compile(&[
            "-shared",
            "-fPIC",
            "-Wl,--build-id",
            "-o",
            "library.so",
            "library.c",
        ]);
        let words = [
            &["record", "-o", "perf.data", "-e", "cpu-clock:u"],
            layout,
            &["--duration", "0.3", "--", "./program", "./library.so"],
        ];
        let recorded = rperf_in(&scratch, &words.concat()).finish();
        let recorded = recorded.expect("rperf starts");
        assert_eq!(recorded.status, 0, "{}", recorded.stderr);
        let words = ["report", "--stdio", "-s", "dso,sym"];
        let report = rperf_in(&scratch, &words).finish().expect("rperf starts");
        let is_named =
            |line: &str| line.contains("library.so (deleted)") && line.contains("spin_here");
        assert!(
            report.stdout.lines().any(is_named),
            "{layout:?}: {}",
            report.stdout
        );
    }
}

#[test]
fn ids_of_a_pid_namespace_are_translated() {
    let test = "commands::record_targets::ids_of_a_pid_namespace_are_translated";
    let shell = ["-pf", "sh", "-c", "while :; do :; done"];
    let started = Command::new("unshare")
        .args(shell)
        .stdin(Stdio::null())
        .spawn();
    let Ok(unshare) = started.map(Running) else {
        return skip(test, "there is no unshare");
    };
    std::thread::sleep(Duration::from_millis(300));
    let parent = unshare.0.id();
    let children = format!("/proc/{parent}/task/{parent}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    // The shell's pid outside of the namespace, in which it is process 1.
    let Some(outer_pid) = children.split_whitespace().next() else {
        return skip(test, "there are no PID namespaces for this user");
    };
    let scratch = Scratch::new();
    let options = [
        "-e",
        "cpu-clock:u",
        "--duration",
        "0.2",
        "--pid-ns",
        outer_pid,
    ];
    let pids = samples(&scratch, &[&options[..], &["-p", "1"]].concat(), "pid");
    let words = ["record", "--pid-ns", outer_pid, "-p", "4000000"];
    let no_task = rperf_in(&scratch, &words).finish().expect("rperf starts");
    let conflicting = rperf_in(&scratch, &["record", "--pid-ns", outer_pid, "true"]);
    let conflicting = conflicting.finish().expect("rperf starts");
    // The shell outlives unshare.
    let _ended = Command::new("kill").arg("-KILL").arg(outer_pid).status();
    assert!(
        !pids.is_empty() && pids.iter().all(|pid| pid.trim() == outer_pid),
        "{pids:?}"
    );
    // 244 is the status for targets that do not exist, 129 that for usage errors: a workload conflicts with --pid-ns.
    assert_eq!(
        (no_task.status, conflicting.status),
        (244, 129),
        "{}",
        no_task.stderr
    );
    assert!(
        no_task.stderr.starts_with("no task 4000000 in"),
        "{}",
        no_task.stderr
    );
}
