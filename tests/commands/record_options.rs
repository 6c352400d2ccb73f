//! Options of `rperf record` that select when, how long and what is recorded.

use std::fs;
use std::path::Path;

use rperf_testkit::{Run, Scratch, real_perf, skip};

use crate::differential::settled;
use crate::kernel::{BUSY, Running, record_in, rperf_in};

#[test]
fn events_are_enabled_after_the_delay_or_in_its_ranges() {
    let scratch = Scratch::new();
    // The workload outlasts the last range on any machine.
    let rounds = format!("for round in 1 2 3 4 5 6; do {BUSY}; done");
    let work = ["sh", "-c", &rounds];
    let options = ["-e", "cpu-clock", "-D"];
    // Without samples, the last line reports only the file and its size.
    let never = record_in(&scratch, &[&options[..], &["-1"]].concat(), &work);
    assert!(never.stderr.starts_with("Events disabled\n"));
    assert!(
        never.stderr.ends_with(" MB perf.data ]\n"),
        "{}",
        never.stderr
    );
    let late = record_in(&scratch, &[&options[..], &["20"]].concat(), &work);
    let begin = "Events disabled\nEvents enabled\n[";
    assert!(late.stderr.starts_with(begin), "{}", late.stderr);
    assert!(late.stderr.ends_with(" samples) ]\n"), "{}", late.stderr);
    let ranges = record_in(&scratch, &[&options[..], &["5-10,20-25"]].concat(), &work);
    // Events are disabled at the start and after each range.
    assert_eq!(ranges.stderr.matches("Events enabled\n").count(), 2);
    assert_eq!(ranges.stderr.matches("Events disabled\n").count(), 3);
}

