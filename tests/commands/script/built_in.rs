//! The built-in versions of perf's scripts, and installed scripts.

use rperf_testkit::Outcome;

use crate::commands::outcome;
use crate::tidy::root;

/// The path of a recording with callchains; all its samples are of tasks named `load`.
fn recording() -> String {
    let path = root().join("tests/fixtures/x86_64/cycles.data");
    path.to_string_lossy().into_owned()
}

#[track_caller]
fn printed(words: &[&str]) -> String {
    let Outcome { status, stdout, .. } = outcome(words);
    assert_eq!(status, 0, "{words:?}");
    stdout
}

#[test]
fn scripts_are_listed_as_perf_lists_them() {
    let listed = printed(&["script", "-l"]);
    assert!(listed.starts_with("List of available trace scripts:\n"));
    let names = listed
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.collect();
    let first_names = [
        "compaction-times",
        "export-to-sqlite",
        "failed-syscalls",
        "failed-syscalls-by-pid",
    ];
    assert!(names.starts_with(&first_names), "{names:?}");
    // These names are short enough that their descriptions begin in one column.
    for line in listed.lines().skip(1).take(first_names.len()) {
        let line = line.as_bytes();
        assert!(line[38] == b' ' && line[39] != b' ', "{listed}");
    }
}

#[test]
fn stackcollapse_matches_flamegraph() {
    let file = recording();
    let folded = printed(&["flamegraph", "--folded", "-f", "-i", &file]);
    assert!(folded.lines().count() > 5, "{folded}");
    let options_first = ["script", "-f", "-i", &file, "report", "stackcollapse"];
    assert_eq!(printed(&options_first), folded);
    let options_last = ["script", "report", "stackcollapse", "-f", "-i", &file];
    assert_eq!(printed(&options_last), folded);
    let words = [&options_last[..], &["--kernel", "--no-comm"]].concat();
    let marked = printed(&words);
    assert!(
        marked.contains("_[k]") && !marked.contains("load;"),
        "{marked}"
    );
}

#[test]
fn flamegraph_json_has_the_weights_of_folded_stacks() {
    let file = recording();
    // The first `-f` is `--force`, the second, an option of the script, is its output format.
    let words = [
        "script",
        "-f",
        "-i",
        &file,
        "report",
        "flamegraph",
        "-f",
        "json",
        "-o",
        "-",
    ];
    let tree: serde_json::Value = serde_json::from_str(&printed(&words)).expect("JSON");
    // `v` is the weight of a node without its callees (`c`).
    fn sum(tree: &serde_json::Value) -> u64 {
        let callees = tree["c"].as_array().expect("callees");
        tree["v"].as_u64().expect("a weight") + callees.iter().map(sum).sum::<u64>()
    }
    let folded = printed(&["flamegraph", "--folded", "-f", "-i", &file]);
    let weights = folded.lines().filter_map(|line| line.rsplit_once(' '));
    let all: u64 = weights
        .map(|(_, weight)| weight.parse::<u64>().expect("a weight"))
        .sum();
    assert_eq!(sum(&tree), all);
    assert_eq!((&tree["n"], &tree["l"]), (&"all".into(), &"root".into()));
}

#[test]
fn unusable_words_are_refused_with_an_explanation() {
    for (words, message) in [
        (&["report", "flamgraph"][..], "did you mean 'flamegraph'?"),
        (
            &["stackcollapse"],
            "'rperf script report stackcollapse' reads a recording",
        ),
        (&["comm,ip"], "-F comm,ip prints these fields"),
        (
            &["-i", "my.data", "syscall-counts"],
            "script syscall-counts: -i names a recording, but the script makes its own",
        ),
        (&["my.data"], "-i my.data reads this recording"),
    ] {
        let refused = outcome(&[&["script"], words].concat());
        assert_eq!(
            (refused.status, refused.stdout.as_str()),
            (129, ""),
            "{words:?}"
        );
        assert!(refused.stderr.contains(message), "{refused:?}");
    }
}

