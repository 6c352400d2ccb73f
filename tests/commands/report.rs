//! `rperf report` on generated recordings and fixtures; tests/differential/report.rs compares it with perf on real ones.

use rperf_testkit::{Outcome, Scratch, assert_golden};

use super::recording::{MISC_EXEC, MISC_USER, Recording, Sampled};
use super::{rperf, without_notes};
use crate::kernel::{record_in, rperf_in};
use crate::tidy::root;

/// `PERF_CONTEXT_KERNEL`.
const KERNEL: u64 = (-128_i64).cast_unsigned();
/// `PERF_CONTEXT_USER`.
const USER: u64 = (-512_i64).cast_unsigned();
/// `PERF_CONTEXT_GUEST`.
const GUEST: u64 = (-2048_i64).cast_unsigned();

/// Runs `report` on a file of these bytes in its own folder.
fn report(bytes: &[u8], words: &[&str]) -> Outcome {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("perf.data"), bytes).expect("the folder takes a file");
    rperf(&[&["report", "--stdio"], words].concat())
        .within(scratch.path())
        .finish()
        .expect("the binary starts")
}

/// Callchains that branch, recurse, end early and have unmapped addresses, of two threads with the same name. The first thread is
/// renamed after its last sample.
fn recording() -> Vec<u8> {
    let mut file = Recording::new();
    file.comm(0, (10, 10), "first", 0);
    file.mmap(10, (0x0040_0000, 0x1000, 0x1000), "/nonexistent/program", 0);
    file.mmap(10, (0x0050_0000, 0x1000, 0), "/nonexistent/library.so", 0);
    let (main, left, right, outside) = (0x0040_0010, 0x0040_0020, 0x0050_0030, 0x9999_0000);
    let in_kernel = 0xffff_ffff_8100_0000;
    let mut time = 1_000;
    let mut sample = |file: &mut Recording, ids, chain: &[u64], count| {
        for _ in 0..count {
            time += 1_000;
            file.sample(Sampled { ids, time, chain });
        }
    };
    sample(&mut file, (10, 10), &[USER, left, main], 60);
    sample(&mut file, (10, 10), &[USER, right, main], 30);
    // Recursion, and an unmapped frame between mapped ones.
    sample(
        &mut file,
        (10, 10),
        &[USER, left, left, outside, left, main],
        5,
    );
    sample(
        &mut file,
        (10, 10),
        &[KERNEL, in_kernel, USER, right, main],
        3,
    );
    // No frame at all, and a chain invalidated by a context marker.
    sample(&mut file, (10, 10), &[], 1);
    sample(&mut file, (10, 10), &[USER, left, GUEST, main], 1);
    file.fork((10, 10), (10, 11), 101_500);
    sample(&mut file, (10, 11), &[USER, left, main], 20);
    file.comm(MISC_EXEC | MISC_USER, (10, 10), "a longer name", 300_000);
    file.finish()
}

#[test]
fn texts_match_the_golden_files() {
    let bytes = recording();
    let cases: &[(&str, &[&str])] = &[
        ("children", &[]),
        ("no-children", &["--no-children", "-n"]),
        ("callee", &["-g", "callee,5"]),
        // Without callchains; the mode `flat` of -g is in "list".
        ("flat", &["-g", "none", "-s", "dso,pid,comm", "-n"]),
        (
            "quiet",
            &["-q", "--no-children", "-g", "none", "-s", "sym,cpu,tid"],
        ),
        ("fractal", &["-g", "fractal,10"]),
        (
            "fractal-limit",
            &["-g", "fractal,0,1,count", "--no-children"],
        ),
        ("list", &["-g", "flat,0,period", "--no-children"]),
        ("folded", &["-g", "folded,0,count"]),
        ("fields", &["-F", "overhead_us,sample,comm", "-s", "dso"]),
        (
            "chosen",
            &["--comms", "first", "--tid", "11,12", "-g", "none", "-n"],
        ),
        (
            "separated",
            &[
                "-t",
                ";",
                "--percentage",
                "relative",
                "--dsos",
                "program",
                "--no-children",
            ],
        ),
        ("limits", &["-g", "0,1", "-s", "comm"]),
    ];
    for (name, words) in cases {
        let outcome = report(&bytes, words);
        let messages = without_notes(&outcome.stderr);
        assert_eq!((outcome.status, messages.as_str()), (0, ""), "{words:?}");
        let path = root()
            .join("tests/golden/report")
            .join(format!("{name}.txt"));
        assert_golden(&path, &outcome.stdout);
    }
}

