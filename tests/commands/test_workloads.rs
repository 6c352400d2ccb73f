//! `rperf test -w`: profiles show each workload's functions and behaviour.

use std::collections::BTreeSet;
use std::fs;

use rperf_testkit::{Outcome, Scratch};

use super::stat_control::fifo;
use crate::kernel::rperf_in;

/// Runs rperf in the scratch folder with words separated by blanks.
fn rperf(scratch: &Scratch, line: &str) -> Outcome {
    let words: Vec<&str> = line.split_whitespace().collect();
    let run = rperf_in(scratch, &words);
    run.finish().expect("rperf starts")
}

/// The samples of a workload as text: recorded with these options, printed with these fields.
fn profile(options: &str, workload: &str, fields: &str) -> String {
    let scratch = Scratch::new();
    let program = env!("CARGO_BIN_EXE_rperf");
    let line =
        format!("record -q -o perf.data -e cpu-clock:u {options} -- {program} test -w {workload}");
    let recorded = rperf(&scratch, &line);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let printed = rperf(&scratch, &format!("script -F {fields}"));
    assert_eq!(printed.status, 0, "{}", printed.stderr);
    printed.stdout
}

/// For each sample, the function names of its frames, separated by blanks.
fn chains(text: &str) -> Vec<String> {
    let frames = |sample: &str| {
        let names = sample
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1));
        names.collect::<Vec<_>>().join(" ")
    };
    text.split("\n\n").map(frames).collect()
}

/// The first and the last word of a line.
fn ends(line: &str) -> [&str; 2] {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    [first, words.next_back().unwrap_or_default()]
}

#[track_caller]
fn assert_chain(text: &str, chain: &str) {
    let all_chains = chains(text);
    let is_there = all_chains.iter().any(|sample| sample.contains(chain));
    assert!(is_there, "no sample has {chain}: {all_chains:?}");
}

#[test]
fn call_chains_by_frame_pointers_and_dwarf_have_the_callers() {
    for kind in ["fp", "dwarf"] {
        let options = format!("--call-graph {kind}");
        let text = profile(&options, "leafloop 0.3", "ip,sym");
        assert_chain(&text, "leaf parent leafloop");
        let text = profile(&options, "noploop 0.3", "ip,sym");
        assert_chain(&text, "noploop rperf_workloads::noploop::body");
    }
}

#[test]
fn threads_have_their_functions_and_names() {
    let text = profile("-g", "thloop 0.5 3", "ip,sym");
    assert_chain(&text, "test_loop thfunc");
    let text = profile("", "named_threads 4 300000", "comm,ip,sym");
    let samples: BTreeSet<[&str; 2]> = text.lines().map(ends).collect();
    for number in 1..=4 {
        let (comm, function) = (
            format!("thread{number}"),
            format!("named_threads_thread{number}"),
        );
        let sample = [comm.as_str(), function.as_str()];
        assert!(samples.contains(&sample), "{sample:?} in {samples:?}");
    }
}

#[test]
fn sqrtloop_computes_in_one_process() {
    let text = profile("", "sqrtloop 0.3", "pid,ip,sym");
    let computing = text.lines().filter(|line| line.ends_with(" sqrtloop"));
    let pids: BTreeSet<&str> = computing
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(pids.len(), 1, "{text}");
}

#[test]
fn processes_that_take_turns_keep_their_functions() {
    let text = profile("-c 20000", "context_switch_loop 20000", "comm,ip,sym");
    let has_sample = |comm: &str, function: &str| {
        let mut lines = text.lines();
        lines.any(|line| line.contains(comm) && line.ends_with(function))
    };
    for (comm, other) in [("proc1", "proc2"), ("proc2", "proc1")] {
        let (own, others) = (
            format!("context_switch_loop_{comm}"),
            format!("context_switch_loop_{other}"),
        );
        assert!(
            has_sample(comm, &own) && !has_sample(comm, &others),
            "{text}"
        );
    }
}

