//! `-e` with names from a made-up sysfs: the attrs equal those of `perf record -vv`. Breakpoints, and refused events and traces.

use std::fs;
use std::path::Path;

use rperf_testkit::{Run, Scratch, real_perf, skip};

use crate::kernel::{record_in, rperf_in};

/// Files of a PMU with the formats of an Intel core, and of two uncore PMUs.
const SYSFS: [(&str, &str); 15] = [
    ("cpu/type", "4"),
    ("cpu/format/event", "config:0-7"),
    ("cpu/format/umask", "config:8-15"),
    ("cpu/format/inv", "config:23"),
    ("cpu/format/cmask", "config:24-31"),
    ("cpu/format/ldlat", "config1:0-15"),
    ("cpu/format/wide", "config2:0-7,32-35"),
    ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
    ("cpu/events/tx-abort", "event=0xc9,umask=0x4"),
    ("uncore_imc_0/type", "20"),
    ("uncore_imc_0/format/event", "config:0-7"),
    ("uncore_imc_0/events/reads", "event=0x4"),
    ("uncore_imc_0/events/reads.unit", "MiB"),
    ("uncore_imc_1/type", "21"),
    ("uncore_imc_1/format/event", "config:0-7"),
];

/// Creates a made-up sysfs for perf and rperf; returns its path.
pub(super) fn sysfs(folder: &Path) -> String {
    let root = folder.join("sys");
    for (name, text) in SYSFS {
        let path = root.join("bus/event_source/devices").join(name);
        fs::create_dir_all(path.parent().expect("in a folder")).expect("created");
        fs::write(path, format!("{text}\n")).expect("written");
    }
    fs::create_dir_all(root.join("devices")).expect("created");
    std::os::unix::fs::symlink("/sys/devices/system", root.join("devices/system")).expect("linked");
    root.display().to_string()
}

/// The lines of the first attr that `-vv` prints.
pub(super) fn first_attr(stderr: &str) -> Vec<&str> {
    let mut lines = stderr
        .lines()
        .skip_while(|line| *line != "perf_event_attr:");
    let inside = lines.by_ref().skip(1);
    inside.take_while(|line| !line.starts_with("---")).collect()
}

#[test]
fn attrs_of_named_events_match_perf() {
    let test = "commands::record_events::attrs_of_named_events_match_perf";
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    if cfg!(not(target_arch = "x86_64")) {
        return skip(test, "the PMU is one of x86");
    }
    let scratch = Scratch::new();
    let sysfs = sysfs(scratch.path());
    for event in [
        "r003c",
        "L1-dcache-load-misses:u",
        "cpu/event=0xa8,umask=0x1,cmask=1,inv,name=mine/",
        "cpu/r1a8,config1=3/k",
        "cpu/wide=0xfff,period=100/",
        "cpu/mem-loads/pp",
        "mem-loads:u",
        "tx-abort:k",
        "uncore_imc/event=4/",
        "sched:sched_switch/max-stack=3,call-graph=fp/",
    ] {
        let words = ["record", "-vv", "-o", "/dev/null", "-e", event, "true"];
        let theirs = Run::new(&perf).args(words).within(scratch.path());
        let theirs = theirs
            .env("SYSFS_PATH", &sysfs)
            .finish()
            .expect("perf starts");
        let ours = rperf_in(&scratch, &words).env("SYSFS_PATH", &sysfs);
        let ours = ours.finish().expect("rperf starts");
        let attr = first_attr(&ours.stderr);
        assert!(!attr.is_empty(), "{event}: {}", ours.stderr);
        assert_eq!(attr, first_attr(&theirs.stderr), "{event}");
    }
}

#[test]
fn unknown_pmu_terms_have_their_position() {
    let scratch = Scratch::new();
    let sysfs = sysfs(scratch.path());
    let words = ["record", "-e", "cpu/evnt=1/", "true"];
    let outcome = rperf_in(&scratch, &words).env("SYSFS_PATH", &sysfs);
    let outcome = outcome.finish().expect("rperf starts");
    let message = "event syntax error: 'cpu/evnt=1/'\n                         \\___ unknown term 'evnt' for pmu 'cpu', did you mean `event'?\nhint: valid terms: cmask,event,inv,";
    assert_eq!(outcome.status, 129);
    assert!(outcome.stderr.starts_with(message), "{}", outcome.stderr);
}

#[test]
fn counting_only_events_are_refused() {
    for (event, message) in [
        (
            "duration_time",
            "event duration_time can only be counted, by 'stat'",
        ),
        (
            "cs/percore/",
            "event cs/percore/: `percore' is supported by 'stat' only",
        ),
    ] {
        let refused = super::outcome(&["record", "-e", event, "true"]);
        assert_eq!(refused.status, 129, "{event}");
        assert!(refused.stderr.starts_with(message), "{}", refused.stderr);
    }
}

