//! `rperf stat` with counts that BPF programs sum up: `--bpf-counters`, the modifier `b`, `--bpf-prog`.

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};

use rperf_bpf::ProgramBuilder;
use rperf_sys::RawTracepointProgram;
use rperf_testkit::{Outcome, Scratch, skip};

use crate::kernel::{Cgroups, rperf_in};

fn rperf(scratch: &Scratch, words: &[&str]) -> Outcome {
    rperf_in(scratch, words).finish().expect("rperf starts")
}

/// Whether BPF programs can be loaded; otherwise prints that the test is skipped.
fn has_bpf(test: &str) -> bool {
    let mut program = ProgramBuilder::new();
    program.exit();
    let code = program.encode(&[]).expect("a program");
    let no_name = "";
    let has = RawTracepointProgram::load(no_name, &code).is_ok();
    if !has {
        skip(test, "needs root and BPF");
    }
    has
}

/// Value, event and cgroup (without cgroups, the next field instead) of the rows of `-x,` that have a count.
fn counts(text: &str) -> Vec<(f64, String, String)> {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(',').collect();
        let value = words.first()?.parse().ok()?;
        let cgroup = words.get(3).copied().unwrap_or_default();
        Some((value, (*words.get(2)?).to_owned(), cgroup.to_owned()))
    });
    rows.collect()
}

/// Checks that the numbers differ by at most this share (`within`) of the greater one.
fn assert_close(one: f64, other: f64, within: f64, text: &str) {
    let distance = (one - other).abs();
    assert!(distance <= within * one.max(other), "{one} {other}: {text}");
}

/// A shell script that starts 100 children.
const CHILDREN: &str = "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done";

#[test]
fn a_command_and_its_children_have_the_counts_of_ordinary_counters() {
    if !has_bpf("a_command_and_its_children_have_the_counts_of_ordinary_counters") {
        return;
    }
    let scratch = Scratch::new();
    let events = "page-faults,page-faults:b,minor-faults:u,minor-faults:ub,task-clock,task-clock:b";
    let words = ["stat", "-x,", "-e", events, "--", "sh", "-c", CHILDREN];
    let counted = rperf(&scratch, &words);
    assert_eq!(counted.status, 0, "{}", counted.stderr);
    let rows = counts(&counted.stderr);
    assert_eq!(rows.len(), 6, "{}", counted.stderr);
    // More tolerance for times than for faults: the counters of a pair do not start and stop at the same moment.
    for (pair, within) in rows.chunks(2).zip([0.02, 0.02, 0.2]) {
        assert!(pair[0].0 > 1.0, "{}", counted.stderr);
        assert_close(pair[0].0, pair[1].0, within, &counted.stderr);
    }
}

#[test]
fn without_inheritance_children_are_not_counted() {
    if !has_bpf("without_inheritance_children_are_not_counted") {
        return;
    }
    let scratch = Scratch::new();
    let faults = |options: &[&str]| {
        let start = ["stat", "--bpf-counters", "-x,", "-e", "page-faults"];
        let words = [&start[..], options, &["--", "sh", "-c", CHILDREN]].concat();
        let counted = rperf(&scratch, &words);
        let rows = counts(&counted.stderr);
        assert_eq!(rows.len(), 1, "{}", counted.stderr);
        rows[0].0
    };
    let (with_children, of_shell) = (faults(&[]), faults(&["-i"]));
    // A shell has more than 50 faults of its own, and 100 children have many more than one shell.
    assert!(
        of_shell > 50.0 && of_shell * 2.0 < with_children,
        "{of_shell} {with_children}"
    );
}

#[test]
fn intervals_and_repetitions_have_counts() {
    if !has_bpf("intervals_and_repetitions_have_counts") {
        return;
    }
    let scratch = Scratch::new();
    let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let words = [
        "stat",
        "--bpf-counters",
        "-I",
        "20",
        "-x,",
        "-e",
        "task-clock",
        "--",
        "sh",
        "-c",
        busy,
    ];
    let counted = rperf(&scratch, &words);
    let of_intervals: Vec<f64> = counted
        .stderr
        .lines()
        .filter_map(|line| line.split(',').nth(1)?.parse().ok())
        .collect();
    assert!(of_intervals.len() > 2, "{}", counted.stderr);
    // Milliseconds of task-clock.
    assert!(of_intervals.iter().sum::<f64>() > 1.0, "{}", counted.stderr);
    let words = [
        "stat",
        "--bpf-counters",
        "-r",
        "2",
        "-x,",
        "-e",
        "page-faults",
        "true",
    ];
    let counted = rperf(&scratch, &words);
    // The start of any program has more than 10 faults.
    assert!(counts(&counted.stderr)[0].0 > 10.0, "{}", counted.stderr);
}