#[test]
fn the_option_a_is_accepted_only_to_record_for_a_script() {
    let file = recording();
    let report = ["script", "-a", "-i", &file, "report", "stackcollapse"];
    for words in [&["script", "-a", "-i", &file][..], &report] {
        let refused = outcome(words);
        assert_eq!((refused.status, &*refused.stdout), (129, ""), "{words:?}");
        assert!(refused.stderr.starts_with("-a: "), "{refused:?}");
    }
    if !crate::kernel::is_root() {
        return rperf_testkit::skip(
            "commands::script::built_in::the_option_a_is_accepted_only_to_record_for_a_script",
            "system-wide recording needs root",
        );
    }
    let scratch = rperf_testkit::Scratch::new();
    let words = [
        "script",
        "-a",
        "record",
        "stackcollapse",
        "-q",
        "-e",
        "cpu-clock",
        "-o",
        "all.data",
        "true",
    ];
    let recorded = crate::kernel::rperf_in(&scratch, &words).finish();
    let recorded = recorded.expect("rperf starts");
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let words = ["script", "-F", "cpu,event", "-i", "all.data"];
    let script = crate::kernel::rperf_in(&scratch, &words).finish();
    assert_eq!(
        script.expect("rperf starts").status,
        0,
        "samples have the CPU"
    );
}

#[test]
fn installed_scripts_are_listed_and_run() {
    let scratch = rperf_testkit::Scratch::new();
    std::fs::create_dir_all(scratch.path().join("scripts/shell/bin")).expect("a folder");
    // `perf` in a script is a shell function that calls rperf and passes `-f` and `-i` on to it.
    for (name, text) in [
        (
            "own-report",
            "#!/bin/bash\n# description: prints its words\n# args: [comm]\necho \"$0\" \"$@\"; perf script -F comm | sort | uniq",
        ),
        ("own-record", "#!/bin/sh\nperf record -e cpu-clock $@"),
    ] {
        let path = format!("scripts/shell/bin/{name}");
        scratch.write(&path, text.as_bytes()).expect("a script");
    }
    let run = |words: &[&str]| {
        let run = rperf_testkit::Run::new(env!("CARGO_BIN_EXE_rperf")).args(words);
        let run = run.within(scratch.path());
        let run = run.env("PERF_EXEC_PATH", scratch.path());
        run.finish().expect("rperf starts")
    };
    let listed = run(&["script", "-l"]).stdout;
    let line = "  own [comm]                           prints its words";
    assert!(
        listed.lines().any(|listed_line| listed_line == line),
        "{listed}"
    );
    let file = recording();
    for words in [
        &["script", "-f", "report", "own", "a b", "-i", &file][..],
        &["script", "-f", "-i", &file, "report", "own", "a b"],
    ] {
        let report = run(words);
        assert_eq!(report.status, 0, "{}", report.stderr);
        // The script's `$0` is its name, not its path.
        let printed_words: Vec<&str> = report.stdout.split_whitespace().collect();
        assert_eq!(printed_words, ["own", "a", "b", "load"], "{words:?}");
    }
}

#[test]
fn unknown_scripts_are_refused_with_a_hint() {
    for (words, hint) in [
        (
            &["nosuch"][..],
            "-i nosuch reads this recording; --list lists the scripts",
        ),
        (
            &["report", "sctopp"],
            "did you mean 'sctop'? --list lists the scripts",
        ),
        (
            &["comm,ip"],
            "-F comm,ip prints these fields; -f is --force",
        ),
    ] {
        let refused = outcome(&[&["script"], words].concat());
        let word = words[words.len() - 1];
        let message = format!("Couldn't find script '{word}'\nhint: {hint}\n");
        assert_eq!((refused.status, refused.stderr), (129, message));
    }
}
