//! `rperf annotate`: instructions and percentages compared with perf, interleaved source lines, and functions without code.

mod brief;
mod code;
mod options;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::tidy::root;
use crate::tools::{BOTH, Tool, Tools};

/// The source of the annotated program.
fn source() -> PathBuf {
    root().join("tests/workloads/stacks.c")
}

/// The functions in which the program spends its time.
const HOT_FUNCTIONS: &str =
    "burn_deep,burn_compare,burn_handler,burn_alloca,burn_realigned,burn_jump";

/// Compiles and records the program; returns the tools and the recording's name. `None` if the test is skipped.
fn record_program(test: &str) -> Option<(Tools, String)> {
    record_events(test, &["-e", "cpu-clock:u"])
}

/// Compiles the program with these additional options; returns the tools and the program's path. `None` if the test is skipped.
/// The program's argument is the CPU time that it uses, in ms.
fn compile_program(test: &str, options: &[&str]) -> Option<(Tools, String)> {
    let tools = Tools::find_for(test)?;
    let program = tools.path().join("stacks");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-pthread"]).args(options);
    compiler.arg("-o").arg(&program).arg(source());
    assert!(compiler.status().expect("a C compiler").success());
    let program = program.to_str().expect("a printable path");
    Some((tools, program.to_owned()))
}

/// Like `record_program`, with other events.
fn record_events(test: &str, events: &[&str]) -> Option<(Tools, String)> {
    let (tools, program) = compile_program(test, &[])?;
    let words = [events, &["-F", "2500", "--", &program, "300"]].concat();
    let file = tools.record(Tool::Rperf, "stacks", &words)?;
    Some((tools, file))
}

/// The lines of titles and instructions, without the symbol names (`<name>`) of addresses: in stripped objects, perf's objdump
/// finds other names.
fn instructions(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| {
        // Percentages, counts or periods: a group has a column for each event.
        let columns = line.split(" :").next().unwrap_or_default().trim();
        let is_instruction =
            !columns.is_empty() && columns.bytes().all(|byte| b" .0123456789".contains(&byte));
        let is_title = line.contains("Disassembly of") && line.contains("samples");
        is_instruction || is_title
    });
    let plain = |line: &str| match line.split_once(" <") {
        Some((before, name)) => {
            let after = name.split_once('>').map_or("", |(_, after)| after);
            format!("{before}{after}")
        }
        None => line.to_owned(),
    };
    lines.map(plain).collect()
}

/// Like `instructions`, with the functions sorted: perf orders functions of equal share arbitrarily.
fn functions(text: &str) -> Vec<Vec<String>> {
    let lines = instructions(text);
    let mut functions: Vec<Vec<String>> = lines
        .chunk_by(|_, line| !line.contains("Disassembly of"))
        .map(<[String]>::to_vec)
        .collect();
    functions.sort();
    functions
}

#[test]
fn instructions_and_percentages_match_perf() {
    let test = "commands::annotate::instructions_and_percentages_match_perf";
    let Some((tools, file)) = record_program(test) else {
        return;
    };
    for words in [
        &["--no-source"][..],
        &["--no-source", "-n"],
        &["--no-source", "--show-total-period"],
        &["--no-source", "--asm-raw", "-s", "burn_deep"],
        &["--no-source", "-M", "intel", "burn_deep"],
        &["--no-source", "--percent-type", "local-hits", "burn_deep"],
        &["--no-source", "--percent-type", "global-period"],
        &["-s", "burn_deep"],
        &["-d", "stacks", "--no-source"],
    ] {
        let line = [&["annotate", "--stdio", "-i", &file], words].concat();
        let [perf, ours] = BOTH.map(|tool| tools.outcome(tool, &line));
        assert_eq!(ours.status, 0, "{ours:?}");
        let (perf, ours) = (functions(&perf.stdout), functions(&ours.stdout));
        assert!(ours.iter().flatten().count() > 8, "{words:?}: {ours:?}");
        assert_eq!(ours, perf, "{words:?}");
    }
}

#[test]
fn events_are_annotated_where_they_were_sampled() {
    let test = "commands::annotate::events_are_annotated_where_they_were_sampled";
    // Without PIE, the address that nm prints is the one in the process, where the breakpoint is set.
    let Some((tools, program)) = compile_program(test, &["-no-pie"]) else {
        return;
    };
    let symbols = Command::new("nm").arg(&program).output();
    let symbols = String::from_utf8(symbols.expect("nm starts").stdout).expect("text");
    let mut symbols = symbols.lines().filter_map(|line| line.split_once(' '));
    let function = symbols.find(|(_, type_and_name)| type_and_name.ends_with(" burn_alloca"));
    let (address, _) = function.expect("a function");
    for event in [&format!("mem:0x{address}:x:u"), "page-faults:u"] {
        let words = ["-e", event, "-c", "1", "--", &program, "3"];
        let Some(file) = tools.record(Tool::Rperf, "events", &words) else {
            return;
        };
        let line = [
            "annotate",
            "--stdio",
            "--no-source",
            "-d",
            "stacks",
            "-i",
            &file,
        ];
        let [perf, ours] = BOTH.map(|tool| tools.outcome(tool, &line));
        let (perf, ours) = (functions(&perf.stdout), functions(&ours.stdout));
        assert!(!ours.is_empty(), "{event}");
        assert_eq!(ours, perf, "{event}");
    }
}

