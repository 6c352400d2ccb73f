//! `rperf record` into several files, for cgroups, with namespace records, and compressed.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use super::record_faults::lost_samples;
use crate::differential::{difference, settled};
use crate::kernel::{BUSY, Cgroups, is_root, rperf_in};

fn record(scratch: &Scratch, options: &[&str], workload: &[&str]) -> Outcome {
    let words = [
        &["record", "-o", "perf.data", "-e", "cpu-clock"],
        options,
        workload,
    ]
    .concat();
    let outcome = rperf_in(scratch, &words).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    outcome
}

/// Shell commands of a workload that request the next file from the recorder, their parent, and wait until there is another file
/// with a timestamp in its name.
const NEXT_FILE: &str = "old=$(ls perf.data.2* 2>&1); kill -USR2 $PPID; \
                    while [ \"$(ls perf.data.2* 2>&1)\" = \"$old\" ]; do sleep 0.01; done";

/// The paths of the files with `perf.data` in their names, sorted.
fn files(scratch: &Scratch) -> Vec<PathBuf> {
    let entries = fs::read_dir(scratch.path()).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_output = |path: &PathBuf| {
        let name = path.file_name().expect("a name");
        name.to_string_lossy().contains("perf.data")
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_output).collect();
    paths.sort();
    paths
}

/// The stdout of the command `words` for a file, from perf and from rperf; both must succeed.
fn printed(perf: &Path, scratch: &Scratch, file: &Path, words: &[&str]) -> [String; 2] {
    let [theirs, ours] = outcomes(perf, scratch, file, words);
    assert_eq!(
        (theirs.status, ours.status),
        (0, 0),
        "{} {}",
        theirs.stderr,
        ours.stderr
    );
    [theirs.stdout, ours.stdout]
}

/// The outcomes of the command `words` for a file, from perf and from rperf.
fn outcomes(perf: &Path, scratch: &Scratch, file: &Path, words: &[&str]) -> [Outcome; 2] {
    let file = file.display().to_string();
    let words = [words, &["-i", &file]].concat();
    let theirs = Run::new(perf).args(&words).within(scratch.path());
    let theirs = theirs
        .env("HOME", scratch.path())
        .finish()
        .expect("perf starts");
    let ours = rperf_in(scratch, &words).finish().expect("rperf starts");
    [theirs, ours]
}

