//! What can be probed, as both tools show it.

use rperf_testkit::{real_perf, skip};

use super::programs::{probe, rperf};

#[test]
fn lines_and_variables_are_those_of_perf() {
    let Some(perf) = real_perf() else {
        return skip("lines_and_variables_are_those_of_perf", "there is no perf");
    };
    for words in [
        &["-x", "./plain", "-L", "middle"] as &[&str],
        &["-x", "./plain", "-L", "leaf"],
        &["-x", "./plain", "-L", "leaf:2+3"],
        &["-x", "./plain", "-L", "leaf@probed.c:1-4"],
        &["-x", "./plain", "-L", "main"],
        &["-x", "./plain", "-L", "probed.c:30-36"],
        &["-x", "./plain", "-V", "leaf:5"],
        &["-x", "./plain", "-V", "main"],
        &["-x", "./plain", "-V", "mix"],
        &["-x", "./plain", "-V", "leaf%return"],
        &["-x", "./plain", "--externs", "-V", "middle"],
        &["-x", "./plain", "--range", "-V", "middle:4"],
        &["-x", "./optimised", "-V", "middle"],
        &["-x", "./optimised", "-V", "twice"],
        &["-x", "./apart", "-V", "middle"],
        &["-x", "./plain-rs", "-V", "weigh"],
    ] {
        let (theirs, ours) = (probe(&perf, words), probe(rperf(), words));
        assert_eq!(theirs.status, 0, "{words:?}: {}", theirs.stderr);
        assert_eq!(ours.stdout, theirs.stdout, "{words:?}: {}", ours.stderr);
    }
}

#[test]
fn ranges_tell_where_else_a_parameter_is() {
    let words = ["-x", "./optimised", "--range", "-V", "middle:4"];
    let shown = probe(rperf(), &words).stdout;
    let row = shown
        .lines()
        .find(|line| line.ends_with("]>") && line.contains("\tit\t"));
    assert!(
        row.is_some_and(|row| row.contains("[VAL]\tstruct item*\tit\t@<middle+[0-")),
        "{shown}"
    );
}

#[test]
fn functions_are_listed_without_data() {
    let listed = |words: &[&str]| {
        let outcome = probe(rperf(), words);
        assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
        outcome.stdout
    };
    let all = listed(&["-x", "./plain", "-F"]);
    let own = ["leaf", "main", "middle", "mix", "other", "twice"];
    let mut names = all.lines().filter(|name| own.contains(name));
    assert!(own.iter().all(|name| names.next() == Some(name)), "{all}");
    assert!(
        !all.contains("total") && !all.contains("completed"),
        "{all}"
    );
    assert_eq!(listed(&["-x", "./plain", "-F", "mi*"]), "middle\nmix\n");
    let filtered = listed(&["-x", "./plain", "-F", "--filter", "m* & !mi*"]);
    assert_eq!(filtered, "main\n");
    let refused = probe(rperf(), &["-x", "./plain", "-F", "--filter", "m* &"]);
    assert_eq!(refused.status, 129, "{}", refused.stdout);
    assert!(
        refused.stderr.contains("a pattern is missing"),
        "{}",
        refused.stderr
    );
}
