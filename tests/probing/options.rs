//! Limits of a search, where files are looked up, `--quiet`, and the privileges needed to add events.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, id};

use rperf_testkit::{Run, Scratch, may_trace, real_perf, skip};

use super::programs::{probe, programs, rperf};
use crate::kernel::UnprivilegedUser;

/// The status and the standard output of `rperf probe` with these arguments.
fn defined(words: &[&str]) -> (i32, String) {
    let outcome = probe(rperf(), words);
    (outcome.status, outcome.stdout)
}

#[test]
fn searches_are_bounded_as_by_perf() {
    let perf = real_perf();
    // Without perf, only the comparison with it is skipped.
    if perf.is_none() {
        skip(
            "searches_are_bounded_as_by_perf",
            "there is no perf to compare with",
        );
    }
    for (words, line_count) in [
        (
            &["-x", "./optimised", "--max-probes", "1", "-D", "m*"] as &[&str],
            0,
        ),
        (&["-x", "./optimised", "--max-probes", "3", "-D", "m*"], 3),
        (&["-x", "./optimised", "--max-probes=1", "-D", "leaf"], 1),
        (&["-x", "./optimised", "--no-inlines", "-D", "twice"], 0),
        (&["-x", "./optimised", "--no-inlines", "-D", "leaf"], 1),
    ] {
        let (status, text) = defined(words);
        assert_eq!(text.lines().count(), line_count, "{words:?}: {text}");
        assert_eq!(status == 0, line_count > 0, "{words:?}");
        if let Some(perf) = &perf {
            assert_eq!(probe(perf, words).stdout, text, "{words:?}");
        }
    }
    let inlined = defined(&["-x", "./optimised", "-D", "twice"]).1;
    assert!(inlined.lines().count() > 1, "{inlined}");
    let refused = probe(
        rperf(),
        &["-x", "./optimised", "--max-probes", "1", "-D", "m*"],
    );
    let error = "Too many( > 1) probe point found.\n  Error: Failed to add events.\nhint: allow more with --max-probes N\n";
    assert_eq!(refused.stderr, error);
}

#[test]
fn sources_are_found_below_another_folder() {
    let folder = Scratch::new();
    let source = crate::tidy::root().join("tests/workloads/probed.c");
    let place = |below: &str| folder.path().join(below);
    fs::create_dir(place("before")).expect("it is made");
    fs::create_dir(place("after")).expect("it is made");
    fs::copy(source, place("before/gone.c")).expect("it is copied");
    let compiled = Command::new("cc")
        .args(["-O0", "-g", "-o", "../program", "gone.c"])
        .current_dir(place("before"))
        .status();
    assert!(compiled.expect("a compiler starts").success());
    let program = place("program").display().to_string();
    let after = place("after").display().to_string();
    let listed = |words: &[&str]| probe(rperf(), &[&["-x", &program], words].concat());
    let expected = listed(&["-L", "leaf"]).stdout;
    assert!(
        expected.contains("      0  __attribute__((noinline)) long leaf"),
        "{expected}"
    );
    fs::rename(place("before/gone.c"), place("after/gone.c")).expect("it is moved");
    let missed = listed(&["-L", "leaf"]);
    assert_eq!(missed.status, 254, "{}", missed.stdout);
    assert!(
        missed
            .stderr
            .starts_with("Failed to find source file path of "),
        "{}",
        missed.stderr
    );
    assert!(
        missed
            .stderr
            .contains("hint: name its directory with --source DIR"),
        "{}",
        missed.stderr
    );
    // The path of the file that was read is printed, as in perf.
    let before = place("before").display().to_string();
    let listing_of = |folder: &str| expected.replacen(&before, folder, 1);
    assert_eq!(
        listed(&["-s", &after, "-L", "leaf"]).stdout,
        listing_of(&after)
    );
    // The source's full path below that folder is also tried, as in perf.
    let expanded = format!("{after}{}", place("before").display());
    fs::create_dir_all(&expanded).expect("they are made");
    fs::rename(place("after/gone.c"), format!("{expanded}/gone.c")).expect("it is moved");
    assert_eq!(
        listed(&["-s", &after, "-L", "leaf"]).stdout,
        listing_of(&expanded)
    );
    // A pattern for source lines needs the source.
    let pattern = ["-D", "leaf;return*"];
    assert_ne!(listed(&pattern).status, 0);
    let found = listed(&[&["-s", &after], &pattern[..]].concat()).stdout;
    assert!(found.starts_with("p:probe_program/leaf "), "{found}");
}

