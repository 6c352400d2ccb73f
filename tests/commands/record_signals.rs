//! Signals sent to a recorder, or ignored when it starts; the limit of the file size (`RLIMIT_FSIZE`).

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rperf_testkit::{Outcome, Run, Scratch, skip};

use crate::kernel::{BUSY, Running, rperf_in};

const NO_IGNORE_SIGNAL: &str = "env has no option --ignore-signal (coreutils before 8.31)";
const RPERF: &str = env!("CARGO_BIN_EXE_rperf");

/// The outcome of a `record` that env(1) executes; `options` are those of env.
fn record_under_env(scratch: &Scratch, options: &[&str], workload: &[&str]) -> Outcome {
    let env = Run::new("env").args(options).args([RPERF, "record"]);
    let env = env
        .args(["-o", "perf.data", "-e", "cpu-clock"])
        .args(workload);
    let env = env.within(scratch.path()).env("HOME", scratch.path());
    env.finish().expect("env starts")
}

/// Whether env(1) can start a program with an ignored signal.
fn env_can_ignore_signals() -> bool {
    let command_line = Run::new("env").args(["--ignore-signal=HUP", "true"]);
    command_line.finish().expect("env starts").status == 0
}

/// Whether `data check` finds no damage in the recording.
fn is_complete(scratch: &Scratch) -> bool {
    let words = ["data", "check", "perf.data"];
    let checked = rperf_in(scratch, &words).finish().expect("rperf starts");
    checked.status == 0
}

#[test]
fn ignored_signals_do_not_end_the_recording() {
    if !env_can_ignore_signals() {
        return skip(
            "commands::record_signals::ignored_signals_do_not_end_the_recording",
            NO_IGNORE_SIGNAL,
        );
    }
    let scratch = Scratch::new();
    let outcome = record_under_env(
        &scratch,
        &["--ignore-signal=HUP"],
        &["sh", "-c", "kill -HUP $PPID; exit 3"],
    );
    assert_eq!(outcome.status, 3, "{}", outcome.stderr);
    assert!(is_complete(&scratch));
    // A signal that is not ignored ends the recording.
    let outcome = record_under_env(
        &scratch,
        &[],
        &["sh", "-c", "kill -HUP $PPID; exec sleep 60"],
    );
    assert_eq!(outcome.status, 128 + 1, "{}", outcome.stderr);
    assert!(is_complete(&scratch));
}

#[test]
fn the_workloads_exit_is_seen_with_sigchld_ignored() {
    if !env_can_ignore_signals() {
        let test = "commands::record_signals::the_workloads_exit_is_seen_with_sigchld_ignored";
        return skip(test, NO_IGNORE_SIGNAL);
    }
    let scratch = Scratch::new();
    let ignored = &["--ignore-signal=CHLD"];
    let outcome = record_under_env(&scratch, ignored, &["sh", "-c", "exit 3"]);
    assert_eq!(outcome.status, 3, "{}", outcome.stderr);
    assert!(is_complete(&scratch));
    let outcome = record_under_env(&scratch, ignored, &["grep", "SigIgn", "/proc/self/status"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let mask = outcome.stdout.split_whitespace().nth(1);
    let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok());
    let mask = mask.expect("a mask of signals");
    // SIGCHLD is 17 on x86 and Arm, which is bit 16 of the mask.
    assert!(mask & 0x10000 != 0, "the workload ignores it: {mask:x}");
}

#[test]
fn sigusr2_without_rotation_does_not_end_the_recording() {
    let scratch = Scratch::new();
    let outcome = record_under_env(&scratch, &[], &["sh", "-c", "kill -USR2 $PPID; exit 3"]);
    assert_eq!(outcome.status, 3, "{}", outcome.stderr);
    assert!(is_complete(&scratch));
}

#[test]
fn a_file_at_its_size_limit_is_complete() {
    let scratch = Scratch::new();
    // 40 blocks of 512 or 1024 bytes, depending on the shell.
    let script = "ulimit -f 40; exec \"$@\"";
    let shell = Run::new("sh").args(["-c", script, "sh", RPERF, "record", "-F", "max"]);
    // Stack copies are large: few samples reach the limit.
    let shell = shell.args(["--call-graph", "dwarf"]);
    let shell = shell.args(["-o", "perf.data", "-e", "cpu-clock", "sh", "-c", BUSY]);
    let shell = shell.within(scratch.path()).env("HOME", scratch.path());
    let outcome = shell.finish().expect("sh starts");
    assert_eq!(outcome.status, 255, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("File too large"),
        "{}",
        outcome.stderr
    );
    assert!(is_complete(&scratch));
}

/// A pid; dropping it kills the process.
struct KillOnDrop(String);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        send("-KILL", &self.0);
    }
}

fn send(signal: &str, pid: &str) {
    let mut kill = Command::new("kill");
    kill.args([signal, pid]).stderr(Stdio::null());
    let _ = kill.status();
}

/// Waits until a file ends with a newline and returns its trimmed text.
fn line_of(path: &Path) -> String {
    let began = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') {
            return text.trim().to_owned();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{path:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal every 300 ms until the recorder exits; returns the signal that ended the recorder, if any.
fn ended_by(recording: &mut Child, signal: &str) -> Option<i32> {
    let pid = recording.id().to_string();
    let began = Instant::now();
    loop {
        if let Some(status) = recording.try_wait().expect("a child") {
            return status.signal();
        }
        assert!(began.elapsed() < Duration::from_secs(60));
        send(signal, &pid);
        std::thread::sleep(Duration::from_millis(300));
    }
}

#[test]
fn the_second_signal_does_not_wait_for_the_workload() {
    let scratch = Scratch::new();
    // The workload closes its stderr, so that the pipe has only the recorder's messages and ends when the recorder exits.
    let workload = "trap '' TERM INT; exec 2>&-; echo $$ >pid; while :; do sleep 0.1; done";
    let mut command = Command::new(RPERF);
    command.args(["record", "-o", "perf.data", "-e", "cpu-clock"]);
    command.args(["sh", "-c", workload]).stderr(Stdio::piped());
    command
        .current_dir(scratch.path())
        .env("HOME", scratch.path());
    let mut recording = Running(command.spawn().expect("rperf starts"));
    let workload_process = KillOnDrop(line_of(&scratch.path().join("pid")));
    let mut stderr = recording.0.stderr.take().expect("a pipe");
    send("-INT", &recording.0.id().to_string());
    // After SIGINT the recorder sends SIGTERM to the workload, which ignores it and keeps running. The recorder completes the
    // file and then reports that it waits.
    let mut message = vec![0; 512];
    let length = stderr.read(&mut message).expect("a line");
    let message = String::from_utf8_lossy(message.get(..length).unwrap_or_default()).into_owned();
    let expected = format!("waiting for process {} to exit", workload_process.0);
    assert!(message.contains(&expected), "{message}");
    assert!(is_complete(&scratch));
    let sigint = 2;
    assert_eq!(ended_by(&mut recording.0, "-INT"), Some(sigint));
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("text");
    assert!(rest.contains("Captured and wrote"), "{rest}");
    assert!(Path::new("/proc").join(&workload_process.0).exists());
}
