//! `rperf data convert --to-perf` of text that 'script' printed: what both tools read from the result, compared with the
//! recording.

use std::fs;
use std::path::Path;
use std::process::Command;

use rperf_testkit::{Outcome, Scratch, skip};

use super::rperf;
use crate::tidy::root;
use crate::tools::{Tool, Tools};

/// Fixtures whose samples have addresses of code, callchains or fields of tracepoints; some have several events.
const FIXTURES: &[&str] = &[
    "aarch64/cycles",
    "aarch64/dwarf",
    "aarch64/group",
    "aarch64/kprobe",
    "x86_64/branches",
    "x86_64/cycles",
    "x86_64/directory",
    "x86_64/dwarf",
    "x86_64/group",
    "x86_64/kprobe",
    "x86_64/switches",
    "x86_64/zstd",
];

const PROGRAM: &str = "\
#include <unistd.h>
volatile long sum;
__attribute__((noinline)) void leaf(long n) { for (long i = 0; i < n; i++) sum += i; }
__attribute__((noinline)) void middle(long n) { leaf(n); sum++; }
int main(void) { for (int i = 0; i < 300; i++) { middle(100000); if (i % 20 == 0) usleep(1000); } }
";

fn run(folder: &Path, words: &[&str]) -> Outcome {
    let run = rperf(words).within(folder);
    run.env("HOME", folder).finish().expect("it starts")
}

/// Lines without the blanks that pad their columns.
fn trimmed(text: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(words).collect()
}

#[test]
fn fixtures_come_back_as_the_same_text() {
    let test = "commands::convert_script_text::fixtures_come_back_as_the_same_text";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    for fixture in FIXTURES {
        let path = root().join(format!("tests/fixtures/{fixture}.data"));
        let path = path.to_str().expect("a plain path");
        let text = tools.outcome(Tool::Perf, &["script", "-i", path]).stdout;
        fs::write(tools.path().join("text"), &text).expect("a file");
        let words = [
            "data",
            "convert",
            "--force",
            "-i",
            "text",
            "--to-perf",
            "new",
        ];
        let outcome = tools.outcome(Tool::Rperf, &words);
        assert_eq!(outcome.status, 0, "{fixture}: {outcome:?}");
        let output = tools.assert_same(&["script", "-i", "new"]);
        assert_eq!(trimmed(&output), trimmed(&text), "{fixture}");
    }
}

/// Records a program into `chains`, `flat` and `sched`; `None` without a compiler.
fn recorded(tools: &Tools) -> Option<()> {
    fs::write(tools.path().join("work.c"), PROGRAM).expect("a source file");
    let compiled = Command::new("cc")
        .args([
            "-O1",
            "-g0",
            "-fno-omit-frame-pointer",
            "work.c",
            "-o",
            "work",
        ])
        .current_dir(tools.path())
        .status();
    assert!(compiled.ok()?.success(), "the program can't be compiled");
    for words in [
        &["-g", "-F", "499", "-e", "cpu-clock:u", "-o", "chains"][..],
        &["-F", "499", "-e", "cpu-clock:u,page-faults:u", "-o", "flat"],
        &[
            "-a",
            "-e",
            "sched:sched_switch,sched:sched_wakeup",
            "-o",
            "sched",
        ],
    ] {
        let words = [&["record", "-q"], words, &["--", "./work"]].concat();
        let outcome = tools.outcome(Tool::Rperf, &words);
        assert_eq!(outcome.status, 0, "{outcome:?}");
    }
    Some(())
}

