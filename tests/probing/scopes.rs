//! What a name stands for where several functions and blocks have it, and where a function has returned.

use super::fired::{can_probe, check};
use super::programs::{probe, rperf};

const ROWS: &[(&str, &str)] = &[
    ("first n", "n={first.n}"),
    ("first:0 n", "n={first.n}"),
    ("first $params", "n={first.n}"),
    ("first n:b4@2/8", "n_b4_2_8={first.n#b}"),
    ("shadow n", "n={shadow.n}"),
    ("shadow $params", "n={shadow.n}"),
    (
        "known byte small minus n",
        "byte=200 small=0xc8 minus=-5 n={known.n}",
    ),
    ("known a=minus:s8 b=minus:s16", "a=-5 b=-5"),
    ("known sum", "sum={known.before}"),
    (
        "known%return sum ret=$retval:s32",
        "sum={after.sum} ret={after.ret}",
    ),
    (
        "wordy $params",
        "a_name_that_is_longer_than_what_={wordy.n}",
    ),
    (
        "wordy a_name_that_is_longer_than_what_kernels_take:u8",
        "a_name_that_is_longer_than_what_={wordy.n}",
    ),
    ("named n", "n={named.n}"),
    ("other_name n", "n={named.n}"),
    ("other_name", ""),
    ("getpid", ""),
    ("getpid%return ret=$retval:s32", "ret=*"),
];

#[test]
fn names_are_those_of_the_function_that_is_asked_for() {
    if can_probe("names_are_those_of_the_function_that_is_asked_for") {
        check("scopes", &[ROWS], "scopes");
    }
}

#[test]
fn variables_are_gone_where_a_function_returns() {
    for argument in ["n", "$params", "$vars", "byte", "sum $vars"] {
        let definition = format!("known%return {argument}");
        let outcome = probe(rperf(), &["-x", "./scopes", "-D", &definition]);
        assert_eq!(outcome.status, 254, "{definition}: {}", outcome.stdout);
        assert_eq!(outcome.stdout, "", "{definition}");
        let said = "local to the function, and gone where that returns; $retval";
        assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    }
    let listed = probe(rperf(), &["-x", "./scopes", "-V", "known%return"]);
    let said = "these are the variables at the entry;";
    assert!(listed.stderr.starts_with(said), "{}", listed.stderr);
}

/// What `-V` lists is what is added.
#[test]
fn listed_variables_are_those_of_the_function() {
    let listed = probe(rperf(), &["-x", "./scopes", "-V", "first"]);
    let names = listed.stdout.lines().filter(|line| line.ends_with("\tn"));
    assert_eq!(names.count(), 1, "{}", listed.stdout);
    let line = probe(rperf(), &["-x", "./scopes", "-D", "first $vars"]);
    assert!(line.stdout.contains(" n="), "{}", line.stdout);
    assert_eq!(line.stdout.matches(" n=").count(), 1, "{}", line.stdout);
}

/// What is elsewhere is marked so, and before what can be recorded, as in perf.
#[test]
fn ranges_tell_what_is_elsewhere() {
    let listed = probe(rperf(), &["-x", "./plain", "-V", "leaf", "--range"]).stdout;
    assert!(!listed.contains("[INV]"), "{listed}");
    let listed = probe(rperf(), &["-x", "./scopes", "-V", "first", "--range"]).stdout;
    let rows: Vec<&str> = listed
        .lines()
        .filter(|row| row.starts_with("\t\t["))
        .collect();
    let own = |row: &&&str| row.starts_with("\t\t[VAL]\tint\tn\t@<first+[");
    assert_eq!(rows.iter().filter(own).count(), 1, "{listed}");
    // The n of the function that is inlined there, and what that computes.
    let elsewhere = rows
        .iter()
        .take_while(|row| row.starts_with("\t\t[INV]\tint\t"));
    assert_eq!(elsewhere.count() + 1, rows.len(), "{listed}");
    assert!(rows.len() > 1, "{listed}");
}

/// The line of the declaration stands for the entry, once.
#[test]
fn line_zero_is_the_entry() {
    let shown = |definition| probe(rperf(), &["-x", "./scopes", "-D", definition]).stdout;
    let entry = shown("known n");
    assert!(entry.starts_with("p:probe_scopes/known /"), "{entry}");
    assert_eq!(shown("known:0 n"), entry);
}

/// The symbol table keeps one name of several; debug information knows one.
#[test]
fn aliases_are_names_of_functions() {
    let shown = |program, definition| {
        let outcome = probe(rperf(), &["-x", program, "-D", definition]);
        assert_eq!(outcome.status, 0, "{definition}: {}", outcome.stderr);
        outcome.stdout
    };
    for program in ["./scopes", "./scopes-bare"] {
        let (name, alias) = (
            shown(program, "named %di"),
            shown(program, "other_name %di"),
        );
        assert_eq!(alias, name.replace("/named ", "/other_name "), "{program}");
        let back = shown(program, "other_name%return");
        assert!(back.contains("/other_name__return /"), "{back}");
    }
    let listed = probe(rperf(), &["-x", "./scopes", "-V", "other_name"]);
    assert!(
        listed.stdout.ends_with("@<named+0>\n\t\tint\tn\n"),
        "{}",
        listed.stdout
    );
}

#[test]
fn indirect_functions_are_told() {
    let outcome = probe(rperf(), &["-x", "./scopes-bare", "-D", "chosen"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let said = "Warning: chosen is an indirect function:";
    assert!(outcome.stderr.starts_with(said), "{}", outcome.stderr);
    let other = probe(rperf(), &["-x", "./scopes-bare", "-D", "named"]);
    assert_eq!(other.stderr, "");
}
