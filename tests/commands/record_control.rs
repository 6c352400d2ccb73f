//! `rperf record` with `--control`, with an event that switches outputs, and with omitted records and fields.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use rperf_testkit::{Run, Scratch, real_perf, skip};

use super::record_faults::lines as perf_lines;
use super::stat_control::fifo;
use crate::kernel::{BUSY, Running, is_root, record_in, rperf_in};

/// Returns the names of the outputs with a timestamp, which begins with the year.
fn files(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.path()).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with("perf.data.2"))
        .collect()
}

#[test]
fn commands_are_executed_and_acknowledged() {
    let scratch = Scratch::new();
    let (commands, answers) = (
        scratch.path().join("commands"),
        scratch.path().join("answers"),
    );
    let (mut command_fifo, mut answer_fifo) = (fifo(&commands), fifo(&answers));
    let target = Running::spin();
    let pid = target.0.id().to_string();
    let control = format!(
        "--control=fifo:{},{}",
        commands.display(),
        answers.display()
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_rperf"));
    let command = command
        .args(["record", "-o", "perf.data", "-D", "-1", "-e", "cpu-clock"])
        .args(["--switch-output", &control, "-p", &pid])
        .current_dir(scratch.path())
        .env("HOME", scratch.path())
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let child = command.spawn().expect("rperf starts");
    let mut send = |text: &str| {
        writeln!(command_fifo, "{text}").expect("the FIFO takes a command");
        let mut answer = [0; 5];
        answer_fifo.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, *b"ack\n\0", "{text}");
    };
    for text in ["ping", "enable", "evlist", "snapshot"] {
        send(text);
    }
    // `snapshot` is acknowledged before the output is switched.
    while files(&scratch).is_empty() {
        std::thread::yield_now();
    }
    send("disable");
    send("stop");
    let ended = child.wait_with_output().expect("rperf ends");
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{message}");
    let begin = "Events disabled\nEvents enabled\ncpu-clock\n";
    assert!(message.starts_with(begin), "{message}");
    assert!(message.contains("Events disabled\n["), "{message}");
    assert_eq!(message.matches(" Dump perf.data.2").count(), 2, "{message}");
    assert_eq!(files(&scratch).len(), 2);
}

#[test]
fn a_trigger_event_starts_the_next_file() {
    const NAME: &str = "commands::record_control::a_trigger_event_starts_the_next_file";
    if !is_root() {
        return skip(NAME, "tracepoints need root");
    }
    let scratch = Scratch::new();
    // `true` is the only program that the shell executes; the loop after it waits until the output has been switched.
    let script = format!(
        "{BUSY}; /bin/true; while set -- perf.data.2*; [ ! -e \"$1\" ]; do :; done; {BUSY}"
    );
    let words = [
        "record",
        "-o",
        "perf.data",
        "-e",
        "cpu-clock",
        "--switch-output-event",
        "sched:sched_process_exec",
        "sh",
        "-c",
        &script,
    ];
    let outcome = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let files = files(&scratch);
    assert!(files.len() > 1, "{}", outcome.stderr);
    let mut samples = 0;
    for file in &files {
        let Some(lines) = perf_lines(&scratch, &["script", "-i", file, "-F", "comm,event"]) else {
            return skip(NAME, "there is no perf");
        };
        assert!(!lines.iter().any(|line| line.contains("exec")), "{lines:?}");
        samples += lines.len();
    }
    let message = format!("({samples} samples)");
    assert!(outcome.stderr.contains(&message), "{}", outcome.stderr);
    let words = ["record", "--switch-output-event", "no-such", "true"];
    let refused = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(refused.status, 129, "{}", refused.stderr);
}

/// How often each of `parts` occurs in perf's dump of a recording of a running process with these options, and the
/// recorder's messages. `None` without perf.
fn counted(options: &[&str], parts: [&str; 3]) -> Option<([usize; 3], String)> {
    let perf = real_perf()?;
    let scratch = Scratch::new();
    let target = Running::spin();
    let pid = target.0.id().to_string();
    let given = ["record", "-o", "perf.data", "-e", "cpu-clock"];
    let given = [&given, options, &["-p", &pid, "true"]].concat();
    let outcome = rperf_in(&scratch, &given).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let dump = Run::new(perf).args(["script", "-D"]).within(scratch.path());
    let dump = dump.env("HOME", scratch.path()).finish();
    let dump = dump.expect("perf starts").stdout;
    Some((parts.map(|part| dump.matches(part).count()), outcome.stderr))
}

#[test]
fn synthesized_records_can_be_chosen() {
    const NAME: &str = "commands::record_control::synthesized_records_can_be_chosen";
    let parts = [
        "PERF_RECORD_COMM: sh:",
        "PERF_RECORD_MMAP2",
        "PERF_RECORD_CGROUP cgroup: 1 /\n",
    ];
    let mut first_has_cgroups = None;
    for (synth, [has_comm, has_maps, has_cgroups]) in [
        ("all", [true; 3]),
        ("no", [false; 3]),
        ("task", [true, false, false]),
        ("mmap", [true, true, false]),
        ("cgroup", [false, false, true]),
        ("task,cgroup", [true, false, true]),
    ] {
        let options = ["--all-cgroups", "--synth", synth];
        let Some((counts, _)) = counted(&options, parts) else {
            return skip(NAME, "there is no perf");
        };
        // The first recording (`all`) shows whether the machine has cgroups.
        let machine_has_cgroups = *first_has_cgroups.get_or_insert(counts[2] > 0);
        assert_eq!(
            counts.map(|count| count > 0),
            [has_comm, has_maps, has_cgroups && machine_has_cgroups],
            "{synth}"
        );
    }
    let timeout = ["--proc-map-timeout", "0"];
    let ([comms, maps, _], message) = counted(&timeout, parts).expect("there is perf");
    assert_eq!([comms > 0, maps > 0], [true, false]);
    let warning = "reading the mappings of 1 process took longer than 0 ms";
    assert!(message.contains(warning), "{message}");
}

#[test]
fn times_and_periods_can_be_omitted() {
    let scratch = Scratch::new();
    let options = ["-e", "cpu-clock", "--no-timestamp", "--no-period"];
    let outcome = record_in(&scratch, &options, &["sh", "-c", BUSY]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let Some(samples) = perf_lines(&scratch, &["script", "-F", "comm,ip,sym"]) else {
        return skip(
            "commands::record_control::times_and_periods_can_be_omitted",
            "there is no perf",
        );
    };
    let message = format!("({} samples)", samples.len());
    assert!(outcome.stderr.contains(&message), "{}", outcome.stderr);
    let attr = perf_lines(&scratch, &["evlist", "-v"]).unwrap_or_default();
    assert!(attr[0].contains("sample_type: IP|TID, "), "{attr:?}");
}