#[test]
fn functions_and_tracepoints_are_those_of_the_recording() {
    let test =
        "commands::convert_script_text::functions_and_tracepoints_are_those_of_the_recording";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    if recorded(&tools).is_none() {
        return skip(test, "there is no C compiler");
    }
    let output_of = |words: &[&str], file: &str| {
        let outcome = tools.outcome(Tool::Rperf, &[words, &["-i", file]].concat());
        assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
        outcome.stdout
    };
    let report = ["report", "-q", "--stdio", "-s", "comm,dso,symbol"];
    let graph = [&report[..], &["-g", "caller"]].concat();
    // The recordings, each with the commands that read it and the converted file.
    let readers: [(&str, &[&[&str]]); 3] = [
        (
            "chains",
            &[&graph, &["flamegraph", "--folded"], &["script", "--ns"]],
        ),
        ("flat", &[&report, &["script"]]),
        (
            "sched",
            &[
                &["script", "--ns"],
                &[
                    "report",
                    "-q",
                    "--stdio",
                    "-s",
                    "prev_comm,next_pid,prev_state",
                ],
            ],
        ),
    ];
    for (file, readers) in readers {
        // With nanoseconds in the text, the output of `script --ns` stays the same. The text of flat has microseconds.
        let precise: &[&str] = if file == "flat" { &[] } else { &["--ns"] };
        let text = output_of(&[&["script"], precise].concat(), file);
        fs::write(tools.path().join("text"), &text).expect("a file");
        let new = format!("{file}.new");
        let words = ["data", "convert", "-i", "text", "--to-perf", &new];
        let outcome = tools.outcome(Tool::Rperf, &words);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        // Without the program, functions come from the text alone.
        let program = tools.path().join("work");
        fs::rename(&program, tools.path().join("moved")).expect("a file");
        let outputs: Vec<String> = readers.iter().map(|words| output_of(words, &new)).collect();
        if file == "sched" {
            // These commands accept the new file, but only the number of their rows is tested. The names of tasks can differ:
            // the recording has the names of all tasks from the start, the text has the name of a task only when it runs.
            // Titles and totals alone would be at most 10 lines.
            for words in [["sched", "latency"], ["sched", "timehist"]] {
                let rows = output_of(&words, &new).lines().count();
                assert!(rows > 10, "{words:?}: {rows}");
            }
        }
        let by_perf = |file| {
            let words = [&report[..], &["-i", file]].concat();
            tools.outcome(Tool::Perf, &words).stdout
        };
        let output_of_perf = by_perf(&new);
        fs::rename(tools.path().join("moved"), &program).expect("a file");
        for (words, output) in readers.iter().zip(&outputs) {
            let [mut lines, mut expected] =
                [output, &output_of(words, file)].map(|text| trimmed(text));
            if file != "chains" {
                // The new file has its events in the order of their first samples; the recording may have another order.
                lines.sort();
                expected.sort();
            }
            assert_eq!(lines, expected, "{file}: {words:?}");
        }
        let sorted = |text: &str| {
            let mut lines = trimmed(text);
            lines.sort();
            lines
        };
        // The text of tracepoints has no addresses of code, so perf finds no functions in the new file.
        if file != "sched" {
            assert_eq!(sorted(&output_of_perf), sorted(&by_perf(file)), "{file}");
        }
    }
}

/// Conversions that fail, because of the text or because the output exists, create neither the output nor a build-id cache.
#[test]
fn broken_text_leaves_nothing() {
    let scratch = Scratch::new();
    let good = "sh 1 [000] 1.000001: a:tick: x=1\n";
    for (name, text) in [
        ("good", good.to_owned()),
        (
            "cut",
            format!("{good}sh 1 [000] 1.000002: 5 cycles: \n\t1000 leaf+0x1 (/bin/sh\n"),
        ),
        ("empty", "# hostname : there\n".to_owned()),
        ("binary", "\0\0\0".to_owned()),
        (
            // A time has six or nine decimals: with one, the line is read neither as a sample nor as another record.
            "bad-time",
            format!("sh 1 [000] 1.0: a:tick: x=1\n{good}"),
        ),
    ] {
        scratch.write(name, text).expect("a file");
    }
    for (words, status, message) in [
        (
            &["-i", "cut", "--to-perf", "new"][..],
            255,
            "cut: line 3 at offset 0x41: not a frame, which is an address, a function and an object in parentheses\n\
                hint: only the default layout",
        ),
        (
            &["-i", "empty", "--to-perf", "new"],
            255,
            "empty: the text has no samples\n",
        ),
        (
            &["-i", "binary", "--to-perf", "new"],
            255,
            "incompatible file format (binary): it is neither a trace.dat of trace-cmd nor text of 'script'\n",
        ),
        (
            &["-i", "bad-time", "--to-perf", "new"],
            255,
            "bad-time: line 1 at offset 0x0: not a sample",
        ),
        // The output is a file that exists.
        (
            &["-i", "good", "--to-perf", "cut"],
            255,
            "Output file exists. Use --force to overwrite it.\n",
        ),
    ] {
        let outcome = run(scratch.path(), &[&["data", "convert"], words].concat());
        assert_eq!(outcome.status, status, "{words:?}: {outcome:?}");
        assert!(
            outcome.stderr.starts_with(message),
            "{words:?}: {outcome:?}"
        );
        assert!(!scratch.path().join("new").exists(), "{words:?}");
        assert!(!scratch.path().join(".debug").exists(), "{words:?}");
    }
}

#[test]
fn records_other_than_samples_are_left_out() {
    let scratch = Scratch::new();
    let good = "sh 1 [000] 1.000001: a:tick: x=1\n";
    let other = "sh 1 [000] 1.000000: PERF_RECORD_MMAP2 1/1: [0x1000(0x1000)]\n";
    scratch
        .write("mixed", format!("{other}{good}"))
        .expect("a file");
    let outcome = run(
        scratch.path(),
        &["data", "convert", "-i", "mixed", "--to-perf", "new"],
    );
    let warning = "Warning: mixed: records other than samples are left out (1 line)\n";
    assert!(outcome.stderr.starts_with(warning), "{outcome:?}");
    assert!(outcome.stderr.contains("(1 samples)"), "{outcome:?}");
}
