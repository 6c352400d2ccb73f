//! JIT-compiled code in jitdump files and perf maps.

use std::path::Path;
use std::process::Command;

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use crate::kernel::rperf_in;
use crate::tidy::root;

/// The functions that the program loads at one address, in the order in which it runs them. It runs `compiled` twice before
/// `another`: at that address, and at another one after it moved the function.
const PHASES: [&str; 4] = ["interpreted", "compiled", "another", "interpreted"];

const RPERF: &str = env!("CARGO_BIN_EXE_rperf");

fn run(scratch: &Scratch, words: &[&str]) -> Outcome {
    rperf_in(scratch, words).finish().expect("rperf starts")
}

/// The functions of [`PHASES`] in script's lines, which have the symbol in the third column, with repetitions merged.
fn phases(text: &str) -> Vec<&str> {
    let symbols = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2));
    let names = symbols.filter_map(|symbol| symbol.split('+').next());
    let mut found: Vec<&str> = names.filter(|name| PHASES.contains(name)).collect();
    found.dedup();
    found
}

/// What perf prints with these arguments after `injector` added the jitdump's functions to the recording. The output of
/// `injector`, normally none, is before it.
fn injected(injector: &Path, perf: &Path, scratch: &Scratch, words: &[&str]) -> String {
    let inject = ["inject", "--jit", "-i", "perf.data", "-o", "injected.data"];
    let words = [words, &["-i", "injected.data"]].concat();
    let outcomes = [(injector, &inject[..]), (perf, &words)].map(|(tool, words)| {
        let run = Run::new(tool).args(words).within(scratch.path());
        let run = run.env("HOME", scratch.path());
        run.finish().expect("perf starts")
    });
    outcomes.map(|outcome| outcome.stdout).concat()
}

/// Compiles this program of `tests/workloads` in the scratch folder; returns its path.
fn program(scratch: &Scratch, name: &str) -> String {
    let program = scratch.path().join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-o"]).arg(&program);
    let source = root().join("tests/workloads").join(format!("{name}.c"));
    let built = compiler.arg(source).status().expect("a C compiler");
    assert!(built.success());
    program.to_str().expect("a printable path").to_owned()
}

/// The lines of script that name one of these functions, each with the source line that follows, if any.
fn lines_of<'t>(text: &'t str, functions: &[&str]) -> Vec<[&'t str; 2]> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let named = |line: &str| {
        let symbol = line.split_whitespace().nth(1).unwrap_or_default();
        let name = symbol.split('+').next().unwrap_or_default();
        // The line tables that perf injects end at the start of their last entry, here that of `looping` at +0xa. The `ret` after
        // it, at +0xb, therefore has no line in perf's output, and is not compared.
        functions.contains(&name) && symbol != "looping+0xb"
    };
    let pairs = lines.windows(2).filter(|pair| named(pair[0]));
    let source = |line: &'t str| if line.contains(".js:") { line } else { "" };
    pairs.map(|pair| [pair[0], source(pair[1])]).collect()
}

#[test]
fn lines_and_frames_of_dumped_functions_are_found() {
    let scratch = Scratch::new();
    let program = program(&scratch, "jitdump");
    let folder = scratch.path().to_str().expect("a printable path");
    let record = ["record", "-q", "-o", "perf.data", "-e", "cpu-clock:u"];
    let options = [
        "-k",
        "mono",
        "-F",
        "999",
        "--call-graph",
        "dwarf,2048",
        "--",
    ];
    let phase_ms = "40";
    let words = [&record[..], &options, &[&program, folder, phase_ms]].concat();
    let recorded = run(&scratch, &words);
    if recorded.status != 0 {
        return skip(
            "commands::jit::lines_and_frames_of_dumped_functions_are_found",
            &recorded.stderr,
        );
    }
    let words = ["script", "--no-inline", "-F", "ip,sym,srcline"];
    let script = run(&scratch, &words);
    let calls = lines_of(&script.stdout, &["calling"]);
    assert!(calls.len() > 9, "{script:?}");
    assert!(
        calls.iter().all(|call| call[1] == "calling.js:12"),
        "{calls:?}"
    );
    // FUNCTION SOURCE:LINE ADDRESS CALLER
    let tokens: Vec<&str> = script.stdout.split_whitespace().collect();
    let callers = tokens.windows(4).filter(|tokens| tokens[0] == "calling");
    // `calling` does not set up a frame pointer: the unwind table in the jitdump file is needed to find its caller.
    assert!(
        callers.clone().all(|tokens| tokens[3] == "main"),
        "{script:?}"
    );
    assert_eq!(callers.count(), calls.len());
    let Some(perf) = real_perf() else {
        return skip(
            "commands::jit::lines_and_frames_of_dumped_functions_are_found",
            "there is no perf",
        );
    };
    let words = ["script", "-G", "-F", "ip,sym,symoff,insn,srcline"];
    let functions = [&PHASES[..], &["looping"]].concat();
    let ours = run(&scratch, &words);
    let ours = lines_of(&ours.stdout, &functions);
    // The bytes of the instruction follow the source line.
    let has_line = |line: &[&str; 2]| line[1].starts_with("loop.js:22 ");
    assert!(ours.iter().any(has_line), "{ours:?}");
    for injector in [&*perf, Path::new(RPERF)] {
        let theirs = injected(injector, &perf, &scratch, &words);
        assert_eq!(ours, lines_of(&theirs, &functions), "{injector:?}");
    }
    // `injected.data` is now that of rperf. The objects that inject wrote contain the unwind table, too: rperf unwinds by it.
    let words = [
        "script",
        "--no-inline",
        "-F",
        "ip,sym,srcline",
        "-i",
        "injected.data",
    ];
    let script = run(&scratch, &words);
    let tokens: Vec<&str> = script.stdout.split_whitespace().collect();
    let callers = tokens.windows(4).filter(|tokens| tokens[0] == "calling");
    assert!(
        callers.clone().all(|tokens| tokens[3] == "main"),
        "{script:?}"
    );
    assert_eq!(callers.count(), calls.len());
}

