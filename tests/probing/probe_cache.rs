//! `--cache`: definitions in the build-id cache, which is shared with perf.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use super::programs::{programs, rperf};
use super::recorded_values::{Group, can_probe};

/// Definitions that perf caches correctly. With others, perf mistakes a value without a name (`%di` in `leaf %di`) for a name,
/// drops the pattern after `;`, or, if an entry replaces another one, stores it without the lines of its events.
const SAME: &[&str] = &[
    "leaf n",
    "leaf n:u8",
    "first=middle it->name:string it->val",
    "own:other=other n",
    "leaf%return ret=$retval",
    "leaf:3",
    "leaf:5 n s",
    "probed.c:41 n",
    "m*",
    "middle $params",
    "own:all=middle $vars",
    "middle it->val:u8 a=count",
    "middle:4@probed.c s",
    "leaf@probed.c",
    "middle it->in.b[2] it->tag:string it->next->name",
    "mi*%return",
];

/// Runs `tool probe` with these arguments and a cache in `home`.
fn output(tool: &Path, home: &Path, words: &[&str]) -> Outcome {
    let run = Run::new(tool).args(["probe"]).args(words);
    let run = run.within(programs()).env("HOME", home);
    run.finish().expect("the tool starts")
}

/// Caches the definitions without adding the events.
#[track_caller]
fn cache(tool: &Path, home: &Path, program: &str, definitions: &[&str]) {
    let target = format!("./{program}");
    // One run for each: in a common run, perf treats two definitions of one name as two events of that name.
    for definition in definitions {
        let words = ["--cache", "-n", "-x", &target, "--add", definition];
        let outcome = output(tool, home, &words);
        assert_eq!(outcome.status, 0, "{definition}: {}", outcome.stderr);
    }
}

/// The path and the contents of the file with the cached definitions of `program`, which is the name of a file in the folder
/// [`programs`], or an absolute path.
fn probes_file(home: &Path, program: impl AsRef<Path>) -> (PathBuf, String) {
    let path = programs().join(program);
    let folder = home
        .join(".debug")
        .join(path.strip_prefix("/").expect("an absolute path"));
    let builds = fs::read_dir(&folder).expect("it is in the cache");
    let builds: Vec<_> = builds
        .map(|build| build.expect("a folder").path())
        .collect();
    assert_eq!(builds.len(), 1, "{builds:?}");
    let file = builds[0].join("probes");
    let text = fs::read_to_string(&file).expect("the definitions");
    (file, text)
}

#[test]
fn cached_definitions_match_perf() {
    let test = "cached_definitions_match_perf";
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    if !can_probe(test) {
        return;
    }
    let (theirs, ours) = (Scratch::new(), Scratch::new());
    cache(&perf, theirs.path(), "plain", SAME);
    cache(rperf(), ours.path(), "plain", SAME);
    let ((_, expected), (_, found)) = (
        probes_file(theirs.path(), "plain"),
        probes_file(ours.path(), "plain"),
    );
    assert_eq!(found, expected);
    // Each entry has one line for its definition and one for each event; some definitions have several events.
    assert!(found.lines().count() > 2 * SAME.len(), "{found}");
    cache(&perf, theirs.path(), "marked", &["main"]);
    cache(rperf(), ours.path(), "marked", &["main"]);
    for list in ["--list", "--list=own:*"] {
        let words = ["--cache", list];
        let expected = output(&perf, ours.path(), &words).stdout;
        assert!(expected.contains("own:other=other n\n"), "{expected}");
        // perf also prints headings of objects without listed probes.
        let marked = programs().join("marked").display().to_string();
        let listed = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !line.starts_with(&marked));
            lines.map(str::to_owned).collect()
        };
        for home in [&theirs, &ours] {
            let found = output(rperf(), home.path(), &words).stdout;
            assert_eq!(listed(&found), listed(&expected));
        }
    }
}