#[test]
fn debug_information_is_found_below_another_root() {
    let folder = Scratch::new();
    let program = folder.path().join("program");
    let root = folder.path().join("root");
    let unstripped = root.join(program.strip_prefix("/").expect("an absolute path"));
    fs::create_dir_all(unstripped.parent().expect("it is in a folder")).expect("they are made");
    fs::copy(programs().join("optimised"), &unstripped).expect("it is copied");
    let stripped = Command::new("strip")
        .arg("-o")
        .arg(&program)
        .arg(&unstripped)
        .status();
    assert!(stripped.expect("binutils start").success());
    let (program, root) = (program.display().to_string(), root.display().to_string());
    // A separate home: other tests add `optimised`, which has the same build ID, to the cache in their home.
    let probe_with_own_home = |words: &[&str]| {
        let run = Run::new(rperf()).args(["probe"]).args(words);
        let run = run.env("HOME", folder.path()).finish();
        run.expect("the binary starts")
    };
    let words = ["-x", &program, "-D", "middle it->name:string"];
    assert_eq!(probe_with_own_home(&words).status, 254);
    let found = probe_with_own_home(&[&["--symfs", &root], &words[..]].concat());
    assert_eq!(found.status, 0, "{}", found.stderr);
    let text = found.stdout;
    assert!(
        text.starts_with(&format!("p:probe_program/middle {program}:0x")),
        "{text}"
    );
    let expected = defined(&["-x", "./optimised", "-D", "middle it->name:string"]).1;
    let offset = |text: &str| text.split_once(":0x").map(|(_, place)| place.to_owned());
    assert!(offset(&text).is_some(), "{text}");
    assert_eq!(offset(&text), offset(&expected));
}

#[test]
fn paths_are_resolved_in_the_namespace_of_a_process() {
    let path = programs().join("optimised").display().to_string();
    let pid = id().to_string();
    let words = ["--target-ns", &pid, "-x", &path, "-D", "leaf n"];
    let (status, text) = defined(&words);
    assert_eq!(status, 0);
    let here = defined(&["-x", &path, "-D", "leaf n"]).1;
    assert_eq!(text.replace(&format!("/proc/{pid}/root"), ""), here);
    // Greater than every pid: the kernel's limit is 4194304.
    let missing = probe(
        rperf(),
        &["--target-ns", "4194305", "-x", &path, "-D", "leaf"],
    );
    assert_eq!(missing.status, 129, "{}", missing.stdout);
    assert!(
        missing.stderr.contains("No such file or directory"),
        "{}",
        missing.stderr
    );
}

#[test]
fn quiet_prints_errors_only() {
    let words = ["-q", "-x", "./plain", "-D", "leaf n"];
    let outcome = probe(rperf(), &words);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    assert!(!probe(rperf(), &words[1..]).stderr.is_empty());
    let outcome = probe(rperf(), &["-q", "-x", "./plain", "-D", "nosuch"]);
    assert!(
        outcome.stderr.contains("'nosuch' not found"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn unprivileged_users_get_a_hint() {
    let test = "unprivileged_users_get_a_hint";
    if !may_trace(test) {
        return;
    }
    let all_may_write = fs::metadata("/sys/kernel/tracing")
        .is_ok_and(|folder| folder.permissions().mode() & 0o2 != 0);
    if all_may_write {
        return skip(test, "everyone may write tracefs");
    }
    let scratch = Scratch::new();
    let Some(user) = UnprivilegedUser::new(test, &scratch) else {
        return;
    };
    fs::copy(programs().join("plain"), scratch.path().join("plain")).expect("readable");
    let listed = user.run(&["./rperf", "probe", "-l"]);
    let expected =
        "No permission to read tracefs.\nPlease try 'sudo mount -o remount,mode=755 /sys/kernel/";
    assert_eq!(listed.status, 243);
    assert!(listed.stderr.contains(expected), "{}", listed.stderr);
    for words in [
        &["probe", "-x", "./plain", "leaf"] as &[&str],
        &["probe", "-d", "nosuch"],
        &["record", "--probe", "./plain:leaf", "true"],
        &["stat", "--probe", "./plain:leaf", "true"],
    ] {
        let outcome = user.run(&[&["./rperf"], words].concat());
        assert_eq!(outcome.status, 243, "{words:?}: {}", outcome.stderr);
        let lines = [
            "No permission to write tracefs.\n",
            "Please run this command again with sudo.\n",
        ];
        for line in lines {
            assert!(
                outcome.stderr.contains(line),
                "{words:?}: {}",
                outcome.stderr
            );
        }
    }
}