#[test]
fn source_lines_match_the_file() {
    let test = "commands::annotate::source_lines_match_the_file";
    let Some((tools, file)) = record_program(test) else {
        return;
    };
    let text = fs::read_to_string(source()).expect("the source");
    let moved = tools.path().join("moved");
    fs::create_dir(&moved).expect("a folder");
    // The copy differs in each line, so that the output shows which of the files was read.
    let moved_text = text.replace('\n', " // moved\n");
    fs::write(moved.join("stacks.c"), &moved_text).expect("a copy");
    // The number of folders in the source's path: its components except the root and the file.
    let depth = source().components().count() - 2;
    let strip = depth.to_string();
    let moved = moved.to_str().expect("a printable path");
    let with_prefix = ["--prefix", moved, "--prefix-strip", &strip];
    for (words, source_text) in [(&[][..], &text), (&with_prefix[..], &moved_text)] {
        let lines: Vec<&str> = source_text.lines().map(str::trim).collect();
        let line = [&["annotate", "-i", &file, "-l", "-S", HOT_FUNCTIONS], words].concat();
        let ours = tools.outcome(Tool::Rperf, &line);
        assert_eq!(ours.status, 0, "{ours:?}");
        let printed = ours.stdout.lines().filter_map(|line| {
            let (number, text) = line.strip_prefix("         : ")?.split_once(' ')?;
            Some((number.parse::<usize>().ok()?, text.trim()))
        });
        let printed: Vec<(usize, &str)> = printed.collect();
        assert!(printed.len() > 1, "{}", ours.stdout);
        for (number, text) in printed {
            assert_eq!(lines[number - 1], text, "{number}");
        }
        // With -l, the line of an instruction with a large share ends with its source line.
        let hot = ours
            .stdout
            .lines()
            .filter(|line| line.contains(" // stacks.c:"));
        assert!(hot.count() > 0, "{}", ours.stdout);
        assert!(ours.stdout.contains("\nSorted summary for file "));
    }
}

#[test]
fn unknown_functions_and_functions_without_code_are_reported() {
    let test = "commands::annotate::unknown_functions_and_functions_without_code_are_reported";
    let Some((tools, file)) = record_program(test) else {
        return;
    };
    let run = |words: &[&str]| {
        let line = [&["annotate", "-i", &file], words].concat();
        tools.outcome(Tool::Rperf, &line)
    };
    let unknown = run(&["burn_dep"]);
    assert_eq!((unknown.status, unknown.stdout.as_str()), (1, ""));
    assert!(
        unknown.stderr.contains("no samples in 'burn_dep'"),
        "{unknown:?}"
    );
    assert!(
        unknown.stderr.contains("did you mean 'burn_deep'?"),
        "{unknown:?}"
    );
    // The program's name, given as a function.
    let as_function = run(&["stacks"]);
    assert!(
        as_function.stderr.contains("-i stacks reads this file"),
        "{as_function:?}"
    );
    // Without the build-id cache, code is read from the program itself.
    fs::remove_dir_all(tools.path().join(".debug")).expect("the cache");
    let program = tools.path().join("stacks");
    let mut foreign = fs::read(&program).expect("the program");
    // EM_RISCV in e_machine.
    foreign[18..20].copy_from_slice(&243_u16.to_le_bytes());
    fs::remove_file(&program).expect("the program");
    fs::write(&program, foreign).expect("a program of another architecture");
    let unsupported = run(&["-s", "burn_deep"]);
    assert_eq!(
        (unsupported.status, unsupported.stdout.as_str()),
        (1, ""),
        "{unsupported:?}"
    );
    let message = "its architecture is not supported: only x86 and arm64 are disassembled";
    assert!(unsupported.stderr.contains(message), "{unsupported:?}");
    let line = "stacks: cannot show the code of 1 function (";
    assert!(unsupported.stderr.contains(line), "{unsupported:?}");
    fs::remove_file(program).expect("the program");
    let without_program = run(&["-d", "stacks"]);
    assert_eq!(
        (without_program.status, without_program.stdout.as_str()),
        (1, ""),
        "{without_program:?}"
    );
    let message = "no samples in functions with symbols";
    assert!(
        without_program.stderr.contains(message),
        "{without_program:?}"
    );
}