#[test]
fn each_tool_reads_the_others_cache() {
    let test = "each_tool_reads_the_others_cache";
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    if !can_probe(test) {
        return;
    }
    let named = ["own:one=middle it->name:string", "own:two=leaf n"];
    let find = |tool: &Path, home: &Path, name: &str| {
        let outcome = output(tool, home, &["-x", "./plain", "-D", name]);
        assert_eq!(outcome.status, 0, "{name}: {}", outcome.stderr);
        outcome.stdout
    };
    for writer in [perf.as_path(), rperf()] {
        let home = Scratch::new();
        cache(writer, home.path(), "plain", &named);
        for name in ["%one", "%own:two", "%own:*", "%t*"] {
            let expected = find(&perf, home.path(), name);
            assert!(expected.contains(":own/"), "{expected}");
            assert_eq!(find(rperf(), home.path(), name), expected);
        }
        let all = output(rperf(), home.path(), &["-D", "%own:*"]).stdout;
        assert_eq!(all.lines().count(), 2, "{all}");
    }
    // perf mistakes a value without a name (`%di`) for a name: rperf stores it with the name that the kernel would give it.
    let home = Scratch::new();
    cache(rperf(), home.path(), "plain", &["own:raw=leaf %di %si"]);
    let line = find(&perf, home.path(), "%raw");
    assert!(line.ends_with(" arg1=%di arg2=%si\n"), "{line}");
}

