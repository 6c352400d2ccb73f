//! `rperf report` over recordings made byte by byte; tests/differential/report.rs compares it with perf over real ones.

use rperf_testkit::{Outcome, Scratch, assert_golden};

use super::recording::{MISC_EXEC, MISC_USER, Recording, Sampled};
use super::rperf;
use crate::tidy::root;

const KERNEL: u64 = (-128_i64).cast_unsigned();
const USER: u64 = (-512_i64).cast_unsigned();
const GUEST: u64 = (-2048_i64).cast_unsigned();

/// Runs `report` on a file of these bytes in a folder of its own.
fn report(bytes: &[u8], words: &[&str]) -> Outcome {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("perf.data"), bytes).expect("the folder takes a file");
    rperf(&[&["report", "--stdio"], words].concat())
        .within(scratch.path())
        .finish()
        .expect("the binary starts")
}

/// Chains that fork, recurse, break off and lead nowhere, of two threads with three names.
fn recording() -> Vec<u8> {
    let mut file = Recording::new();
    file.comm(0, (10, 10), "first", 0);
    file.mmap(10, (0x0040_0000, 0x1000, 0x1000), "/nonexistent/program", 0);
    file.mmap(10, (0x0050_0000, 0x1000, 0), "/nonexistent/library.so", 0);
    let (main, left, right, outside) = (0x0040_0010, 0x0040_0020, 0x0050_0030, 0x9999_0000);
    let kernel = 0xffff_ffff_8100_0000;
    let mut time = 1_000;
    let mut sample = |file: &mut Recording, ids, chain: &[u64], count| {
        for _ in 0..count {
            time += 1_000;
            file.sample(Sampled { ids, time, chain });
        }
    };
    sample(&mut file, (10, 10), &[USER, left, main], 60);
    sample(&mut file, (10, 10), &[USER, right, main], 30);
    // Recursion, and frames between two unmapped ones.
    sample(
        &mut file,
        (10, 10),
        &[USER, left, left, outside, left, main],
        5,
    );
    sample(&mut file, (10, 10), &[KERNEL, kernel, USER, right, main], 3);
    // No frame at all, and a chain that a marker condemns.
    sample(&mut file, (10, 10), &[], 1);
    sample(&mut file, (10, 10), &[USER, left, GUEST, main], 1);
    file.fork((10, 10), (10, 11), 101_500);
    sample(&mut file, (10, 11), &[USER, left, main], 20);
    file.comm(MISC_EXEC | MISC_USER, (10, 10), "a longer name", 300_000);
    file.finish()
}

#[test]
fn the_text_of_every_kind_of_report() {
    let bytes = recording();
    let cases: &[(&str, &[&str])] = &[
        ("children", &[]),
        ("no-children", &["--no-children", "-n"]),
        ("callee", &["-g", "callee,5"]),
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
        assert_eq!(
            (outcome.status, outcome.stderr.as_str()),
            (0, ""),
            "{words:?}"
        );
        let path = root()
            .join("tests/golden/report")
            .join(format!("{name}.txt"));
        assert_golden(&path, &outcome.stdout);
    }
}

#[test]
fn stretches_between_branches_are_shown_by_their_cycles() {
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
    let refused = run("cycles.data");
    let message = "--total-cycles was given, but the samples have no branches\n";
    assert_eq!(refused.status, 255);
    assert!(refused.stderr.starts_with(message), "{refused:?}");
}

#[test]
fn details_tell_where_a_row_was_seen_first_and_where_its_name_is_from() {
    let words = ["-v", "-s", "dso,sym", "--no-children", "-g", "none"];
    let outcome = report(&recording(), &words);
    for row in [
        "/nonexistent/program     0x1020             ! [.] 0x0000000000001020",
        "/nonexistent/library.so  0x30               ! [.] 0x0000000000000030",
    ] {
        assert!(outcome.stdout.contains(row), "{outcome:?}");
    }
    assert!(
        outcome.stderr.contains("/nonexistent/program"),
        "{outcome:?}"
    );
}

#[test]
fn an_unknown_key_is_named_with_those_there_are() {
    let bytes = recording();
    for (option, key) in [("--sort", "sybmol"), ("--fields", "+sybmol")] {
        let outcome = report(&bytes, &[option, key]);
        assert_eq!(outcome.status, 129, "{outcome:?}");
        let message = format!("Unknown {option} key: `sybmol'\nhint: the keys are symbol, ");
        assert!(outcome.stderr.starts_with(&message), "{outcome:?}");
    }
}