#[test]
fn a_signal_switches_files_that_are_readable_alone() {
    const NAME: &str =
        "commands::record_switch_output::a_signal_switches_files_that_are_readable_alone";
    let Some(perf) = real_perf() else {
        return skip(NAME, "there is no perf");
    };
    // `settled` repeats the recording and the comparison a few times while there are differences.
    let differences = settled(|| switched_file_differences(&perf));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The differences between the tools' output for three files of one recording, each read alone.
fn switched_file_differences(perf: &Path) -> Vec<String> {
    let scratch = Scratch::new();
    let script = format!("{BUSY}; {NEXT_FILE}; sh -c '{BUSY}; :'; {NEXT_FILE}; {BUSY}");
    let outcome = record(&scratch, &["--switch-output"], &["sh", "-c", &script]);
    let reported = outcome
        .stderr
        .matches("[ rperf record: Dump perf.data.2")
        .count();
    assert_eq!(reported, 3, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains(" MB perf.data.<timestamp> ("),
        "{}",
        outcome.stderr
    );
    let files = files(&scratch);
    assert_eq!(files.len(), 3, "{files:?}");
    let differing = files.iter().filter_map(|file| {
        let words = ["script", "-F", "comm,ip,sym,dso"];
        let [theirs, ours] = outcomes(perf, &scratch, file, &words);
        assert_eq!(ours.status, 0, "{}", ours.stderr);
        if theirs.status != 0 {
            // If another recorder requests build-ids at the same time, the kernel may mark mappings of this recording as having a
            // build-id although they have none. perf fails on such mappings.
            return Some(theirs.stderr);
        }
        let theirs = theirs.stdout;
        assert!(
            theirs.lines().count() > 5 && theirs.contains("/libc"),
            "{theirs}"
        );
        difference(&theirs, &ours.stdout)
    });
    differing.collect()
}

/// Two `--overwrite` snapshots of page faults on one CPU. Before the first, the workload runs `cat` many times, then `ls`; before
/// the second, `cat` again.
fn overwrite_snapshots(scratch: &Scratch, options: &[&str]) -> Vec<PathBuf> {
    let repeated =
        |program: &str| format!("for n in 1 2 3 4 5 6 7 8 9; do {program} /dev/null; done");
    let (cat, ls) = (repeated("cat"), repeated("ls >/dev/null"));
    let script = format!("{cat}; {ls}; {NEXT_FILE}; {cat}");
    let options = [&["--overwrite", "-m", "1", "--switch-output"], options].concat();
    let words = [
        &["record", "-o", "perf.data", "-e", "page-faults", "-c", "1"],
        &options[..],
        &["--", "taskset", "-c", "0", "sh", "-c", &script],
    ];
    let outcome = rperf_in(scratch, &words.concat()).finish();
    let outcome = outcome.expect("rperf starts");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let files = files(scratch);
    assert_eq!(files.len(), 2, "{files:?}");
    files
}

#[test]
fn overwritten_rings_keep_the_last_samples() {
    const NAME: &str = "commands::record_switch_output::overwritten_rings_keep_the_last_samples";
    let Some(perf) = real_perf() else {
        return skip(NAME, "there is no perf");
    };
    for options in [&[][..], &["--tail-synthesize"]] {
        let scratch = Scratch::new();
        let files = overwrite_snapshots(&scratch, options);
        for (file, (last, overwritten)) in files.iter().zip([("ls", "cat"), ("cat", "ls")]) {
            let [theirs, ours] = printed(&perf, &scratch, file, &["script", "-F", "comm,tid,time"]);
            assert_eq!(ours, theirs);
            let count = |comm: &str| {
                let words = ours.lines().map(|line| line.split_whitespace().next());
                words.filter(|word| *word == Some(comm)).count()
            };
            assert!(
                count(last) > 20 && count(overwritten) == 0,
                "{last} {options:?}: {ours}"
            );
            // Rings have one page each, samples at least 40 bytes. Before `taskset` moves itself to CPU 0, it may run on
            // other CPUs: allow for three rings.
            assert!(ours.lines().count() < 4096 / 40 * 3, "{ours}");
            // Side-band records are not overwritten: the mapped file of each sample is known.
            let [_, names] = printed(&perf, &scratch, file, &["script", "-F", "comm,ip,sym,dso"]);
            assert!(names.contains("/ld-linux"), "{options:?}: {names}");
        }
    }
}

#[test]
fn the_next_file_begins_after_the_given_time() {
    let scratch = Scratch::new();
    let outcome = record(&scratch, &["--switch-output=1s"], &["sleep", "2.5"]);
    let files = files(&scratch);
    assert!(files.len() > 1, "{}", outcome.stderr);
    assert_eq!(outcome.stderr.matches(" Dump ").count(), files.len());
}

#[test]
fn the_oldest_files_are_deleted() {
    let scratch = Scratch::new();
    let script = format!("for file in 1 2 3; do {NEXT_FILE}; done");
    let options = ["--switch-output=signal", "--switch-max-files=2"];
    let outcome = record(&scratch, &options, &["sh", "-c", &script]);
    assert_eq!(
        outcome.stderr.matches(" Dump ").count(),
        4,
        "{}",
        outcome.stderr
    );
    let words = outcome.stderr.split_whitespace();
    let dumped: Vec<&str> = words
        .filter(|word| word.starts_with("perf.data.2"))
        .collect();
    let remaining = files(&scratch);
    let remaining = remaining
        .iter()
        .filter_map(|path| path.file_name()?.to_str());
    let remaining: Vec<&str> = remaining.collect();
    assert_eq!(remaining, dumped[2..], "{}", outcome.stderr);
}

#[test]
fn file_names_get_a_timestamp_and_devices_do_not() {
    let scratch = Scratch::new();
    record(&scratch, &["--timestamp-filename"], &["true"]);
    let [file] = &files(&scratch)[..] else {
        panic!("one file")
    };
    let name = file.file_name().expect("a name").to_string_lossy();
    let digits = name.strip_prefix("perf.data.").expect("a time");
    assert_eq!(
        (
            digits.len(),
            digits.bytes().all(|byte| byte.is_ascii_digit())
        ),
        (16, true),
        "{name}"
    );
    record(
        &scratch,
        &["-o", "/dev/null", "--timestamp-filename"],
        &["true"],
    );
    assert!(Path::new("/dev/null").exists());
    let mut devices = fs::read_dir("/dev").expect("a folder").flatten();
    let is_stamped = |name: &str| name.starts_with("null.");
    assert!(!devices.any(|device| is_stamped(&device.file_name().to_string_lossy())));
}

#[test]
fn devices_are_not_removed() {
    const NAME: &str = "commands::record_switch_output::devices_are_not_removed";
    let scratch = Scratch::new();
    // A device like /dev/null.
    let made = Run::new("mknod").args(["null", "c", "1", "3"]);
    let made = made.within(scratch.path()).finish().expect("mknod starts");
    if made.status != 0 {
        return skip(NAME, &made.stderr);
    }
    let words = ["-o", "null", "--switch-output", "--switch-max-files=1"];
    let twice = "for i in 1 2; do kill -USR2 $PPID; sleep 0.3; done";
    record(&scratch, &words, &["sh", "-c", twice]);
    let is_device = |file: &Path| {
        let metadata = fs::symlink_metadata(file).expect("the device is there");
        metadata.file_type().is_char_device()
    };
    assert!(is_device(&scratch.path().join("null")));
    let mut entries = fs::read_dir(scratch.path()).expect("a folder").flatten();
    let is_stamped = |name: &str| name.starts_with("null.");
    assert!(!entries.any(|entry| is_stamped(&entry.file_name().to_string_lossy())));
}

#[test]
fn no_samples_are_lost_between_files_under_load() {
    const NAME: &str =
        "commands::record_switch_output::no_samples_are_lost_between_files_under_load";
    let Some(perf) = real_perf() else {
        return skip(NAME, "there is no perf");
    };
    if !is_root() || !Path::new("/sys/kernel/tracing/events/syscalls").exists() {
        return skip(NAME, "tracepoints need root");
    }
    let scratch = Scratch::new();
    let calls = 20_000;
    let count = format!("count={calls}");
    let work = [
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=1",
        &count,
        "status=none",
    ];
    let words = [
        "record",
        "-o",
        "perf.data",
        "-e",
        "syscalls:sys_enter_write",
        "-m",
        "64",
        "--switch-output=256K",
    ];
    let outcome = rperf_in(&scratch, &[&words[..], &work].concat())
        .finish()
        .expect("rperf starts");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let files = files(&scratch);
    // A busy machine loses many samples and switches outputs less often.
    assert!(files.len() > 1, "{}", outcome.stderr);
    let mut written = 0;
    for file in &files {
        let [theirs, ours] = printed(&perf, &scratch, file, &["script", "-F", "comm"]);
        assert_eq!(ours, theirs);
        written += theirs.lines().filter(|line| line.trim() == "dd").count();
    }
    // The last file counts all samples that the kernel lost.
    let last = files.last().expect("a file").display().to_string();
    let lost = lost_samples(&perf, &scratch, &last);
    assert!(
        outcome.stderr.contains(&format!("({written} samples)")),
        "{}",
        outcome.stderr
    );
    // The kernel counts lost side-band records, such as that of the exit of a process, as lost samples, too.
    assert!(
        (calls..calls + 3).contains(&(written + lost)),
        "{written} samples were written, {lost} reported as lost"
    );
}

#[test]
fn a_cgroup_is_recorded_alone_and_invalid_options_are_refused() {
    let test = "commands::record_switch_output::a_cgroup_is_recorded_alone_and_invalid_options_are_refused";
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    let name = format!("rperf-record-{}", std::process::id());
    let Some(cgroups) = Cgroups::create(test, &[&name]) else {
        return;
    };
    let scratch = Scratch::new();
    let inside = format!(
        "echo $$ > {}/cgroup.procs && {BUSY}",
        cgroups.0[0].display()
    );
    record(&scratch, &["-a", "-G", &name], &["sh", "-c", &inside]);
    let [theirs, ours] = printed(
        &perf,
        &scratch,
        Path::new("perf.data"),
        &["script", "-F", "comm"],
    );
    assert_eq!(ours, theirs);
    assert!(
        !theirs.is_empty() && theirs.lines().all(|comm| comm.trim() == "sh"),
        "{theirs}"
    );
    for (options, status, message) in [
        (
            &["-G", "x"][..],
            129,
            "cgroup monitoring only available in system-wide mode\nhint: add -a\n",
        ),
        (
            &["-a", "-G", "x,y"],
            129,
            "-G names 2 cgroups for 1 event\n",
        ),
        (
            &["-a", "-G", "no-such-group"],
            255,
            "failed to open cgroup no-such-group",
        ),
    ] {
        let words = [&["record", "-e", "cpu-clock"], options, &["true"]].concat();
        let outcome = rperf_in(&scratch, &words).finish().expect("rperf starts");
        assert_eq!(outcome.status, status, "{}", outcome.stderr);
        assert!(outcome.stderr.starts_with(message), "{}", outcome.stderr);
    }
}

#[test]
fn namespaces_cgroups_and_build_ids_are_recorded() {
    let test = "commands::record_switch_output::namespaces_cgroups_and_build_ids_are_recorded";
    let Some(perf) = real_perf().filter(|_| is_root()) else {
        return skip(test, "there is no perf, or no root");
    };
    let scratch = Scratch::new();
    // `--mmap-flush` and `-r` change no records: here they only must be accepted.
    let options = [
        "-a",
        "--namespaces",
        "--all-cgroups",
        "--mmap-flush=64K",
        "-r",
        "1",
    ];
    record(&scratch, &options, &["sh", "-c", BUSY]);
    let mount_namespace = fs::metadata("/proc/self/ns/mnt").expect("a namespace");
    // 5 is the index of the mount namespace in a NAMESPACES record.
    let inode = format!(
        "5/mnt: {:x}/{:#x}",
        std::os::unix::fs::MetadataExt::dev(&mount_namespace),
        std::os::unix::fs::MetadataExt::ino(&mount_namespace)
    );
    let dump = || {
        let run = Run::new(&perf).args(["script", "-D"]);
        let run = run.within(scratch.path()).env("HOME", scratch.path());
        run.finish().expect("perf starts").stdout
    };
    let system_wide = dump();
    assert!(system_wide.contains(&inode), "{inode}");
    assert!(system_wide.contains("PERF_RECORD_CGROUP cgroup: 1 /\n"));
    // One task only: with `-a`, the kernel might also mark mappings in the recordings of concurrent tests as having a build-id
    // although they have none, and perf fails on such mappings.
    record(&scratch, &["--buildid-mmap"], &["sh", "-c", BUSY]);
    let of_task = dump();
    // The build-id is in `<...>`, before `]:`. Anonymous mappings must have none.
    let mapping = of_task
        .lines()
        .find(|line| line.contains("PERF_RECORD_MMAP2") && line.contains(">]: r-xp"));
    assert!(
        mapping.is_some_and(|line| !line.contains(">]: r-xp //anon")),
        "{mapping:?}"
    );
}

#[test]
fn compressed_files_are_read_by_perf_and_rperf() {
    let test = "commands::record_switch_output::compressed_files_are_read_by_perf_and_rperf";
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    let scratch = Scratch::new();
    let options = ["-z", "-g", "-F", "9997", "-m", "16"];
    let outcome = record(&scratch, &options, &["sh", "-c", BUSY]);
    let message = "), compressed (original 0.";
    assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    let file = Path::new("perf.data");
    let [theirs, ours] = printed(&perf, &scratch, file, &["script", "-F", "comm,time,ip,sym"]);
    assert_eq!(ours, theirs);
    let samples = theirs.lines().filter(|line| line.starts_with("sh "));
    assert!(
        outcome
            .stderr
            .contains(&format!("({} samples)", samples.count())),
        "{}",
        outcome.stderr
    );
    let [theirs, ours] = printed(&perf, &scratch, file, &["report", "--header-only"]);
    let is_compressed = |text: &str| {
        text.lines()
            .any(|line| line.starts_with("# compressed : Zstd, level = 1, ratio = "))
    };
    assert!(is_compressed(&theirs) && is_compressed(&ours), "{theirs}");
    let plain = record(&scratch, &["-z0"], &["true"]);
    assert!(!plain.stderr.contains("compressed"), "{}", plain.stderr);
}