#[test]
fn cgroups_have_the_counts_of_ordinary_counters() {
    let test = "cgroups_have_the_counts_of_ordinary_counters";
    if !has_bpf(test) {
        return;
    }
    let own = format!("rperf-test-{}", std::process::id());
    let inner = format!("{own}/inner");
    let Some(cgroups) = Cgroups::create_below_root(test, &[&own, &inner]) else {
        return;
    };
    let scratch = Scratch::new();
    // A shell moves itself into the inner cgroup and is then replaced by the shell that runs CHILDREN. The variables of CHILDREN
    // are escaped, since the former shell would expand them in the double quotes.
    let work = format!(
        "sh -c 'echo $$ >{}/cgroup.procs; exec sh -c \"{CHILDREN}\"'",
        cgroups.0[1].display()
    )
    .replace("$i", "\\$i")
    .replace("$((", "\\$((");
    let list = format!("{own},{inner},/");
    let start = [
        "stat",
        "-a",
        "-x,",
        "-e",
        "page-faults,page-faults:b",
        "--for-each-cgroup",
    ];
    let words = [&start[..], &[&list, "--", "sh", "-c", &work]].concat();
    let counted = rperf(&scratch, &words);
    assert_eq!(counted.status, 0, "{}", counted.stderr);
    let rows = counts(&counted.stderr);
    assert_eq!(rows.len(), 6, "{}", counted.stderr);
    for pair in rows.chunks(2) {
        assert_eq!(pair[0].2, pair[1].2);
        // More than 20 faults of each of the 100 children.
        assert!(pair[0].0 > 2000.0, "{}", counted.stderr);
        assert_close(pair[0].0, pair[1].0, 0.02, &counted.stderr);
    }
    // A cgroup's counts include those of its descendants: the BPF counts of both test cgroups are equal.
    let exactly = 0.0;
    assert_close(rows[1].0, rows[3].0, exactly, &counted.stderr);
}

#[test]
fn programs_are_counted_or_refused_with_a_reason() {
    let test = "programs_are_counted_or_refused_with_a_reason";
    let mut program = ProgramBuilder::new();
    program.exit();
    let code = program.encode(&[]).expect("a program");
    let load = |name: &str| RawTracepointProgram::load(name, &code);
    // `load` adds type information (BTF) only to a program with a name.
    let (Ok(typed), Ok(untyped)) = (load("counted"), load("")) else {
        return skip(test, "needs root and BPF");
    };
    let id = |program: &RawTracepointProgram| {
        let info = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
        let info = fs::read_to_string(info).expect("own descriptor");
        let id = info
            .lines()
            .find_map(|line| line.strip_prefix("prog_id:\t"));
        id.expect("an id").to_owned()
    };
    let scratch = Scratch::new();
    let count = |id: &str| {
        rperf(
            &scratch,
            &["stat", "-b", id, "-e", "task-clock", "sleep", "0.05"],
        )
    };
    // Ids are above 0 and fit an `i32`: 4294967295 is no id, and 2147483647 is the highest one, which no program has.
    let invalid = count("4294967295");
    assert_eq!(invalid.status, 129, "{}", invalid.stderr);
    let missing = count("2147483647");
    assert!(
        missing
            .stderr
            .contains("no BPF program has the id 2147483647\nhint: ")
    );
    let refused = count(&id(&untyped));
    assert!(
        refused.stderr.contains("has no type information (BTF)"),
        "{}",
        refused.stderr
    );
    let _link = typed.attach("sys_enter").expect("a tracepoint");
    let counted = count(&id(&typed));
    // A kernel that cannot patch its code has no BPF trampolines.
    if counted.status != 0 {
        assert!(
            counted
                .stderr
                .contains("this kernel permits no programs at")
        );
        return;
    }
    let title = format!("for 'BPF program(s) {}':", id(&typed));
    assert!(counted.stderr.contains(&title), "{}", counted.stderr);
    assert!(
        counted.stderr.contains("msec task-clock"),
        "{}",
        counted.stderr
    );
}

#[test]
fn combinations_without_meaning_are_refused() {
    let scratch = Scratch::new();
    for (words, message) in [
        (
            &["stat", "-b", "1", "--bpf-counters", "true"][..],
            "exclude each other",
        ),
        (&["stat", "-b", "1", "-p", "1"], "exclude each other"),
        (
            &["stat", "--bpf-counters", "--per-thread", "-p", "1"],
            "--per-thread needs a counter",
        ),
        (
            &["stat", "record", "-e", "cs:b", "true"],
            "cannot be recorded",
        ),
        (
            &["record", "-e", "cs:b", "true"],
            "the modifier `b' is supported by 'stat' only",
        ),
        (
            &["top", "--stdio", "-e", "cs:b"],
            "the modifier `b' is supported by 'stat' only",
        ),
        (
            &["trace", "-e", "cs:b", "true"],
            "the modifier `b' is supported by 'stat' only",
        ),
    ] {
        let refused = rperf(&scratch, words);
        assert_eq!(refused.status, 129, "{words:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains(message),
            "{words:?}: {}",
            refused.stderr
        );
    }
}
