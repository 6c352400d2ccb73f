//! `rperf diff -c cycles`: basic blocks of branch stacks. The text is that of perf 7.2; perf 6.1 crashes.

use rperf_testkit::{Bytes, FileAttr, Outcome, PerfFile, Scratch};

use super::rperf;

/// Where the kernel is mapped.
const KERNEL: u64 = 0xffff_ffff_8100_0000;
const ID: u64 = 55;

/// Functions of 0x1000 bytes each, at offsets 0x1000, 0x2000 and 0x3000 of [`KERNEL`].
const KALLSYMS: &str = "\
ffffffff81000000 T _text
ffffffff81001000 T alpha
ffffffff81002000 T beta
ffffffff81003000 T gone
ffffffff81004000 T _etext
";

/// A branch: the offsets in the kernel that it leads from and to, and its cycles.
type Branch = (u64, u64, u64);

/// A recording of samples at these offsets in the kernel, with branch stacks, the newest branch first.
fn recording(samples: &[(u64, &[Branch])]) -> Vec<u8> {
    let mut file = PerfFile::new();
    let attr = FileAttr {
        kind: 1,
        period: 1000,
        // PERF_SAMPLE_IP | TID | TIME | BRANCH_STACK | IDENTIFIER
        sample_type: 1 | 2 | 4 | 1 << 11 | 1 << 16,
        flags: FileAttr::SAMPLE_ID_ALL,
        // PERF_SAMPLE_BRANCH_ANY
        branches: 8,
        ..FileAttr::default()
    };
    file.event(&attr, &[ID]);
    let map = Bytes::new().u32(u32::MAX).u32(0);
    let map = map.u64(KERNEL).u64(0x4000).u64(KERNEL);
    let map = map.text("[kernel.kallsyms]_text", 8);
    let map = map.u32(0).u32(0).u64(1).u64(ID).done();
    file.record(PerfFile::MMAP, PerfFile::KERNEL, map);
    for (offset, branches) in samples {
        let body = Bytes::new()
            .u64(ID)
            .u64(KERNEL + offset)
            .u32(7)
            .u32(7)
            .u64(10);
        let body = branches.iter().fold(
            body.u64(branches.len() as u64),
            |body, (from, to, cycles)| {
                let body = body.u64(KERNEL + from).u64(KERNEL + to);
                // The bit `mispred`, and `cycles` from bit 4 on.
                body.u64(1 | cycles << 4)
            },
        );
        file.record(PerfFile::SAMPLE, PerfFile::KERNEL, body.done());
    }
    // FINISHED_ROUND, and the header feature BRANCH_STACK.
    file.record(68, 0, []);
    file.machine("x86_64").feature(15, Vec::new());
    file.finish()
}

/// A folder with two recordings with branch stacks, one without, and the kernel's symbols.
fn folder() -> Scratch {
    let scratch = Scratch::new();
    // A loop from alpha+0x10 to alpha+0x50, and the branch that leaves it; loops in gone and beta. The start of the block that
    // ends in a stack's oldest branch (in alpha that of 90 cycles) is unknown.
    let alpha = |cycles: u64| {
        [
            (0x1030, 0x1060, 2),
            (0x1050, 0x1010, cycles + 3),
            (0x1050, 0x1010, cycles),
            (0x1050, 0x1010, 90),
        ]
    };
    let gone = [(0x3040, 0x3000, 5), (0x3040, 0x3000, 5)];
    let beta = [(0x2022, 0x2000, 7), (0x2022, 0x2000, 7)];
    let old: &[(u64, &[Branch])] = &[(0x1060, &alpha(20)), (0x1060, &alpha(20)), (0x3000, &gone)];
    let new: &[(u64, &[Branch])] = &[
        (0x1060, &alpha(30)),
        (0x1060, &alpha(10)),
        (0x1060, &alpha(60)),
        (0x2000, &beta),
    ];
    for (name, samples) in [("old.data", old), ("new.data", new)] {
        scratch.write(name, recording(samples)).expect("a file");
    }
    let plain = super::generated_files::Attr {
        // PERF_SAMPLE_IP | TID | TIME | IDENTIFIER
        sample_type: 1 | 2 | 4 | 1 << 16,
        ..super::generated_files::Attr::default()
    };
    let finished_round = super::generated_files::record(68, 0, Bytes::new());
    let plain = super::generated_files::file(&plain, "x86_64", &finished_round);
    scratch.write("plain.data", plain).expect("a file");
    scratch.write("kallsyms", KALLSYMS).expect("a file");
    scratch
}

