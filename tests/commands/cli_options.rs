//! perf's option grammar: refused options and arguments, with message and exit status.

use super::{assert_refused, outcome};

const RECORD_USAGE: &str = concat!(
    " Usage: rperf record [<options>] [<command>]\n",
    "    or: rperf record [<options>] -- <command> [<options>]\n",
);
const RECORD_HINT: &str = "hint: 'rperf record -h' lists the options\n";

#[test]
fn an_ambiguous_prefix_names_the_last_two_matches_as_perf_does() {
    let refused = outcome(&["record", "--all"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (129, ""));
    assert_eq!(
        refused.stderr.lines().next(),
        Some(" Error: Ambiguous option: all (could be --all-kernel or --all-user)")
    );
    for (words, text) in [
        (
            ["record", "--switch"],
            "switch (could be --switch-output-event or --switch-max-files)",
        ),
        (
            ["record", "--no-b"],
            "no-b (could be --no-buildid-all or --no-buildid-mmap)",
        ),
        (
            ["report", "--show"],
            "show (could be --show-ref-call-graph or --show-on-off-events)",
        ),
        (
            ["report", "--switch"],
            "switch (could be --switch-on or --switch-off)",
        ),
        (
            ["record", "--s"],
            "s (could be --switch-max-files or --synth)",
        ),
    ] {
        let first = outcome(&words).stderr;
        let first = first.lines().next().unwrap_or_default();
        assert_eq!(first, format!(" Error: Ambiguous option: {text}"));
    }
}

#[test]
fn an_unknown_option_names_the_nearest_in_four_lines() {
    let line = "  Error: unknown option 'outptu'; did you mean --output?\n";
    assert_refused(
        &["record", "--outptu", "x"],
        129,
        &format!("{line}{RECORD_USAGE}{RECORD_HINT}"),
    );
    let negative = outcome(&["report", "--no-childern"]).stderr;
    let line = "  Error: unknown option 'no-childern'; did you mean --no-children?\n";
    assert!(negative.starts_with(line), "{negative}");
    let far = outcome(&["report", "--xyzzyx"]).stderr;
    assert_eq!(far.lines().next(), Some("  Error: unknown option 'xyzzyx'"));
    assert!(far.lines().count() <= 4, "{far}");
    assert_refused(
        &["record", "-aQ"],
        129,
        &format!("  Error: unknown switch 'Q'\n{RECORD_USAGE}{RECORD_HINT}"),
    );
}

#[test]
fn missing_surplus_and_invalid_values_are_refused() {
    for (words, line) in [
        (
            &["record", "-F"] as &[&str],
            " Error: switch `F' requires a value",
        ),
        (
            &["record", "--freq"],
            " Error: option `freq' requires a value",
        ),
        (
            &["record", "--all-cpus=3"],
            " Error: option `all-cpus' takes no value",
        ),
        (
            &["record", "-c", "many", "true"],
            " Error: option `count' expects a numerical value: 'many'",
        ),
    ] {
        assert_refused(words, 129, &format!("{line}\n{RECORD_USAGE}{RECORD_HINT}"));
    }
}

#[test]
fn unsupported_perf_options_are_refused_by_name() {
    for words in [
        &["record", "--vmlinux", "true"] as &[&str],
        &["record", "--debuginfod", "true"],
        &["annotate", "--itrace"],
        &["top", "--branch-history"],
        &["script", "--xed"],
    ] {
        let refused = outcome(words);
        assert_eq!(
            (refused.status, refused.stdout.as_str()),
            (129, ""),
            "{words:?}"
        );
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        let start = format!("rperf {}: --", words[0]);
        assert!(
            refused.stderr.starts_with(&start) && refused.stderr.contains(" is not supported yet"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn a_list_with_a_space_is_refused() {
    for (letter, name) in [("-p", "pid"), ("-t", "tid"), ("-C", "cpu")] {
        let refused = outcome(&["record", letter, "1,", "2"]);
        let line = format!(
            " Error: option `{name}' needs a number after the last comma; write the list without spaces: '1,'"
        );
        assert_eq!(
            (refused.status, refused.stderr.lines().next()),
            (129, Some(line.as_str()))
        );
    }
}

#[test]
fn old_spellings_are_explained() {
    let line = "'lbr' after -g is taken as the command to run, and there is no such program\n";
    let hint = "hint: use `--call-graph lbr`\n";
    assert_refused(
        &["record", "-g", "lbr", "sleep", "1"],
        129,
        &format!("{line}{hint}"),
    );
    let fields = outcome(&["script", "-f", "comm,tid"]);
    assert_eq!(fields.status, 129);
    assert!(
        fields
            .stderr
            .contains("hint: -F comm,tid prints these fields; -f is --force\n"),
        "{}",
        fields.stderr
    );
}

#[test]
fn options_after_arguments_are_checked_if_the_command_runs_no_workload() {
    let words = &["help", "record"];
    assert_eq!(outcome(words).status, 0);
    let unknown = outcome(&["help", "record", "--nosuch"]);
    assert_eq!(
        unknown.stderr.lines().next(),
        Some("  Error: unknown option 'nosuch'")
    );
}

#[test]
fn help_of_a_collection_lists_its_benchmarks() {
    let help = outcome(&["bench", "mem", "-h"]);
    assert_eq!(help, outcome(&["bench", "mem"]));
    assert!(help.stdout.contains("memcpy: "), "{help:?}");
}
