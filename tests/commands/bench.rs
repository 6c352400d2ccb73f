//! `bench`: text equal to perf's except for numbers; options, JSON, repetition, comparison.

mod internals;

use regex::Regex;
use rperf_testkit::{Run, Scratch};
use serde_json::Value;

use super::{outcome, rperf};
use crate::tools::Tools;

/// The text with `H` for addresses, `N` for numbers with the blanks before them, and `BB/sec` for units of rates. Adjacent lines
/// that become equal are merged.
fn shape(text: &str) -> String {
    let address = Regex::new("0x[0-9a-f]+").expect("a pattern");
    // perf's clock is too coarse for some short times; it prints the rate `inf` then.
    let number = Regex::new(r"[ \t]*-?(\d+(\.\d+)?|inf\b)").expect("a pattern");
    // The unit depends on how large the rate is.
    let unit = Regex::new("[GMK]B/sec").expect("a pattern");
    let text = unit.replace_all(text, "BB/sec");
    let text = address.replace_all(&text, "H");
    let text = number.replace_all(&text, "N");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.dedup();
    lines.join("\n")
}

/// Asserts that rperf succeeds without messages and prints the same as perf, except for numbers and its own name.
#[track_caller]
fn assert_same_shape(tools: &Tools, words: &[&str]) {
    let [perf, rperf] = tools.outcomes(words, b"");
    let text = rperf.stdout.replace("rperf", "perf");
    assert_eq!(
        shape(&text),
        shape(&perf.stdout),
        "{words:?}: {}",
        rperf.stderr
    );
    assert_eq!((rperf.status, &*rperf.stderr), (0, ""), "{words:?}");
}

/// Runs rperf, which must succeed without messages, and returns the shape of its output.
#[track_caller]
fn shape_of(words: &[&str]) -> String {
    let outcome = outcome(words);
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{words:?}");
    shape(&outcome.stdout)
}

