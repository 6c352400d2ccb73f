//! `top` without a terminal: its blocks of text or JSON, how it ends, and its errors.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use rperf_testkit::{Outcome, Scratch};

use super::rperf;
use crate::kernel::{Running, is_root, rperf_in};

/// Runs `top` for a spinning shell, with these options after `-p PID`.
fn top_of_spinning(options: &[&str]) -> Outcome {
    let target = Running::spin();
    top_of(&target, options)
}

/// Runs `top` for this target and checks that it succeeds.
fn top_of(target: &Running, options: &[&str]) -> Outcome {
    let scratch = Scratch::new();
    let pid = target.0.id().to_string();
    let words = [&["top", "-e", "cpu-clock", "-p", &pid][..], options].concat();
    let outcome = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    outcome
}

/// Runs `top` for a spinning shell with more and more intervals until the output contains `text`, and returns that output. On a
/// busy machine an interval may have no samples.
fn output_with(text: &str, options: &[&str]) -> String {
    let mut seen = String::new();
    for intervals in ["2", "4", "8", "16", "32"] {
        let more = [options, &["--intervals", intervals]].concat();
        seen = top_of_spinning(&more).stdout;
        if seen.contains(text) {
            return seen;
        }
    }
    panic!("no {text} in {seen}");
}

/// Whether a line begins with hours, minutes and seconds.
fn is_title(line: &str) -> bool {
    let time = line.get(..8).unwrap_or_default();
    let shape = time.chars().map(|letter| match letter.is_ascii_digit() {
        true => '0',
        false => letter,
    });
    shape.eq("00:00:00".chars()) && line.get(8..10) == Some("  ")
}

#[test]
fn blocks_have_a_time_rows_and_an_empty_line() {
    // `-ns` is `-n`, which adds the column of sample counts, and `-s`.
    let text = output_with(" sh ", &["-d", "0.5", "-ns", "comm"]);
    assert!(!text.contains('\x1b'), "{text:?}");
    let blocks: Vec<&str> = text
        .split("\n\n")
        .filter(|block| !block.is_empty())
        .collect();
    assert!(blocks.len() >= 2, "{text}");
    for block in &blocks {
        let mut lines = block.lines();
        let title = lines.next().expect("a title");
        assert!(is_title(title), "{title}");
        assert!(
            title.contains("[4000Hz cpu-clock], (target_pid: "),
            "{title}"
        );
        assert!(title.contains("  own CPU "), "{title}");
        for line in lines {
            assert!(line.starts_with("   "), "{line}");
        }
    }
    let row = text
        .lines()
        .find(|line| line.contains(" sh "))
        .expect("a row");
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((words[0], words[2]), ("100.00%", "sh"), "{row}");
    assert!(words[1].parse::<u64>().expect("samples") > 0);
}

#[test]
fn json_objects_are_one_per_line() {
    let text = output_with(
        "\"comm\":\"sh\"",
        &["-d", "0.5", "--json", "-s", "comm", "-F", "999"],
    );
    for line in text.lines() {
        let object: serde_json::Value = serde_json::from_str(line).expect("an object");
        assert_eq!(object["event"], "cpu-clock");
        assert_eq!(object["version"], 1);
        for row in object["rows"].as_array().expect("rows") {
            assert_eq!(row["overhead_percent"], 100.0);
            assert!(row["samples"].as_u64() > Some(0));
        }
    }
}

#[test]
fn blocks_have_call_graphs() {
    // Lines of a call graph show its tree, as in `--100.00%--`.
    let tree_line = "--";
    let text = output_with(tree_line, &["-d", "0.5", "-g", "-s", "comm"]);
    assert!(text.contains(" sh "), "{text}");
}

#[test]
fn no_rows_are_left_without_kernel_and_user_space() {
    let options = ["-d", "0.5", "--intervals", "4", "-s", "comm"];
    let both = [&options[..], &["-K", "-U"]].concat();
    let text = top_of_spinning(&both).stdout;
    let rows = text
        .lines()
        .filter(|line| line.contains('%') && !is_title(line));
    assert_eq!(rows.count(), 0, "{text}");
    // In place of rows, a block has the reason why there are none, in parentheses.
    assert!(text.contains("     ("), "the reason is printed: {text}");
}

#[test]
fn top_ends_with_its_target() {
    let child = Command::new("sleep").arg("1").stdin(Stdio::null()).spawn();
    let target = Running(child.expect("sleep starts"));
    let outcome = top_of(&target, &["-d", "0.3"]);
    assert!(
        outcome
            .stderr
            .contains("all target processes and threads have exited"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stdout.lines().next().is_some_and(is_title));
}

#[test]
fn a_closed_pipe_ends_top_without_a_message() {
    let target = Running::spin();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rperf"));
    command
        .args(["top", "-e", "cpu-clock", "-d", "0.1", "-p"])
        .arg(target.0.id().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut top = command.spawn().expect("rperf starts");
    let mut line = String::new();
    let mut reader = BufReader::new(top.stdout.take().expect("a pipe"));
    reader.read_line(&mut line).expect("a line");
    assert!(is_title(&line), "{line}");
    drop(reader);
    let outcome = top.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&outcome.stderr), "");
}

