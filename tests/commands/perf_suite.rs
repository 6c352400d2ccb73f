//! `tests/perf-suite.sh`: some quick scripts of the test suite of the installed Linux perf, with rperf in place of perf; and how
//! the results of both are judged.

use std::path::Path;

use rperf_testkit::{Run, Scratch, real_perf, skip};

use crate::tidy::root;

/// Scripts that pass with perf 6.1.
const SCRIPTS: &str = "stat+csv_summary.sh stat.sh stat+csv_output.sh";

#[test]
fn quick_scripts_of_perf_succeed() {
    const TEST: &str = "commands::perf_suite::quick_scripts_of_perf_succeed";
    let folders = [
        "/usr/libexec/perf-core/tests/shell",
        "/usr/lib/perf-core/tests/shell",
    ];
    let is_installed = folders.iter().any(|folder| Path::new(folder).exists());
    if real_perf().is_none() || !is_installed {
        return skip(TEST, "needs Linux perf with its tests");
    }
    let scratch = Scratch::new();
    let script = root().join("tests/perf-suite.sh");
    let run = Run::new("sh").args([script.as_os_str(), env!("CARGO_BIN_EXE_rperf").as_ref()]);
    let run = run.env("OUT", scratch.path()).env("SCRIPTS", SCRIPTS);
    let outcome = run.within(scratch.path()).finish().expect("sh starts");
    assert_eq!(outcome.status, 0, "{}{}", outcome.stdout, outcome.stderr);
    for name in SCRIPTS.split(' ') {
        let mut lines = outcome.stdout.lines();
        let line = lines.find(|line| line.starts_with(name)).expect("a line");
        // The result of perf, then that of rperf.
        let results: Vec<&str> = line.split_whitespace().skip(1).collect();
        assert_eq!(results.get(1), Some(&"Ok"), "{line}");
    }
}

#[test]
fn a_worse_result_fails_unless_listed() {
    let scratch = Scratch::new();
    let write = |name: &str, text: &str| {
        let path = scratch.write(name, text).expect("a file");
        let executable = Run::new("chmod").args(["+x".as_ref(), path.as_os_str()]);
        assert_eq!(executable.finish().expect("chmod starts").status, 0);
        path
    };
    // Fake tools: the fake rperf fails if its second argument is `fails`, the fake perf never does. The suite runs each script
    // twice: once with each tool as the command `perf`. The status of the script is that of the tool.
    let perf = write(
        "perf",
        "#!/bin/sh\n[ $1 = --version ] && echo perf version 6.1.5\nexit 0\n",
    );
    let rperf = write("rperf", "#!/bin/sh\n[ $2 = fails ] && exit 1\nexit 0\n");
    write("daemon.sh", "#!/bin/sh\nexec perf script fails\n");
    write("works.sh", "#!/bin/sh\nexec perf script works\n");
    let suite = |scripts: &str| {
        let script = root().join("tests/perf-suite.sh");
        // The suite, its rperf, the folder of the scripts, and its perf.
        let words = [script.as_path(), &rperf, scratch.path(), &perf];
        let run = Run::new("sh")
            .args(words)
            .env("OUT", scratch.path().join("out"));
        run.env("SCRIPTS", scripts).finish().expect("sh starts")
    };
    // The failure of daemon.sh is listed in tests/perf-suite.txt for 6.1, the release of the fake perf.
    let listed = suite("daemon.sh works.sh");
    assert_eq!(listed.status, 0, "{}", listed.stderr);
    assert!(
        listed
            .stdout
            .contains("FAILED   the command daemon is not built\n"),
        "{}",
        listed.stdout
    );
    write("other.sh", "#!/bin/sh\nexec perf script fails\n");
    let worse = suite("works.sh other.sh");
    assert_eq!(
        (worse.status, worse.stderr.as_str()),
        (1, "1 scripts are worse with rperf\n")
    );
    assert!(worse.stdout.contains("WORSE: see "), "{}", worse.stdout);
    // There is no such script.
    assert_eq!(suite("nosuch.sh").status, 2);
}
