//! Lists of what can be probed: lines, variables and functions.

use rperf_testkit::{real_perf, skip};

use super::programs::{probe, rperf};

#[test]
fn lines_and_variables_match_perf() {
    let Some(perf) = real_perf() else {
        return skip("lines_and_variables_match_perf", "there is no perf");
    };
    for words in [
        &["-x", "./plain", "-L", "middle"] as &[&str],
        &["-x", "./plain", "-L", "leaf"],
        &["-x", "./plain", "-L", "leaf:2+3"],
        &["-x", "./plain", "-L", "leaf@probed.c:1-4"],
        &["-x", "./plain", "-L", "main"],
        &["-x", "./plain", "-s", "moved", "-L", "middle"],
        &["-x", "./plain", "-L", "probed.c:30-36"],
        &["-x", "./plain", "-V", "leaf:5"],
        &["-x", "./plain", "-V", "main"],
        &["-x", "./plain", "-V", "mix"],
        &["-x", "./plain", "-V", "leaf%return"],
        &["-x", "./plain", "--externs", "-V", "middle"],
        &["-x", "./plain", "--range", "-V", "middle:4"],
        &["-x", "./optimised", "-V", "middle"],
        &["-x", "./optimised", "-V", "twice"],
        &["-x", "./separate_debug", "-V", "middle"],
        &["-x", "./plain-rs", "-V", "weigh"],
    ] {
        let (theirs, ours) = (probe(&perf, words), probe(rperf(), words));
        assert_eq!(theirs.status, 0, "{words:?}: {}", theirs.stderr);
        // perf prints an extra slash after the source folder.
        let expected = match words.contains(&"-s") {
            true => theirs.stdout.replacen("//", "/", 1),
            false => theirs.stdout,
        };
        assert_eq!(ours.stdout, expected, "{words:?}: {}", ours.stderr);
    }
}

#[test]
fn ranges_show_where_a_parameter_is_valid() {
    let words = ["-x", "./optimised", "--range", "-V", "middle:4"];
    let text = probe(rperf(), &words).stdout;
    // `[INV]`: the parameter `it` is not available at this line; the ranges are the code where it is available.
    let row = text
        .lines()
        .find(|line| line.ends_with("]>") && line.contains("\tit\t"));
    assert!(
        row.is_some_and(|row| row.contains("[INV]\tstruct item*\tit\t@<middle+[0-")),
        "{text}"
    );
}

#[test]
fn listed_functions_exclude_data_and_can_be_filtered() {
    let listed = |words: &[&str]| {
        let outcome = probe(rperf(), words);
        assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
        outcome.stdout
    };
    let all = listed(&["-x", "./plain", "-F"]);
    let functions = ["leaf", "main", "middle", "mix", "other", "twice"];
    let mut names = all.lines().filter(|name| functions.contains(name));
    assert!(
        functions.iter().all(|name| names.next() == Some(name)),
        "{all}"
    );
    // A variable, and a symbol that the compiler adds to `.bss`.
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

#[test]
fn listed_variables_can_be_probed() {
    let mut defined = 0;
    for program in ["./plain", "./optimised"] {
        for place in [
            "leaf", "leaf:5", "middle", "middle:4", "mix", "main", "main:7", "twice", "other",
        ] {
            for externs in [&[] as &[&str], &["--externs"]] {
                let words = [&["-x", program], externs, &["-V", place]].concat();
                let listed = probe(rperf(), &words).stdout;
                let rows = listed.lines().filter_map(|line| line.strip_prefix("\t\t"));
                let names = rows.filter_map(|row| Some(row.split_once('\t')?.1));
                for name in names {
                    let definition = format!("{place} {name}");
                    let outcome = probe(rperf(), &["-x", program, "-D", &definition]);
                    assert_eq!(
                        outcome.status, 0,
                        "{program} {definition}: {}",
                        outcome.stderr
                    );
                    defined += 1;
                }
            }
        }
    }
    // More than one variable on average in each of the 36 listings.
    assert!(defined > 50, "{defined}");
    // On x86-64, the parameter `d` of the type double is in a vector register, which probes cannot read.
    let outcome = probe(rperf(), &["-x", "./optimised", "-V", "mix"]);
    if cfg!(target_arch = "x86_64") {
        assert!(!outcome.stdout.contains("double"), "{}", outcome.stdout);
        let message = "d is not available at mix+0: it is in %xmm0";
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    }
}

#[test]
fn probes_of_inlined_copies_are_shown_with_their_functions() {
    let messages =
        |words: &[&str]| probe(rperf(), &[&["-x", "./optimised"], words].concat()).stderr;
    let added = messages(&["-n", "--add", "twice"]);
    let within = |function: &str| {
        let place = format!("(on twice at {function}");
        added
            .lines()
            .any(|line| line.contains(&place) && line.contains(" (inlined) in "))
    };
    // In `other`, one copy may be at the entry, which is shown without an offset.
    assert!(within("middle+") && within("other"), "{added}");
    let refused = messages(&["--no-inlines", "-D", "twice"]);
    assert!(
        refused.contains("hint: the function is inlined at "),
        "{refused}"
    );
    assert!(refused.contains("middle+"), "{refused}");
}
