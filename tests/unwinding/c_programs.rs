//! The callers of the functions of C and Rust programs, compiled with many options; messages about truncated stacks.

use std::collections::BTreeMap;
use std::path::Path;

use rperf_testkit::skip;

use crate::tidy::root;

use super::programs::{
    DEBUG_FRAME, FRAME_POINTERS, IA32, OPTIMISED, PANICS, PANICS_MUSL, PANICS_STATIC, PLAIN,
    Program, ProgramFolder, RECORDINGS, SEPARATE_DEBUG, STATIC,
};
use super::stacks::{read, symbol};

/// Innermost functions and the callers of each, innermost first; `*` is any number of frames of libraries.
const CALLERS: &[(&str, &[&str])] = &[
    ("burn_leaf", &["main", "*"]),
    ("burn_alloca", &["with_alloca", "main", "*"]),
    ("burn_realigned", &["touch", "realigned", "main", "*"]),
    ("burn_jump", &["jumps", "with_jump", "main", "*"]),
    ("burn_after_jump", &["with_jump", "main", "*"]),
    (
        "burn_handler",
        &["handler", "*", "interrupted", "main", "*"],
    ),
    // The handler runs on an alternate stack, and only that stack is copied.
    ("burn_handler_elsewhere", &["handler_elsewhere", "*"]),
    (
        "burn_compare",
        &["compare", "*", "through_library", "main", "*"],
    ),
    ("burn_coroutine", &["coroutine", "*"]),
    ("burn_thread", &["in_thread", "*"]),
];

/// The number of functions whose callers are known: those of [`CALLERS`], `burn_tail` and `burn_deep`.
const KNOWN: usize = CALLERS.len() + 2;

/// Whether `name` is one of the functions of the tested programs that `*` must not match.
fn is_ours(name: &str) -> bool {
    let ours = ["main", "deep", "compare", "interrupted", "through_library"];
    // The last one begins the names of Go's main package.
    let begins = ["burn_", "with_", "main."];
    ours.contains(&name) || begins.iter().any(|begin| name.starts_with(begin))
}

/// Whether the functions `names` match `expected`, in which `*` is any number of functions that are not [ours](is_ours).
pub(super) fn fits(expected: &[&str], names: &[&str]) -> bool {
    match (expected, names) {
        ([], []) => true,
        (["*", rest @ ..], _) if fits(rest, names) => true,
        (["*", ..], [name, outer @ ..]) => !is_ours(name) && fits(expected, outer),
        ([first, rest @ ..], [name, outer @ ..]) => first == name && fits(rest, outer),
        _ => false,
    }
}

/// Whether a stack, innermost function first, is correct; `None` if the callers of its innermost function are not known.
fn is_correct(program: &Program, names: &[&str]) -> Option<bool> {
    let (innermost, callers) = names.split_first()?;
    let tail: &[&str] = match program.name {
        // Without optimisation, `tail_first` calls `tail_last` and keeps its frame.
        "plain" | "frame-pointers" => &["tail_last", "tail_first", "main", "*"],
        _ => &["tail_last", "main", "*"],
    };
    let deep = [vec!["deep"; 31], vec!["main", "*"]].concat();
    let expected = match *innermost {
        "burn_tail" => tail,
        "burn_deep" => &deep,
        other => CALLERS.iter().find(|(name, _)| *name == other)?.1,
    };
    Some(fits(expected, callers))
}

#[test]
fn known_functions_have_known_callers() {
    for program in [
        &OPTIMISED,
        &PLAIN,
        &STATIC,
        &SEPARATE_DEBUG,
        &DEBUG_FRAME,
        &FRAME_POINTERS,
    ] {
        let folder = ProgramFolder::new();
        // Correct stacks, by their innermost function. One recording need not have samples of every function.
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for _ in 0..RECORDINGS {
            let file = match folder.record(program) {
                Ok(file) => file,
                Err(reason) => return skip("known_functions_have_known_callers", &reason),
            };
            let script = folder.rperf(&["script", "--no-inline", "-i", &file]);
            for sample in read(&script.stdout) {
                let names: Vec<&str> = sample.frames.iter().map(|frame| symbol(frame)).collect();
                match is_correct(program, &names) {
                    Some(true) => *counts.entry(names[0].to_owned()).or_default() += 1,
                    Some(false) => panic!("{}: {:#?}", program.name, sample),
                    None => {}
                }
            }
            if counts.len() == KNOWN {
                break;
            }
        }
        assert_eq!(counts.len(), KNOWN, "{}: {counts:?}", program.name);
    }
}