/// The size in kilobytes at which the recording of an endless program stops.
fn stops_at(options: &[&str]) -> u64 {
    let scratch = Scratch::new();
    let options = [&["-N", "-e", "cpu-clock", "-F", "20000"], options].concat();
    let outcome = record_in(&scratch, &options, &["sh", "-c", "while :; do :; done"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let start = "[ rperf record: perf size limit reached (";
    let size = outcome.stderr.strip_prefix(start);
    let size = size.and_then(|rest| rest.split(' ').next());
    size.and_then(|size| size.parse().ok())
        .expect(&outcome.stderr)
}

/// Rings are drained often enough for the recording to end near the limit: in one of the attempts of [`settled`], at
/// most 1.5 times the limit.
#[test]
fn a_recording_ends_at_its_size() {
    for options in [&[][..], &["--threads"], &["-m", "8"], &["-m", "4M", "-g"]] {
        let failures = settled(|| {
            let kilobytes = stops_at(&[&["--max-size", "64K"], options].concat());
            assert!(kilobytes >= 64, "{kilobytes}");
            let is_too_large = kilobytes > 96;
            is_too_large
                .then(|| format!("{options:?}: {kilobytes} KB"))
                .into_iter()
                .collect()
        });
        assert!(failures.is_empty(), "{failures:?}");
    }
    // The side-band records from the start of the program exceed this limit, but not the 64 KB of the cases above.
    assert!(stops_at(&["--max-size", "100B"]) < 64);
}

#[test]
fn fast_growth_is_reported_with_a_hint() {
    let target = Running::spin();
    let pid = target.0.id().to_string();
    let failures = settled(|| {
        let scratch = Scratch::new();
        let words = ["record", "-o", "/dev/null", "-F", "4000", "-e", "cpu-clock"];
        let options = ["--call-graph", "dwarf,65528", "-m", "8M", "-p", &pid];
        let words = [&words[..], &options, &["sleep", "2"]].concat();
        let outcome = rperf_in(&scratch, &words).finish().expect("rperf starts");
        let mut lines = outcome.stderr.lines();
        let is_reported = lines.any(|line| {
            let [before, after] = [" samples a second make ", " GB a minute: try -F "];
            line.starts_with("hint: ") && line.contains(before) && line.contains(after)
        });
        (!is_reported)
            .then_some(outcome.stderr)
            .into_iter()
            .collect()
    });
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn build_ids_and_their_cache_can_be_disabled() {
    let Some(perf) = real_perf() else {
        return skip(
            "commands::record_options::build_ids_and_their_cache_can_be_disabled",
            "there is no perf",
        );
    };
    let scratch = Scratch::new();
    let listed = || {
        let list = Run::new(&perf)
            .args(["buildid-list"])
            .within(scratch.path());
        list.finish().expect("perf starts").stdout
    };
    let work = ["sh", "-c", BUSY];
    record_in(&scratch, &["-N", "-e", "cpu-clock"], &work);
    // perf begins the line of an object without build-id with a space.
    let count_with_id = |list: &str| list.lines().filter(|line| !line.starts_with(' ')).count();
    assert!(count_with_id(&listed()) > 1, "{}", listed());
    record_in(&scratch, &["-B", "-e", "cpu-clock"], &work);
    assert_eq!(count_with_id(&listed()), 0, "{}", listed());
    assert!(!scratch.path().join(".debug").exists());
    record_in(&scratch, &["-e", "cpu-clock"], &work);
    // The mapped files that have samples are copied to .debug/PATH/BUILD-ID/elf, where PATH is the file's path.
    let shell = std::fs::canonicalize("/bin/sh").expect("a shell");
    let cached = scratch.path().join(".debug").join(relative(&shell));
    let folders: Vec<_> = std::fs::read_dir(cached)
        .expect("the shell is kept")
        .map(|folder| folder.expect("a folder").path())
        .collect();
    let elf = std::fs::read(folders[0].join("elf")).expect("a file");
    assert!(folders.len() == 1 && elf == std::fs::read(&shell).expect("a shell"));
    let id = folders[0]
        .file_name()
        .and_then(|id| id.to_str())
        .expect("an id");
    assert!(listed().contains(&format!("{id} {}", shell.display())));
}

#[test]
fn a_recording_ends_after_its_time() {
    let scratch = Scratch::new();
    let begun = std::time::Instant::now();
    let recorded = record_in(&scratch, &["--duration", "300ms"], &["sleep", "60"]);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let passed = begun.elapsed().as_millis();
    assert!((300..20_000).contains(&passed), "{passed}");
    let outcome = record_in(&scratch, &["--duration", "10x"], &["true"]);
    let message = "--duration: '10x' is not a duration\nhint: give seconds (10, 0.5)";
    assert_eq!(outcome.status, 129);
    assert!(outcome.stderr.starts_with(message), "{}", outcome.stderr);
}

#[test]
fn live_unwinding_copies_stacks() {
    let scratch = Scratch::new();
    let copies = |options: &[&str]| {
        let options = [options, &["-e", "cpu-clock"]].concat();
        let recorded = record_in(&scratch, &options, &["sh", "-c", BUSY]);
        assert_eq!(recorded.status, 0, "{}", recorded.stderr);
        let attrs = rperf_in(&scratch, &["evlist", "-v"]).finish();
        attrs.expect("rperf starts").stdout.contains("STACK_USER")
    };
    // `live`, alone or with `-g`, implies `--call-graph dwarf`. With `later`, `-g` means frame pointers.
    assert!(copies(&["--unwind", "live"]) && copies(&["-g", "--unwind", "live"]));
    assert!(!copies(&["-g", "--unwind", "later"]));
    let refused = record_in(
        &scratch,
        &["--call-graph", "fp", "--unwind", "live"],
        &["true"],
    );
    assert_eq!(refused.status, 129, "{}", refused.stderr);
}

#[test]
fn all_mapped_files_are_cached_on_request() {
    let scratch = Scratch::new();
    // There are no samples: the dummy event never has any.
    let cached = |options: &[&str]| {
        record_in(
            &scratch,
            &[options, &["-e", "dummy"]].concat(),
            &["sh", "-c", ":"],
        );
        let shell = std::fs::canonicalize("/bin/sh").expect("a shell");
        scratch
            .path()
            .join(".debug")
            .join(relative(&shell))
            .exists()
    };
    assert!(!cached(&[]), "it has no samples");
    assert!(cached(&["--buildid-all"]));
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").expect("an absolute path")
}

/// The warnings are those of perf.
#[test]
fn overridden_targets_are_named() {
    let scratch = Scratch::new();
    let pid = std::process::id().to_string();
    for (targets, warnings) in [
        (
            &["-p", &*pid, "-u", "0"][..],
            &["PID/TID switch overriding UID"][..],
        ),
        (
            &["-t", &*pid, "-a", "-C", "0"],
            &[
                "PID/TID switch overriding CPU",
                "PID/TID switch overriding SYSTEM",
            ],
        ),
        (&["-u", "0", "-a"], &["UID switch overriding SYSTEM"]),
    ] {
        let options = [&["--dry-run", "-e", "cpu-clock"], targets].concat();
        let outcome = record_in(&scratch, &options, &["true"]);
        let printed = outcome.stderr.lines();
        let printed = printed.filter_map(|line| line.strip_prefix("Warning: "));
        assert!(
            printed.eq(warnings.iter().copied()),
            "{targets:?}: {outcome:?}"
        );
    }
}

#[test]
fn a_dry_run_records_nothing() {
    let scratch = Scratch::new();
    let outcome = record_in(&scratch, &["--dry-run", "-e", "cpu-clock"], &["true"]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    assert!(!scratch.path().join("perf.data").exists());
    let wrong = record_in(&scratch, &["--dry-run", "-e", "nosuch"], &["true"]);
    assert_eq!(wrong.status, 129);
}

#[test]
fn invalid_and_conflicting_options_are_refused() {
    let scratch = Scratch::new();
    for (options, status, message) in [
        (
            &["-u", "no-such-user"][..],
            234,
            "Error:\nInvalid User: no-such-user\n",
        ),
        (
            &["-u", "4000000000"],
            244,
            "Couldn't create thread/CPU maps: No such process\nuser 4000000000 has no processes\n",
        ),
        (
            &["-D", "20-10"],
            129,
            "-D: '20-10' is not a delay\nhint: give milliseconds",
        ),
        (
            &["-k", "sundial"],
            129,
            "-k: unknown clock 'sundial'\nhint: choose from monotonic,",
        ),
        (
            &["--max-size", "7"],
            129,
            "--max-size: '7' is not a size\nhint: give bytes with a unit",
        ),
        (
            &["--synth", "x"],
            129,
            "Invalid synth option: x\nhint: choose from no, all, or some of task,mmap,cgroup\n",
        ),
        (
            &["--user-regs=ax,zx"],
            129,
            "--user-regs: unknown register 'zx'\nhint: choose from ax ",
        ),
        (
            &["-j", "any,x"],
            129,
            "unknown branch filter x\nhint: choose from u,k,hv,any,",
        ),
        (
            &["-b", "-j", "u"],
            129,
            "-b and -j exclude each other: -b is '-j any'\n",
        ),
        (
            &["--call-graph", "fp,deferred"],
            129,
            "'deferred' is not a number of frames: use --call-graph fp,N or fp,defer\n",
        ),
        (
            &["--kcore", "--switch-output=1s"],
            129,
            "--kcore writes a directory: it excludes pipes and --switch-output\n",
        ),
        (
            &["-F", "1000000000", "--strict-freq"],
            234,
            "error: Maximum frequency rate (",
        ),
    ] {
        let outcome = record_in(
            &scratch,
            &[options, &["-e", "cpu-clock"]].concat(),
            &["true"],
        );
        assert_eq!(outcome.status, status, "{options:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.starts_with(message),
            "{options:?}: {}",
            outcome.stderr
        );
        assert!(!scratch.path().join("perf.data").exists(), "{options:?}");
    }
}

#[test]
fn branch_sampling_is_refused_for_unsupported_events() {
    let scratch = Scratch::new();
    // cpu-clock never has branches.
    for options in [&["-b"][..], &["--call-graph", "lbr"]] {
        let outcome = record_in(
            &scratch,
            &[options, &["-e", "cpu-clock"]].concat(),
            &["true"],
        );
        assert_eq!(outcome.status, 255);
        assert_eq!(
            outcome.stderr,
            "Error:\ncpu-clock: PMU Hardware or event type doesn't support branch stack sampling.\nhint: for call graphs use --call-graph dwarf\n"
        );
    }
}

#[test]
fn tracepoints_are_read_from_debugfs_dir() {
    let scratch = Scratch::new();
    let event = scratch.path().join("tracing/events/made/up");
    fs::create_dir_all(&event).expect("own folder");
    fs::write(event.join("id"), "7\n").expect("writable");
    let status_with = |folder: &str| {
        let words = [
            "--debugfs-dir",
            folder,
            "record",
            "--dry-run",
            "-e",
            "made:up",
            "true",
        ];
        rperf_in(&scratch, &words)
            .finish()
            .expect("rperf starts")
            .status
    };
    assert_eq!(status_with("."), 0, "debugfs with a folder tracing");
    assert_eq!(status_with("tracing"), 0, "tracefs itself");
    assert_eq!(status_with("tracing/events"), 129);
}

/// If kernel memory is readable, a copy of the kernel's code is stored with the records; otherwise an error is reported
/// before the output is created.
#[test]
fn kcore_is_stored_with_the_recording() {
    let scratch = Scratch::new();
    let recorded = record_in(&scratch, &["--kcore", "-q", "-e", "cpu-clock"], &["true"]);
    let output = scratch.path().join("perf.data");
    if recorded.status == 0 {
        for file in [
            "data",
            "kcore_dir/kcore",
            "kcore_dir/kallsyms",
            "kcore_dir/modules",
        ] {
            assert!(output.join(file).is_file(), "{file}");
        }
    } else {
        let message = "ERROR: kcore is not readable.\n/";
        assert_eq!(recorded.status, 255, "{}", recorded.stderr);
        assert!(recorded.stderr.starts_with(message), "{}", recorded.stderr);
        assert!(!output.exists());
    }
}

#[test]
fn user_callchains_are_deferred_if_the_kernel_supports_it() {
    let scratch = Scratch::new();
    let options = ["-e", "cpu-clock:u", "--call-graph", "fp,defer"];
    let outcome = record_in(&scratch, &options, &["sh", "-c", BUSY]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let listed = rperf_in(&scratch, &["evlist", "-v"]).finish();
    let listed = listed.expect("rperf starts").stdout;
    let is_unsupported = outcome
        .stderr
        .contains("Warning: deferred user callchains need Linux 6.19 or later: ");
    let is_deferred = listed.contains("defer_callchain: 1, defer_output: 1");
    assert_eq!(is_deferred, !is_unsupported, "{listed}{}", outcome.stderr);
    assert!(listed.contains("|CALLCHAIN|"), "{listed}");
    for (command, excluded) in [
        (&["record", "--off-cpu", "--", "true"][..], "--off-cpu"),
        (&["top", "--stdio"], "top"),
    ] {
        let words = [&command[..1], &options, &command[1..]].concat();
        let refused = rperf_in(&scratch, &words).finish().expect("rperf starts");
        assert_eq!(refused.status, 129, "{refused:?}");
        assert!(refused.stderr.contains(excluded), "{refused:?}");
        assert!(refused.stderr.contains("fp,defer"), "{refused:?}");
    }
}
