//! Code made at run time that its runtime dumps: functions are known for as long as they are there.

use std::path::Path;
use std::process::Command;

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use crate::kernel::rperf_in;
use crate::tidy::root;

/// The functions that the program runs, one after the other, each at an address where another was before.
const PHASES: [&str; 4] = ["interpreted", "compiled", "another", "interpreted"];

fn done(scratch: &Scratch, words: &[&str]) -> Outcome {
    rperf_in(scratch, words).finish().expect("rperf starts")
}

/// The functions of a script's lines, runs of equal ones as one.
fn phases(text: &str) -> Vec<&str> {
    let symbols = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2));
    let names = symbols.filter_map(|symbol| symbol.split('+').next());
    let mut made: Vec<&str> = names.filter(|name| PHASES.contains(name)).collect();
    made.dedup();
    made
}

/// What perf shows once it has put the dump's functions into the recording.
fn injected(perf: &Path, scratch: &Scratch, words: &[&str]) -> String {
    let inject = ["inject", "--jit", "-i", "perf.data", "-o", "injected.data"];
    let words = [words, &["-i", "injected.data"]].concat();
    let outcomes = [&inject[..], &words].map(|words| {
        let run = Run::new(perf).args(words).within(scratch.path());
        let run = run.env("HOME", scratch.path());
        run.finish().expect("perf starts")
    });
    outcomes.map(|outcome| outcome.stdout).concat()
}

#[test]
fn functions_at_addresses_that_are_used_again_are_told_apart() {
    let scratch = Scratch::new();
    let program = scratch.path().join("jitdump");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-o"]).arg(&program);
    let source = root().join("tests/workloads/jitdump.c");
    let built = compiler.arg(source).status().expect("a C compiler");
    assert!(built.success());
    let folder = scratch.path().to_str().expect("a printable path");
    let program = program.to_str().expect("a printable path");
    let record = ["record", "-q", "-o", "perf.data", "-e", "cpu-clock:u"];
    for clock in [&[][..], &["-k", "mono"]] {
        let rate = ["-F", "1999", "--", program, folder];
        let words = [&record[..], clock, &rate].concat();
        let recorded = done(&scratch, &words);
        if recorded.status != 0 {
            return skip(
                "commands::jit::functions_at_addresses_that_are_used_again_are_told_apart",
                &recorded.stderr,
            );
        }
        let words = ["script", "-F", "time,ip,sym,symoff"];
        let script = done(&scratch, &words);
        assert_eq!(phases(&script.stdout), PHASES, "{clock:?} {script:?}");
        if let Some(perf) = real_perf().filter(|_| !clock.is_empty()) {
            assert_eq!(script.stdout, injected(&perf, &scratch, &words));
        }
        let report = done(&scratch, &["report", "--stdio", "-s", "dso,sym"]);
        for name in PHASES {
            let rows = report.stdout.lines().map(str::trim_end);
            let mut rows = rows.filter(|row| row.ends_with(name));
            assert!(rows.next().is_some_and(|row| row.contains("[JIT] tid")));
            assert!(rows.next().is_none(), "one row each: {report:?}");
        }
    }
}
