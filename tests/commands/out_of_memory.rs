//! Memory exhaustion (`ulimit -v`): a message, a hint and an exit status.

use std::fs::File;

use rperf_testkit::{Outcome, Run, Scratch};

use super::recording::{Recording, Sampled};

/// `PERF_CONTEXT_USER`.
const USER: u64 = (-512_i64).cast_unsigned();
/// Limits in KiB, in addition to what the binary needs to start: from hardly enough to enough for every command.
const BEYOND_START: [u64; 7] = [1_000, 6_000, 24_000, 54_000, 100_000, 200_000, 8_000_000];

/// Returns a recording of 2 MB of stacks. They are distinct, so memory use grows with their number.
fn large_recording() -> Vec<u8> {
    let mut file = Recording::new();
    file.comm(0, (10, 10), "program", 0);
    file.mmap(10, (0x0040_0000, 0x100_0000, 0), "/nonexistent/program", 0);
    for number in 0..8_000_u64 {
        let frame = |depth: u64| 0x0040_0000 + (number * 97 + depth * 7919) % 0x100_0000;
        let mut chain = vec![USER];
        chain.extend((0..30).map(frame));
        file.sample(Sampled {
            ids: (10, 10),
            time: 1_000_000 + number,
            chain: &chain,
        });
    }
    file.finish()
}

/// A file size in bytes that is too large to be mapped in [`SMALL_SPACE`].
const SPARSE: u64 = 1 << 30;
/// A limit of the address space, in KiB.
const SMALL_SPACE: u64 = 300_000;

/// Creates a sparse file of `SPARSE` bytes; returns its absolute path.
fn sparse(scratch: &Scratch, name: &str) -> String {
    let path = scratch.write(name, "").expect("a file can be written");
    let file = File::options().write(true).open(&path);
    let file = file.expect("the file is there");
    file.set_len(SPARSE).expect("a file may have holes");
    path.to_str().expect("a name in ASCII").to_owned()
}

/// Returns ascending limits of the address space, in KiB. The lowest one is hardly enough to start the binary.
fn limits(scratch: &Scratch) -> [u64; 7] {
    let mut steps = (16_000..1_000_000).step_by(1_000);
    let start = steps.find(|limit| limited(scratch, *limit, &["version"]).status == 0);
    let start = start.expect("the binary starts");
    BEYOND_START.map(|more| start + more)
}

/// Runs rperf with this limit of address space, in KiB.
fn limited(scratch: &Scratch, limit: u64, words: &[&str]) -> Outcome {
    let script = "ulimit -c 0; ulimit -v $0 && exec \"$@\"";
    let limit = limit.to_string();
    let binary = env!("CARGO_BIN_EXE_rperf");
    Run::new("sh")
        .args(["-c", script, &limit, binary])
        .args(words)
        .within(scratch.path())
        .finish()
        .expect("the shell starts")
}

/// Whether a command had enough memory; if not, checks the message and the hint.
#[track_caller]
fn succeeds(outcome: &Outcome, case: &str) -> bool {
    let Outcome { status, stderr, .. } = outcome;
    for word in ["panicked", "backtrace", "memory allocation of"] {
        assert!(!stderr.contains(word), "{case}: {stderr}");
    }
    // For annotate: the recorded program does not exist, so there is no code.
    if *status == 0 || *status == 1 && stderr.contains("no samples in functions") {
        return true;
    }
    assert_eq!(*status, 255, "{case}: {stderr}");
    assert!(
        stderr.contains("out of memory: ") && stderr.contains("\nhint: "),
        "{case}: {stderr}"
    );
    false
}

#[test]
fn readers_end_with_a_message_and_a_hint() {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", large_recording())
        .expect("a file can be written");
    let limits = limits(&scratch);
    let mut failures = 0;
    for words in [
        &["report", "--stdio"][..],
        &["report", "--stdio", "-j", "7"],
        &["script"],
        &["annotate", "--stdio"],
        &["flamegraph", "-o", "flame.svg"],
        &["data", "convert", "--force", "--to-json", "converted.json"],
        &["data", "convert", "--force", "--to-pprof", "converted.pb"],
    ] {
        let run = |limit: u64| {
            let case = format!("{words:?} in {limit} KiB");
            succeeds(&limited(&scratch, limit, words), &case)
        };
        let succeeded: Vec<bool> = limits.into_iter().map(run).collect();
        assert_eq!(succeeded.last(), Some(&true), "{words:?}");
        failures += succeeded
            .iter()
            .filter(|has_succeeded| !**has_succeeded)
            .count();
    }
    assert!(failures > 0, "no limit is low enough");
}

#[test]
fn recorders_end_with_a_message_and_a_hint() {
    let scratch = Scratch::new();
    let limits = limits(&scratch);
    for words in [
        &["record", "-e", "cpu-clock", "-o", "perf.data", "true"][..],
        &["stat", "-e", "task-clock", "true"],
    ] {
        let run = |limit: u64| {
            let case = format!("{words:?} in {limit} KiB");
            succeeds(&limited(&scratch, limit, words), &case)
        };
        // The last limit is enough.
        let succeeded: Vec<bool> = limits.into_iter().map(run).collect();
        assert_eq!(succeeded.last(), Some(&true), "{words:?}");
    }
}

#[test]
fn an_object_that_cannot_be_mapped_is_reported() {
    let scratch = Scratch::new();
    let object = sparse(&scratch, "object.so");
    let mut file = Recording::new();
    file.mmap(10, (0x0040_0000, 0x1000, 0), &object, 0);
    file.sample(Sampled {
        ids: (10, 10),
        time: 1,
        chain: &[USER, 0x0040_0010],
    });
    scratch
        .write("perf.data", file.finish())
        .expect("a file can be written");
    let outcome = limited(&scratch, SMALL_SPACE, &["report", "--stdio"]);
    assert_eq!(outcome.status, 255, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("object.so"), "{}", outcome.stdout);
    let message = format!("{object}: out of memory: {SPARSE} bytes of address space");
    assert!(outcome.stderr.contains(&message), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("\nhint: "), "{}", outcome.stderr);
}

#[test]
fn the_hint_suggests_one_thread_if_there_are_more() {
    let scratch = Scratch::new();
    sparse(&scratch, "perf.data");
    let stderr = |words: &[&str]| {
        let outcome = limited(&scratch, SMALL_SPACE, words);
        assert_eq!(outcome.status, 255, "{}", outcome.stderr);
        outcome.stderr
    };
    let message = format!(
        "failed to open perf.data: out of memory: {SPARSE} bytes of address space could not be mapped"
    );
    let raise_limit =
        format!("raise the limit of the address space (ulimit -v, now {SMALL_SPACE} KiB)");
    let input = ["-i", "perf.data"];
    assert_eq!(
        stderr(&[&["script", "-j2"][..], &input].concat()),
        format!(
            "{message}\nhint: use one thread (-j1), which needs less memory, or {raise_limit}\n"
        )
    );
    for words in [&["script", "-j1"][..], &["evlist"]] {
        assert_eq!(
            stderr(&[words, &input].concat()),
            format!("{message}\nhint: {raise_limit}\n")
        );
    }
}