/// The number before `cause` in a message about stacks.
fn counted(message: &str, cause: &str) -> usize {
    let before = message.split(cause).next().map(str::split_whitespace);
    let number = before.and_then(|mut words| words.next_back());
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{cause}: {message}"))
}

#[test]
fn truncated_stacks_are_counted_by_cause() {
    let folder = ProgramFolder::new();
    for (kind, function, cause) in [
        // burn_deep, 31 frames of deep, and main: at 16 bytes or more each, they do not fit into the copy.
        ("dwarf,512", "burn_deep", " at the end of the stack copy"),
        (
            "dwarf,16384",
            "burn_handler_elsewhere",
            " on a stack that was not copied",
        ),
    ] {
        let file = match folder.record_as(&OPTIMISED, kind) {
            Ok(file) => file,
            Err(reason) => return skip("truncated_stacks_are_counted_by_cause", &reason),
        };
        let script = folder.rperf(&["script", "--no-inline", "-i", &file]);
        let samples = read(&script.stdout);
        let is_in = |frames: &[&str]| frames.first().map(|frame| symbol(frame)) == Some(function);
        let expected = samples.iter().filter(|sample| is_in(&sample.frames));
        let expected = expected.count();
        let truncated = counted(&script.stderr, cause);
        assert!(
            expected > 0 && truncated >= expected,
            "{kind} {expected}: {}",
            script.stderr
        );
        // Of all causes: the number in "… of … user callchains are incomplete".
        let incomplete = counted(&script.stderr, " of ");
        assert!(incomplete >= truncated, "{}", script.stderr);
        let has_hint = script
            .stderr
            .contains("record with --call-graph dwarf,1024");
        assert_eq!(has_hint, kind == "dwarf,512", "{}", script.stderr);
        assert_marked(&folder, &file, cause, truncated);
    }
}

/// Checks that `script --mark-truncated` prints `count` stacks that end in a frame with the cause, and that other commands print
/// that frame.
fn assert_marked(folder: &ProgramFolder, file: &str, cause: &str, count: usize) {
    let mark = format!("[stack truncated{cause}]");
    let line = ["script", "--no-inline", "--mark-truncated", "-i", file];
    let script = folder.rperf(&line);
    let samples = read(&script.stdout);
    let ends = |frames: &[&str]| frames.last().is_some_and(|frame| frame.contains(&mark));
    let marked = samples.iter().filter(|sample| ends(&sample.frames));
    assert_eq!(marked.count(), count, "{mark}");
    for line in [
        &[
            "flamegraph",
            "--folded",
            "-o",
            "-",
            "--mark-truncated",
            "-i",
            file,
        ][..],
        &["report", "--mark-truncated", "-g", "caller", "-i", file],
        &[
            "data",
            "convert",
            "--to-folded",
            "-",
            "--mark-truncated",
            "-i",
            file,
        ],
    ] {
        let outcome = folder.rperf(line);
        assert_eq!(outcome.status, 0, "{line:?} {outcome:?}");
        assert!(outcome.stdout.contains(&mark), "{line:?}");
    }
}

#[test]
fn output_does_not_depend_on_the_number_of_cpus() {
    let folder = ProgramFolder::new();
    let file = match folder.record(&STATIC) {
        Ok(file) => file,
        Err(reason) => return skip("output_does_not_depend_on_the_number_of_cpus", &reason),
    };
    let rperf = env!("CARGO_BIN_EXE_rperf");
    for command in ["script", "report"] {
        let words = [command, "-i", &file];
        let on_all = folder.rperf(&words);
        assert!(on_all.stdout.contains("burn_deep"), "{on_all:?}");
        let line = [&["-c", "0", rperf], &words[..]].concat();
        let on_one = folder.run(Path::new("taskset"), &line);
        assert_eq!(on_one, on_all, "{command}");
    }
}

