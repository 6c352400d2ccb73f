//! Variables: names that several functions and blocks share, constants, and what is known at a return. Functions with several
//! names, and indirect functions.

use super::programs::{probe, rperf};
use super::recorded_values::{can_probe, check};

/// Rows of [`check`] for the program `scopes`: a definition, and the expected values. `{first.n}` is what the program printed as
/// `n` after `first:`, and `{first.n#b}` its bits 2 to 5. `sum` is a global variable.
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
    // A function of the C library that the program calls.
    ("getpid", ""),
    ("getpid%return ret=$retval:s32", "ret=*"),
];

#[test]
fn variables_belong_to_the_probed_function() {
    if can_probe("variables_belong_to_the_probed_function") {
        check("scopes", &[ROWS], "scopes");
    }
}

#[test]
fn local_variables_are_unavailable_at_return() {
    for argument in ["n", "$params", "$vars", "byte", "sum $vars"] {
        let definition = format!("known%return {argument}");
        let outcome = probe(rperf(), &["-x", "./scopes", "-D", &definition]);
        assert_eq!(outcome.status, 254, "{definition}: {}", outcome.stdout);
        assert_eq!(outcome.stdout, "", "{definition}");
        let message = "local to the function and not available after its return; use $retval";
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    }
    let listed = probe(rperf(), &["-x", "./scopes", "-V", "known%return"]);
    let message = "these are the variables at the entry of the function;";
    assert!(listed.stderr.starts_with(message), "{}", listed.stderr);
}

/// `-V` lists the variables that `$vars` adds.
#[test]
fn only_variables_of_the_function_are_listed() {
    let listed = probe(rperf(), &["-x", "./scopes", "-V", "first"]);
    let names = listed.stdout.lines().filter(|line| line.ends_with("\tn"));
    assert_eq!(names.count(), 1, "{}", listed.stdout);
    let line = probe(rperf(), &["-x", "./scopes", "-D", "first $vars"]);
    assert_eq!(line.stdout.matches(" n=").count(), 1, "{}", line.stdout);
}

/// Unavailable variables are marked, and listed before available ones, as in perf.
#[test]
fn ranges_list_variables_valid_elsewhere() {
    let listed = probe(rperf(), &["-x", "./plain", "-V", "leaf", "--range"]).stdout;
    assert!(!listed.contains("[INV]"), "{listed}");
    let listed = probe(rperf(), &["-x", "./scopes", "-V", "first", "--range"]).stdout;
    let rows: Vec<&str> = listed
        .lines()
        .filter(|row| row.starts_with("\t\t["))
        .collect();
    let is_available = |row: &&&str| row.starts_with("\t\t[VAL]\tint\tn\t@<first+[");
    assert_eq!(rows.iter().filter(is_available).count(), 1, "{listed}");
    // All other rows come before: `n` and `t` of the inlined function `inner`.
    let elsewhere = rows
        .iter()
        .take_while(|row| row.starts_with("\t\t[INV]\tint\t"));
    assert_eq!(elsewhere.count() + 1, rows.len(), "{listed}");
    assert!(rows.len() > 1, "{listed}");
}

/// The line of the declaration is probed once, at the function entry.
#[test]
fn line_zero_is_the_entry() {
    let define = |definition| probe(rperf(), &["-x", "./scopes", "-D", definition]).stdout;
    let entry = define("known n");
    assert!(entry.starts_with("p:probe_scopes/known /"), "{entry}");
    assert_eq!(define("known:0 n"), entry);
}

/// A function with several names is found by each of them, although debug information has only one.
#[test]
fn aliases_are_names_of_functions() {
    let define = |program, definition| {
        let outcome = probe(rperf(), &["-x", program, "-D", definition]);
        assert_eq!(outcome.status, 0, "{definition}: {}", outcome.stderr);
        outcome.stdout
    };
    for program in ["./scopes", "./scopes-nodebug"] {
        let (of_name, of_alias) = (
            define(program, "named %di"),
            define(program, "other_name %di"),
        );
        let expected = of_name.replace("/named ", "/other_name ");
        assert_eq!(of_alias, expected, "{program}");
        let at_return = define(program, "other_name%return");
        assert!(at_return.contains("/other_name__return /"), "{at_return}");
    }
    let listed = probe(rperf(), &["-x", "./scopes", "-V", "other_name"]);
    assert!(
        listed.stdout.ends_with("@<named+0>\n\t\tint\tn\n"),
        "{}",
        listed.stdout
    );
}

#[test]
fn indirect_functions_are_reported() {
    let outcome = probe(rperf(), &["-x", "./scopes-nodebug", "-D", "chosen"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let message = "Warning: chosen is an indirect function:";
    assert!(outcome.stderr.starts_with(message), "{}", outcome.stderr);
    let other = probe(rperf(), &["-x", "./scopes-nodebug", "-D", "named"]);
    assert_eq!(other.stderr, "");
}
