//! What else `annotate` is asked for: files, the hottest instructions, another program's words, colours.

use std::fs;

use super::super::beside::Tool;
use super::recorded;

#[test]
fn files_colors_and_another_programs_words() {
    let test = "commands::annotate::options::files_colors_and_another_programs_words";
    let Some((beside, file)) = recorded(test) else {
        return;
    };
    let run = |words: &[&str]| {
        let line = [&["annotate", "-i", &file], words].concat();
        beside.outcome(Tool::Rperf, &line)
    };
    let plain = run(&["-s", "burn_deep"]);
    assert!(
        plain.stderr.contains("hits may belong to the one before"),
        "{plain:?}"
    );
    assert_eq!(run(&["-q", "-s", "burn_deep"]).stderr, "");

    let written = run(&["-o", "listings", "-d", "stacks"]);
    assert_eq!(
        (written.status, written.stdout.as_str()),
        (0, ""),
        "{written:?}"
    );
    let listing = beside.path().join("listings/burn_deep.annotation");
    assert_eq!(
        fs::read_to_string(listing).expect("a listing"),
        plain.stdout
    );

    let painted = run(&["--stdio-color", "always", "-s", "burn_deep"]);
    let uncolored = ["\x1b[31m", "\x1b[32m", "\x1b[34m", "\x1b[35m", "\x1b[m"];
    let uncolored = uncolored
        .iter()
        .fold(painted.stdout.clone(), |text, color| {
            text.replace(color, "")
        });
    assert_ne!(painted.stdout, plain.stdout);
    assert_eq!(uncolored, plain.stdout);

    let hot = run(&["--hot", "1", "-s", "main"]);
    assert!(
        hot.status == 1 || hot.stdout.lines().count() < 30,
        "{hot:?}"
    );

    let told = run(&["--objdump", "objdump", "-s", "burn_deep"]);
    assert_eq!(told.stdout, plain.stdout, "{told:?}");
    let none = run(&["--objdump", "/nonexistent/objdump", "-s", "burn_deep"]);
    assert_eq!(none.status, 1);
    assert!(
        none.stderr.contains("--objdump /nonexistent/objdump: "),
        "{none:?}"
    );
    let silent = run(&["--objdump", "true", "-s", "burn_deep"]);
    assert_eq!(silent.status, 1);
    assert!(
        silent.stderr.contains("it prints no code of burn_deep"),
        "{silent:?}"
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    let test = "commands::annotate::options::what_contradicts_itself_is_refused";
    let Some((beside, file)) = recorded(test) else {
        return;
    };
    for (words, said) in [
        (
            &["-n", "--show-total-period"][..],
            "switch `n' cannot be used with show-total-period",
        ),
        (
            &["--no-modules"],
            "symbols of modules that samples fell on are always read",
        ),
        (&["--hot", "0"], "--hot 0: at least one instruction"),
        (&["--stdio-color", "red"], "expected always, never or auto"),
        (&["--data-type"], "--data-type"),
        (&["--itrace"], "--itrace"),
    ] {
        let line = [&["annotate", "-i", &file], words].concat();
        let refused = beside.outcome(Tool::Rperf, &line);
        assert_eq!(refused.status, 129, "{refused:?}");
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    let line = [
        "annotate",
        "-m",
        "--skip-missing",
        "--skip-empty",
        "-s",
        "burn_deep",
        "-i",
        &file,
    ];
    assert_eq!(beside.outcome(Tool::Rperf, &line).status, 0);
}

/// Objects that can't have such a function are not read, which must not show.
#[test]
fn hot_functions_are_those_that_are_hot_among_all() {
    let Some((beside, file)) = recorded("hot_functions_are_those_that_are_hot_among_all") else {
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
        let outcome = beside.outcome(Tool::Rperf, &words);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        outcome.stdout
    };
    let (all, hot) = (run("0"), run("5"));
    assert!(hot.lines().count() > 10 && hot.len() < all.len(), "{hot}");
    assert!(all.starts_with(&hot), "{hot}");
    assert_eq!(run("100"), "");
}