#[test]
fn inlined_functions_are_on_their_lines() {
    let text = profile("--call-graph dwarf", "inlineloop 0.3", "ip,sym,srcline");
    for line in [
        "inlineloop.c:21 (inlined)\n",
        "inlineloop.c:27 (inlined)\n",
        "inlineloop.c:34\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn workloads_are_sampled_in_their_functions() {
    for (workload, functions) in [
        ("noploop 0.2", &["noploop"][..]),
        ("datasym 0.2", &["datasym"]),
        (
            "brstack 8000000",
            &["brstack", "brstack_bench", "brstack_foo", "brstack_bar"],
        ),
        ("code_with_type 0.2 1000", &["code_with_type"]),
    ] {
        let text = profile("", workload, "ip,sym");
        let sampled: BTreeSet<&str> = text.lines().map(|line| ends(line)[1]).collect();
        for function in functions {
            assert!(sampled.contains(function), "{function} in {sampled:?}");
        }
    }
    // `datasym` writes to a variable that has a symbol.
    let binary = fs::read(env!("CARGO_BIN_EXE_rperf")).expect("the binary");
    let name = b"\0workload_datasym_buf1\0";
    assert!(binary.windows(name.len()).any(|bytes| bytes == name));
}

#[test]
fn generated_code_has_its_name() {
    let text = profile("-k mono", "jitdump 20000", "ip,sym");
    assert!(text.contains(" jit_workload\n"), "{text}");
}

#[test]
fn short_workloads_succeed() {
    let scratch = Scratch::new();
    for name in ["landlock", "traploop 5", "deterministic", "noploop 0.01"] {
        let outcome = rperf(&scratch, &format!("test -w {name}"));
        let result = (outcome.status, outcome.stdout.as_str(), outcome.stderr);
        assert_eq!(result, (0, "", String::new()), "{name}");
    }
}

#[test]
fn a_recording_is_enabled_for_the_workload() {
    let scratch = Scratch::new();
    let _fifos = (
        fifo(&scratch.path().join("c")),
        fifo(&scratch.path().join("a")),
    );
    let program = env!("CARGO_BIN_EXE_rperf");
    let record = "record -q -o perf.data -e cpu-clock:u -D -1 --control fifo:c,a --";
    let test = "test --record-ctl fifo:c,a -w noploop 0.2";
    let recorded = rperf(&scratch, &format!("{record} {program} {test}"));
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let printed = rperf(&scratch, "script -F ip,sym");
    let functions: BTreeSet<&str> = printed.stdout.lines().map(|line| ends(line)[1]).collect();
    assert!(functions.contains("noploop"), "{functions:?}");
    // The dynamic linker runs before the workload, while the events are disabled.
    assert!(
        !functions.iter().any(|name| name.contains("_dl_")),
        "{functions:?}"
    );
}

#[test]
fn errors_name_workloads_arguments_and_fifos() {
    let scratch = Scratch::new();
    scratch.write("file", "").expect("a file");
    for (line, status, message) in [
        (
            "-w nosuch",
            255,
            "No workload found: nosuch\nhint: workloads: noploop, ",
        ),
        (
            "-w noploop x",
            129,
            "noploop: <seconds> 'x': expected seconds, ",
        ),
        ("-w landlock 1", 129, "landlock: unexpected argument '1'\n"),
        (
            "-w noploop --record-ctl fd:3",
            129,
            "--record-ctl: 'fd:3' is not the name of a fifo\n",
        ),
        (
            "-w noploop --record-ctl fifo:file",
            255,
            "--record-ctl: failed to open 'file': not a fifo\n",
        ),
        (
            "-w noploop --record-ctl fifo:nosuch",
            255,
            "--record-ctl: failed to open 'nosuch': No such file",
        ),
    ] {
        let outcome = rperf(&scratch, &format!("test {line}"));
        assert_eq!(outcome.status, status, "{line}: {}", outcome.stderr);
        assert!(
            outcome.stderr.starts_with(message),
            "{line}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn workloads_are_listed() {
    let scratch = Scratch::new();
    let listed = rperf(&scratch, "test --list-workloads").stdout;
    let names = "noploop\nthloop\nnamed_threads\nleafloop\nsqrtloop\nbrstack\ndatasym\nlandlock\ntraploop\ninlineloop\njitdump\n\
                 context_switch_loop\ndeterministic\ncode_with_type\n";
    assert_eq!(listed, names);
    let described = rperf(&scratch, "test --list-workloads -v").stdout;
    assert!(
        described.starts_with("noploop [<seconds>]   "),
        "{described}"
    );
    assert_eq!(described.lines().count(), listed.lines().count());
}