/// Runs `bench --json`, which must succeed, and returns its output.
#[track_caller]
fn json(words: &[&str]) -> Value {
    let outcome = outcome(&[&["bench", "--json"], words].concat());
    assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

#[test]
fn text_has_the_shape_of_perfs() {
    let Some(tools) = Tools::find_for("commands::bench::text_has_the_shape_of_perfs") else {
        return;
    };
    for words in [
        "sched messaging -g 1 -l 2",
        "sched messaging -g 1 -l 2 -t -p",
        "sched pipe -l 20",
        "sched pipe -l 20 -T",
        "syscall basic -l 2000",
        "mem memcpy -s 10KB -f default",
        "mem memset -l 20 -s 100KB -f default",
        "mem find_bit -i 1 -j 1",
        "futex hash -t 2 -r 1 -f 4",
        "futex hash -t 1 -r 1 -f 1 -s -S",
        "-r 2 futex wake -t 3 -w 2",
        "-r 2 futex wake -t 3 -s",
        "-r 2 futex wake-parallel -t 4 -w 2",
        "-r 2 futex requeue -t 3 -q 2",
        "-r 2 futex requeue -t 3 -B -S",
        "-r 2 futex requeue -t 3 -p",
        "futex lock-pi -t 2 -r 1",
        "futex lock-pi -t 2 -r 1 -M -s",
        "epoll wait -t 2 -r 1 -f 4",
        "epoll wait -t 2 -r 1 -f 4 -N 2 -S -R -n",
        "epoll ctl -t 2 -r 1 -f 4",
        "breakpoint thread -t 3 -p 2",
        "breakpoint enable -a 1 -p 1",
        "breakpoint all",
        "internals synthesize -i 2",
        "internals synthesize -t -I 1 -M 1",
        "internals kallsyms-parse",
        "internals evlist-open-close -i 2 -n 3",
        "internals evlist-open-close -i 2 -a",
        "-f simple breakpoint enable",
        "-f simple mem memcpy -s 1MB -f default",
        "-f simple -r 1 futex wake -t 2",
        "-f simple sched messaging -g 1 -l 2",
        "-f simple sched pipe -l 20",
        "-f simple syscall basic -l 2000",
    ] {
        let words: Vec<&str> = ["bench"].into_iter().chain(words.split(' ')).collect();
        assert_same_shape(&tools, &words);
    }
}

#[test]
fn newer_benchmarks_have_the_shape_of_the_others() {
    let rates = "\nN usecs/op\nN ops/sec"; // These benchmarks are in newer perf than the one compared with.
    for (words, heading) in [
        ("sched seccomp-notify -l 20", "# ExecutedN system calls\n"),
        (
            "sched seccomp-notify -l 20 -s",
            "# ExecutedN system calls\n",
        ),
        (
            "sched pipe -l 20 -n -s 100000",
            "# ExecutedN pipe operations between two processes\n",
        ),
        ("syscall getpgid -l 20", "# ExecutedN getpgid() calls"),
        ("syscall fork -l 3", "# ExecutedN fork() calls"),
        ("syscall execve -l 3", "# ExecutedN execve() calls"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let running = format!("# Running '{}/{}' benchmark:", words[0], words[1]);
        let words = [&["bench"], words.as_slice()].concat();
        let expected = format!("{running}\n{heading}\n     Total time:N [sec]\n{rates}");
        assert_eq!(shape_of(&words), expected, "{words:?}");
    }
}

#[test]
fn memory_functions_have_a_speed_each() {
    let expected = |functions: &[&str], unit: &str| {
        let lines = functions.iter().map(|name| {
            let head = name.replace("86-64", "NN"); // As `shape` replaces it.
            format!("# function '{head}' (D)\n# CopyingNKB bytes ...\n\nN {unit}")
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    // Matches a function's description in a heading, and the spread of threads `( +- N% )`, but not that of runs, `(+-N%)`.
    let description = Regex::new(r"\([^+].*\)\n").expect("a pattern");
    let x86 = cfg!(target_arch = "x86_64");
    for (words, functions, unit) in [
        (
            "mem memcpy -s 8KB -k 1KB",
            &["default", "x86-64-unrolled", "x86-64-movsq", "x86-64-movsb"]
                [..if x86 { 4 } else { 1 }],
            "BB/sec",
        ),
        (
            "mem memset -s 8KB",
            &["default", "x86-64-unrolled", "x86-64-stosq", "x86-64-stosb"]
                [..if x86 { 4 } else { 1 }],
            "BB/sec",
        ),
        ("mem mmap -s 80KB", &["demand", "populate"], "BB/sec"),
        (
            "mem mmap -s 80KB -t 2 -r 5", // `-r`: at random, with this seed.
            &["demand", "populate"],
            "BB/sec/thread (D)",
        ),
    ] {
        let words: Vec<&str> = ["bench"].into_iter().chain(words.split(' ')).collect();
        let outcome = outcome(&words);
        assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{words:?}");
        let (_, text) = outcome.stdout.split_once('\n').expect("a heading");
        let text = description.replace_all(text, "(D)\n");
        let text = shape(&text).replace('\t', " ");
        let expected = expected(functions, unit);
        assert_eq!(text, expected, "{words:?}");
    }
}

#[test]
fn numa_results_have_the_shape_of_perfs() {
    let Some(tools) = Tools::find_for("commands::bench::numa_results_have_the_shape_of_perfs")
    else {
        return;
    };
    // Empty lines; the line with the options; notes, some of which perf prints in spite of -q; progress, which perf prints after
    // a second.
    let ignored = Regex::new(r"^$|# Running main|NOTE: | mins\]").expect("a pattern");
    let is_compared = |line: &&str| !ignored.is_match(line);
    let words = "bench numa mem -p 2 -t 1 -G 1 -P 2 -T 3 -l 40 -s 60 -C 0 -M 0";
    let words: Vec<&str> = words.split(' ').collect();
    for words in [words.clone(), [&words[..], &["-q"]].concat()] {
        let outcomes = tools.outcomes(&words, b"");
        let [perf, rperf] = outcomes.map(|outcome| {
            let lines: Vec<&str> = outcome.stdout.lines().filter(is_compared).collect();
            (outcome.status, shape(&lines.join("\n")))
        });
        assert_eq!(rperf, perf, "{words:?}");
    }
}

#[test]
fn memory_of_nodes_is_measured_with_each_list_of_options() {
    for words in [
        "-p 1 -t 2 -T 1 -l 2 -R",
        "-p 1 -t 1 -P 1 -L 1 -l 2 -W -B -z -H -1",
        "-p 1 -t 1 -P 1 -l 2 -r -I -0 -u 100 -H 1",
        "-p 1 -t 1 -P 1 -l 2 -Z",
    ] {
        let words: Vec<&str> = ["numa", "mem"]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        let report = json(&words);
        let results = report["benchmarks"][0]["results"].as_array();
        let results = results.expect("results");
        let variants: Vec<&str> = results
            .iter()
            .filter_map(|one| one["variant"].as_str())
            .collect();
        assert_eq!(variants, ["total", "thread"], "{words:?}");
        assert!(results[0]["mean"].as_f64() > Some(0.0), "{report}");
    }
}

#[test]
fn uprobe_benchmarks_print_a_result_or_why_not() {
    for name in [
        "baseline",
        "empty",
        "trace_printk",
        "empty_ret",
        "trace_printk_ret",
    ] {
        let outcome = outcome(&["bench", "uprobe", name, "-l", "5"]);
        match outcome.status {
            // Not permitted, or a kernel without uprobes or BPF: one line says so.
            2 => {
                assert_ne!(name, "baseline", "{outcome:?}");
                assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
            }
            status => {
                let expected = format!(
                    "# Running 'uprobe/{name}' benchmark:\n# ExecutedN usleep(N) calls\n     Total time:N usecs\n\nN usecs/op"
                );
                assert_eq!(
                    (status, shape(&outcome.stdout)),
                    (0, expected),
                    "{outcome:?}"
                );
            }
        }
    }
}

#[test]
fn common_options_are_accepted_after_the_benchmark() {
    let report = |words: &str| -> Value {
        let words: Vec<&str> = ["bench"].into_iter().chain(words.split(' ')).collect();
        let outcome = outcome(&words);
        assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
        serde_json::from_str(&outcome.stdout).expect("JSON")
    };
    let runs = |report: &Value, benchmark: usize| {
        let samples = &report["benchmarks"][benchmark]["results"][0]["samples"];
        samples.as_array().map(Vec::len)
    };
    let repeated = report("-r 2 syscall getpgid --json -l 50 -r 3");
    assert_eq!(runs(&repeated, 0), Some(3));
    assert_eq!(
        repeated["benchmarks"][0]["options"],
        serde_json::json!(["--loop=50"])
    );
    let all = report("breakpoint all --json -r 2");
    assert_eq!(all["benchmarks"].as_array().map(Vec::len), Some(2));
    // `-r` is the benchmark's option for the run time here.
    let futex = report("futex hash --json -t 1 -f 4 -r 1 --repeat 2");
    assert_eq!(runs(&futex, 0), Some(2));
    assert_eq!(
        futex["benchmarks"][0]["options"],
        serde_json::json!(["--threads=1", "--futexes=4", "--runtime=1"])
    );
}

#[test]
fn cycles_need_a_counter() {
    let outcome = outcome(&["bench", "mem", "memcpy", "-c", "-f", "default"]);
    match outcome.status {
        0 => assert!(outcome.stdout.contains(" cycles/byte\n"), "{outcome:?}"),
        status => {
            assert_eq!(status, 2, "{outcome:?}");
            let reason = "Failed to open cycles counter: ";
            assert!(outcome.stderr.starts_with(reason), "{outcome:?}");
        }
    }
}

#[test]
fn lists_have_perfs_lines_in_order() {
    let Some(tools) = Tools::find_for("commands::bench::lists_have_perfs_lines_in_order") else {
        return;
    };
    // Without a name, the collections are listed.
    for collection in ["", "sched", "syscall", "mem", "numa", "futex", "breakpoint"] {
        let words = [&["bench"], [collection].as_slice()].concat();
        let words = &words[..if collection.is_empty() { 1 } else { 2 }];
        let [perf, rperf] = tools.outcomes(words, b"");
        assert_eq!((perf.status, rperf.status), (0, 0));
        let text = rperf.stdout.replace("rperf", "perf");
        let ours: Vec<&str> = text.lines().collect();
        let perfs: Vec<&str> = perf.stdout.lines().collect();
        let common = ours.iter().copied().filter(|line| perfs.contains(line));
        assert_eq!(common.collect::<Vec<_>>(), perfs, "{words:?}: {text}");
        // Further lines of rperf are benchmarks of newer perf.
        let mut added = ours.iter().filter(|line| !perfs.contains(*line));
        assert!(added.all(|line| line.contains(": ")), "{text}");
    }
}

#[test]
fn unknown_names_and_bad_values_are_refused() {
    for (words, status, message) in [
        ("nosuch", 1, "Unknown collection: 'nosuch'\n"),
        (
            "sched nosuch",
            1,
            "Unknown benchmark: 'nosuch' for collection 'sched'\n",
        ),
        ("-f csv sched pipe", 1, "Unknown format descriptor: 'csv'\n"),
        (
            "-r 0 sched pipe",
            1,
            "Invalid repeat option: Must specify a positive value\n",
        ),
        (
            "sched pipe -l 0",
            129,
            " Error: option `loop' expects a number above 0",
        ),
        (
            "sched pipe -l x",
            129,
            " Error: option `loop' expects a numerical value",
        ),
        ("sched pipe -Z", 129, "  Error: unknown switch 'Z'"),
        ("sched pipe extra", 129, "  Error: unexpected word 'extra'"),
        (
            "sched pipe -G a,b",
            129,
            "rperf bench sched pipe: --cgroups is not supported yet",
        ),
        ("sched all -l 1", 129, "  Error: unknown switch 'l'"),
        ("all sched", 129, "  Error: unexpected word 'sched'"),
        ("all -r 0", 1, "Invalid repeat option: "),
        ("sched pipe -f csv", 1, "Unknown format descriptor: 'csv'\n"),
        (
            "-f simple sched pipe --json",
            129,
            "rperf bench: --json and",
        ),
        ("numa mem -p 0", 129, " Error: option `nr_proc' expects"),
        ("numa mem -P 1 -L 2", 129, "--mb_proc_locked is a part"),
        ("numa mem -G 0", 129, "there is no memory to access"),
        (
            "numa mem -C x",
            129,
            " Error: option `cpus' expects a list: 'x'",
        ),
        ("numa mem -H x", 129, " Error: option `thp' expects"),
        (
            "numa mem -G 9999999",
            129,
            " Error: option `mb_global' expects",
        ),
        (
            "numa mem -a -p 2",
            129,
            "--all and --nr_proc exclude each other",
        ),
        (
            "numa mem -M 63000",
            2,
            "Test not applicable, system has only ",
        ),
        (
            "numa mem -m",
            129,
            "rperf bench numa mem: --measure_convergence is not supported yet",
        ),
        (
            "--precision 0 sched pipe",
            129,
            "rperf bench: --precision '0': ",
        ),
        (
            "--json -f simple sched pipe",
            129,
            "rperf bench: --json and --format",
        ),
        (
            "--baseline /nonexistent/file sched pipe",
            255,
            "failed to open /nonexistent/file: ",
        ),
    ] {
        let words: Vec<&str> = ["bench"].into_iter().chain(words.split(' ')).collect();
        let outcome = outcome(&words);
        assert_eq!(outcome.status, status, "{words:?}: {outcome:?}");
        assert!(
            outcome.stderr.starts_with(message),
            "{words:?}: {outcome:?}"
        );
    }
}

#[test]
fn repeated_runs_have_a_mean() {
    let words = ["bench", "-r", "3", "syscall", "getpgid", "-l", "50"];
    let output = outcome(&words).stdout;
    assert_eq!(output.matches("# Executed 50 getpgid() calls").count(), 3);
    let (_, mean) = output.split_once("\n# Mean of 3 runs:\n").expect("means");
    assert_eq!(shape(mean), "N usecs/op (+-N%)");
    let words = [
        "bench", "-f", "simple", "-r", "3", "syscall", "fork", "-l", "2",
    ];
    assert_eq!(shape_of(&words), "N"); // The mean only.
    let report = json(&["-r", "3", "syscall", "getpgid", "-l", "50"]);
    let result = &report["benchmarks"][0]["results"][0];
    let samples = result["samples"].as_array().expect("samples");
    let sum: f64 = samples.iter().filter_map(Value::as_f64).sum();
    let mean = result["mean"].as_f64().expect("a mean");
    assert_eq!(samples.len(), 3);
    assert!((sum / 3.0 - mean).abs() < 1e-9 * mean, "{report}");
}

#[test]
fn a_precision_decides_the_number_of_runs() {
    let runs = |words: &[&str]| {
        let report = json(&[words, &["syscall", "getpgid", "-l", "500"]].concat());
        let samples = &report["benchmarks"][0]["results"][0]["samples"];
        samples.as_array().expect("samples").len()
    };
    // At least 3 runs, even if fewer reach the precision; at most as many as -r allows.
    assert_eq!(runs(&["--precision", "1000000"]), 3);
    assert_eq!(runs(&["--precision", "0.000001", "-r", "7"]), 7);
    let words = [
        "bench",
        "--precision",
        "0.000001",
        "-r",
        "4",
        "syscall",
        "getpgid",
        "-l",
        "9",
    ];
    let warning = "Warning: syscall/getpgid: +-0.000001% was not reached in 4 runs: +-";
    let outcome = outcome(&words);
    assert!(outcome.stderr.starts_with(warning), "{outcome:?}");
}

#[test]
fn results_are_compared_with_a_baseline() {
    let scratch = Scratch::new();
    // Enough runs of sufficient length, so that a single run interrupted by other programs does not hide a difference.
    let mut baseline = json(&["-r", "10", "syscall", "getpgid", "-l", "100000"]);
    let mut compare = |samples: [f64; 3]| {
        baseline["benchmarks"][0]["results"][0]["samples"] = samples.as_slice().into();
        std::fs::write(scratch.path().join("base.json"), baseline.to_string()).expect("a file");
        let words = "bench -r 10 --baseline base.json syscall getpgid -l 100000";
        let words: Vec<&str> = words.split(' ').collect();
        let outcome = rperf(&words)
            .within(scratch.path())
            .finish()
            .expect("a run");
        let (_, text) = outcome
            .stdout
            .split_once("\n# Compared with base.json:\n")
            .expect("a comparison");
        (outcome.status, text.to_owned())
    };
    // Samples are in microseconds; a system call takes neither a picosecond nor an hour.
    let (status, text) = compare([1e-6, 1.1e-6, 1.2e-6]);
    assert!(
        status == 1 && text.ends_with(": worse\n"),
        "{status} {text}"
    );
    let (status, text) = compare([3.6e9, 3.7e9, 3.8e9]);
    assert!(
        status == 0 && text.ends_with(": better\n"),
        "{status} {text}"
    );
    // The earlier samples vary too much.
    let (status, text) = compare([1e-6, 1e6, 1e-6]);
    assert!(
        status == 0 && text.ends_with(": no difference\n"),
        "{status} {text}"
    );
    baseline["benchmarks"][0]["options"] = Value::Array(Vec::new());
    std::fs::write(scratch.path().join("base.json"), baseline.to_string()).expect("a file");
    let words = [
        "bench",
        "--baseline",
        "base.json",
        "syscall",
        "getpgid",
        "-l",
        "9",
    ];
    let outcome = rperf(&words)
        .within(scratch.path())
        .finish()
        .expect("a run");
    let line = "  syscall/getpgid: not compared: its options differ from the earlier run\n  nothing was compared\n";
    assert!(
        outcome.status == 1 && outcome.stdout.ends_with(line),
        "{outcome:?}"
    );
}

#[test]
fn all_continues_after_a_benchmark_that_cannot_run() {
    // Too few file descriptors are left for the events.
    let command = format!(
        "ulimit -n 4; exec {} bench breakpoint all",
        env!("CARGO_BIN_EXE_rperf")
    );
    let outcome = Run::new("sh")
        .args(["-c", &command])
        .finish()
        .expect("a shell");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    for name in ["thread", "enable"] {
        let heading = format!("# Running breakpoint/{name} benchmark...\n");
        let reason = format!("breakpoint/{name}: perf_event_open: ");
        assert!(outcome.stdout.contains(&heading), "{outcome:?}");
        assert!(outcome.stderr.contains(&reason), "{outcome:?}");
    }
}

#[test]
fn pmus_are_scanned() {
    let expected = "# Running 'internals/pmu-scan' benchmark:\n\
        Computing performance of sysfs PMU event scan forN times\n  \
        Average core PMU scanning took:N usec (+-N usec)\n  \
        Average PMU scanning took:N usec (+-N usec)";
    assert_eq!(
        shape_of(&["bench", "internals", "pmu-scan", "-i", "2"]),
        expected
    );
}

#[test]
fn a_benchmark_is_a_workload_of_other_commands() {
    let rperf = env!("CARGO_BIN_EXE_rperf");
    let words = [
        "stat",
        "-e",
        "task-clock",
        "--",
        rperf,
        "bench",
        "sched",
        "messaging",
        "-g",
        "1",
    ];
    let outcome = outcome(&words);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stdout.contains("     Total time: "), "{outcome:?}");
    assert!(outcome.stderr.contains("task-clock"), "{outcome:?}");
}

#[test]
fn examples_of_the_first_benchmark_of_each_collection_run() {
    for collection in [
        "sched",
        "syscall",
        "mem",
        "futex",
        "epoll",
        "internals",
        "breakpoint",
        "numa",
        "uprobe",
    ] {
        let list = outcome(&["bench", collection]).stdout;
        let (_, list) = list.split_once(":\n\n").expect("a list");
        let names = list.lines().filter_map(|line| line.split_once(": "));
        let names: Vec<&str> = names.map(|(name, _)| name.trim()).collect();
        let name = names.first().expect("a benchmark");
        let help = outcome(&["bench", collection, name, "-h"]).stderr;
        let (_, examples) = help.split_once("\n Examples:\n").expect("examples");
        let lines = examples
            .lines()
            .filter_map(|line| line.strip_prefix("    rperf "));
        let lines: Vec<&str> = lines.filter_map(|line| line.split("  ").next()).collect();
        assert!(lines.len() > 1, "{examples}");
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let outcome = outcome(&words);
            // Status 2: this machine cannot run the benchmark.
            assert!([0, 2].contains(&outcome.status), "{line}: {outcome:?}");
        }
    }
}