/// Creates a made-up sysfs that also has hardware trace PMUs; returns its path.
fn with_tracers(scratch: &Scratch) -> String {
    let sysfs = sysfs(scratch.path());
    for (name, number) in [
        ("intel_bts", 2_000_000_024_u32),
        ("intel_pt", 2_000_000_025),
    ] {
        let pmu = Path::new(&sysfs)
            .join("bus/event_source/devices")
            .join(name);
        fs::create_dir(&pmu).expect("created");
        fs::write(pmu.join("type"), format!("{number}\n")).expect("written");
    }
    sysfs
}

#[test]
fn unsupported_traces_and_trace_options_are_refused_before_a_file_is_created() {
    let scratch = Scratch::new();
    let sysfs = with_tracers(&scratch);
    let trace = ["-e", "intel_bts//u"];
    let per_thread = ["--per-thread", "-e", "intel_bts//u"];
    let cases: [(&[&str], &[&str], &str); 10] = [
        (
            &["-e", "intel_pt//u"],
            &[],
            "event intel_pt//u is not supported: intel_bts is the only hardware trace",
        ),
        (
            &trace,
            &[],
            "event intel_bts//u: the trace is recorded per thread, not per CPU",
        ),
        (
            &trace,
            &["-a"],
            "event intel_bts//u: the trace is recorded per thread, not per CPU",
        ),
        (
            &per_thread,
            &["-e", "intel_bts//"],
            "event intel_bts//: only one hardware trace",
        ),
        (
            &per_thread,
            &["--aux-sample"],
            "rperf record: --aux-sample is not supported yet; intel_bts has no AUX samples",
        ),
        (
            &per_thread,
            &["--overwrite"],
            "event intel_bts//u: --overwrite cannot be combined with a trace",
        ),
        (&per_thread, &["-Sx"], "--snapshot: 'x' is not a size"),
        (
            &per_thread,
            &["-Se", "--switch-output", "-o", "kept"],
            "--snapshot and --switch-output exclude each other",
        ),
        (&["-e", "cs"], &["-S"], "--snapshot needs a hardware trace"),
        (
            &["-e", "cs"],
            &["-m", "1,4"],
            "the second size of -m needs a hardware trace",
        ),
    ];
    for (events, options, message) in cases {
        let words = [&["record"], events, options, &["true"]].concat();
        let outcome = rperf_in(&scratch, &words).env("SYSFS_PATH", &sysfs);
        let outcome = outcome.finish().expect("rperf starts");
        assert_eq!(outcome.status, 129, "{words:?}");
        assert!(
            outcome.stderr.starts_with(message),
            "{words:?}: {}",
            outcome.stderr
        );
        for output in ["perf.data", "kept"] {
            assert!(!scratch.path().join(output).exists(), "{words:?}");
        }
    }
}

#[test]
fn a_trace_is_opened_with_the_attr_that_perf_uses() {
    let scratch = Scratch::new();
    let sysfs = with_tracers(&scratch);
    // No kernel has a PMU of this number; the output before the refusal is checked.
    let words = [
        "record",
        "-vv",
        "--per-thread",
        "-e",
        "intel_bts//u",
        "true",
    ];
    let outcome = rperf_in(&scratch, &words).env("SYSFS_PATH", &sysfs);
    let outcome = outcome.finish().expect("rperf starts");
    assert_ne!(outcome.status, 0);
    let attr = first_attr(&outcome.stderr);
    let attr: Vec<String> = attr
        .iter()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for field in [
        "type 2000000024",
        "{ sample_period, sample_freq } 1",
        "sample_type IP|TID|IDENTIFIER",
        "enable_on_exec 1",
    ] {
        let found = attr.iter().any(|line| line == field);
        assert!(found, "{field} in {attr:?}");
    }
    assert!(!scratch.path().join("perf.data").exists());
}

#[test]
fn breakpoints_can_be_opened_and_are_listed() {
    let scratch = Scratch::new();
    // No program has memory at this address, so that the breakpoint is never hit.
    let options = ["-e", "mem:0x1000/8:rw:u,cs/period=1/"];
    let outcome = record_in(&scratch, &options, &["true"]);
    if outcome.stderr.contains("mem:0x1000/8:rw:u") && outcome.status != 0 {
        return skip(
            "commands::record_events::breakpoints_can_be_opened_and_are_listed",
            "there are no breakpoints here",
        );
    }
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let listed = rperf_in(&scratch, &["evlist"])
        .finish()
        .expect("rperf starts");
    assert_eq!(listed.stdout, "mem:0x1000/8:rw:u\ncs/period=1/\n");
}

/// The kernel only returns EINVAL, which does not say which field it refuses.
#[test]
fn the_refused_attr_field_is_named() {
    let scratch = Scratch::new();
    let message = |event: &str| {
        let words = ["record", "-o", "perf.data", "-e", event, "true"];
        let outcome = rperf_in(&scratch, &words).finish().expect("rperf starts");
        assert_eq!(outcome.status, 255, "{event}");
        outcome.stderr
    };
    let refused = message("cs/freq=100000000/");
    let part = "because of its sample_period or sample_freq 0x5f5e100.";
    assert!(refused.contains(part), "{refused}");
}