#[test]
fn total_cycles_lists_blocks_between_branches_and_needs_branch_stacks() {
    let scratch = Scratch::new();
    let listing = "ffffffff81000000 T _text\nffffffff81000000 T _stext\nffffffff81400000 t spin\n\
                   ffffffff81480000 t walk\nffffffff82200000 T _etext\n";
    std::fs::write(scratch.path().join("kallsyms"), listing).expect("the folder takes a file");
    let run = |file: &str| {
        let file = root().join("tests/fixtures/x86_64").join(file);
        let file = file.to_string_lossy();
        let words = ["report", "--total-cycles", "-f", "--kallsyms", "kallsyms"];
        let run = rperf(&[&words[..], &["-i", &*file]].concat()).within(scratch.path());
        run.finish().expect("the binary starts")
    };
    let outcome = run("branches.data");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let path = root().join("tests/golden/report/total-cycles.txt");
    assert_golden(&path, &outcome.stdout);
    let without_branches = run("cycles.data");
    let message = "--total-cycles was given, but the samples have no branch stacks\n";
    assert_eq!(without_branches.status, 255);
    assert!(
        without_branches.stderr.starts_with(message),
        "{without_branches:?}"
    );
}

#[test]
fn verbose_rows_show_the_first_address_and_the_symbol_origin() {
    let words = ["-v", "-s", "dso,sym", "--no-children", "-g", "none"];
    let outcome = report(&recording(), &words);
    // `!` means that no symbol was found.
    for row in [
        "/nonexistent/program     0x1020             ! [.] 0x0000000000001020",
        "/nonexistent/library.so  0x30               ! [.] 0x0000000000000030",
    ] {
        assert!(outcome.stdout.contains(row), "{outcome:?}");
    }
    // The note on functions without names.
    assert!(
        outcome.stderr.contains("/nonexistent/program"),
        "{outcome:?}"
    );
}

#[test]
fn an_unknown_key_lists_the_known_ones() {
    let bytes = recording();
    for (option, key) in [("--sort", "sybmol"), ("--fields", "+sybmol")] {
        let outcome = report(&bytes, &[option, key]);
        assert_eq!(outcome.status, 129, "{outcome:?}");
        let message =
            format!("Unknown {option} key: `sybmol'\nhint: the keys, most similar first: symbol, ");
        assert!(outcome.stderr.starts_with(&message), "{outcome:?}");
    }
}

#[test]
fn unusable_keys_and_option_values_are_refused() {
    let bytes = recording();
    for (words, message) in [
        (
            &["-s", "mem"][..],
            "Invalid --sort key: `mem'\nhint: the key needs --mem-mode",
        ),
        (
            &["-s", "cycles"],
            "Invalid --sort key: `cycles'\nhint: the key needs branch stacks",
        ),
        (
            &["-s", "type,typeoff"],
            "Unknown --sort key: `type'\nhint: data types are not supported",
        ),
        (
            &["--time-quantum", "5"],
            "--time-quantum: '5' is not a time",
        ),
        (
            &["-s", "none.pid"],
            "Unknown --sort key: `none.pid'\nhint: the recording has no tracepoints",
        ),
        (
            &["--stdio-color=red"],
            "--stdio-color red: expected always, never or auto",
        ),
        (&["-p", "a("], "--parent a(: regex parse error"),
        (
            &["--ignore-callees", "["],
            "--ignore-callees [: regex parse error",
        ),
    ] {
        let outcome = report(&bytes, words);
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (129, ""),
            "{words:?}"
        );
        assert!(outcome.stderr.starts_with(message), "{outcome:?}");
    }
    let outcome = report(&bytes, &["-b"]);
    let message = "Selected -b but no branch data.\n";
    assert_eq!(outcome.status, 255, "{outcome:?}");
    assert!(outcome.stderr.starts_with(message), "{outcome:?}");
}

/// The output of `report -q` for a recording of memory accesses.
fn memory_report(words: &[&str]) -> String {
    let file = root().join("tests/fixtures/x86_64/memory.data");
    let file = file.to_string_lossy();
    let command_line = [&["report", "--stdio", "-q", "-i", &file], words].concat();
    let outcome = rperf(&command_line).finish().expect("the binary starts");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    outcome.stdout
}