#[test]
fn keys_of_what_is_not_counted_are_refused() {
    let bytes = recording();
    for (words, message) in [
        (
            &["-s", "mem"][..],
            "Invalid --sort key: `mem'\nhint: it is of memory accesses",
        ),
        (
            &["-s", "cycles"],
            "Invalid --sort key: `cycles'\nhint: it is of branches",
        ),
        (
            &["-s", "type,typeoff"],
            "Unknown --sort key: `type'\nhint: types of data are not known so far",
        ),
        (&["--time-quantum", "5"], "--time-quantum takes a number"),
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

#[test]
fn what_samples_cost_is_averaged() {
    let file = root().join("tests/fixtures/x86_64/memory.data");
    let file = file.to_string_lossy();
    let shown = |words: &[&str]| {
        let line = [&["report", "--stdio", "-q", "-i", &file], words].concat();
        let outcome = rperf(&line).finish().expect("the binary starts");
        assert_eq!(outcome.status, 0, "{outcome:?}");
        outcome.stdout
    };
    let averages = shown(&["-F", "weight1,weight2,weight3,overhead", "-s", "comm"]);
    // The processor that made the recording says the same of each sample.
    assert_eq!(
        averages,
        "      42.0       7.0       0.0   100.00%  load   \n\n\n"
    );
    assert_eq!(
        shown(&["-s", "dso,symoff", "-H"]),
        shown(&["-s", "dso,symoff", "--hierarchy"])
    );
}

#[test]
fn commands_that_differ_in_numbers_are_one_row() {
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
        let shown = outcome.stdout.lines().map(str::trim);
        let shown: Vec<&str> = shown.filter(|line| !line.is_empty()).collect();
        assert_eq!(shown, rows, "{outcome:?}");
    }
}

#[test]
fn idle_processors_can_be_left_out() {
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

/// One thread runs by itself, then two beside each other, whose time counts half.
#[test]
fn time_that_passes_is_shared_by_the_threads_that_run() {
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
    file.switch(11, true, 1_000);
    sample(&mut file, 11, 1_100);
    sample(&mut file, 11, 1_200);
    file.switch(11, false, 1_300);
    file.switch(12, true, 2_000);
    file.switch(13, true, 2_000);
    for time in [2_100, 2_200] {
        sample(&mut file, 12, time);
        sample(&mut file, 13, time);
    }
    file.switch(12, false, 3_000);
    let bytes = file.finish();
    let words = ["-q", "--no-children", "-g", "none", "-s"];
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
        let shown = outcome.stdout.lines().map(str::trim);
        let shown: Vec<&str> = shown.filter(|line| !line.is_empty()).collect();
        assert_eq!(shown, expected, "{outcome:?}");
    }
    let message = "Use of latency profile or parallelism requires --latency flag during record.\n\
        hint: context switches are recorded with 'record --latency'\n";
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
fn layouts_of_counts_are_checked() {
    let outcome = report(&recording(), &["-T", "--pretty", "nice"]);
    let message = "--pretty takes normal or raw, not 'nice'\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (129, message));
}

#[test]
fn tasks_stand_below_those_that_started_them() {
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
fn a_time_without_samples_is_an_error_that_names_the_options() {
    let outcome = report(&recording(), &["--time", "5000,6000"]);
    let message = "The perf.data data has no samples!\nhint: --time, --cpu, --hide-unresolved and such leave none of them\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (255, message));
    assert_eq!(outcome.stdout, "");
}

#[test]
fn branches_that_were_not_recorded_are_missed() {
    let mut file = Recording::with_branches();
    file.comm(0, (10, 10), "program", 0);
    file.sample(Sampled {
        ids: (10, 10),
        time: 1_000,
        chain: &[],
    });
    let outcome = report(&file.finish(), &["--branch-history"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let fixture = root().join("tests/fixtures/x86_64/precise.data");
    let path = fixture.to_str().expect("a path of text");
    let outcome = rperf(&["report", "--stdio", "-f", "--branch-history", "-i", path]).finish();
    let outcome = outcome.expect("the binary starts");
    let message = "--branch-history was given, but the samples have no branches\nhint: branches are recorded with 'record -b'\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (255, message));
    assert_eq!(outcome.stdout, "");
}

/// Callers that branches tell of stand there once, those behind them all; a loop is told once.
#[test]
fn chains_go_on_behind_their_branches() {
    let (leaf, middle, main) = (0x40_0100, 0x40_1100, 0x40_2100);
    let (foreseen, conditional, call) = (1 << 1, 1 << 20, 4 << 20);
    let turn = |flags| [leaf + 0x40, leaf + 4, flags | conditional | 3 << 4];
    let branches = [
        turn(foreseen),
        turn(foreseen),
        turn(0),
        [middle, leaf, foreseen | call],
    ];
    let mut file = Recording::with_branches();
    file.comm(0, (10, 10), "program", 0);
    file.mmap(10, (0x40_0000, 0x1_0000, 0), "/nonexistent/program", 0);
    file.sample_behind(
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
fn a_cut_file_shows_what_is_there_and_fails() {
    let bytes = recording();
    for cut in (104..bytes.len()).step_by(449) {
        let outcome = report(&bytes[..cut], &[]);
        assert!(
            outcome.status != 0 && !outcome.stderr.is_empty(),
            "cut at {cut}: {outcome:?}"
        );
        assert!(
            !outcome.stderr.contains("panicked"),
            "cut at {cut}: {outcome:?}"
        );
    }
}