#[test]
fn functions_at_reused_addresses_are_distinguished() {
    const TEST: &str = "commands::jit::functions_at_reused_addresses_are_distinguished";
    let perf = real_perf();
    if perf.is_none() {
        // Only the comparison is skipped.
        skip(TEST, "there is no perf to compare with");
    }
    let scratch = Scratch::new();
    let program = program(&scratch, "jitdump");
    let folder = scratch.path().to_str().expect("a printable path");
    let record = ["record", "-o", "perf.data", "-e", "cpu-clock:u"];
    for clock in [&[][..], &["-k", "mono"]] {
        let rest = ["-F", "1999", "--", &program, folder];
        let words = [&record[..], clock, &rest].concat();
        let recorded = run(&scratch, &words);
        if recorded.status != 0 {
            return skip(TEST, &recorded.stderr);
        }
        let hinted = recorded.stderr.contains("/jit-") && recorded.stderr.contains("-k mono");
        assert_eq!(hinted, clock.is_empty(), "{}", recorded.stderr);
        let words = ["script", "-F", "time,ip,sym,symoff"];
        let script = run(&scratch, &words);
        assert_eq!(phases(&script.stdout), PHASES, "{clock:?} {script:?}");
        // `perf inject --jit` needs the clock of the jitdump file, CLOCK_MONOTONIC.
        if let Some(perf) = perf.as_deref().filter(|_| !clock.is_empty()) {
            for injector in [perf, Path::new(RPERF)] {
                let theirs = injected(injector, perf, &scratch, &words);
                assert_eq!(script.stdout, theirs, "{injector:?}");
            }
        }
        let report = run(&scratch, &["report", "--stdio", "-s", "dso,sym"]);
        for name in PHASES {
            let rows = report.stdout.lines().map(str::trim_end);
            let mut rows = rows.filter(|row| row.ends_with(name));
            assert!(rows.next().is_some_and(|row| row.contains("[JIT] tid")));
            assert!(rows.next().is_none(), "one row each: {report:?}");
        }
    }
}

#[test]
fn the_perf_map_with_jit_symbols_is_named() {
    let scratch = Scratch::new();
    let program = program(&scratch, "jit");
    for (listed, is_named) in [("1", true), ("0", false)] {
        let record = ["record", "-o", "perf.data", "-e", "cpu-clock:u", "--"];
        // The program runs for 100 ms, and writes the perf map if `listed` is 1.
        let script = format!("echo $$; exec {program} 100 {listed}");
        let words = [&record[..], &["sh", "-c", &script]].concat();
        let recorded = run(&scratch, &words);
        assert_eq!(recorded.status, 0, "{}", recorded.stderr);
        let map = format!("/tmp/perf-{}.map", recorded.stdout.trim());
        let named = recorded
            .stderr
            .contains(&format!("{map} contains the symbols"));
        // The program leaves the file behind, and a later program may get this pid.
        let _ = std::fs::remove_file(map);
        assert_eq!(named, is_named, "{}", recorded.stderr);
    }
}
