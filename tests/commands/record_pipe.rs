//! `rperf record` to pipes and devices, and recordings through pipes to and from perf.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rperf_testkit::{Outcome, Scratch, real_perf, skip};

use super::without_notes;
use crate::kernel::{BUSY, is_root, rperf_in};

const RPERF: &str = env!("CARGO_BIN_EXE_rperf");

/// The reader's outcome for a recording that the writer pipes to it.
fn piped(scratch: &Scratch, writer: (&Path, &[&str]), reader: (&Path, &[&str])) -> Outcome {
    let command = |(program, words): (&Path, &[&str])| {
        let mut command = Command::new(program);
        command.args(words).current_dir(scratch.path());
        command
            .env("HOME", scratch.path())
            .env("PERF_CONFIG", "/dev/null");
        command.stdin(Stdio::null());
        command
    };
    let mut recording = command(writer)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the writer starts");
    let pipe = recording.stdout.take().expect("a pipe");
    let output = command(reader)
        .stdin(pipe)
        .output()
        .expect("the reader starts");
    let recorded = recording.wait().expect("a child");
    assert!(recorded.success(), "{writer:?}");
    Outcome {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The options of the recordings. Even without `-o -`, a recording is written to stdout, since stdout is a pipe.
const RECORDINGS: &[&[&str]] = &[
    &["-e", "cpu-clock"],
    &["-g", "-e", "cpu-clock:u,page-faults", "-o", "-"],
    &["-d", "--sample-cpu", "-e", "cpu-clock", "-o", "-"],
];

#[test]
fn perf_and_rperf_read_each_others_pipes_without_a_warning() {
    let test = "commands::record_pipe::perf_and_rperf_read_each_others_pipes_without_a_warning";
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    let (perf, rperf) = (perf.as_path(), Path::new(RPERF));
    let scratch = Scratch::new();
    for options in RECORDINGS {
        // The workload's output must not be mixed with the records.
        let work = format!("echo printed; {BUSY}");
        let words = [&["record"], *options, &["--", "sh", "-c", &work]].concat();
        for (writer, reader) in [(rperf, perf), (rperf, rperf), (perf, rperf)] {
            let commands = [
                &["script", "-i", "-"][..],
                &["report", "--stdio", "-i", "-"],
            ];
            // To save time, only the first recording is also read by `report`: perf's report looks up every symbol.
            let command_count = if *options == RECORDINGS[0] { 2 } else { 1 };
            for command in commands.into_iter().take(command_count) {
                let outcome = piped(&scratch, (writer, &words), (reader, command));
                let messages = without_notes(&outcome.stderr);
                assert_eq!(
                    (outcome.status, messages.as_str()),
                    (0, ""),
                    "{words:?} {reader:?}"
                );
                let samples = outcome.stdout.lines().filter(|line| line.contains("sh "));
                assert!(samples.count() > 1, "{words:?} {}", outcome.stdout);
            }
        }
    }
}

/// The reader closes the pipe at once or after the first byte, so that a write fails before or after the workload starts.
/// The latter depends on timing, so it is tried three times.
#[test]
fn a_closed_reader_ends_the_recording() {
    let scratch = Scratch::new();
    let target: &[&str] = if is_root() { &["-a"] } else { &[] };
    for bytes in [0, 1, 1, 1] {
        let mut recording = Command::new(RPERF)
            .args(["record", "-e", "cpu-clock", "-o", "-"])
            .args(target)
            .args(["sleep", "1000"])
            .current_dir(scratch.path())
            .env("HOME", scratch.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("rperf starts");
        let mut pipe = recording.stdout.take().expect("a pipe");
        pipe.read_exact(&mut [0; 1][..bytes]).expect("a stream");
        drop(pipe);
        let status = recording.wait().expect("a child");
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        let sigpipe = 13;
        assert_eq!((status.code(), signal), (None, Some(sigpipe)));
    }
}

#[test]
fn a_named_pipe_is_written_as_a_stream() {
    let scratch = Scratch::new();
    let mkfifo_status = Command::new("mkfifo")
        .arg(scratch.path().join("fifo"))
        .status();
    assert!(mkfifo_status.expect("mkfifo starts").success());
    // Opening a FIFO waits until the other side opens it, too: the reader is only started here, and awaited after the writer.
    let reader = Command::new(RPERF)
        .args(["script", "-F", "comm", "-i", "fifo"])
        .current_dir(scratch.path())
        .env("HOME", scratch.path())
        .stdout(Stdio::piped())
        .spawn();
    let reader = reader.expect("rperf starts");
    let words = ["record", "-o", "fifo", "-e", "cpu-clock", "sh", "-c"];
    let script = format!("{BUSY}; echo done");
    let recorded = rperf_in(&scratch, &words).args([&script]).finish();
    let recorded = recorded.expect("rperf starts");
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    assert_eq!(recorded.stdout, "done\n", "stdout stays the workload's");
    assert!(recorded.stderr.contains(" fifo ("), "{}", recorded.stderr);
    let read = reader.wait_with_output().expect("a child");
    assert!(read.status.success());
    assert!(String::from_utf8_lossy(&read.stdout).lines().count() > 1);
}

#[test]
fn a_failed_write_to_a_device_is_reported() {
    let scratch = Scratch::new();
    let words = ["record", "-o", "/dev/full", "-e", "cpu-clock", "true"];
    let full = rperf_in(&scratch, &words).finish().expect("rperf starts");
    let expected = "failed to write /dev/full: No space left on device\n";
    assert_eq!((full.status, full.stderr.as_str()), (255, expected));
}

#[test]
fn piped_stack_copies_are_unwound_by_perf_and_rperf() {
    let test = "commands::record_pipe::piped_stack_copies_are_unwound_by_perf_and_rperf";
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    let scratch = Scratch::new();
    let words = [
        "record",
        "-o",
        "-",
        "-e",
        "cpu-clock:u",
        "--call-graph",
        "dwarf,4096",
        "sh",
        "-c",
        BUSY,
    ];
    let script = ["script", "-i", "-", "-F", "comm,ip,sym", "--no-inline"];
    let unwound = piped(&scratch, (Path::new(RPERF), &words), (&perf, &script));
    assert_eq!((unwound.status, unwound.stderr.as_str()), (0, ""));
    assert!(unwound.stdout.contains("main"), "{}", unwound.stdout);
    let script_with_inlines = &script[..5];
    let ours = piped(
        &scratch,
        (Path::new(RPERF), &words),
        (Path::new(RPERF), script_with_inlines),
    );
    // Some stacks may lead to code without unwind information: that is reported, but not an error.
    assert_eq!(ours.status, 0, "{}", ours.stderr);
    assert!(ours.stdout.contains("libc_start"), "{}", ours.stdout);
}