#[test]
fn sample_weights_are_averaged() {
    let averages = memory_report(&["-F", "weight1,weight2,weight3,overhead", "-s", "comm"]);
    // All samples of this recording have the same weights.
    assert_eq!(
        averages,
        "      42.0       7.0       0.0   100.00%  load   \n\n\n"
    );
}

#[test]
fn hierarchy_has_a_short_option() {
    let output_of = |option: &str| {
        let output = memory_report(&["-s", "dso,symoff", option]);
        assert!(!output.is_empty());
        output
    };
    assert_eq!(output_of("-H"), output_of("--hierarchy"));
}

#[test]
fn the_time_until_retirement_is_a_key() {
    let mut bytes = std::fs::read(root().join("tests/fixtures/x86_64/memory.data"))
        .expect("the fixture is there");
    // Each sample has the weight 42 and an instruction latency of 7 cycles; 3 cycles until retirement are added.
    let (recorded, with_retirement) = (42_u64 | 7 << 32, 42_u64 | 7 << 32 | 3 << 48);
    for offset in 0..bytes.len() - 7 {
        if bytes[offset..offset + 8] == recorded.to_le_bytes() {
            bytes[offset..offset + 8].copy_from_slice(&with_retirement.to_le_bytes());
        }
    }
    let words = ["-f", "-F", "sample,retire_lat,local_retire_lat"];
    let outcome = report(&bytes, &words);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(
        lines.contains(&"#      Samples  Retire Latency  Local Retire Latency"),
        "{lines:?}"
    );
    // The sum of the latencies of all 59 samples, and the latency of each.
    assert!(
        lines.contains(&"            59  177             3                   "),
        "{lines:?}"
    );
}

#[test]
fn options_that_do_not_suit_the_recording_are_failures() {
    for (file, option, message) in [
        ("branches", "--mem-mode", "branch and mem mode incompatible"),
        ("memory", "-b", "Selected -b but no branch data."),
        (
            "cycles",
            "--mem-mode",
            "Selected --mem-mode but no mem data.",
        ),
        ("cycles", "--total-cycles", "--total-cycles was given, but "),
    ] {
        let fixture = root().join(format!("tests/fixtures/x86_64/{file}.data"));
        let bytes = std::fs::read(fixture).expect("the fixture is there");
        let outcome = report(&bytes, &["-f", option]);
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (255, ""),
            "{outcome:?}"
        );
        assert!(outcome.stderr.starts_with(message), "{outcome:?}");
    }
}

#[test]
fn comm_nodigit_and_tgid_merge_threads() {
    let mut file = Recording::new();
    for tid in [10, 11, 12] {
        let name = if tid == 12 {
            "main"
        } else {
            &format!("worker/{tid}")
        };
        file.comm(0, (10, tid), name, 0);
        file.sample(Sampled {
            ids: (10, tid),
            time: 1_000 + u64::from(tid),
            chain: &[],
        });
    }
    let bytes = file.finish();
    for (key, rows) in [
        (
            "comm_nodigit",
            ["66.67%  worker/<N>", "33.33%  main"].as_slice(),
        ),
        ("tgid", &["100.00%       10:worker/10"]),
    ] {
        let words = ["-q", "--no-children", "-g", "none", "-s", key];
        let outcome = report(&bytes, &words);
        let lines = outcome.stdout.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, rows, "{outcome:?}");
    }
}

#[test]
fn idle_samples_can_be_excluded() {
    let mut file = Recording::new();
    file.comm(0, (10, 10), "program", 0);
    for (tid, time) in [(0, 1_000), (10, 2_000), (0, 3_000)] {
        file.sample(Sampled {
            ids: (tid, tid),
            time,
            chain: &[],
        });
    }
    let bytes = file.finish();
    let words = ["-q", "--no-children", "-g", "none", "-s", "comm"];
    let all = report(&bytes, &words);
    assert!(all.stdout.contains("66.67%  swapper"), "{all:?}");
    let busy = report(&bytes, &[&words[..], &["--no-idle"]].concat());
    assert_eq!(busy.stdout.trim(), "100.00%  program", "{busy:?}");
}

