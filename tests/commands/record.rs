//! `rperf record`: messages, exit status, and output files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip, write_program};

use crate::kernel::{BUSY, Running, rperf_in};

/// Records into perf.data unless `words` have another `-o`. Without `-o`, rperf would write the recording to the test's pipe.
fn record(scratch: &Scratch, words: &[&str]) -> Outcome {
    let words = [&["record", "-o", "perf.data"], words].concat();
    rperf_in(scratch, &words).finish().expect("rperf starts")
}

/// Checks the last two lines that `record` prints, except for their numbers; the size must be less than 1 MB.
fn assert_closing_lines(stderr: &str, program: &str, file: &str) {
    let lines: Vec<&str> = stderr.lines().collect();
    let [.., woken, wrote] = lines[..] else {
        panic!("{stderr}")
    };
    assert!(
        woken.starts_with(&format!("[ {program} record: Woken up "))
            && woken.ends_with(" times to write data ]"),
        "{woken}"
    );
    assert!(
        wrote.starts_with(&format!("[ {program} record: Captured and wrote 0.")),
        "{wrote}"
    );
    assert!(
        wrote.contains(&format!(" MB {file}")) && wrote.ends_with(" ]"),
        "{wrote}"
    );
}

#[test]
fn a_command_is_recorded_and_its_status_passed_on() {
    let scratch = Scratch::new();
    for (words, status) in [
        (&["-e", "cpu-clock", "sh", "-c", "exit 3"][..], 3),
        (&["-e", "cpu-clock", "--", "sh", "-c", "exit 0"], 0),
        (
            &["-e", "cpu-clock", "-o", "other", "sh", "-c", "kill -9 $$"],
            137,
        ),
    ] {
        let outcome = record(&scratch, words);
        assert_eq!(outcome.status, status, "{words:?} {}", outcome.stderr);
        let file = if words.contains(&"other") {
            "other"
        } else {
            "perf.data"
        };
        assert_closing_lines(&outcome.stderr, "rperf", file);
        let mode = fs::metadata(scratch.path().join(file))
            .expect("the file is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(
        scratch.path().join("perf.data.old").exists(),
        "the first of the two recordings in perf.data"
    );
    let names = fs::read_dir(scratch.path()).expect("a directory").flatten();
    let names: Vec<_> = names
        .map(|entry| entry.file_name())
        .filter(|name| name != ".debug")
        .collect();
    assert_eq!(names.len(), 3, "nothing else is left: {names:?}");
}

#[test]
fn a_link_named_perf_prints_perf_and_quiet_prints_nothing() {
    let scratch = Scratch::new();
    let words = ["record", "-o", "perf.data", "-e", "cpu-clock", "true"];
    let outcome = rperf_in(&scratch, &words)
        .arg0("/usr/bin/perf")
        .finish()
        .expect("rperf starts");
    assert_closing_lines(&outcome.stderr, "perf", "perf.data");
    let quiet = record(&scratch, &["-q", "true"]);
    assert_eq!(
        (quiet.status, quiet.stderr.as_str(), quiet.stdout.as_str()),
        (0, "", "")
    );
}

#[test]
fn the_workload_gets_its_options_and_prints_to_stdout() {
    let scratch = Scratch::new();
    let outcome = record(&scratch, &["-q", "-e", "cpu-clock", "echo", "-a", "--help"]);
    assert_eq!(outcome.stdout, "-a --help\n");
}

#[test]
fn failed_recordings_keep_the_old_file() {
    let scratch = Scratch::new();
    scratch.write("perf.data", "precious").expect("writable");
    write_program(scratch.path().join("script"), "#!/no/such/interpreter\n");
    for (words, status, message) in [
        (
            &["-e", "cs", "./nosuch"][..],
            255,
            "Failed to collect 'cs' for the './nosuch' workload: No such file or directory\n",
        ),
        (
            &["-e", "cs", "/etc/passwd"],
            255,
            "Failed to collect 'cs' for the '/etc/passwd' workload: Permission denied\n",
        ),
        (
            &["-e", "cs", "-p", "2000000000"],
            244,
            "Couldn't create thread/CPU maps: No such process\nprocess or thread 2000000000 does not exist\n",
        ),
        (
            &["-e", "cs", "-t", "2000000000"],
            244,
            "Couldn't create thread/CPU maps: No such process\nprocess or thread 2000000000 does not exist\n",
        ),
        (
            &["-e", "cs", "-o", "/nodir/x", "true"],
            255,
            "failed to open /nodir/x : No such file or directory\nPerf session creation failed.\n",
        ),
        (
            &["-e", "cs", "-o", "/tmp", "true"],
            255,
            "failed to open /tmp : Is a directory\nPerf session creation failed.\n",
        ),
        (
            &["-F", "99", "-c", "1", "true"],
            234,
            "cannot set frequency and period at the same time\n",
        ),
        (
            &["-F", "0", "true"],
            234,
            "frequency and count are zero, aborting\n",
        ),
        (
            &["-p", "1,x", "true"],
            129,
            "'x' is not a process or thread id\n",
        ),
        (
            &["--call-graph", "dwarf,65529", "true"],
            129,
            "callchain: Incorrect stack dump size (max 65528): 65529\n",
        ),
    ] {
        let outcome = record(&scratch, words);
        // For an unprivileged user, a message that the event is restricted to user space is printed first.
        assert!(
            outcome.stderr.ends_with(message),
            "{words:?}: {}",
            outcome.stderr
        );
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (status, ""),
            "{words:?}"
        );
    }
    let outcome = record(&scratch, &["-e", "cs", "./script"]);
    assert!(
        outcome
            .stderr
            .contains("/script' workload: No such file or directory"),
        "{}",
        outcome.stderr
    );
    assert_eq!(
        fs::read(scratch.path().join("perf.data")).expect("it stays"),
        b"precious"
    );
    assert!(!scratch.path().join("perf.data.old").exists());
    let names = fs::read_dir(scratch.path()).expect("a directory").count();
    assert_eq!(names, 2, "nothing is left behind");
}

