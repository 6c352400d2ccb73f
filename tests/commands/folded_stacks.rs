//! Compares the folded stacks of `data convert` with those of other programs, which fold recordings or the text of `script`, and
//! with the stacks in the JSON of `script`.

use std::fs;

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};
use serde_json::Value;

use super::folded_parser::{Folded, parse};
use crate::kernel::{BUSY, rperf_in};

/// Programs that fold the text of `perf script` from standard input.
const COLLAPSERS: [&str; 2] = ["inferno-collapse-perf", "stackcollapse-perf.pl"];

/// Options of `record`: for stacks by frame pointers, and for unwound stacks.
const RECORDINGS: [&[&str]; 2] = [&["-g"], &["--call-graph", "dwarf"]];

/// Returns a folder with a recording of a shell, made with these options.
fn recorded(options: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    let start = [
        "record",
        "-q",
        "-o",
        "perf.data",
        "-F",
        "1999",
        "-e",
        "cpu-clock",
    ];
    ran(
        &scratch,
        &[&start, options, &["--", "sh", "-c", BUSY]].concat(),
    );
    scratch
}

#[track_caller]
fn ran(scratch: &Scratch, words: &[&str]) -> String {
    let outcome = rperf_in(scratch, words).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
    outcome.stdout
}

/// The stacks printed by `data convert --to-folded`.
fn converted(scratch: &Scratch) -> Folded {
    let stacks = parse(&ran(scratch, &["data", "convert", "--to-folded", "-"]));
    assert!(stacks.values().sum::<u64>() > 20, "{stacks:?}");
    stacks
}

#[test]
fn text_of_script_folds_to_the_same_stacks() {
    let is_installed = |name: &&str| {
        let outcome = Run::new(name).args(["--help"]).finish();
        outcome.is_ok()
    };
    let installed: Vec<&str> = COLLAPSERS.into_iter().filter(is_installed).collect();
    if installed.is_empty() {
        let reason = format!("there is none of {}", COLLAPSERS.join(", "));
        return skip("text_of_script_folds_to_the_same_stacks", &reason);
    }
    for options in RECORDINGS {
        let scratch = recorded(options);
        let expected = converted(&scratch);
        let periods = ["flamegraph", "--folded", "--weight", "period", "-o", "-"];
        let periods = parse(&ran(&scratch, &periods));
        // Newer versions of these programs add up periods if the text has them; otherwise, samples are counted.
        let text = ran(&scratch, &["script"]);
        let text_without_periods = ran(&scratch, &["script", "-F", "-period"]);
        for program in &installed {
            let collapse = |text: &str| {
                let run = Run::new(program).stdin(text).finish();
                parse(&run.expect("it started before").stdout)
            };
            assert_eq!(
                collapse(&text_without_periods),
                expected,
                "{program}, {options:?}"
            );
            let stacks = collapse(&text);
            if stacks != expected {
                assert_eq!(stacks, periods, "{program}, {options:?}");
            }
        }
    }
}

/// The stacks in the JSON objects of `script --json`. Frames without a function have the name of their dso, in brackets.
fn of_json(text: &str) -> Folded {
    let mut stacks = Folded::new();
    for line in text.lines() {
        let sample: Value = serde_json::from_str(line).expect("an object");
        let frames = sample["callchain"].as_array().expect("a list");
        let frames = frames.iter().rev().map(|frame| match &frame["symbol"] {
            Value::String(name) => name.clone(),
            _ => {
                let path = frame["dso"].as_str().unwrap_or("[unknown]");
                let name = path.rsplit('/').next().unwrap_or(path);
                match name.starts_with('[') {
                    true => name.to_owned(),
                    false => format!("[{name}]"),
                }
            }
        });
        let comm = sample["comm"].as_str().expect("a name").replace(' ', "_");
        let stack: Vec<String> = std::iter::once(comm).chain(frames).collect();
        *stacks.entry(stack.join(";")).or_default() += 1;
    }
    stacks
}

#[test]
fn json_of_script_has_the_same_stacks() {
    for options in RECORDINGS {
        let scratch = recorded(options);
        let stacks = of_json(&ran(&scratch, &["script", "--json"]));
        assert_eq!(stacks, converted(&scratch), "{options:?}");
    }
}

/// Gives all frames without a function one name, as perf's own scripts do.
fn without_dso_names(stacks: &Folded) -> Folded {
    let mut out = Folded::new();
    for (stack, weight) in stacks {
        let frames = stack.split(';').map(|frame| match frame.as_bytes() {
            [b'[', .., b']'] => "[unknown]",
            _ => frame,
        });
        let stack = frames.collect::<Vec<_>>().join(";");
        *out.entry(stack).or_default() += weight;
    }
    out
}

/// The stacks of the tree that perf's flame graph script writes.
fn of_tree(root: &Value) -> Folded {
    assert_eq!(root["v"], 0, "no stack ends at the root");
    let mut stacks = Folded::new();
    // The children of the root are programs, named like `sh (123)`: comm and pid.
    for program in root["c"].as_array().expect("a list") {
        let name = program["n"].as_str().expect("a name");
        let comm = name.split(" (").next().unwrap_or(name).replace(' ', "_");
        add_stacks(program, &comm, &mut stacks);
    }
    stacks
}

/// Adds the stacks at and below a node; `stack` is that of the node itself.
fn add_stacks(node: &Value, stack: &str, stacks: &mut Folded) {
    let weight = node["v"].as_u64().expect("a number");
    if weight > 0 {
        *stacks.entry(stack.to_owned()).or_default() += weight;
    }
    for child in node["c"].as_array().expect("a list") {
        let name = child["n"].as_str().expect("a name");
        add_stacks(child, &format!("{stack};{name}"), stacks);
    }
}

#[test]
fn perfs_own_scripts_fold_to_the_same_stacks() {
    const NAME: &str = "perfs_own_scripts_fold_to_the_same_stacks";
    let Some(perf) = real_perf() else {
        return skip(NAME, "there is no perf");
    };
    let run = |scratch: &Scratch, words: &[&str]| -> Option<Outcome> {
        let run = Run::new(&perf).args([&["script", "report"], words].concat());
        let run = run.within(scratch.path()).env("HOME", scratch.path());
        let outcome = run.finish().expect("perf starts");
        if outcome.status != 0 {
            skip(NAME, &outcome.stderr);
            return None;
        }
        Some(outcome)
    };
    // perf shows fewer frames of unwound stacks, and other names for some: docs/compatibility.md.
    let scratch = recorded(&["-g"]);
    let expected = without_dso_names(&converted(&scratch));
    let Some(outcome) = run(&scratch, &["stackcollapse"]) else {
        return;
    };
    assert_eq!(parse(&outcome.stdout), expected);
    let words = ["flamegraph", "-f", "json", "-o", "tree.json"];
    if run(&scratch, &words).is_none() {
        return;
    }
    let tree = fs::read_to_string(scratch.path().join("tree.json")).expect("a file");
    let tree = serde_json::from_str(&tree).expect("JSON");
    assert_eq!(of_tree(&tree), expected);
}
