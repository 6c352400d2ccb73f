//! `rperf data convert --to-perf`: a trace.dat that trace-cmd recorded in a guest, compared with what `trace-cmd report` printed
//! there.

use std::fs;
use std::path::PathBuf;

use rperf_testkit::Scratch;

use super::convert::convert;
use super::rperf;
use crate::tidy::root;
use crate::tools::{Tool, Tools};

fn fixture(name: &str) -> PathBuf {
    root().join("tests/fixtures/x86_64").join(name)
}

/// An event: comm, tid, CPU, time in microseconds, name and text.
type Event = (String, String, String, u64, String, String);

/// Parses `  sh-126   [001]    11.634297: sched_switch:         prev_comm=sh …`.
fn of_trace_cmd(line: &str) -> Event {
    let (task, rest) = line.split_once(" [").expect("a task");
    let (comm, tid) = task.trim().rsplit_once('-').expect("a thread");
    let comm = if comm == "<idle>" { "swapper" } else { comm };
    let (cpu, rest) = rest.split_once(']').expect("a CPU");
    let (time, rest) = rest.split_once(": ").expect("a time");
    let (name, text) = rest.split_once(':').expect("a name");
    let time = time.trim().replace('.', "").parse().expect("a time");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let [comm, tid, cpu] = [comm, tid, cpu].map(str::to_owned);
    (comm, tid, cpu, time, format!("sched:{name}"), text)
}

/// Parses `sh  126 [001]  11.634297012: sched:sched_switch: prev_comm=sh …`.
fn of_script(line: &str) -> Event {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [comm, tid, cpu, time, name, ..] = words[..] else {
        panic!("{line}");
    };
    let time = time.trim_end_matches(':').replace('.', "");
    let time: u64 = time.parse().expect("a time");
    let cpu = cpu.trim_matches(['[', ']']).to_owned();
    let name = name.trim_end_matches(':').to_owned();
    // trace-cmd rounds times to microseconds.
    let time = (time + 500) / 1000;
    let [comm, tid] = [comm, tid].map(str::to_owned);
    (comm, tid, cpu, time, name, words[5..].join(" "))
}

#[test]
fn a_trace_dat_becomes_the_events_that_trace_cmd_prints() {
    let scratch = Scratch::new();
    let input = fixture("trace-cmd.dat");
    let input = input.to_str().expect("a plain path");
    let outcome = convert(&scratch, &["-i", input, "--to-perf", "perf.data"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(
        outcome.stderr.contains(" MB (68 samples) ]\n"),
        "{outcome:?}"
    );
    let words = ["script", "--ns", "-F", "comm,tid,cpu,time,event,trace"];
    let run = rperf(&words).within(scratch.path());
    let output = run.env("HOME", scratch.path()).finish().expect("it starts");
    let events: Vec<Event> = output.stdout.lines().map(of_script).collect();
    let expected = fs::read_to_string(fixture("trace-cmd.txt")).expect("a fixture");
    let expected: Vec<Event> = expected.lines().map(of_trace_cmd).collect();
    assert_eq!(events, expected);
    for words in [
        &["report", "--stdio"][..],
        &["sched", "latency"],
        &["sched", "timehist"],
        &["flamegraph", "-o", "flame.svg"],
        &["data", "check", "perf.data"],
    ] {
        let run = rperf(words).within(scratch.path());
        let outcome = run.env("HOME", scratch.path()).finish().expect("it starts");
        assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
    }
}

#[test]
fn linux_perf_reads_a_converted_trace() {
    let test = "commands::convert_import::linux_perf_reads_a_converted_trace";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    let input = fixture("trace-cmd.dat");
    let input = input.to_str().expect("a plain path");
    let words = ["data", "convert", "-i", input, "--to-perf", "new.data"];
    assert_eq!(tools.outcome(Tool::Rperf, &words).status, 0);
    for words in [
        &["script", "-i", "new.data"][..],
        &[
            "report",
            "-q",
            "--stdio",
            "-i",
            "new.data",
            "-s",
            "comm,pid,cpu,trace",
        ],
        &["evlist", "-i", "new.data"],
    ] {
        let output = tools.assert_same(words);
        let names = ["sched:sched_switch", "next_comm=swapper/0"];
        assert!(names.iter().any(|name| output.contains(name)), "{output}");
    }
}

#[test]
fn a_failed_conversion_leaves_no_file() {
    let scratch = Scratch::new();
    let complete = fs::read(fixture("trace-cmd.dat")).expect("a fixture");
    let path = scratch.path().join("cut.dat");
    fs::write(&path, &complete[..complete.len() - 100]).expect("a file");
    fs::write(scratch.path().join("text"), "not a trace\0\n").expect("a file");
    fs::write(scratch.path().join("perf.data"), "PERFILE2 and more").expect("a file");
    for (words, status, message) in [
        (
            &["-i", "cut.dat", "--to-perf", "new"][..],
            255,
            "cut.dat: offset 0x3000: pages of a CPU: they end beyond the file, which has 16284 bytes\n",
        ),
        (
            &["-i", "text", "--to-perf", "new"],
            255,
            "incompatible file format (text): it is neither a trace.dat of trace-cmd nor text of 'script'\n",
        ),
        (
            &["-i", "perf.data", "--to-perf", "new"],
            255,
            "perf.data is a perf.data already\n",
        ),
        (
            &["-i", "none", "--to-perf", "new"],
            255,
            "failed to open none: No such file or directory",
        ),
        (
            &["-i", "cut.dat", "--to-perf", "-"],
            129,
            "--to-perf -: a recording is written to a file, not to the standard output\n",
        ),
        (
            &["--to-perf", "new"],
            129,
            "--to-perf: no input given\nhint: give a trace.dat, or text of 'script', with -i\n",
        ),
        (
            &["-i", "cut.dat", "--to-perf", "text"],
            255,
            "Output file exists. Use --force to overwrite it.\n",
        ),
    ] {
        let outcome = convert(&scratch, words);
        assert_eq!(outcome.status, status, "{words:?}: {outcome:?}");
        assert!(
            outcome.stderr.starts_with(message),
            "{words:?}: {outcome:?}"
        );
        assert!(!scratch.path().join("new").exists(), "{words:?}");
    }
}
