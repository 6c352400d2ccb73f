//! Events added, listed and deleted, and what is said where that fails.

use rperf_testkit::Run;

use super::fired::{Group, can_probe};
use super::programs::{probe, programs, rperf};

#[test]
fn markers_go_into_the_group_of_their_provider() {
    let outcome = probe(rperf(), &["-x", "./marked", "-D", "%tick"]);
    let line = outcome.stdout;
    assert!(
        line.starts_with("p:sdt_demo/tick "),
        "{line}{}",
        outcome.stderr
    );
    assert!(
        line.contains(") arg1=%") && line.contains(":s32 arg2=+0(%"),
        "{line}"
    );
    assert!(line.ends_with(" arg3=\\9:u32\n"), "{line}");
}

#[test]
fn markers_of_cached_programs_go_by_their_names() {
    let (status, said) = told(&["-D", "sdt_demo:tick"]);
    assert_eq!(status, 254, "{said}");
    let error = "no program in the build-id cache has a marked place or kept event %tick\n";
    assert!(said.starts_with(error), "{said}");
    assert!(said.contains("buildid-cache --add PROGRAM"), "{said}");
    let run = Run::new(rperf()).args(["buildid-cache", "--add", "marked"]);
    let run = run.within(programs()).env("HOME", programs());
    let added = run.finish().expect("rperf starts");
    assert_eq!(added.status, 0, "{}", added.stderr);
    let named = probe(rperf(), &["-x", "./marked", "-D", "%sdt_demo:tick"]);
    assert!(!named.stdout.is_empty(), "{}", named.stderr);
    for definition in ["sdt_demo:tick", "%sdt_demo:tick", "%tick", "%sdt_d*:t*"] {
        let found = probe(rperf(), &["-D", definition]);
        assert_eq!(found.stdout, named.stdout, "{definition}: {}", found.stderr);
    }
}

/// What `rperf probe` prints to stderr with these words, and its status.
fn told(words: &[&str]) -> (i32, String) {
    let outcome = probe(rperf(), words);
    (outcome.status, outcome.stderr)
}

#[test]
fn events_come_and_go() {
    if !can_probe("events_come_and_go") {
        return;
    }
    let group = Group::new("life");
    let name = &group.0;
    let all = format!("{name}:*");
    let path = programs().join("plain").display().to_string();
    let source = crate::tidy::root().join("tests/workloads/probed.c");
    let source = source.display();
    let add = |definition: &str| told(&["-x", "./plain", "--add", &format!("{name}:{definition}")]);
    let (status, said) = add("first=leaf%return ret=$retval");
    let row = format!("{name}:first__return");
    let expected = format!(
        "Added new event:\n  {row:<20} (on leaf%return in {path} with ret=$retval)\n\nYou can now use it in all perf tools, such as:\n\n\trperf record -e {row} -aR sleep 1\n\n"
    );
    assert_eq!((status, said), (0, expected));
    let (status, said) = add("first__return=leaf");
    assert_eq!(status, 239, "{said}");
    assert!(
        said.starts_with("Error: event \"first__return\" already exists.\n"),
        "{said}"
    );
    let definition = format!("{name}:first__return=middle:4");
    let (status, said) = told(&["-x", "./plain", &definition, "-f"]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains(&format!("{name}:first__return_1")), "{said}");
    let listed = probe(rperf(), &["-l", &all]);
    let expected = format!(
        "  {name}:first__return_1 (on middle:4@{source} in {path})\n  {name}:first__return (on leaf%return@{source} in {path} with ret)\n"
    );
    assert_eq!(listed.stdout, expected, "{}", listed.stderr);
    let (status, said) = told(&["-d", &all]);
    let expected =
        format!("Removed event: {name}:first__return\nRemoved event: {name}:first__return_1\n");
    assert_eq!((status, said), (0, expected));
    let (status, said) = told(&["-d", &all]);
    let expected =
        format!("\"{all}\" does not hit any event.\n  Error: Failed to delete events.\n");
    assert_eq!((status, said), (254, expected));
}

#[test]
fn all_events_are_added_or_none() {
    if !can_probe("all_events_are_added_or_none") {
        return;
    }
    let group = Group::new("none");
    let name = &group.0;
    let good = format!("{name}:good=leaf");
    let twice = format!("{name}:bad=leaf a=%di a=%si");
    let (status, said) = told(&["-x", "./plain", "--add", &good, "--add", &twice]);
    assert_eq!(status, 254, "{said}");
    assert!(said.starts_with("the kernel refused the event: "), "{said}");
    assert!(said.contains("Failed to add events."), "{said}");
    assert!(said.contains("removed again"), "{said}");
    let (status, said) = told(&["-n", "-x", "./plain", "--add", &good]);
    assert_eq!(status, 0, "{said}");
    assert!(said.starts_with("Would add new event:\n"), "{said}");
    assert_eq!(told(&["-d", &format!("{name}:*")]).0, 254);
}

#[test]
fn what_is_wrong_is_said_with_the_way_out() {
    for (words, status, parts) in [
        (
            &["-x", "./plain", "-D", "midle"] as &[&str],
            254,
            &[
                "Probe point 'midle' not found.\n",
                "Failed to add events",
                "hint: nearest to it: middle",
            ] as &[&str],
        ),
        (
            &["-x", "./plain", "-D", "leaf:9"],
            254,
            &["Probe point 'leaf:9' not found.", "leaf:6"],
        ),
        (
            &["-x", "./plain", "-D", "leaf:1"],
            254,
            &[
                "This line is sharing the address with other lines.",
                "Please try to probe at leaf:0 instead.",
            ],
        ),
        (
            &["-x", "./plain", "-D", "leaf m"],
            254,
            &[
                "Failed to find the location of the 'm' variable",
                "hint: variables at leaf+8: n, s",
            ],
        ),
        (
            &["-x", "./optimised", "-D", "middle s"],
            254,
            &[
                "Failed to find the location of the 's' variable",
                "'s' is somewhere at middle+[",
            ],
        ),
        (
            &["-x", "./bare", "-D", "leaf n"],
            254,
            &[
                "file has no debug information.",
                "hint: rebuild with -g",
                "f%return",
            ],
        ),
        (
            &["-x", "./plain", "-D", "leaf+2"],
            254,
            &[
                "leaf+2 is in the middle of",
                "hint: instructions begin at leaf+1, leaf+",
            ],
        ),
        (
            &["-x", "./nofile", "-D", "leaf"],
            129,
            &["Failed to get the absolute path of ./nofile: No such file or directory"],
        ),
        (
            &["-x", "./plain", "-D", "leaf n:u7"],
            129,
            &["'u7' is no type", "  leaf n:u7\n         ^"],
        ),
        (
            &["-x", "./plain", "-D", "leaf %nosuch"],
            254,
            &["'%nosuch' is not a register"],
        ),
        (
            &["-x", "./plain", "-D", "leaf $retval"],
            254,
            &["FUNCTION%return"],
        ),
        (
            &["-x", "./marked", "-D", "%sdt_demo:tock"],
            254,
            &["Probe point '%tock' not found.", "nearest to it: tick"],
        ),
        (&[], 129, &["nothing to do"]),
    ] {
        let (found, said) = told(words);
        assert_eq!(found, status, "{words:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{words:?}: {said}");
        }
    }
}