#[test]
fn entries_are_added_and_deleted() {
    let home = Scratch::new();
    let run = |words: &[&str]| output(rperf(), home.path(), words);
    cache(
        rperf(),
        home.path(),
        "plain",
        &["own:one=leaf n", "middle count", "own:two=leaf"],
    );
    cache(rperf(), home.path(), "plain", &["own:one=other n"]);
    let (_, text) = probes_file(home.path(), "plain");
    assert_eq!(text.matches("own:one=").count(), 1, "{text}");
    assert!(text.contains("#own:one=other n\np:own/one "), "{text}");
    let listed = run(&["--cache", "--list", "middle"]).stdout;
    assert!(listed.ends_with("):\nmiddle count\n"), "{listed}");
    let nothing = run(&["--cache", "--list", "nosuch"]);
    assert_eq!((nothing.status, nothing.stdout.as_str()), (0, ""));
    assert!(
        nothing.stderr.contains("no event in the build-id cache"),
        "{}",
        nothing.stderr
    );
    let elsewhere = run(&["--cache", "--list", "-x", "./marked"]);
    assert_eq!(elsewhere.stdout, "");
    let dry_run = run(&["--cache", "-n", "--del", "own:*"]);
    let lines =
        "Would remove cached event: own:two=leaf\nWould remove cached event: own:one=other n\n";
    assert_eq!((dry_run.status, dry_run.stderr.as_str()), (0, lines));
    assert_eq!(probes_file(home.path(), "plain").1, text);
    let removed = run(&["--cache", "--del", "own:*"]);
    assert_eq!(removed.stderr, lines.replace("Would remove", "Removed"));
    let (_, text) = probes_file(home.path(), "plain");
    assert!(
        text.starts_with("#middle count\np:probe_plain/middle "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 2, "{text}");
    let missed = run(&["--cache", "--del", "own:*"]);
    let error = "\"own:*\" does not hit any cached event.\n  Error: Failed to delete events.\n";
    assert_eq!((missed.status, missed.stderr.as_str()), (254, error));
}

#[test]
fn cached_events_need_no_debug_information() {
    let folder = Scratch::new();
    let program = folder.path().join("stripped");
    fs::copy(programs().join("plain"), &program).expect("it is copied");
    let target = program.display().to_string();
    let definition = "middle it->name:string";
    let run = |words: &[&str]| {
        let words: Vec<&str> = ["-x", &target]
            .into_iter()
            .chain(words.iter().copied())
            .collect();
        output(rperf(), folder.path(), &words)
    };
    let cached = run(&["--cache", "-n", "--add", definition]);
    assert_eq!(cached.status, 0, "{}", cached.stderr);
    assert!(
        cached.stderr.contains("Cached new event:\n"),
        "{}",
        cached.stderr
    );
    let before = run(&["-D", definition]).stdout;
    assert!(before.starts_with("p:probe_stripped/middle "), "{before}");
    let (probes, _) = probes_file(folder.path(), &program);
    for copy in [&program, &probes.with_file_name("elf")] {
        let strip = Command::new("strip").arg(copy).status();
        assert!(strip.expect("binutils start").success());
    }
    assert_eq!(run(&["--cache", "-D", definition]).stdout, before);
    assert_eq!(run(&["-D", "%middle"]).stdout, before);
    assert_eq!(run(&["-D", definition]).status, 254);
}

#[test]
fn wrong_uses_of_the_cache_are_reported() {
    let home = Scratch::new();
    let without_build_id = home.path().join("without_build_id");
    let compiled = Command::new("cc")
        .args(["-O0", "-g", "-Wl,--build-id=none", "-o"])
        .arg(&without_build_id)
        .arg(crate::tidy::root().join("tests/workloads/probed.c"))
        .status();
    assert!(compiled.expect("a compiler starts").success());
    let target = without_build_id.display().to_string();
    cache(rperf(), home.path(), "plain", &["own:one=leaf n"]);
    for (words, status, part) in [
        (
            &["--cache", "-n", "-x", &target, "--add", "leaf"] as &[&str],
            255,
            "--cache: events of this object cannot be stored",
        ),
        (
            &["--cache", "-x", "./plain", "-L", "leaf"],
            129,
            "--cache needs --add",
        ),
        (
            &["-x", "./plain", "-D", "%one it"],
            129,
            "%one is a stored event",
        ),
        (
            &["-x", "./plain", "-D", "%nosuch"],
            254,
            "Probe point '%nosuch' not found.",
        ),
        (
            &["-D", "%nosuch"],
            254,
            "no program in the build-id cache has a USDT probe or stored event",
        ),
    ] {
        let outcome = output(rperf(), home.path(), words);
        assert_eq!(outcome.status, status, "{words:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains(part),
            "{words:?}: {}",
            outcome.stderr
        );
    }
    // Unlike an argument (`%one it`), a new name can be given to a stored event.
    let renamed = output(
        rperf(),
        home.path(),
        &["-x", "./plain", "-D", "new:name=%one"],
    );
    assert!(
        renamed.stdout.starts_with("p:new/name "),
        "{}",
        renamed.stderr
    );
}

#[test]
fn definitions_of_the_kernel_are_cached() {
    let test = "definitions_of_the_kernel_are_cached";
    if !can_probe(test) {
        return;
    }
    let home = Scratch::new();
    let run = |words: &[&str]| output(rperf(), home.path(), words);
    let cached = run(&["--cache", "-n", "--add", "own:read=vfs_read"]);
    assert_eq!(cached.status, 0, "{}", cached.stderr);
    let defined = run(&["-D", "own:read=vfs_read"]).stdout;
    assert!(defined.starts_with("p:own/read "), "{defined}");
    for name in ["%read", "%own:r*"] {
        assert_eq!(run(&["-D", name]).stdout, defined);
    }
    let listed = run(&["--cache", "--list"]).stdout;
    assert!(listed.starts_with("[kernel.kallsyms] ("), "{listed}");
    assert!(listed.ends_with("):\nown:read=vfs_read\n"), "{listed}");
}

#[test]
fn events_are_added_and_cached_together() {
    let test = "events_are_added_and_cached_together";
    if !can_probe(test) {
        return;
    }
    let group = Group::new("kept");
    let name = &group.0;
    let home = Scratch::new();
    let run = |words: &[&str]| output(rperf(), home.path(), words);
    let added = run(&[
        "--cache",
        "-x",
        "./plain",
        "--add",
        &format!("{name}:one=leaf n"),
    ]);
    assert_eq!(added.status, 0, "{}", added.stderr);
    assert!(
        added.stderr.contains("Added new event:\n"),
        "{}",
        added.stderr
    );
    let all = format!("{name}:*");
    let listed = run(&["-l", &all, "-x", "./plain"]).stdout;
    assert!(listed.contains(&format!("{name}:one")), "{listed}");
    assert_eq!(run(&["-l", &all, "-x", "./nodebug"]).stdout, "");
    let dry_run = run(&["-n", "-d", &all]);
    assert_eq!(dry_run.stderr, format!("Would remove event: {name}:one\n"));
    assert_eq!(run(&["-d", &all]).status, 0);
    let again = run(&["--add", &format!("%{name}:one")]);
    assert_eq!(again.status, 0, "{}", again.stderr);
    assert!(
        again.stderr.contains(&format!("  {name}:one ")),
        "{}",
        again.stderr
    );
}
