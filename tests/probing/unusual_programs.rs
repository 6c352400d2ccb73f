//! Events of programs with unusual paths and of deleted programs, events in use, and interrupted runs of `rperf probe`.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rperf_testkit::{Outcome, Run, Scratch};

use super::programs::{programs, rperf};
use super::recorded_values::{Group, can_probe};

/// Runs `rperf probe` with these arguments in a folder that is also its home.
fn probe<S: AsRef<OsStr>>(folder: &Path, words: &[S]) -> Outcome {
    let run = Run::new(rperf()).args(["probe"]).args(words).within(folder);
    run.env("HOME", folder).finish().expect("rperf starts")
}

#[test]
fn paths_that_the_kernel_cannot_use_are_reported_and_avoided_with_links() {
    if !can_probe("paths_that_the_kernel_cannot_use_are_reported_and_avoided_with_links") {
        return;
    }
    let group = Group::new("paths");
    let scratch = Scratch::new();
    let folder = scratch.path();
    let definition = format!("{}:leaf=leaf", group.0);
    // The last byte of `à` in UTF-8 is a0, which the kernel takes for a space.
    for name in ["two words", "a#b", "tab\tbed", "voilà"] {
        fs::copy(programs().join("plain"), folder.join(name)).expect("a copy");
        let refused = probe(folder, &["-x", name, "--add", &definition]);
        assert_eq!(refused.status, 254, "{name}: {}", refused.stderr);
        let message = "hint: the kernel cannot use a path with spaces, '#' or the byte a0";
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
        let link = folder.join("link");
        symlink(folder.join(name), &link).expect("a link");
        let added = probe(folder, &["-x", "./link", "--add", &definition]);
        assert_eq!(added.status, 0, "{name}: {}", added.stderr);
        let all = format!("{}:*", group.0);
        let listed = probe(folder, &["-l", &all]).stdout;
        let place = format!(" in {})\n", link.display());
        assert!(listed.ends_with(&place), "{listed}");
        assert_eq!(probe(folder, &["-d", &all]).status, 0, "{name}");
        fs::remove_file(link).expect("the link goes");
    }
}

#[test]
fn events_of_deleted_programs_are_found_by_path() {
    if !can_probe("events_of_deleted_programs_are_found_by_path") {
        return;
    }
    let group = Group::new("gone");
    let scratch = Scratch::new();
    let folder = scratch.path();
    let program = folder.join("program");
    fs::copy(programs().join("plain"), &program).expect("a copy");
    let definition = format!("{}:leaf=leaf", group.0);
    let added = probe(folder, &["-x", "./program", "--add", &definition]);
    assert_eq!(added.status, 0, "{}", added.stderr);
    fs::remove_file(&program).expect("it goes");
    let listed = probe(folder, &["-x", "./program", "-l"]);
    let row = format!("{}:leaf", group.0);
    assert!(listed.stdout.contains(&row), "{}", listed.stderr);
    let removed = probe(folder, &["-x", "./program", "-d", "leaf"]);
    assert_eq!(removed.stderr, format!("Removed event: {row}\n"));
    // A deleted program can get no new events.
    let never = probe(folder, &["-x", "./program", "--add", &definition]);
    assert_eq!(never.status, 129, "{}", never.stderr);
}

#[test]
fn events_in_use_are_named_and_the_others_removed() {
    if !can_probe("events_in_use_are_named_and_the_others_removed") {
        return;
    }
    let group = Group::new("used");
    let folder = programs();
    let event = |name: &str| format!("{}:{name}", group.0);
    let (held, free) = (event("a=leaf"), event("b=middle"));
    let added = probe(folder, &["-x", "./plain", "--add", &held, "--add", &free]);
    assert_eq!(added.status, 0, "{}", added.stderr);
    // The event is in use until `read` reaches the end of the input.
    let workload = "echo ready; read line";
    let mut user = Command::new(rperf())
        .args(["stat", "-e", &event("a"), "--", "sh", "-c", workload])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("rperf starts");
    let mut began = String::new();
    let out = user.stdout.take().expect("its output");
    let read = BufReader::new(out).read_line(&mut began);
    let removed = probe(folder, &["-d", &event("*")]);
    drop(user.stdin.take());
    user.wait().expect("it ends");
    assert_eq!((read.ok(), began.as_str()), (Some(6), "ready\n"));
    assert_eq!(removed.status, 254, "{}", removed.stderr);
    let message = format!(
        "{} is in use\n  Error: Failed to delete events.\n",
        event("a")
    );
    let others = format!("Removed event: {}\n", event("b"));
    assert!(removed.stderr.contains(&message), "{}", removed.stderr);
    assert!(removed.stderr.contains(&others), "{}", removed.stderr);
}

#[test]
fn an_interrupted_run_leaves_no_events() {
    if !can_probe("an_interrupted_run_leaves_no_events") {
        return;
    }
    let group = Group::new("cut");
    let scratch = Scratch::new();
    let folder = scratch.path();
    let functions =
        (0..600).map(|number| format!("int many_{number}(int n) {{ return n + {number}; }}\n"));
    let source = functions.collect::<String>() + "int main(void) { return 0; }\n";
    fs::write(folder.join("many.c"), source).expect("a source");
    let compiled = Command::new("cc")
        .args(["-g", "-o", "many", "many.c"])
        .current_dir(folder)
        .status();
    assert!(compiled.expect("a compiler").success());
    let definition = format!("{}:many=many_*", group.0);
    let mut run = Command::new(rperf())
        .args(["probe", "-q", "--max-probes", "1000", "-x", "./many"])
        .args(["--add", &definition])
        .current_dir(folder)
        .spawn()
        .expect("rperf starts");
    let existing_events = || {
        let list = fs::read_to_string("/sys/kernel/tracing/uprobe_events").unwrap_or_default();
        list.matches(&group.0).count()
    };
    let status = loop {
        match run.try_wait().expect("its status") {
            Some(status) => break status,
            None if existing_events() > 0 => {
                let id = run.id().to_string();
                let sent = Command::new("kill").args(["-TERM", &id]).status();
                sent.expect("kill starts");
                break run.wait().expect("its status");
            }
            None => {}
        }
    };
    // It may have finished before the signal arrived.
    match status.signal() {
        Some(signal) => assert_eq!((signal, existing_events()), (15, 0)),
        None => assert_eq!((status.code(), existing_events()), (Some(0), 600)),
    }
}