fn diff(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = rperf(&[&["diff", "--kallsyms", "kallsyms"], words].concat());
    run.within(scratch.path()).finish().expect("rperf starts")
}

#[test]
fn blocks_of_sampled_functions_are_compared() {
    let scratch = folder();
    let outcome = diff(&scratch, &["-c", "cycles", "old.data", "new.data"]);
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{outcome:?}");
    let line = |share: &str, block: &str, function: &str| {
        format!("{share:>10}  {block:>70}  [kernel.kallsyms]  [k] {function}")
    };
    let rows: Vec<&str> = outcome.stdout.lines().skip(5).collect();
    // An execution of the block up to alpha+80 takes 266 / 6 cycles in old.data and 479 / 9 in new.data. The averages include
    // the executions whose start is unknown. Functions of only one file are not compared: gone has no block, beta has a 0.
    let expected = [
        line("66.67%", "[alpha+16 -> alpha+80]    9", "alpha"),
        line("66.67%", "[alpha+16 -> alpha+48]    0", "alpha"),
        line("33.33%", "", "gone"),
        line("", "[beta+0 -> beta+34]    0", "beta"),
    ];
    assert_eq!(rows, expected, "{}", outcome.stdout);
    let titles = "# Baseline                                       [Program Block Range] Cycles Diff  Shared Object      Symbol   ";
    assert_eq!(outcome.stdout.lines().nth(2), Some(titles));
}

#[test]
fn histograms_and_json_have_the_differences() {
    let scratch = folder();
    let words = [
        "-c",
        "cycles",
        "--cycles-hist",
        "-t;",
        "-q",
        "old.data",
        "new.data",
    ];
    let outcome = diff(&scratch, &words);
    let first = outcome.stdout.lines().next();
    // The histogram only has the executions that begin at the block's lowest start, alpha+16. They take 20, 23, 20, 23 cycles
    // in old.data and 30, 33, 10, 13, 60, 63 in new.data. The first four of each are compared pairwise: each absolute difference
    // is 10.
    let expected = "66.67;[alpha+16 -> alpha+80]    9;\u{b1}  0.0% \u{2581}\u{2581}\u{2581}\u{2581};[kernel.kallsyms];[k] alpha";
    assert_eq!(first, Some(expected), "{outcome:?}");
    let json = diff(
        &scratch,
        &["-c", "cycles", "--json", "old.data", "new.data"],
    );
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["compute"], "cycles");
    // `blocks` has an array for each line, with an entry for each file but the baseline: null if the file lacks the function.
    let block = &json["events"][0]["rows"][0]["blocks"][0][0];
    assert_eq!(block["range"], serde_json::json!(["alpha+16", "alpha+80"]));
    assert_eq!(block["difference"], 9, "{json}");
    let gone = &json["events"][0]["rows"][1]["blocks"];
    assert_eq!(*gone, serde_json::json!([[null]]), "{json}");
}

#[test]
fn invalid_options_and_files_without_branch_stacks_are_refused() {
    let scratch = folder();
    for (words, status, message) in [
        (
            &["-c", "cycles", "-s", "dso"][..],
            129,
            "-c cycles and --sort exclude each other",
        ),
        (&["--cycles-hist"], 129, "--cycles-hist needs -c cycles"),
    ] {
        let outcome = diff(&scratch, &[words, &["old.data", "new.data"]].concat());
        assert_eq!(outcome.status, status, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{words:?}: {outcome:?}");
    }
    let outcome = diff(&scratch, &["-c", "cycles", "old.data", "plain.data"]);
    assert_eq!(outcome.status, 255, "{outcome:?}");
    let message =
        "-c cycles: plain.data has no branch stacks\nhint: record them with 'record -b'\n";
    assert_eq!(outcome.stderr, message);
}
