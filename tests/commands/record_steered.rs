//! `rperf record` that takes orders, goes on in a new file at an event, and leaves things out.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use rperf_testkit::{Run, Scratch, real_perf, skip};

use super::record_faults::lines;
use super::stat_control::fifo;
use crate::kernel::{BUSY, Running, is_root, rperf_in};

/// Names of the outputs with a time in them.
fn files(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.path()).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with("perf.data.2"))
        .collect()
}

#[test]
fn orders_are_carried_out_and_answered() {
    let scratch = Scratch::new();
    let (orders, answers) = (
        scratch.path().join("orders"),
        scratch.path().join("answers"),
    );
    let (mut to, mut replies) = (fifo(&orders), fifo(&answers));
    let target = Running::spin();
    let pid = target.0.id().to_string();
    let place = format!("--control=fifo:{},{}", orders.display(), answers.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_rperf"));
    let command = command
        .args(["record", "-o", "perf.data", "-D", "-1", "-e", "cpu-clock"])
        .args(["--switch-output", &place, "-p", &pid])
        .current_dir(scratch.path())
        .env("HOME", scratch.path())
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let child = command.spawn().expect("rperf starts");
    let mut order = |text: &str| {
        writeln!(to, "{text}").expect("the fifo takes an order");
        let mut answer = [0; 5];
        replies.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, *b"ack\n\0", "{text}");
    };
    for text in ["ping", "enable", "evlist", "snapshot"] {
        order(text);
    }
    // The order is answered before the file is turned.
    while files(&scratch).is_empty() {
        std::thread::yield_now();
    }
    order("disable");
    order("stop");
    let ended = child.wait_with_output().expect("rperf ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    let begin = "Events disabled\nEvents enabled\ncpu-clock\n";
    assert!(said.starts_with(begin), "{said}");
    assert!(said.contains("Events disabled\n["), "{said}");
    assert_eq!(said.matches(" Dump perf.data.2").count(), 2, "{said}");
    assert_eq!(files(&scratch).len(), 2);
}

#[test]
fn an_event_turns_to_the_next_file() {
    const NAME: &str = "record_steered::an_event_turns_to_the_next_file";
    if !is_root() {
        return skip(NAME, "tracepoints need root");
    }
    let scratch = Scratch::new();
    // Nothing but `true` is executed once the shell runs.
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
        let Some(lines) = lines(&scratch, &["script", "-i", file, "-F", "comm,event"]) else {
            return skip(NAME, "there is no perf");
        };
        assert!(!lines.iter().any(|line| line.contains("exec")), "{lines:?}");
        samples += lines.len();
    }
    let said = format!("({samples} samples)");
    assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
    let words = ["record", "--switch-output-event", "no-such", "true"];
    let refused = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(refused.status, 129, "{}", refused.stderr);
}

/// How often each of `words` is in perf's dump of a recording of a process that runs, with these options.
fn told(options: &[&str], words: [&str; 3]) -> Option<([usize; 3], String)> {
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
    Some((words.map(|word| dump.matches(word).count()), outcome.stderr))
}

#[test]
fn what_is_told_of_those_who_run_can_be_chosen() {
    const NAME: &str = "record_steered::what_is_told_of_those_who_run_can_be_chosen";
    let words = [
        "PERF_RECORD_COMM: sh:",
        "PERF_RECORD_MMAP2",
        "PERF_RECORD_CGROUP cgroup: 1 /\n",
    ];
    for (synth, [comm, maps, groups]) in [
        ("all", [true; 3]),
        ("no", [false; 3]),
        ("task", [true, false, false]),
        ("mmap", [true, true, false]),
        ("cgroup", [false, false, true]),
        ("task,cgroup", [true, false, true]),
    ] {
        let options = ["--all-cgroups", "--synth", synth];
        let Some((counts, _)) = told(&options, words) else {
            return skip(NAME, "there is no perf");
        };
        // The machine may have no cgroups.
        let groups = groups && counts[2] > 0;
        assert_eq!(
            counts.map(|count| count > 0),
            [comm, maps, groups],
            "{synth}"
        );
    }
    let timeout = ["--proc-map-timeout", "0"];
    let (counts, said) = told(&timeout, words).expect("there is perf");
    assert_eq!([counts[0] > 0, counts[1] > 0], [true, false]);
    let warning = "the mappings of 1 processes took longer than 0 ms to be read";
    assert!(said.contains(warning), "{said}");
}

#[test]
fn times_and_periods_can_be_left_out() {
    let scratch = Scratch::new();
    let words = [
        "record",
        "-o",
        "perf.data",
        "-e",
        "cpu-clock",
        "--no-timestamp",
        "--no-period",
        "sh",
        "-c",
        BUSY,
    ];
    let outcome = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let Some(samples) = lines(&scratch, &["script", "-F", "comm,ip,sym"]) else {
        return skip(
            "record_steered::times_and_periods_can_be_left_out",
            "there is no perf",
        );
    };
    let said = format!("({} samples)", samples.len());
    assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
    let attr = lines(&scratch, &["evlist", "-v"]).unwrap_or_default();
    assert!(attr[0].contains("sample_type: IP|TID, "), "{attr:?}");
}
