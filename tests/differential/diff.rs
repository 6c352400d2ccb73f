//! `diff` on recordings of two variants of one program: the same text as perf's.

use std::process::Command;

use rperf_testkit::skip;

use super::{Tool, Tools, assert_alike, difference};

/// Functions of the program and the length of their loops in the old and in the new variant; with 0, the function does nothing.
const FUNCTIONS: &[(&str, u32, u32)] = &[
    ("alpha", 50_000, 30_000),
    ("beta", 30_000, 52_000),
    ("steady", 10_000, 10_500),
    ("small", 3_000, 2_900),
    ("gone", 9_000, 0),
    ("fresh", 0, 9_000),
];

/// Arguments of `diff` with two recordings, and with three.
const LINES: &[&[&str]] = &[
    &["old.data", "new.data"],
    &["new.data", "old.data"],
    &["old.data", "new.data", "again.data"],
    &["old.data", "old.data"],
    &["-c", "delta", "-F", "-p", "old.data", "new.data"],
    &[
        "-c",
        "ratio",
        "-F",
        "-p",
        "old.data",
        "new.data",
        "again.data",
    ],
    &[
        "-c",
        "ratio",
        "-o",
        "2",
        "old.data",
        "new.data",
        "again.data",
    ],
    &["-c", "wdiff:2,-1", "-F", "old.data", "new.data"],
    &[
        "-c",
        "wdiff:1,2",
        "-p",
        "old.data",
        "new.data",
        "again.data",
    ],
    &["-o", "0", "old.data", "new.data"],
    &["-q", "-b", "-F", "old.data", "new.data"],
    &["-b", "-d", "work", "old.data", "new.data"],
    &[
        "-b",
        "-d",
        "work",
        "--percentage",
        "relative",
        "old.data",
        "new.data",
    ],
    &["-S", "alpha,beta", "old.data", "new.data"],
    &["-C", "work", "-s", "comm,dso", "old.data", "new.data"],
    &["-s", "symbol", "old.data", "new.data"],
    &["-s", "pid", "old.data", "new.data"],
    &["-s", "+comm", "old.data", "new.data"],
    &["--time", "0%-10%,50%-60%", "old.data", "new.data"],
    // A time slice of each file.
    &["--time", "0%-50%:50%-100%", "old.data", "new.data"],
    &["-m", "-o", "1", "old.data", "new.data"],
    &[
        "--percentage",
        "relative",
        "-C",
        "work",
        "old.data",
        "new.data",
    ],
    &["--symfs", "/", "-v", "old.data", "new.data"],
    // All code of an object without symbols is one row.
    &["bare.data", "new.data"],
    &["new.data", "bare.data"],
    &["-s", "symbol", "bare.data", "bare-new.data"],
    // Several events, and events that only one file has.
    &["two.data", "two.data", "new.data"],
    &["two.data", "new.data"],
    &["-b", "two.data", "new.data"],
    &["user.data", "old.data"],
    &["-D", "user.data", "user.data"],
];

/// Compiles both variants, with symbols and without; `None` without a compiler.
fn build(tools: &Tools) -> Option<()> {
    let functions = FUNCTIONS.iter().map(|(name, ..)| {
        format!("__attribute__((noinline)) void {name}(long k) {{ for (long i = 0; i < k; i++) sum += i * i; }}\n")
    });
    let calls = |new: bool| -> String {
        let calls = FUNCTIONS
            .iter()
            .map(|(name, before, after)| format!("{name}({}); ", if new { after } else { before }));
        calls.collect()
    };
    for (name, new, stripped) in [
        ("old", false, false),
        ("new", true, false),
        ("bare", false, true),
        ("bare-new", true, true),
    ] {
        let text = format!(
            "#include <stdlib.h>\nvolatile unsigned long sum;\n{}int main(int n, char **w) \
             {{ for (long i = n > 1 ? atol(w[1]) : 1; i > 0; i--) {{ {} }} }}\n",
            functions.clone().collect::<String>(),
            calls(new)
        );
        let folder = tools.path().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("work.c"), text).expect("a source file");
        let flags: &[&str] = match stripped {
            true => &["-O1", "-s", "-Wl,--build-id=none"],
            false => &["-O1"],
        };
        let compiled = Command::new("cc")
            .args(flags)
            .args(["work.c", "-o", "work"])
            .current_dir(folder)
            .status();
        assert!(compiled.ok()?.success(), "{name} can't be compiled");
    }
    Some(())
}

#[test]
fn perf_and_rperf_compare_alike() {
    let test = "differential::diff::perf_and_rperf_compare_alike";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    if build(&tools).is_none() {
        return skip(test, "there is no C compiler");
    }
    for (file, events, folder) in [
        ("old.data", "cpu-clock", "old"),
        ("new.data", "cpu-clock", "new"),
        ("again.data", "cpu-clock", "new"),
        ("bare.data", "cpu-clock", "bare"),
        ("bare-new.data", "cpu-clock", "bare-new"),
        ("two.data", "cpu-clock,page-faults", "old"),
        ("user.data", "cpu-clock:u", "old"),
    ] {
        let program = format!("./{folder}/work");
        let line = [
            "record", "-q", "-F", "997", "-e", events, "-o", file, "--", &program, "1500",
        ];
        let outcome = tools.outcome(Tool::Perf, &line);
        assert_eq!(outcome.status, 0, "{line:?}: {outcome:?}");
    }
    let differences = LINES.iter().filter_map(|words| {
        let words = [&["diff"], *words].concat();
        // Nothing on standard input.
        let [perf, rperf] = tools.outcomes(&words, b"");
        let both_succeeded = (perf.status, rperf.status) == (0, 0);
        let text = difference(&perf.stdout, &rperf.stdout);
        let text = text.or_else(|| (!both_succeeded).then(|| rperf.stderr.clone()));
        text.map(|text| format!("{words:?}: {text}"))
    });
    assert_alike(&differences.collect::<Vec<_>>());
}
