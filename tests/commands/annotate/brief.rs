//! `--stdio2` compared with perf: labels, arrows, names, and the columns of event groups.

use std::process::Command;

use super::{record_events, record_program};
use crate::tidy::root;
use crate::tools::{BOTH, Tool, Tools};

/// The listings of functions, sorted, without empty lines and without headings of sections and `FUNCTION():` lines, which perf
/// takes from objdump. The headings `ADDRESS <FUNCTION>:` are kept.
fn functions(text: &str) -> Vec<String> {
    let is_kept = |line: &&str| {
        let plain = line.trim();
        let is_heading = plain.ends_with(':') && !plain.ends_with(">:");
        !plain.is_empty() && !is_heading && !plain.starts_with("Disassembly of section ")
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

/// Compares the listings of those functions of `program` that perf prints; returns the number of lines compared.
fn compare(tools: &Tools, file: &str, program: &str, words: &[&str]) -> usize {
    let line = ["annotate", "--stdio2", "--no-source", "-d", program];
    let line = [&line[..], &["-i", file], words].concat();
    let [perf, ours] = BOTH.map(|tool| tools.outcome(tool, &line));
    assert_eq!(ours.status, 0, "{ours:?}");
    let (perf, mut ours) = (functions(&perf.stdout), functions(&ours.stdout));
    // The title starts with `Samples: `; the line after it names the function.
    let name = |text: &String| text.lines().nth(1).map(str::to_owned);
    // perf omits functions without samples of the group's leader.
    let names: Vec<Option<String>> = perf.iter().map(name).collect();
    ours.retain(|text| names.contains(&name(text)));
    // Functions of the C library's startup code and the PLT, which are listed if they have a stray sample, are not compared:
    // their code may access a slot of the global offset table, and only objdump, which perf runs, names such slots.
    let is_startup_or_plt = |name: &String| name.starts_with('_') || name.contains("@plt");
    let is_compared = |text: &String| !name(text).as_ref().is_some_and(is_startup_or_plt);
    let perf: Vec<String> = perf.into_iter().filter(is_compared).collect();
    ours.retain(is_compared);
    assert_eq!(ours, perf, "{words:?}");
    ours.iter().map(|text| text.lines().count()).sum()
}

#[test]
fn stdio2_output_matches_perf() {
    let test = "commands::annotate::brief::stdio2_output_matches_perf";
    let Some((tools, file)) = record_program(test) else {
        return;
    };
    let options = [
        &[][..],
        &["-n"],
        &["--show-total-period"],
        &["-s", "burn_deep"],
    ];
    for words in options {
        let lines = compare(&tools, &file, "stacks", words);
        assert!(lines > 10, "{words:?}: {lines}");
    }
    let words = [&["annotate", "--stdio2", "-i", &file][..], &["burn_deep"]].concat();
    let text = tools.outcome(Tool::Rperf, &words).stdout;
    assert!(text.contains("BURN(burn_deep)"), "{text}");
    assert!(text.contains(" ↑ jne  5  "), "{text}");
    assert!(text.contains("  5:   mov  sink,%rcx"), "{text}");
    assert!(text.contains(" ← ret  "), "{text}");
}

#[test]
fn groups_have_a_column_for_each_event() {
    let test = "commands::annotate::brief::groups_have_a_column_for_each_event";
    let Some((tools, file)) = record_events(test, &["-e", "{cpu-clock:u,task-clock:u}"]) else {
        return;
    };
    for words in [&[][..], &["-n"], &["--show-total-period"]] {
        let lines = compare(&tools, &file, "stacks", words);
        assert!(lines > 10, "{words:?}: {lines}");
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
        let [perf, ours] = BOTH.map(|tool| tools.outcome(tool, &line));
        let (perf, ours) = (
            super::functions(&perf.stdout),
            super::functions(&ours.stdout),
        );
        // At least 9 lines: the title of the listing, and instructions.
        assert!(ours.iter().flatten().count() > 8, "{words:?}: {ours:?}");
        assert_eq!(ours, perf, "{words:?}");
    }
    let ungrouped = tools.outcome(
        Tool::Rperf,
        &["annotate", "--no-group", "-s", "burn_deep", "-i", &file],
    );
    assert_eq!(
        ungrouped.stdout.matches(" Percent |\t").count(),
        2,
        "{ungrouped:?}"
    );
}

#[test]
fn arrows_of_jumps_and_returns_match_perf() {
    let test = "commands::annotate::brief::arrows_of_jumps_and_returns_match_perf";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    let program = tools.path().join("shapes");
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
    let Some(file) = tools.record(Tool::Rperf, "shapes", &words) else {
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
    let [perf, ours] = BOTH.map(|tool| tools.outcome(tool, &line).stdout);
    // Each arrow with its instruction. Calls (→) are not compared: the tools differ in the parameters of C++ names.
    let arrows = |text: &str| {
        let lines = text.lines().filter_map(|line| {
            let arrow = line.find(['↓', '↑', '←'])?;
            Some(line[arrow..].trim().to_owned())
        });
        let mut lines: Vec<String> = lines.collect();
        lines.sort();
        lines
    };
    let (perf, ours) = (arrows(&perf), arrows(&ours));
    assert!(ours.len() > 10, "{ours:?}");
    assert_eq!(ours, perf);
}
