//! `--stdio2` beside perf: labels, arrows, names.

use std::process::Command;

use super::super::beside::{BOTH, Beside, Tool};
use super::{recorded, recorded_with};
use crate::tidy::root;

/// Functions by name, without headings of sections and of functions and without empty lines: perf prints what objdump
/// begins with. What is left is compared to the byte.
fn functions(text: &str) -> Vec<String> {
    let is_kept = |line: &&str| {
        let plain = line.trim();
        let heads = plain.ends_with(':') && !plain.ends_with(">:");
        !plain.is_empty() && !heads && !plain.starts_with("Disassembly of section ")
    };
    let mut functions: Vec<String> = Vec::new();
    for line in text.lines().filter(is_kept) {
        match functions.last_mut() {
            Some(function) if !line.starts_with("Samples: ") => {
                function.push_str(line);
                function.push('\n');
            }
            _ => functions.push(format!("{line}\n")),
        }
    }
    functions.sort();
    functions
}

/// Compares functions of `program`; how many instructions there were.
fn compare(beside: &Beside, file: &str, program: &str, words: &[&str]) -> usize {
    let line = ["annotate", "--stdio2", "--no-source", "-d", program];
    let line = [&line[..], &["-i", file], words].concat();
    let [perf, ours] = BOTH.map(|tool| beside.outcome(tool, &line));
    assert_eq!(ours.status, 0, "{ours:?}");
    let (perf, mut ours) = (functions(&perf.stdout), functions(&ours.stdout));
    // perf leaves out what only other events of a group fell on.
    let name = |text: &String| text.lines().nth(1).map(str::to_owned);
    let names: Vec<Option<String>> = perf.iter().map(name).collect();
    ours.retain(|text| names.contains(&name(text)));
    // A stray sample in the C library's start shows a slot of the global offset table, to which objdump gives a name; and
    // what was hit once, by one event or the other, need not be told by both.
    let is_foreign = |name: &String| name.starts_with('_') || name.contains("@plt");
    let is_own = |text: &String| !name(text).as_ref().is_some_and(is_foreign);
    let perf: Vec<String> = perf.into_iter().filter(is_own).collect();
    ours.retain(is_own);
    assert_eq!(ours, perf, "{words:?}");
    ours.iter().map(|text| text.lines().count()).sum()
}

#[test]
fn few_words_are_those_of_perf() {
    let test = "commands::annotate::brief::few_words_are_those_of_perf";
    let Some((beside, file)) = recorded(test) else {
        return;
    };
    let options = [
        &[][..],
        &["-n"],
        &["--show-total-period"],
        &["-s", "burn_deep"],
    ];
    for words in options {
        let lines = compare(&beside, &file, "stacks", words);
        assert!(lines > 10, "{words:?}: {lines}");
    }
    let text = [&["annotate", "--stdio2", "-i", &file][..], &["burn_deep"]].concat();
    let text = beside.outcome(Tool::Rperf, &text).stdout;
    assert!(text.contains("BURN(burn_deep)"), "{text}");
    assert!(text.contains(" ↑ jne  5  "), "{text}");
    assert!(text.contains("  5:   mov  sink,%rcx"), "{text}");
    assert!(text.contains(" ← ret  "), "{text}");
}

#[test]
fn groups_have_a_column_for_each_event() {
    let test = "commands::annotate::brief::groups_have_a_column_for_each_event";
    let Some((beside, file)) = recorded_with(test, &["-e", "{cpu-clock:u,task-clock:u}"]) else {
        return;
    };
    for words in [&[][..], &["-n"], &["--show-total-period"]] {
        compare(&beside, &file, "stacks", words);
        let line = [
            "annotate",
            "--stdio",
            "--no-source",
            "-s",
            "burn_deep",
            "-i",
            &file,
        ];
        let line = [&line[..], words].concat();
        let [perf, ours] = BOTH.map(|tool| beside.outcome(tool, &line));
        let (perf, ours) = (
            super::functions(&perf.stdout),
            super::functions(&ours.stdout),
        );
        assert_eq!(ours, perf, "{words:?}");
    }
    let alone = beside.outcome(
        Tool::Rperf,
        &["annotate", "--no-group", "-s", "burn_deep", "-i", &file],
    );
    assert_eq!(alone.stdout.matches(" Percent |\t").count(), 2, "{alone:?}");
}

#[test]
fn programs_with_jumps_and_calls() {
    let test = "commands::annotate::brief::programs_with_jumps_and_calls";
    let Some(beside) = Beside::find(test) else {
        return;
    };
    let program = beside.path().join("shapes");
    let mut compiler = Command::new("c++");
    compiler
        .args(["-O1", "-g", "-std=c++17", "-o"])
        .arg(&program);
    let built = compiler
        .arg(root().join("tests/workloads/shapes.cpp"))
        .status();
    assert!(built.expect("a C++ compiler").success());
    let program = program.to_str().expect("a printable path");
    let words = ["-e", "cpu-clock:u", "-F", "2500", "--", program, "300"];
    let Some(file) = beside.record(Tool::Rperf, "shapes", &words) else {
        return;
    };
    let line = [
        "annotate",
        "--stdio2",
        "--no-source",
        "-d",
        "shapes",
        "-i",
        &file,
    ];
    let [perf, ours] = BOTH.map(|tool| beside.outcome(tool, &line).stdout);
    // Names of C++ have their parameters here.
    let signs = |text: &str| {
        let lines = text.lines().filter_map(|line| {
            let (_, behind) = line.split_once(['↓', '↑', '←'])?;
            Some(behind.trim().to_owned())
        });
        let mut lines: Vec<String> = lines.collect();
        lines.sort();
        lines
    };
    let (perf, ours) = (signs(&perf), signs(&ours));
    assert!(ours.len() > 10, "{ours:?}");
    assert_eq!(ours, perf);
}
