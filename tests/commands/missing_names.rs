//! Messages on functions without names: the reason, and a hint what to do.

use std::fs;
use std::process::Command;

use rperf_testkit::{Scratch, skip};

use super::recording::{Recording, Sampled};
use crate::kernel::{is_root, record_in, rperf_in};
use crate::tidy::root;

/// `PERF_CONTEXT_USER`.
const USER: u64 = (-512_i64).cast_unsigned();
/// Commands that show names, writing to stdout.
const READERS: &[&[&str]] = &[
    &["report", "--stdio"],
    &["script"],
    &["flamegraph", "--folded"],
    &["data", "convert", "--to-folded", "-"],
    &["data", "convert", "--to-speedscope", "-"],
];

/// Compiles a program of `tests/workloads` with options for the compiler, and records it with these arguments; `None` without a
/// compiler.
fn record(
    scratch: &Scratch,
    source: &str,
    compiler_options: &[&str],
    arguments: &[&str],
) -> Option<()> {
    let program = scratch.path().join("program");
    let mut compiler = Command::new("cc");
    compiler.args(compiler_options).arg("-o").arg(&program);
    let source = root().join("tests/workloads").join(source);
    let built = compiler.arg(source).status().ok()?;
    assert!(built.success());
    let program = program.to_str().expect("a printable path");
    let options = ["-q", "-e", "cpu-clock:u", "-F", "999"];
    let outcome = record_in(scratch, &options, &[&[program], arguments].concat());
    assert_eq!(outcome.status, 0, "{outcome:?}");
    // Remove the copy of the program in the build-id cache: only the program itself can be read.
    let _ = fs::remove_dir_all(scratch.path().join(".debug"));
    Some(())
}

/// Runs all readers; returns the words of each, as text, and its stderr.
fn messages(scratch: &Scratch) -> Vec<(String, String)> {
    let run = |words: &&[&str]| {
        let outcome = rperf_in(scratch, words).finish().expect("rperf starts");
        assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
        (format!("{words:?}"), outcome.stderr)
    };
    READERS.iter().map(run).collect()
}

#[test]
fn objects_without_symbols_are_named_with_the_reason() {
    let test = "commands::missing_names::objects_without_symbols_are_named_with_the_reason";
    let scratch = Scratch::new();
    // The argument 200 is the depth of the recursion.
    if record(&scratch, "recursion.c", &["-O0", "-s"], &["200"]).is_none() {
        return skip(test, "there is no C compiler");
    }
    for (reader, text) in messages(&scratch) {
        let line = text
            .lines()
            .find(|line| line.starts_with("functions without names: "));
        let line = line.unwrap_or_else(|| panic!("{reader}: {text}"));
        assert!(line.contains("/program ("), "{reader}: {line}");
        assert!(
            text.contains("hint: install the packages"),
            "{reader}: {text}"
        );
    }
    let quiet = rperf_in(&scratch, &["report", "--stdio", "-q"]).finish();
    assert_eq!(quiet.expect("rperf starts").stderr, "");
}

/// The vdso's image has all symbols, so no package has names for its other addresses.
#[test]
fn addresses_without_names_in_the_vdso_are_not_reported() -> std::io::Result<()> {
    const VDSO: u64 = 0x7fff_0000_0000;
    let scratch = Scratch::new();
    let mut file = Recording::new();
    // All records but the sample have the time 0.
    file.comm(0, (10, 10), "program", 0);
    file.mmap(10, (VDSO, 0x2000, 0), "[vdso]", 0);
    // The header of the image is before all functions.
    let chain = [USER, VDSO + 8];
    file.sample(Sampled {
        ids: (10, 10),
        time: 1,
        chain: &chain,
    });
    scratch.write("perf.data", file.finish())?;
    for (reader, text) in messages(&scratch) {
        assert!(!text.contains("vdso"), "{reader}: {text}");
    }
    Ok(())
}

#[test]
#[cfg(target_arch = "x86_64")]
fn missing_and_refused_perf_maps_are_named() {
    let test = "commands::missing_names::missing_and_refused_perf_maps_are_named";
    let scratch = Scratch::new();
    // For 200 ms, and without writing a perf map.
    if record(&scratch, "jit.c", &["-O1"], &["200", "0"]).is_none() {
        return skip(test, "there is no C compiler");
    }
    let mut path = String::new();
    for (reader, text) in messages(&scratch) {
        let line = text
            .lines()
            .find(|line| line.starts_with("Failed to open /tmp/perf-"));
        let line = line.unwrap_or_else(|| panic!("{reader}: {text}"));
        assert!(line.ends_with(".map, continuing without symbols"), "{line}");
        assert_eq!(
            text.matches("Failed to open").count(),
            1,
            "{reader}: {text}"
        );
        assert!(
            text.contains("hint: the runtime writes the file: java "),
            "{text}"
        );
        // The path is the fourth word.
        line.split_whitespace()
            .nth(3)
            .expect("a path")
            .trim_end_matches(',')
            .clone_into(&mut path);
    }
    if !is_root() {
        return skip(test, "only root can give a file to another user");
    }
    fs::write(&path, "1000 10 name\n").expect("a file");
    std::os::unix::fs::chown(&path, Some(65_534), None).expect("root");
    let found = messages(&scratch);
    fs::remove_file(&path).expect("it was there");
    for (reader, text) in found {
        let line = format!("Warning: {path}: not owned by the current user or root, ignored\n");
        assert!(text.contains(&line), "{reader}: {text}");
        assert!(!text.contains("Failed to open"), "{reader}: {text}");
        assert!(text.contains("hint: chown "), "{reader}: {text}");
    }
}
