//! `-j`: the output does not depend on the number of threads.

use rperf_testkit::Scratch;

use super::recording::{Recording, Sampled};
use super::{rperf, without_notes};

/// `PERF_CONTEXT_USER`.
const USER: u64 = (-512_i64).cast_unsigned();

/// A recording that is large enough to be divided among several threads: two processes, one of which changes its mappings and its
/// name, callchains with more or fewer common frames, and times out of order, as in two ring buffers.
fn large_recording() -> Vec<u8> {
    let mut file = Recording::new();
    let (misc, begin) = (0, 0);
    for pid in [10, 11] {
        file.comm(misc, (pid, pid), "before", begin);
        // Address, size and file offset.
        file.mmap(
            pid,
            (0x0040_0000, 0x1_0000, 0),
            "/nonexistent/program",
            begin,
        );
    }
    for number in 0..20_000_u64 {
        let pid = 10 + u32::from(number % 3 == 0);
        let time = 1_000_000 + (number ^ 64) * 1_000;
        if number == 9_000 {
            file.mmap(
                pid,
                (0x0040_4000, 0x4000, 0),
                "/nonexistent/library.so",
                time,
            );
            file.comm(misc, (pid, pid), "after", time);
        }
        let frame = |depth: u64| 0x0040_0000 + number % (depth * 7) * 16 + depth;
        let mut chain = vec![USER];
        chain.extend((1..4 + number % 11).rev().map(frame));
        file.sample(Sampled {
            ids: (pid, pid),
            time,
            chain: &chain,
        });
    }
    file.finish()
}

#[test]
fn the_text_does_not_depend_on_the_threads() {
    let scratch = Scratch::new();
    let bytes = large_recording();
    // Threads read chunks of 1 MiB.
    assert!(bytes.len() > 2 << 20, "{}", bytes.len());
    scratch
        .write("perf.data", bytes)
        .expect("a file can be written");
    let print = |words: &[&str]| {
        let run = rperf(words)
            .within(scratch.path())
            .finish()
            .expect("the binary starts");
        let messages = without_notes(&run.stderr);
        assert_eq!((run.status, messages.as_str()), (0, ""), "{words:?}");
        assert!(run.stdout.len() > 1_000, "{words:?}");
        run.stdout
    };
    for command in [
        &["report", "--stdio"][..],
        &[
            "report",
            "--stdio",
            "--no-children",
            "-g",
            "caller",
            "-s",
            "pid,sym",
        ],
        &["script"],
    ] {
        let serial = print(&[command, &["-j", "1"]].concat());
        for jobs in ["2", "3", "16"] {
            assert!(
                print(&[command, &["-j", jobs]].concat()) == serial,
                "{command:?} -j {jobs}"
            );
        }
    }
}

#[test]
fn zero_threads_are_refused() {
    let scratch = Scratch::new();
    scratch
        .write("config", "[rperf]\njobs = 0\n")
        .expect("a file can be written");
    let config = scratch.path().join("config");
    for (words, origin) in [
        (&["script", "-j", "0"][..], "-j 0"),
        (&["script"], "the setting rperf.jobs = 0"),
    ] {
        let run = rperf(words)
            .env("PERF_CONFIG", &config)
            .finish()
            .expect("the binary starts");
        assert_eq!(run.status, 129);
        let message = format!("{origin}: give at least one thread");
        assert!(run.stderr.contains(&message), "{}", run.stderr);
    }
}