/// One thread runs alone, then two in parallel: the samples of these two count as latency with half of their period.
#[test]
fn latency_is_shared_by_the_threads_running_in_parallel() {
    let mut file = Recording::new();
    for (tid, name) in [(11, "alone"), (12, "one"), (13, "other")] {
        file.comm(0, (10, tid), name, 0);
    }
    let sample = |file: &mut Recording, tid, time| {
        file.sample(Sampled {
            ids: (10, tid),
            time,
            chain: &[],
        });
    };
    let (switched_in, switched_out) = (true, false);
    file.switch(11, switched_in, 1_000);
    sample(&mut file, 11, 1_100);
    sample(&mut file, 11, 1_200);
    file.switch(11, switched_out, 1_300);
    file.switch(12, switched_in, 2_000);
    file.switch(13, switched_in, 2_000);
    for time in [2_100, 2_200] {
        sample(&mut file, 12, time);
        sample(&mut file, 13, time);
    }
    file.switch(12, switched_out, 3_000);
    let bytes = file.finish();
    let words = ["-q", "--no-children", "-g", "none", "-s"];
    // The first columns are overhead and latency, with --latency in reverse order, with `-F latency` only latency.
    for (more, expected) in [
        (
            ["comm"].as_slice(),
            [
                "33.33%    50.00%  alone",
                "33.33%    25.00%  one",
                "33.33%    25.00%  other",
            ]
            .as_slice(),
        ),
        (
            &["comm", "--latency"],
            &[
                "50.00%    33.33%  alone",
                "25.00%    33.33%  one",
                "25.00%    33.33%  other",
            ],
        ),
        (
            &["parallelism"],
            &[
                "66.67%    50.00%            2",
                "33.33%    50.00%            1",
            ],
        ),
        (
            &["comm", "--parallelism", "1", "--percentage", "relative"],
            &["100.00%   100.00%  alone"],
        ),
        (
            &["comm", "-F", "latency", "--parallelism", "2-3"],
            &["25.00%  one", "25.00%  other"],
        ),
    ] {
        let outcome = report(&bytes, &[&words[..], more].concat());
        let lines = outcome.stdout.lines().map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, expected, "{outcome:?}");
    }
    let message = "Use of latency profile or parallelism requires --latency flag during record.\n\
        hint: record context switches with 'record --latency'\n";
    for words in [
        &["--latency"][..],
        &["--parallelism", "1"],
        &["-s", "parallelism"],
    ] {
        let outcome = report(&recording(), words);
        assert_eq!((outcome.status, outcome.stderr.as_str()), (255, message));
    }
}

#[test]
fn the_argument_of_pretty_is_checked() {
    let outcome = report(&recording(), &["-T", "--pretty", "nice"]);
    let message = "--pretty: 'nice' is neither normal nor raw\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (129, message));
}

#[test]
fn tasks_are_below_their_parents() {
    let outcome = report(&recording(), &["--tasks"]);
    let expected = "\
#      pid      tid     ppid  comm
         0        0       -1 |swapper
        10       10       -1 |a longer name
        10       11       10 | first
";
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (0, expected),
        "{outcome:?}"
    );
}

#[test]
fn no_samples_is_an_error_that_names_the_events() {
    let mut file = Recording::new();
    file.comm(0, (1, 1), "init", 0);
    let outcome = report(&file.finish(), &[]);
    let message = "The perf.data data has no samples!\nhint: none of these events occurred while recording: cpu-clock:HG\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (255, message));
    assert_eq!(outcome.stdout, "");
}

#[test]
fn a_long_list_of_events_without_samples_is_shortened() {
    let scratch = Scratch::new();
    let events = ["dummy:u"; 20].join(",");
    let recorded = record_in(&scratch, &["-q", "-e", &events], &["true"]);
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let outcome = rperf_in(&scratch, &["report", "--stdio"]).finish();
    let outcome = outcome.expect("rperf starts");
    assert!(
        outcome.stderr.ends_with(", dummy:u and 12 more\n"),
        "{outcome:?}"
    );
}

#[test]
fn a_time_without_samples_is_an_error_that_names_the_options() {
    let outcome = report(&recording(), &["--time", "5000,6000"]);
    let message = "The perf.data data has no samples!\nhint: check the filters (--time, --cpu, --hide-unresolved, ...)\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (255, message));
    assert_eq!(outcome.stdout, "");
}