#[test]
fn offline_cpus_and_reversed_ranges_are_named() {
    let scratch = Scratch::new();
    let outcome = record(&scratch, &["-C", "0,4000", "true"]);
    assert_eq!(outcome.status, 255);
    assert!(
        outcome
            .stderr
            .starts_with("CPU 4000 is not online: choose from 0"),
        "{}",
        outcome.stderr
    );
    let outcome = record(&scratch, &["-C", "3-1", "true"]);
    assert_eq!(
        (outcome.status, outcome.stderr.as_str()),
        (129, "-C: the range '3-1' ends below its start\n")
    );
}

#[test]
fn rates_beyond_the_limit_are_lowered_and_ring_sizes_rounded_or_refused() {
    let scratch = Scratch::new();
    let limit = fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").expect("Linux");
    let limit = limit.trim();
    let outcome = record(&scratch, &["-e", "cpu-clock", "-F", "1000000000", "true"]);
    let warning = format!(
        "warning: Maximum frequency rate ({limit} Hz) exceeded, throttling from 1000000000 Hz to {limit} Hz.\n"
    );
    assert!(outcome.stderr.starts_with(&warning), "{}", outcome.stderr);
    assert_eq!(outcome.status, 0);
    let outcome = record(&scratch, &["-e", "cpu-clock", "-F", "Max", "true"]);
    assert!(outcome.stderr.starts_with(&format!(
        "info: Using a maximum frequency rate of {limit} Hz\n"
    )));
    let outcome = record(&scratch, &["-e", "cpu-clock", "-m", "3", "true"]);
    assert!(
        outcome.stderr.contains("rounding mmap pages size to "),
        "{}",
        outcome.stderr
    );
    for bad in ["x", "1T", "-4"] {
        let outcome = record(&scratch, &["-m", bad, "true"]);
        assert_eq!(outcome.status, 129, "{bad}");
        assert!(
            outcome
                .stderr
                .starts_with("Invalid argument for --mmap_pages/-m\n"),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn vv_shows_attrs_and_calls() {
    let scratch = Scratch::new();
    let outcome = record(
        &scratch,
        &["-vv", "-e", "cpu-clock:u", "-c", "100000", "true"],
    );
    let rule = "-".repeat(60);
    let block = format!(
        "{rule}\nperf_event_attr:\n  type                             1\n  size                             128\n  \
         {{ sample_period, sample_freq }}   100000\n  sample_type                      IP|TID|TIME\n  read_format                      ID|LOST\n  disabled                         1\n"
    );
    assert!(outcome.stderr.starts_with(&block), "{}", outcome.stderr);
    let calls = outcome.stderr.lines().filter(|line| {
        line.starts_with("sys_perf_event_open: pid ")
            && line.contains("  group_fd -1  flags 0x8 = ")
    });
    assert!(calls.count() >= 1, "{}", outcome.stderr);
}

/// Starts a recording into `perf.data` in the background; returns 0.3 s after the file exists, so that there are samples. `words`
/// must not have `-o`.
pub(super) fn start(scratch: &Scratch, words: &[&str]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rperf"));
    command
        .arg("record")
        .args(words)
        .current_dir(scratch.path())
        .env("HOME", scratch.path());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let running = Running(command.spawn().expect("rperf starts"));
    let (file, began) = (scratch.path().join("perf.data"), Instant::now());
    while !file.exists() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "the recording does not begin"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(300));
    running
}

/// Sends a signal to a running rperf; `name` is an option of kill(1), such as `-INT`.
pub(super) fn signal(running: &Running, name: &str) {
    let pid = running.0.id().to_string();
    let sent = Command::new("kill")
        .args([name, &pid])
        .status()
        .expect("kill runs");
    assert!(sent.success());
}

/// Returns the number of samples that `perf script` prints, and its messages.
fn samples(perf: &Path, scratch: &Scratch) -> (usize, String) {
    let run = Run::new(perf)
        .args(["script", "-F", "comm,time"])
        .within(scratch.path());
    let outcome = run
        .env("HOME", scratch.path())
        .finish()
        .expect("perf starts");
    (outcome.stdout.lines().count(), outcome.stderr)
}

#[test]
fn a_signal_ends_the_recording_with_a_complete_file() {
    let Some(perf) = real_perf() else {
        return skip(
            "commands::record::a_signal_ends_the_recording_with_a_complete_file",
            "there is no perf",
        );
    };
    for (name, number) in [("-INT", 2), ("-TERM", 15)] {
        let scratch = Scratch::new();
        let target = Running::spin();
        let pid = target.0.id().to_string();
        let mut recording = start(&scratch, &["-e", "cpu-clock", "-p", &pid]);
        signal(&recording, name);
        let status = recording.0.wait().expect("a child");
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(number)
        );
        let mut stderr = String::new();
        let mut pipe = recording.0.stderr.take().expect("a pipe");
        std::io::Read::read_to_string(&mut pipe, &mut stderr).expect("text");
        assert_closing_lines(&stderr, "rperf", "perf.data");
        let (count, reported) = samples(&perf, &scratch);
        assert!(count > 10 && reported.is_empty(), "{count} {reported}");
    }
}

#[test]
fn a_recording_ends_with_the_observed_processes() {
    let scratch = Scratch::new();
    let target = Running::spin();
    let pid = target.0.id().to_string();
    let mut recording = start(&scratch, &["-e", "cpu-clock", "-p", &pid]);
    drop(target);
    assert!(recording.0.wait().expect("a child").success());
}

#[test]
fn a_killed_recording_stays_readable() {
    let Some(perf) = real_perf() else {
        return skip(
            "commands::record::a_killed_recording_stays_readable",
            "there is no perf",
        );
    };
    let scratch = Scratch::new();
    let target = Running::spin();
    let pid = target.0.id().to_string();
    // The ring is small, so that most records are written before the end.
    let mut recording = start(
        &scratch,
        &["-e", "cpu-clock", "-m", "1", "-F", "5000", "-p", &pid],
    );
    let (file, began) = (scratch.path().join("perf.data"), Instant::now());
    while file.metadata().is_ok_and(|file| file.len() < 32 << 10) {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "the recording does not grow"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    recording.0.kill().expect("it runs");
    recording.0.wait().expect("a child");
    let (count, reported) = samples(&perf, &scratch);
    assert!(count > 10 && reported.is_empty(), "{count} {reported}");
}

/// A directory on which a tmpfs of 256 KiB is mounted until this is dropped.
struct SmallDisk(Scratch);

impl SmallDisk {
    /// `None` without the right to mount.
    fn mount() -> Option<Self> {
        let disk = Self(Scratch::new());
        let words = ["-t", "tmpfs", "-o", "size=256k", "none"];
        let mounted = Command::new("mount")
            .args(words)
            .arg(disk.0.path())
            .stderr(Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then_some(disk)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The directory can only be removed once the file system is unmounted. A failure does not affect the test.
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_keeps_written_records() {
    let (Some(perf), Some(disk)) = (real_perf(), SmallDisk::mount()) else {
        return skip(
            "commands::record::a_full_disk_keeps_written_records",
            "no perf, or no right to mount",
        );
    };
    let scratch = &disk.0;
    let busy_loops = [BUSY; 20].join("; ");
    let words = [
        "record",
        "-e",
        "cpu-clock",
        "-F",
        "20000",
        "-m",
        "64",
        "-o",
        "perf.data",
        "--",
        "sh",
        "-c",
        &busy_loops,
    ];
    let run = Run::new(env!("CARGO_BIN_EXE_rperf"))
        .args(words)
        .within(scratch.path());
    // Keep the build-id cache from filling the disk.
    let home = Scratch::new();
    let outcome = run.env("HOME", home.path()).finish().expect("rperf starts");
    assert_eq!(outcome.status, 255, "{}", outcome.stderr);
    assert!(
        outcome
            .stderr
            .starts_with("failed to write perf.data: No space left on device\n"),
        "{}",
        outcome.stderr
    );
    let (count, reported) = samples(&perf, scratch);
    assert!(count > 100, "{count} {reported}");
    assert_eq!(reported, "");
}
