//! Options of `rperf record` that decide when, how long and for whom is recorded.

use std::fs;
use std::path::Path;

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use crate::differential::settled;
use crate::kernel::{BUSY, Running, rperf_in};

fn record(scratch: &Scratch, options: &[&str], workload: &[&str]) -> Outcome {
    let words = [&["record", "-o", "perf.data"], options, workload].concat();
    rperf_in(scratch, &words).finish().expect("rperf starts")
}

#[test]
fn delayed_events_miss_the_beginning() {
    let scratch = Scratch::new();
    let work = ["sh", "-c", BUSY];
    let options = ["-e", "cpu-clock", "-D"];
    let never = record(&scratch, &[&options[..], &["-1"]].concat(), &work);
    assert!(never.stderr.starts_with("Events disabled\n"));
    assert!(
        never.stderr.ends_with(" MB perf.data ]\n"),
        "{}",
        never.stderr
    );
    let late = record(&scratch, &[&options[..], &["20"]].concat(), &work);
    let begin = "Events disabled\nEvents enabled\n[";
    assert!(late.stderr.starts_with(begin), "{}", late.stderr);
    assert!(late.stderr.ends_with(" samples) ]\n"), "{}", late.stderr);
    let ranges = record(&scratch, &[&options[..], &["5-10,20-25"]].concat(), &work);
    assert_eq!(ranges.stderr.matches("Events enabled\n").count(), 2);
    assert_eq!(ranges.stderr.matches("Events disabled\n").count(), 3);
}

