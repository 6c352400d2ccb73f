//! Where the commands that name addresses look for symbols, and what they say when these are not there.

use std::fs;
use std::path::Path;

use rperf_testkit::{Outcome, Run, Scratch, skip};

use crate::kernel::{BUSY, rperf_in};

/// Without the build-id cache that the recording filled.
fn elsewhere(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = Run::new(env!("CARGO_BIN_EXE_rperf")).args(words);
    let home = scratch.path().join("elsewhere");
    let run = run.within(scratch.path()).env("HOME", home);
    run.finish().expect("rperf starts")
}

#[test]
fn a_program_that_was_replaced_is_said() {
    let scratch = Scratch::new();
    let program = scratch.path().join("program");
    fs::copy("/bin/sh", &program).expect("a copy of the shell");
    let shell = program.to_str().expect("a printable path");
    let words = [
        "record",
        "-q",
        "-o",
        "perf.data",
        "-e",
        "cpu-clock:u",
        "-F",
        "999",
        "--",
        shell,
        "-c",
        BUSY,
    ];
    let recorded = rperf_in(&scratch, &words).finish().expect("rperf starts");
    if recorded.status != 0 {
        return skip(
            "commands::symbols::a_program_that_was_replaced_is_said",
            &recorded.stderr,
        );
    }
    let warned = |outcome: &Outcome| {
        let mut lines = outcome.stderr.lines();
        lines.any(|line| line.contains(shell) && line.contains("its build-id is"))
    };
    for command in ["report", "script"] {
        let outcome = elsewhere(&scratch, &[command]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(!warned(&outcome), "{outcome:?}");
    }
    let other = ["/bin/true", "/bin/ls"].into_iter().map(Path::new);
    let other = other
        .into_iter()
        .find(|path| path.exists())
        .expect("another program");
    fs::remove_file(&program).expect("the program is removed");
    fs::copy(other, &program).expect("another takes its place");
    for command in ["report", "script"] {
        let outcome = elsewhere(&scratch, &[command]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(warned(&outcome), "{outcome:?}");
    }
    let kept = elsewhere(&scratch, &["buildid-cache", "--add", "/bin/sh"]);
    assert_eq!(kept.status, 0, "{kept:?}");
    let outcome = elsewhere(&scratch, &["report"]);
    assert!(!warned(&outcome), "the cache has it: {outcome:?}");
}
