//! `sched replay`: its text, its limits, and that it repeats what was recorded.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use rperf_testkit::Scratch;

use super::recording::SchedFile;
use super::{run, waits};

const MILLI: u64 = 1_000_000;

/// Adds two tasks. Task 7 runs for 20 ms, wakes task 8 and sleeps; task 8 runs for 10 ms. When the CPU has been idle for 20 ms,
/// it wakes task 7. In the switches, 0 is the state of a task that can run, 1 that of a task that sleeps.
fn relay(file: &mut SchedFile) {
    file.comm(7, "seven");
    file.comm(8, "eight");
    file.switch(10 * MILLI, (0, 0), 7);
    file.waking(30 * MILLI, 7, 8);
    file.switch(30 * MILLI, (7, 1), 8);
    file.switch(40 * MILLI, (8, 1), 0);
    file.waking(60 * MILLI, 0, 7);
    file.switch(60 * MILLI, (0, 0), 7);
}

/// Replaces the numbers in a line of measurements by `N`.
fn without_times(line: &str) -> String {
    let is_measured = line.ends_with("nsecs") || line.starts_with('#');
    if !is_measured {
        return line.to_owned();
    }
    let mut text = String::new();
    for letter in line.chars() {
        let is_digit = letter.is_ascii_digit() || letter == '.';
        match is_digit {
            true if text.ends_with('N') => {}
            true => text.push('N'),
            false => text.push(letter),
        }
    }
    text
}

const TEXT: &str = "\
run measurement overhead: N nsecs
sleep measurement overhead: N nsecs
the run test took N nsecs
the sleep test took N nsecs
nr_run_events:        4
nr_sleep_events:      7
nr_wakeup_events:     2
task      0 (             swapper:         0), nr_events: 6
task      1 (               seven:         7), nr_events: 4
task      2 (               eight:         8), nr_events: 3
------------------------------------------------------------
#N  : N, ravg: N, cpu: N / N
#N  : N, ravg: N, cpu: N / N
";

#[test]
fn recorded_loads_are_repeated() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    relay(&mut file);
    scratch.write("perf.data", file.finish())?;
    let begun = Instant::now();
    let replayed = run(&scratch, &["sched", "replay", "-r", "2"]);
    let elapsed = begun.elapsed().as_secs_f64() * 1e3;
    assert_eq!((replayed.status, &*replayed.stderr), (0, ""));
    let lines = replayed.stdout.lines().map(without_times);
    let lines: Vec<String> = lines.collect();
    assert_eq!(lines.join("\n") + "\n", TEXT);
    // Without a repetition, the same except for the two rows of repetitions.
    let tasks = run(&scratch, &["sched", "replay", "-r", "0"]).stdout;
    let tasks: Vec<String> = tasks.lines().map(without_times).collect();
    assert_eq!(tasks, lines[..lines.len() - 2]);
    for line in replayed.stdout.lines().filter(|line| line.starts_with('#')) {
        let words: Vec<&str> = line
            .split([' ', ',', ':'])
            .filter(|word| !word.is_empty())
            .collect();
        let time: f64 = words[1].parse().expect("a time");
        let cpu_time: f64 = words[5].parse().expect("a time");
        // Task 7 runs for 20 ms, then task 8 for 10 ms; task 7 sleeps for 30 ms. The total may be 1 ms less, as
        // runs stop earlier by the measured overhead.
        assert!((49.0..=elapsed).contains(&time), "{line} of {elapsed}");
        assert!((29.0..=time).contains(&cpu_time), "{line}");
    }
    Ok(())
}

#[test]
fn an_endless_replay_is_printed_as_it_goes() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    // Two tasks that run for 0.2 ms in all: a repetition is short.
    waits(&mut file);
    let path = scratch.write("perf.data", file.finish())?;
    let mut child = Command::new(env!("CARGO_BIN_EXE_rperf"))
        .args(["sched", "replay", "-i"])
        .arg(path)
        .args(["-r", "-1"])
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let lines = lines.map_while(Result::ok);
    let mut repetitions = lines.filter(|line| line.starts_with('#'));
    // More than the ten repetitions of the default.
    let twelfth = repetitions.nth(11);
    child.kill()?;
    child.wait()?;
    assert!(twelfth.is_some_and(|line| line.starts_with("#12 : ")));
    Ok(())
}

#[test]
fn unusable_recordings_and_repetitions_are_refused() -> std::io::Result<()> {
    let scratch = Scratch::new();
    // 5000 tasks. Nothing is known of the run of task 1, which began before the first switch, so it needs no thread.
    let mut many = SchedFile::new();
    for tid in 1..5000 {
        many.switch(u64::from(tid) * 1000, (tid, 1), tid + 1);
    }
    scratch.write("many.data", many.finish())?;
    let mut idle = SchedFile::new();
    idle.switch(1000, (0, 0), 0);
    scratch.write("idle.data", idle.finish())?;
    let mut no_switches = SchedFile::without_switches();
    no_switches.waking(1000, 0, 7);
    scratch.write("none.data", no_switches.finish())?;
    // Without records, the data size is 0, as in a file that its recorder did not complete.
    scratch.write("open.data", SchedFile::without_switches().finish())?;
    for (words, status, message) in [
        (
            &["-i", "many.data"][..],
            255,
            "4999 tasks would need as many threads; at most 4096 are started",
        ),
        (
            &["-i", "idle.data"],
            255,
            "idle.data: no task ran; there is nothing to replay",
        ),
        (&["-i", "none.data"], 255, "No sched_switch events found"),
        (
            &["-i", "open.data"],
            255,
            "open.data: the descriptions of its tracepoints are missing, without which its events are unknown\nhint: they follow the records, which the recorder did not complete: ",
        ),
        (
            &["-r", "-2"],
            129,
            "-r -2: give a number of repetitions, or -1",
        ),
        (
            &["-r", "x"],
            129,
            "-r x: give a number of repetitions, or -1",
        ),
    ] {
        let refused = run(&scratch, &[&["sched", "replay"][..], words].concat());
        assert_eq!(
            (refused.status, &*refused.stdout),
            (status, ""),
            "{words:?}"
        );
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
    }
    Ok(())
}