/// Kilobytes at which a recording of a program without an end stops.
fn stops_at(options: &[&str]) -> u64 {
    let scratch = Scratch::new();
    let options = [&["-N", "-e", "cpu-clock", "-F", "20000"], options].concat();
    let outcome = record(&scratch, &options, &["sh", "-c", "while :; do :; done"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let said = "[ rperf record: perf size limit reached (";
    let size = outcome.stderr.strip_prefix(said);
    let size = size.and_then(|rest| rest.split(' ').next());
    size.and_then(|size| size.parse().ok())
        .expect(&outcome.stderr)
}

/// Rings of any size are emptied in time, whoever does it. What is told of the program alone may be enough.
#[test]
fn a_recording_ends_at_its_size() {
    for options in [&[][..], &["--threads"], &["-m", "8"], &["-m", "4M", "-g"]] {
        let found = settled(|| {
            let kilobytes = stops_at(&[&["--max-size", "64K"], options].concat());
            assert!(kilobytes >= 64, "{kilobytes}");
            let late = kilobytes > 96;
            late.then(|| format!("{options:?}: {kilobytes} KB"))
                .into_iter()
                .collect()
        });
        assert!(found.is_empty(), "{found:?}");
    }
    assert!(stops_at(&["--max-size", "100B"]) < 64);
}

#[test]
fn it_is_told_when_a_disk_would_soon_be_full() {
    let target = Running::spin();
    let pid = target.0.id().to_string();
    let found = settled(|| {
        let scratch = Scratch::new();
        let words = ["record", "-o", "/dev/null", "-F", "4000", "-e", "cpu-clock"];
        let copies = ["--call-graph", "dwarf,65528", "-m", "8M", "-p", &pid];
        let words = [&words[..], &copies, &["sleep", "2"]].concat();
        let said = rperf_in(&scratch, &words).finish().expect("rperf starts");
        let mut lines = said.stderr.lines();
        let told = lines.any(|line| {
            let [before, after] = [" samples a second make ", " GB a minute: try -F "];
            line.starts_with("hint: ") && line.contains(before) && line.contains(after)
        });
        (!told).then_some(said.stderr).into_iter().collect()
    });
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn build_ids_and_their_cache_can_be_left_out() {
    let Some(perf) = real_perf() else {
        return skip(
            "record_options::build_ids_and_their_cache_can_be_left_out",
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
    record(&scratch, &["-N", "-e", "cpu-clock"], &work);
    let with_id = |list: &str| list.lines().filter(|line| !line.starts_with(' ')).count();
    assert!(with_id(&listed()) > 1, "{}", listed());
    record(&scratch, &["-B", "-e", "cpu-clock"], &work);
    assert_eq!(with_id(&listed()), 0, "{}", listed());
    assert!(!scratch.path().join(".debug").exists());
    record(&scratch, &["-e", "cpu-clock"], &work);
    // Of the files that are mapped those are kept that were hit, under the name of the recording.
    let shell = std::fs::canonicalize("/bin/sh").expect("a shell");
    let kept = scratch.path().join(".debug").join(below(&shell));
    let ids: Vec<_> = std::fs::read_dir(kept)
        .expect("the shell is kept")
        .map(|id| id.expect("a folder").path())
        .collect();
    let elf = std::fs::read(ids[0].join("elf")).expect("a file");
    assert!(ids.len() == 1 && elf == std::fs::read(&shell).expect("a shell"));
    let id = ids[0]
        .file_name()
        .and_then(|id| id.to_str())
        .expect("an id");
    assert!(listed().contains(&format!("{id} {}", shell.display())));
}

fn below(path: &Path) -> &Path {
    path.strip_prefix("/").expect("an absolute path")
}

#[test]
fn nothing_is_recorded_by_a_dry_run() {
    let scratch = Scratch::new();
    let outcome = record(&scratch, &["--dry-run", "-e", "cpu-clock"], &["true"]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    assert!(!scratch.path().join("perf.data").exists());
    let wrong = record(&scratch, &["--dry-run", "-e", "nosuch"], &["true"]);
    assert_eq!(wrong.status, 129);
}

#[test]
fn what_is_wrong_is_named_with_what_would_do() {
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
            "Couldn't create thread/CPU maps: No such process\nuser 4000000000 has no processes that can be seen\n",
        ),
        (
            &["-D", "20-10"],
            129,
            "-D: '20-10' is no delay\nhint: give milliseconds",
        ),
        (
            &["-k", "sundial"],
            129,
            "-k: there is no clock 'sundial'\nhint: choose from monotonic,",
        ),
        (
            &["--max-size", "7"],
            129,
            "--max-size: '7' is no size\nhint: give bytes with a unit",
        ),
        (
            &["--synth", "x"],
            129,
            "Invalid synth option: x\nhint: choose from no, all, or some of task,mmap,cgroup\n",
        ),
        (
            &["--user-regs=ax,zx"],
            129,
            "--user-regs: there is no register 'zx'\nhint: choose from ax ",
        ),
        (
            &["-j", "any,x"],
            129,
            "unknown branch filter x\nhint: choose from u,k,hv,any,",
        ),
        (
            &["-b", "-j", "u"],
            129,
            "-b means '-j any': give one of them\n",
        ),
        (
            &["--call-graph", "fp,deferred"],
            129,
            "'deferred' is no number of frames: use --call-graph fp,N or fp,defer\n",
        ),
        (
            &["--kcore", "--switch-output=1s"],
            129,
            "--kcore writes a directory, which is not for a pipe, nor for --switch-output\n",
        ),
        (
            &["-F", "1000000000", "--strict-freq"],
            234,
            "error: Maximum frequency rate (",
        ),
    ] {
        let outcome = record(
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
fn branches_are_refused_where_nothing_keeps_them() {
    let scratch = Scratch::new();
    // The kernel's own clock never has branches.
    for options in [&["-b"][..], &["--call-graph", "lbr"]] {
        let outcome = record(
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
fn tracepoints_are_found_below_the_folder_that_is_named() {
    let scratch = Scratch::new();
    let event = scratch.path().join("tracing/events/made/up");
    fs::create_dir_all(&event).expect("own folder");
    fs::write(event.join("id"), "7\n").expect("writable");
    let check = |folder: &str| {
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
    assert_eq!(check("."), 0, "debugfs with a folder tracing");
    assert_eq!(check("tracing"), 0, "tracefs itself");
    assert_eq!(check("tracing/events"), 129);
}

/// Where the kernel's memory can be read, a copy of its code is beside the records; elsewhere that is said before anything
/// is opened.
#[test]
fn the_kernels_code_goes_with_the_records() {
    let scratch = Scratch::new();
    let recorded = record(&scratch, &["--kcore", "-q", "-e", "cpu-clock"], &["true"]);
    let made = scratch.path().join("perf.data");
    if recorded.status == 0 {
        for file in [
            "data",
            "kcore_dir/kcore",
            "kcore_dir/kallsyms",
            "kcore_dir/modules",
        ] {
            assert!(made.join(file).is_file(), "{file}");
        }
    } else {
        let said = "ERROR: kcore is not readable.\n/";
        assert_eq!(recorded.status, 255, "{}", recorded.stderr);
        assert!(recorded.stderr.starts_with(said), "{}", recorded.stderr);
        assert!(!made.exists());
    }
}

#[test]
fn user_callchains_are_put_off_where_the_kernel_can() {
    let scratch = Scratch::new();
    let options = ["-e", "cpu-clock:u", "--call-graph", "fp,defer"];
    let outcome = record(&scratch, &options, &["sh", "-c", BUSY]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let listed = rperf_in(&scratch, &["evlist", "-v"]).finish();
    let listed = listed.expect("rperf starts").stdout;
    let cannot = outcome.stderr.contains(
        "Warning: this kernel cannot put off user callchains, as Linux 6.19 and later can: ",
    );
    let put_off = listed.contains("defer_callchain: 1, defer_output: 1");
    assert_eq!(put_off, !cannot, "{listed}{}", outcome.stderr);
    assert!(listed.contains("|CALLCHAIN|"), "{listed}");
    for (others, other) in [
        (&["record", "--off-cpu", "--", "true"][..], "--off-cpu"),
        (&["top", "--stdio"], "top"),
    ] {
        let words = [&others[..1], &options, &others[1..]].concat();
        let refused = rperf_in(&scratch, &words).finish().expect("rperf starts");
        assert_eq!(refused.status, 129, "{refused:?}");
        assert!(refused.stderr.contains(other), "{refused:?}");
        assert!(refused.stderr.contains("fp,defer"), "{refused:?}");
    }
}