#[test]
fn an_interrupt_ends_top_with_success() {
    let target = Running::spin();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rperf"));
    command
        .args(["top", "-e", "cpu-clock", "-d", "0.1", "-p"])
        .arg(target.0.id().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut top = command.spawn().expect("rperf starts");
    // Keys are for terminals: input from a pipe is ignored, including its end. On a terminal, `x` would show the mapped keys.
    let mut keys = top.stdin.take().expect("a pipe");
    keys.write_all(b"xq\n").expect("room");
    drop(keys);
    let mut lines = BufReader::new(top.stdout.take().expect("a pipe")).lines();
    assert!(
        lines
            .next()
            .is_some_and(|line| is_title(&line.expect("text")))
    );
    let pid = top.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.expect("kill runs").success());
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert!(top.wait().expect("it ends").success());
    assert!(
        !rest.iter().any(|line| line.contains("Mapped keys")),
        "{rest:?}"
    );
}

/// The ring of one page has room for a few dozen samples, and `dd` makes system calls all the time.
#[test]
fn losses_are_counted_with_a_hint() {
    if !is_root() {
        return rperf_testkit::skip(
            "commands::top::losses_are_counted_with_a_hint",
            "tracepoints need root",
        );
    }
    let mut calls = Command::new("dd");
    calls.args(["if=/dev/zero", "of=/dev/null", "bs=1"]);
    let calls = calls.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
    let calls = Running(calls.expect("dd starts"));
    let pid = calls.0.id().to_string();
    let scratch = Scratch::new();
    let words = "top -e raw_syscalls:sys_enter -c 1 -m 1 -d 0.5 --intervals 2 -p";
    let words: Vec<&str> = words.split(' ').chain([pid.as_str()]).collect();
    let mut seen = String::new();
    for _ in 0..10 {
        let outcome = rperf_in(&scratch, &words).finish().expect("rperf starts");
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        seen = outcome.stdout;
        let title = seen.lines().rfind(|line| is_title(line)).expect("a block");
        // The records lost in the interval and in total.
        if !title.contains("lost 0/0") {
            assert!(seen.contains("try larger ring buffers (-m 8M)"), "{seen}");
            return;
        }
    }
    panic!("nothing is lost in {seen}");
}

#[test]
fn system_wide_top_has_a_block_for_each_event() {
    if !is_root() {
        return rperf_testkit::skip(
            "commands::top::system_wide_top_has_a_block_for_each_event",
            "system-wide recording needs root",
        );
    }
    let scratch = Scratch::new();
    let words = "top -e cs,cpu-clock -c 1000000 -d 0.5 --intervals 2 -E 3 -s comm";
    let words: Vec<&str> = words.split(' ').collect();
    let outcome = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let titles: Vec<&str> = outcome
        .stdout
        .lines()
        .filter(|line| is_title(line))
        .collect();
    assert_eq!(titles.len(), 4, "{}", outcome.stdout);
    for (title, event) in titles
        .iter()
        .zip(["[cs], (all, ", "[cpu-clock], (all, "].iter().cycle())
    {
        assert!(title.contains(event), "{title}");
    }
}

/// The rate is in the title, which is the line above the annotated code.
///
/// The first interval begins before the records of running processes are synthesized, since samples arrive during the synthesis.
/// If the number of samples were divided by the time after the synthesis only, the rate would be far above the frequency.
#[test]
fn the_rate_above_annotated_code_is_that_of_the_interval() {
    if !is_root() {
        return rperf_testkit::skip(
            "the_rate_above_annotated_code_is_that_of_the_interval",
            "system-wide recording needs root",
        );
    }
    let scratch = Scratch::new();
    let words = "top -e cpu-clock -F 99 -d 0.5 --intervals 1 --sym-annotate main";
    let words: Vec<&str> = words.split(' ').collect();
    let outcome = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let title = outcome.stdout.lines().next().expect("a title");
    let (before, _) = title.split_once(" samples/s").expect("a rate");
    let (_, rate) = before.rsplit_once(' ').expect("a number");
    let rate: usize = rate.parse().expect("a number");
    let processors = std::thread::available_parallelism().expect("a number of CPUs");
    // Four times the frequency, to tolerate an inexact interval; the wrong rate would be higher still.
    assert!(rate <= 4 * 99 * processors.get(), "{title}");
}

#[test]
fn invalid_arguments_are_refused() {
    for (words, status, message) in [
        (
            &["-F", "9", "-c", "9"][..],
            234,
            "cannot set frequency and period at the same time",
        ),
        (&["-d", "x"], 129, "-d: 'x' is not a number of seconds"),
        (&["calc"], 129, "rperf top: unexpected word 'calc'"),
        (&["-s", "nosuch"], 129, "Unknown --sort key: `nosuch'"),
        (&["-s", "mem"], 129, "Invalid --sort key: `mem'"),
        (
            &["-G", "x", "-p", "1"],
            129,
            "cgroup monitoring only available in system-wide mode",
        ),
        (
            &["--overwrite"],
            129,
            "rperf top: --overwrite is not supported yet",
        ),
        (
            &["-p", "4194999"],
            244,
            "Couldn't create thread/CPU maps: No such process",
        ),
    ] {
        let words = [&["top"], words].concat();
        let outcome = rperf(&words).finish().expect("rperf starts");
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (status, ""),
            "{words:?}: {}",
            outcome.stderr
        );
        assert!(
            outcome.stderr.contains(message),
            "{words:?}: {}",
            outcome.stderr
        );
    }
}