#[test]
fn branch_history_needs_branch_stacks() {
    let mut file = Recording::with_branches();
    file.comm(0, (10, 10), "program", 0);
    file.sample(Sampled {
        ids: (10, 10),
        time: 1_000,
        chain: &[],
    });
    // An event with branch stacks suffices, even if those of all samples are empty.
    let outcome = report(&file.finish(), &["--branch-history"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let fixture = root().join("tests/fixtures/x86_64/precise.data");
    let path = fixture.to_str().expect("a path of text");
    let outcome = rperf(&["report", "--stdio", "-f", "--branch-history", "-i", path]).finish();
    let outcome = outcome.expect("the binary starts");
    let message = "--branch-history was given, but the samples have no branch stacks\nhint: record branch stacks with 'record -b'\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (255, message));
    assert_eq!(outcome.stdout, "");
}

/// A branch from an unmapped address into the kernel: each end has its own privilege level, as in perf 6.1. `H` is an unknown
/// level.
#[test]
fn each_end_of_a_branch_has_its_own_level() {
    let fixture = root().join("tests/fixtures/x86_64/branches.data");
    let file = std::fs::read(fixture).expect("the fixture");
    let source = 0xffff_ffff_8147_f5de_u64.to_le_bytes();
    let at = file.windows(8).position(|bytes| bytes == source);
    let at = at.expect("the source of a branch");
    let unmapped = 0x7_0000_0000_u64.to_le_bytes();
    let file = [&file[..at], &unmapped, &file[at + 8..]].concat();
    let outcome = report(&file, &["-s", "symbol_from,symbol_to"]);
    let row = "  [H] 0x0000000700000000  [k] 0xffffffff8147f5dc\n";
    assert!(outcome.stdout.contains(row), "{outcome:?}");
}

/// The branches are followed by the callchain. Of the three passes of a loop, one is removed and two remain, as in perf.
#[test]
fn callchains_continue_after_branches() {
    let (leaf, middle, main) = (0x40_0100, 0x40_1100, 0x40_2100);
    // Flags of branch entries.
    let (predicted, three_cycles, conditional, call) = (1 << 1, 3 << 4, 1 << 20, 4 << 20);
    let loop_branch = |flags| [leaf + 0x40, leaf + 4, flags | conditional | three_cycles];
    let branches = [
        loop_branch(predicted),
        loop_branch(predicted),
        loop_branch(0),
        [middle, leaf, predicted | call],
    ];
    let mut file = Recording::with_branches();
    file.comm(0, (10, 10), "program", 0);
    file.mmap(10, (0x40_0000, 0x1_0000, 0), "/nonexistent/program", 0);
    file.sample_with_branches(
        &branches,
        Sampled {
            ids: (10, 10),
            time: 1_000,
            chain: &[USER, leaf + 8, middle + 5, main + 5],
        },
    );
    let bytes = file.finish();
    let words = ["-q", "--no-children", "-s", "comm", "--no-branch-stack"];
    let lines = |more: &[&str]| {
        let outcome = report(&bytes, &[&words[..], more].concat());
        assert_eq!(outcome.status, 0, "{outcome:?}");
        // Without the row and the line below it, which has no frame.
        let lines = outcome.stdout.lines().skip(2);
        let lines = lines.map(|line| line.trim_start_matches([' ', '|', '-']).to_owned());
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(&["-g", "callee,branch,address"]),
        [
            "0x400104", "0x400140", "0x400104", "0x400140", "0x400100", "0x401100", "0x400108",
            "0x401105", "0x402105"
        ]
    );
    assert_eq!(
        lines(&["--branch-history", "-g", "callee"])[..6],
        [
            "0x400104 (COND_BWD)",
            "0x400140 (cycles:3)",
            "0x400104 (COND_BWD predicted:0.0%)",
            "0x400140 (cycles:3 iter:1 avg_cycles:3)",
            "0x400100 (CALL CROSS_4K)",
            "0x401100",
        ]
    );
}

#[test]
fn a_truncated_file_is_reported_and_fails() {
    let bytes = recording();
    // The header has 104 bytes. The step only limits the number of runs.
    for end in (104..bytes.len()).step_by(449) {
        let outcome = report(&bytes[..end], &[]);
        assert!(
            outcome.status != 0 && !outcome.stderr.is_empty(),
            "truncated at {end}: {outcome:?}"
        );
        assert!(
            !outcome.stderr.contains("panicked"),
            "truncated at {end}: {outcome:?}"
        );
    }
}
