//! Further options of `annotate`: files, the hottest instructions, another objdump, colours, limits, and invalid values.

use std::fs;

use super::record_program;
use crate::tools::Tool;

#[test]
fn files_colors_and_options_without_effect_show_the_same_code() {
    let test =
        "commands::annotate::options::files_colors_and_options_without_effect_show_the_same_code";
    let Some((tools, file)) = record_program(test) else {
        return;
    };
    let run = |words: &[&str]| {
        let line = [&["annotate", "-i", &file], words].concat();
        tools.outcome(Tool::Rperf, &line)
    };
    let plain = run(&["-s", "burn_deep"]);
    // The note that samples may skid, which -q omits.
    assert!(
        plain.stderr.contains("hits may belong to an earlier one"),
        "{plain:?}"
    );
    assert_eq!(run(&["-q", "-s", "burn_deep"]).stderr, "");

    // Object `stacks` is the recorded program; a file is written for each of its functions with samples.
    let written = run(&["-o", "listings", "-d", "stacks"]);
    assert_eq!(
        (written.status, written.stdout.as_str()),
        (0, ""),
        "{written:?}"
    );
    let listing = tools.path().join("listings/burn_deep.annotation");
    assert_eq!(
        fs::read_to_string(listing).expect("a listing"),
        plain.stdout
    );

    let painted = run(&["--stdio-color", "always", "-s", "burn_deep"]);
    let colors = ["\x1b[31m", "\x1b[32m", "\x1b[34m", "\x1b[35m", "\x1b[m"];
    let uncolored = colors.iter().fold(painted.stdout.clone(), |text, color| {
        text.replace(color, "")
    });
    assert_ne!(painted.stdout, plain.stdout);
    assert_eq!(uncolored, plain.stdout);

    // Options of perf that do not change this listing.
    let words = ["-m", "--skip-missing", "--skip-empty", "-s", "burn_deep"];
    assert_eq!(run(&words).stdout, plain.stdout);
}

/// `--hot` limits the number of instructions.
#[test]
fn another_objdump_shows_the_same_code_and_hot_limits_it() {
    let test = "commands::annotate::options::another_objdump_shows_the_same_code_and_hot_limits_it";
    let Some((tools, file)) = record_program(test) else {
        return;
    };
    let run = |words: &[&str]| {
        let line = [&["annotate", "-i", &file], words].concat();
        tools.outcome(Tool::Rperf, &line)
    };
    let [all, hot] = [run(&[]), run(&["--hot", "1"])].map(|outcome| {
        assert_eq!(outcome.status, 0, "{outcome:?}");
        outcome.stdout.lines().count()
    });
    assert!(hot < all, "{hot} {all}");

    let plain = run(&["-s", "burn_deep"]);
    let output = run(&["--objdump", "objdump", "-s", "burn_deep"]);
    assert_eq!(output.stdout, plain.stdout, "{output:?}");
    let none = run(&["--objdump", "/nonexistent/objdump", "-s", "burn_deep"]);
    assert_eq!(none.status, 1);
    assert!(
        none.stderr.contains("--objdump /nonexistent/objdump: "),
        "{none:?}"
    );
    // The program true(1) succeeds and prints nothing.
    let silent = run(&["--objdump", "true", "-s", "burn_deep"]);
    assert_eq!(silent.status, 1);
    assert!(
        silent.stderr.contains("it printed no code of burn_deep"),
        "{silent:?}"
    );
}

#[test]
fn invalid_and_unsupported_options_are_refused() {
    let test = "commands::annotate::options::invalid_and_unsupported_options_are_refused";
    let Some((tools, file)) = record_program(test) else {
        return;
    };
    for (words, message) in [
        (
            &["-n", "--show-total-period"][..],
            "switch `n' cannot be used with show-total-period",
        ),
        (&["--no-modules"], "symbols of modules are always read"),
        (&["--hot", "0"], "--hot 0: give at least 1"),
        (&["-M", "masm"], "-M masm: give att or intel"),
        (&["--percent-type", "all"], "unknown type 'all'"),
        (&["--percent-limit", "x"], "'x' is not a percentage"),
        (&["-s", "burn_deep", "main"], "more than one function given"),
        (&["--stdio-color", "red"], "expected always, never or auto"),
        (&["--data-type"], "--data-type"),
        (&["--itrace"], "--itrace"),
    ] {
        let line = [&["annotate", "-i", &file], words].concat();
        let refused = tools.outcome(Tool::Rperf, &line);
        assert_eq!(refused.status, 129, "{refused:?}");
        assert!(refused.stderr.contains(message), "{refused:?}");
    }
}

/// Hot functions are those above `--percent-limit`; `--hot` is not used. With `--percent-limit`, objects that cannot contain such
/// a function are not read. The listings of the hot functions must be the same as without a limit (0).
#[test]
fn hot_functions_are_selected_by_total_percentage() {
    let test = "commands::annotate::options::hot_functions_are_selected_by_total_percentage";
    let Some((tools, file)) = record_program(test) else {
        return;
    };
    let run = |limit| {
        let words = [
            "annotate",
            "--stdio",
            "--no-source",
            "-i",
            &file,
            "--percent-limit",
            limit,
        ];
        let outcome = tools.outcome(Tool::Rperf, &words);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        outcome.stdout
    };
    let (all, hot) = (run("0"), run("5"));
    // More than 10 lines: a listing, and not only its title.
    assert!(hot.lines().count() > 10 && hot.len() < all.len(), "{hot}");
    assert!(all.starts_with(&hot), "{hot}");
    assert_eq!(run("100"), "");
}
