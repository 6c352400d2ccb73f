//! `rperf test`: the tests of this machine and of the program, their selection and their output.

use std::fs;

use rperf_testkit::{Outcome, Scratch};

use crate::kernel::rperf_in;

/// Runs `rperf test` with words separated by blanks.
fn done(scratch: &Scratch, line: &str) -> Outcome {
    let words: Vec<&str> = line.split_whitespace().collect();
    let run = rperf_in(scratch, &words);
    run.finish().expect("rperf starts")
}

#[test]
fn nothing_fails_on_this_machine() {
    let scratch = Scratch::new();
    let outcome = done(&scratch, "test -jresults.xml");
    assert_eq!(outcome.status, 0, "{}{}", outcome.stdout, outcome.stderr);
    let listed = done(&scratch, "test list").stdout;
    assert_eq!(outcome.stdout.lines().count(), listed.lines().count());
    for (line, name) in outcome.stdout.lines().zip(listed.lines()) {
        let result = line.strip_prefix(name).expect("a line for each test");
        let result = result.trim_start().strip_prefix(": ").expect("a result");
        let is_skip = result.starts_with("Skip (") && result.ends_with(')');
        assert!(result == "Ok" || is_skip, "{line}");
    }
    // Whatever the machine allows: these need nothing.
    for name in ["Kernel and processor", "Symbols of this program"] {
        let mut lines = outcome.stdout.lines();
        assert!(lines.any(|line| line.contains(name) && line.ends_with(": Ok")));
    }
    let xml = fs::read_to_string(scratch.path().join("results.xml")).expect("the results");
    let cases = xml.matches("<testcase ").count();
    assert_eq!(cases, listed.lines().count(), "{xml}");
}

#[test]
fn tests_are_selected_by_number_and_name() {
    let scratch = Scratch::new();
    let names = done(&scratch, "test list SYMBOLS").stdout;
    assert_eq!(
        names,
        " 16: Symbols of the kernel\n 17: Symbols of this program\n"
    );
    let results = done(&scratch, "test -S -s 1 -r 2 1 util").stdout;
    let skipped = "  1: Kernel and processor                 : Skip (user override)\n";
    let ok = " 18: Utility programs                     : Ok\n";
    assert_eq!(results, [skipped, skipped, ok, ok].concat());
}

#[test]
fn symbols_are_listed_for_scripts() {
    let scratch = Scratch::new();
    let listed = done(&scratch, "test -vv -F Symbols");
    assert_eq!(listed.status, 0);
    for name in [
        "noploop",
        "test_loop",
        "brstack_bench",
        "workload_datasym_buf1",
    ] {
        let mut lines = listed.stdout.lines();
        let end = format!(" g {name}");
        assert!(lines.any(|line| line.ends_with(&end)), "{name}");
    }
    let (before, after) = listed
        .stdout
        .split_once("--- start ---\n")
        .expect("details");
    assert!(
        before.starts_with(" 16: Symbols of the kernel "),
        "{before}"
    );
    assert!(after.contains("---- end ----\n 16: "), "details end");
}

#[test]
fn a_failure_shows_details_and_decides_the_status() {
    let scratch = Scratch::new();
    let run = rperf_in(&scratch, &["test", "19", "1"]);
    let run = run.env("TMPDIR", scratch.path().join("nosuch"));
    let outcome = run.finish().expect("rperf starts");
    assert_eq!(outcome.status, 1, "{}", outcome.stdout);
    let failed = " 19: Record and report                    : FAILED! (";
    assert!(outcome.stdout.contains(failed), "{}", outcome.stdout);
    assert!(
        outcome
            .stdout
            .contains("nosuch: no temporary folder: No such file"),
        "{}",
        outcome.stdout
    );
    let hint = "1 of 2 tests failed\nhint: report the output of 'rperf test -v 1 2 19'\n";
    assert_eq!(outcome.stderr, hint);
}

#[test]
fn unknown_tests_and_conflicts_are_refused() {
    let scratch = Scratch::new();
    for (line, message) in [
        (
            "test 99",
            "'99' is neither the number of a test nor a part of a name\ntests:\n  1: Kernel",
        ),
        (
            "test list nosuch",
            "'nosuch' is neither the number of a test nor a part of a name\ntests:\n",
        ),
        (
            "test -s 1,x",
            "--skip: 'x' is not the number of a test\nhint: give numbers from 1 to ",
        ),
        (
            "test -S -w noploop",
            "--sequential and -w cannot be combined\n",
        ),
        (
            "test --record-ctl fifo:x",
            "--record-ctl needs a workload: -w\n",
        ),
    ] {
        let outcome = done(&scratch, line);
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (129, ""),
            "{line}"
        );
        assert!(
            outcome.stderr.starts_with(message),
            "{line}: {}",
            outcome.stderr
        );
    }
}
