//! `rperf trace`: structures and enumerations, formatted with the kernel's type information (BTF).

use std::path::Path;

use rperf_testkit::{Scratch, skip};

use super::trace::run;
use super::trace_lines::run_with_memory;
use crate::kernel::can_trace;

/// Whether this kernel has type information; otherwise prints that the test is skipped.
fn has_types(test: &str) -> bool {
    let has = Path::new("/sys/kernel/btf/vmlinux").exists();
    if !has {
        skip(test, "this kernel has no type information");
    }
    has
}

#[test]
fn structures_are_shown_by_the_types_of_the_kernel() {
    let test = "structures_are_shown_by_the_types_of_the_kernel";
    let scratch = Scratch::new();
    if !has_types(test) {
        return;
    }
    // Two calls: if another trace runs at the same time, the record with a call's structure may follow that of its return. The
    // first call is then printed without the structure; after that, rperf waits for the structure before it prints a call.
    let words = ["trace", "-e", "uname", "sh", "-c", "uname; uname"];
    let Some(calls) = run_with_memory(test, &scratch, &words) else {
        return;
    };
    let begin = r#"uname(name: { .sysname: "Linux", .nodename: ""#;
    assert!(
        calls.iter().any(|call| call.starts_with(begin)),
        "{calls:#?}"
    );
    // rperf's own layout of `timespec` shows all members, the kernel's type only those that are not 0.
    let sleep = ["-e", "clock_nanosleep", "sleep", "0.001"];
    for (option, expected) in [
        (
            &[][..],
            "clock_nanosleep(rqtp: { .tv_sec: 0, .tv_nsec: 1000000 }, rmtp: 0x",
        ),
        (
            &["--force-btf"],
            "clock_nanosleep(rqtp: { .tv_nsec: 1000000 }, rmtp: 0x",
        ),
    ] {
        let words = [&["trace"], option, &sleep[..]].concat();
        let calls = run_with_memory(test, &scratch, &words).unwrap_or_default();
        assert!(
            calls.iter().any(|call| call.starts_with(expected)),
            "{calls:#?}"
        );
    }
}

#[test]
fn values_of_enumerations_have_names() {
    let test = "values_of_enumerations_have_names";
    if !can_trace(test) || !has_types(test) {
        return;
    }
    let scratch = Scratch::new();
    let words = [
        "trace",
        "-a",
        "-e",
        "timer:hrtimer_start",
        "--max-events",
        "1",
        "sleep",
        "1",
    ];
    let ran = run(&scratch, &words);
    let mode = ran.stderr.split_once(", mode: ").map(|(_, mode)| mode);
    assert!(
        mode.is_some_and(|mode| mode.starts_with("HRTIMER_MODE_")),
        "{}",
        ran.stderr
    );
}