#[test]
fn stacks_of_destructors_during_a_panic_are_complete() {
    for program in [&PANICS, &PANICS_STATIC, &PANICS_MUSL] {
        check_panics(program);
    }
}

/// Checks that the stacks of samples in `burn` reach the start of the program or thread, and that some of them are in
/// destructors, in the panic hook and, without a panic, in recursive calls of a trait object.
fn check_panics(program: &Program) {
    let folder = ProgramFolder::new();
    let file = match folder.record(program) {
        Ok(file) => file,
        Err(reason) => {
            return skip("stacks_of_destructors_during_a_panic_are_complete", &reason);
        }
    };
    let script = folder.rperf(&["script", "--no-inline", "-i", &file]);
    let (mut dropped, mut hooked, mut walked) = (0, 0, 0);
    for sample in read(&script.stdout) {
        let names: Vec<&str> = sample.frames.iter().map(|frame| symbol(frame)).collect();
        let Some(("panics::burn", callers)) =
            names.split_first().map(|(first, rest)| (*first, rest))
        else {
            continue;
        };
        let count = |name: &str| callers.iter().filter(|caller| **caller == name).count();
        let reaches_start = callers
            .iter()
            .any(|name| matches!(*name, "_start" | "clone3" | "__clone3" | "__clone"));
        assert!(reaches_start, "{sample:#?}");
        // `fails` calls itself four times, and then panics.
        match count("panics::fails") {
            // In the thread, `walk(3)` has four frames; the innermost may be replaced by `burn`, which it calls last.
            0 => walked += usize::from(count("<panics::Walker as panics::Walk>::walk") >= 3),
            // The hook runs on top of all frames, destructors on top of fewer and fewer.
            5 if count("std::panicking::panic_with_hook") > 0 => hooked += 1,
            1..=5 => dropped += 1,
            more => panic!("{more} frames of five: {sample:#?}"),
        }
    }
    assert!(
        dropped > 0 && hooked > 0 && walked > 0,
        "{dropped} {hooked} {walked}"
    );
}

#[test]
fn programs_of_32_bits_are_unwound() {
    const NAME: &str = "programs_of_32_bits_are_unwound";
    if !cfg!(target_arch = "x86_64") {
        return skip(NAME, "only compilers for x86-64 build such programs");
    }
    let folder = ProgramFolder::new();
    let file = match folder.record(&IA32) {
        Ok(file) => file,
        Err(reason) => return skip(NAME, &reason),
    };
    let script = folder.rperf(&["script", "--no-inline", "-i", &file]);
    let (mut deep, mut alloca) = (0, 0);
    for sample in read(&script.stdout) {
        let names: Vec<&str> = sample.frames.iter().map(|frame| symbol(frame)).collect();
        match &names[..] {
            ["burn", "with_alloca", "run", "_start"] => alloca += 1,
            ["burn", inner @ .., "run", "_start"] if *inner == ["deep"; 9] => deep += 1,
            ["burn", ..] => panic!("{sample:#?}"),
            _ => {}
        }
    }
    if deep + alloca == 0 {
        return skip(NAME, "the kernel runs no 32-bit programs");
    }
    assert!(deep > 0 && alloca > 0, "{deep} {alloca}");
    let incomplete = " user callchains are incomplete";
    assert!(!script.stderr.contains(incomplete), "{}", script.stderr);
}

#[test]
fn frame_pointers_unwind_missing_programs() {
    // Recorded in a guest, on 64-bit Arm, from a program with frame pointers, whose file is missing here.
    let folder = ProgramFolder::new();
    let file = root().join("tests/fixtures/aarch64/dwarf.data");
    let script = folder.rperf(&["script", "-i", &file.to_string_lossy()]);
    let samples = read(&script.stdout);
    assert!(!samples.is_empty(), "{script:?}");
    for sample in samples {
        let of_program = |frame: &&&str| frame.ends_with("(/payload/load)");
        let depth = sample.frames.iter().filter(of_program).count();
        // Without frame pointers, only the sampled function and perhaps its caller (from the link register) are known.
        assert!(depth > 3, "{sample:#?}");
    }
    let message = "were unwound with frame pointers where unwind information is missing";
    assert!(script.stderr.contains(message), "{}", script.stderr);
}
