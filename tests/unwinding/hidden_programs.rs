//! Programs whose files other processes cannot open by path when their stacks are unwound (`record --unwind live`).

use std::fs;

use rperf_testkit::{copy_program, skip};

use super::programs::{NAMELESS, OPTIMISED, Program, ProgramFolder};
use super::stacks::read;
use crate::kernel::is_root;

/// Runs the program for 300 ms of CPU time from a file system that only its own mount namespace has.
const INSIDE: &str = "mount -t tmpfs none there && cp \"$0\" there/program && there/program 300";
/// Runs the program for 600 ms of CPU time, and deletes its file meanwhile, before most of its samples.
const GONE: &str = "cp \"$0\" program; ./program 600 & \
    until grep -q program /proc/$!/comm; do :; done; rm program; wait";

/// Records the command `words`, to which the path of `program` is appended; returns the text of `script` and the recorder's
/// messages.
fn recorded(folder: &ProgramFolder, program: &Program, words: &[&str]) -> (String, String) {
    let path = folder.scratch.path().join(program.name);
    let path = path.to_string_lossy();
    let options = [
        "record",
        "-o",
        "live.data",
        "-e",
        "cpu-clock:u",
        "-F",
        "2500",
    ];
    let live = ["--call-graph", "dwarf,16384", "--unwind", "live", "--"];
    let line = [&options[..], &live, words, &[&path]].concat();
    let outcome = folder.rperf(&line);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let script = folder.rperf(&["script", "--no-inline", "-i", "live.data"]);
    (script.stdout, outcome.stderr)
}

/// Checks that most stacks of samples with the comm `program` in the text of `script` are complete, and that the recorder's
/// messages do not count stacks in missing files. `name` is that of the compiled program.
fn check(text: &str, message: &str, name: &str) {
    let samples = read(text);
    let of_program = samples
        .iter()
        .filter(|sample| sample.head.trim_start().starts_with("program "));
    let depths: Vec<usize> = of_program.map(|sample| sample.frames.len()).collect();
    assert!(depths.len() > 50, "{name}: {text}");
    // Without unwind information, stacks have no more than two frames.
    let complete = depths.iter().filter(|depth| **depth > 2).count();
    assert!(complete * 10 > depths.len() * 9, "{name}: {text}");
    // The program's `deep` recurses 30 times. More than 8 frames show that unwinding does not end after the first functions.
    let deepest = depths.iter().max();
    assert!(
        deepest.is_some_and(|deepest| *deepest > 8),
        "{name}: {text}"
    );
    assert!(
        !message.contains("in missing or replaced files"),
        "{name}: {message}"
    );
}

#[test]
fn programs_in_another_mount_namespace_are_unwound() {
    const NAME: &str =
        "unwinding::hidden_programs::programs_in_another_mount_namespace_are_unwound";
    let folder = ProgramFolder::new();
    let can_unshare = || folder.run("unshare".as_ref(), &["-m", "true"]).status == 0;
    if !is_root() || !can_unshare() {
        return skip(NAME, "needs root, and mount namespaces");
    }
    // In the recorder's mount namespace, another program has the same path.
    let there = folder.scratch.path().join("there");
    fs::create_dir(&there).expect("a new folder");
    copy_program(env!("CARGO_BIN_EXE_rperf"), there.join("program"));
    // With a build-id, and without one.
    for program in [&OPTIMISED, &NAMELESS] {
        if let Err(reason) = folder.compile(program) {
            return skip(NAME, &reason);
        }
        let words = ["unshare", "-m", "sh", "-c", INSIDE];
        let (text, message) = recorded(&folder, program, &words);
        check(&text, &message, program.name);
    }
}

#[test]
fn deleted_programs_are_unwound() {
    const NAME: &str = "unwinding::hidden_programs::deleted_programs_are_unwound";
    let folder = ProgramFolder::new();
    if !is_root() {
        return skip(NAME, "needs root, to open deleted files that are mapped");
    }
    // With a build-id, and without one.
    for program in [&OPTIMISED, &NAMELESS] {
        if let Err(reason) = folder.compile(program) {
            return skip(NAME, &reason);
        }
        let (text, message) = recorded(&folder, program, &["sh", "-c", GONE]);
        check(&text, &message, program.name);
    }
}
