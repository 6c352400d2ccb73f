//! Events of USDT probes (markers); adding, listing and deleting events; messages about failures.

use rperf_testkit::Run;

use super::programs::{probe, programs, rperf};
use super::recorded_values::{Group, can_probe};

#[test]
fn markers_are_grouped_by_provider() {
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
fn values_of_markers_are_their_arguments_by_number() {
    let define = |arguments: &str| {
        let definition = format!("%tick {arguments}");
        probe(rperf(), &["-x", "./marked", "-D", &definition]).stdout
    };
    let with_marker_types = define("arg1 arg2");
    let words: Vec<&str> = with_marker_types.split_whitespace().skip(2).collect();
    let register = words[0]
        .strip_prefix("arg1=")
        .and_then(|word| word.strip_suffix(":s32"));
    let register = register.expect("a register");
    let place = words[1]
        .strip_prefix("arg2=")
        .and_then(|word| word.strip_suffix(":u64"));
    let place = place.expect("memory");
    assert!(
        register.starts_with('%') && place.starts_with("+0(%"),
        "{with_marker_types}"
    );
    for (arguments, expected) in [
        ("n=arg1:x8", format!("n={register}:x8")),
        ("arg1:u", format!("arg1={register}:u32")),
        ("name=arg1:string", format!("name=+0({register}):string")),
        ("arg1:ustring", format!("arg1=+0({register}):ustring")),
        ("arg2:string@user", format!("arg2=+u0({place}):string")),
        ("b=arg1:u8[4]", format!("b=+0({register}):u8[4]")),
        ("arg3 %ip", "arg3=\\9:u32 %ip".to_owned()),
    ] {
        let text = define(arguments);
        assert!(
            text.ends_with(&format!(" {expected}\n")),
            "{arguments}: {text}"
        );
    }
    for wrong in [
        "nosuch=arg4",
        "arg0",
        "arg1->x",
        "number",
        "name=number:string",
    ] {
        let definition = format!("%tick {wrong}");
        let (status, message) = output(&["-x", "./marked", "-D", &definition]);
        assert_eq!(status, 254, "{wrong}: {message}");
        assert!(
            message.contains("is not an argument of marker demo:tick"),
            "{message}"
        );
        assert!(message.contains("available: arg1, arg2, arg3"), "{message}");
    }
}

#[test]
fn markers_of_cached_programs_are_found_by_name() {
    let (status, message) = output(&["-D", "sdt_demo:tick"]);
    assert_eq!(status, 254, "{message}");
    let error = "no program in the build-id cache has a USDT probe or stored event %tick\n";
    assert!(message.starts_with(error), "{message}");
    assert!(message.contains("buildid-cache --add PROGRAM"), "{message}");
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

/// The status and the standard error of `rperf probe` with these arguments. Status 129 is a usage error; 239 and 254 are the low
/// bytes of `-EEXIST` and `-ENOENT`, as in perf.
fn output(words: &[&str]) -> (i32, String) {
    let outcome = probe(rperf(), words);
    (outcome.status, outcome.stderr)
}

#[test]
fn events_are_added_and_deleted() {
    if !can_probe("events_are_added_and_deleted") {
        return;
    }
    let group = Group::new("life");
    let name = &group.0;
    let all = format!("{name}:*");
    let path = programs().join("plain").display().to_string();
    let source = crate::tidy::root().join("tests/workloads/probed.c");
    let source = source.display();
    let add =
        |definition: &str| output(&["-x", "./plain", "--add", &format!("{name}:{definition}")]);
    let (status, message) = add("first=leaf%return ret=$retval");
    let row = format!("{name}:first__return");
    let expected = format!(
        "Added new event:\n  {row:<20} (on leaf%return in {path} with ret=$retval)\n\nYou can now use it in all perf tools, such as:\n\n\trperf record -e {row} -aR sleep 1\n\n"
    );
    assert_eq!((status, message), (0, expected));
    let (status, message) = add("first__return=leaf");
    assert_eq!(status, 239, "{message}");
    assert!(
        message.starts_with("Error: event \"first__return\" already exists.\n"),
        "{message}"
    );
    let definition = format!("{name}:first__return=middle:4");
    let (status, message) = output(&["-x", "./plain", &definition, "-f"]);
    assert_eq!(status, 0, "{message}");
    assert!(
        message.contains(&format!("{name}:first__return_1")),
        "{message}"
    );
    // Sorted by the lines of `uprobe_events`: `p:` of a probe precedes `r:` of a return probe.
    let listed = probe(rperf(), &["-l", &all]);
    let expected = format!(
        "  {name}:first__return_1 (on middle:4@{source} in {path})\n  {name}:first__return (on leaf%return@{source} in {path} with ret)\n"
    );
    assert_eq!(listed.stdout, expected, "{}", listed.stderr);
    let (status, message) = output(&["-d", &all]);
    let expected =
        format!("Removed event: {name}:first__return\nRemoved event: {name}:first__return_1\n");
    assert_eq!((status, message), (0, expected));
    let (status, message) = output(&["-d", &all]);
    let expected = format!(
        "\"{all}\" does not hit any event.\n  Error: Failed to delete events.\nhint: 'rperf probe -l' lists probe events\n"
    );
    assert_eq!((status, message), (254, expected));
}

#[test]
fn all_events_are_added_or_none() {
    if !can_probe("all_events_are_added_or_none") {
        return;
    }
    let group = Group::new("none");
    let name = &group.0;
    let good = format!("{name}:good=leaf");
    // The kernel refuses two fields of one name.
    let bad = format!("{name}:bad=leaf a=%di a=%si");
    let (status, message) = output(&["-x", "./plain", "--add", &good, "--add", &bad]);
    assert_eq!(status, 254, "{message}");
    assert!(
        message.starts_with("the kernel refused the event: "),
        "{message}"
    );
    assert!(message.contains("Failed to add events."), "{message}");
    assert!(
        message.contains("the event that was added before has been removed"),
        "{message}"
    );
    // A dry run adds no event either: there is none to delete.
    let (status, message) = output(&["-n", "-x", "./plain", "--add", &good]);
    assert_eq!(status, 0, "{message}");
    assert!(message.starts_with("Would add new event:\n"), "{message}");
    assert_eq!(output(&["-d", &format!("{name}:*")]).0, 254);
}

#[test]
fn errors_say_that_a_program_is_stripped() {
    let folder = rperf_testkit::Scratch::new();
    let stripped = folder.path().join("stripped");
    let strip = std::process::Command::new("strip")
        .arg("-o")
        .args([&stripped, &programs().join("nodebug")])
        .status();
    assert!(strip.expect("binutils start").success());
    let stripped = stripped.display().to_string();
    for (program, is_stripped) in [(stripped.as_str(), true), ("./nodebug", false)] {
        let (status, message) = output(&["-x", program, "-D", "midle"]);
        assert_eq!(status, 254, "{message}");
        assert_eq!(message.contains("is stripped: "), is_stripped, "{message}");
    }
}

#[test]
fn errors_name_their_causes() {
    for (words, status, parts) in [
        (
            &["-x", "./plain", "-D", "midle"] as &[&str],
            254,
            &[
                "Probe point 'midle' not found.\n",
                "Failed to add events",
                "hint: similar names: middle",
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
                "'s' has a location at middle+[",
            ],
        ),
        (
            &["-x", "./nodebug", "-D", "leaf n"],
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
            &["'u7' is not a type", "  leaf n:u7\n         ^"],
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
            &["Probe point '%tock' not found.", "similar names: tick"],
        ),
        (&[], 129, &["nothing to do"]),
    ] {
        let (actual, message) = output(words);
        assert_eq!(actual, status, "{words:?}: {message}");
        for part in parts {
            assert!(message.contains(part), "{words:?}: {message}");
        }
    }
}
