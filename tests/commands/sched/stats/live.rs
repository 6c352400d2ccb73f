//! `sched stats record` and `sched stats` of a made-up `/proc/schedstat`, compared with the recordings and output of perf 7.2 for
//! the same text.

use std::fs;
use std::path::{Path, PathBuf};

use rperf_perfdata::PerfData;
use rperf_testkit::{Outcome, Scratch};

use crate::commands::rperf;
use crate::kernel::UnprivilegedUser;

/// The supported versions of `/proc/schedstat`.
const VERSIONS: [u16; 3] = [15, 16, 17];

fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/schedstat");
    folder.join(name)
}

fn text(name: &str) -> String {
    let text = fs::read_to_string(fixture(name)).expect("a fixture");
    // rperf names one counter of version 16 differently from perf (docs/compatibility.md).
    text.replace("_lb_avg_count ", "_lb_avg_pulled")
}

/// Checks the outcome of a command that prints `expected`.
#[track_caller]
fn assert_prints(outcome: &Outcome, expected: &str) {
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    if let Some(difference) = rperf_testkit::golden::difference(expected, &outcome.stdout) {
        panic!("{difference}");
    }
}

/// A proc file system with the statistics of a version. `sh change` replaces them by later ones, and copies the setting that
/// enables them to the file `enabled`.
fn proc_of(version: u16) -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path().join("sys/kernel")).expect("a folder");
    let write = |name: &str, text: String| scratch.write(name, text).expect("a file");
    write("schedstat", text(&format!("{version}-first.txt")));
    write("sys/kernel/sched_schedstats", "0\n".to_owned());
    let second = fixture(&format!("{version}-second.txt"));
    let change = format!(
        "cat sys/kernel/sched_schedstats > enabled; cat {} > schedstat\n",
        second.display()
    );
    write("change", change);
    scratch
}

fn sched_stats(proc: &Scratch, words: &[&str]) -> Outcome {
    let words = [&["sched", "stats"], words].concat();
    let run = rperf(&words).within(proc.path());
    let run = run.env("PROCFS_PATH", proc.path());
    run.finish().expect("rperf starts")
}

/// The types and bodies of the records of a recording.
fn records(path: &Path) -> Vec<(u32, Vec<u8>)> {
    let bytes = fs::read(path).expect("a recording");
    let data = PerfData::parse_even_without_events(&bytes).expect("a recording");
    let records = data.records().map(|record| record.expect("a record").raw);
    let records = records.map(|record| (record.kind.0, record.body.to_vec()));
    records.collect()
}

#[test]
fn records_and_text_are_those_of_perf() -> std::io::Result<()> {
    for version in VERSIONS {
        let proc = proc_of(version);
        let recorded = sched_stats(&proc, &["record", "--", "sh", "change"]);
        assert_eq!(recorded.status, 0, "{recorded:?}");
        assert!(
            recorded
                .stderr
                .contains("[ rperf sched stats: Wrote samples to perf.data ]"),
            "{recorded:?}"
        );
        let ours = proc.path().join("perf.data");
        let perfs = fixture(&format!("{version}.data"));
        assert_eq!(records(&ours), records(&perfs), "version {version}");
        let domains = |path: &Path| {
            let bytes = fs::read(path).expect("a recording");
            let data = PerfData::parse_even_without_events(&bytes).expect("a recording");
            data.features().sched_domains().expect("domains")
        };
        assert_eq!(domains(&ours), domains(&perfs), "version {version}");
        // The statistics were enabled during the recording, and are disabled again.
        assert_eq!(fs::read_to_string(proc.path().join("enabled"))?, "1\n");
        let setting = proc.path().join("sys/kernel/sched_schedstats");
        assert_eq!(fs::read_to_string(setting)?, "0\n");

        let expected = text(&format!("{version}-report.txt"));
        let report = sched_stats(&proc, &["report"]);
        assert_prints(&report, &expected);
        let perfs_path = perfs.display().to_string();
        let report = sched_stats(&proc, &["report", "-i", &perfs_path]);
        assert_prints(&report, &expected);
        // Without a recording, the same text is printed.
        fs::copy(
            fixture(&format!("{version}-first.txt")),
            proc.path().join("schedstat"),
        )?;
        let live = sched_stats(&proc, &["sh", "change"]);
        assert_prints(&live, &expected);
    }
    Ok(())
}

#[test]
fn records_of_one_cpu_and_differences_are_those_of_perf() -> std::io::Result<()> {
    for version in VERSIONS {
        let proc = proc_of(version);
        let words = ["record", "-C", "1", "-o", "one.data", "--", "sh", "change"];
        let recorded = sched_stats(&proc, &words);
        assert_eq!(recorded.status, 0, "{recorded:?}");
        let perfs = fixture(&format!("{version}-cpu1.data"));
        assert_eq!(records(&proc.path().join("one.data")), records(&perfs));
        let compared = ["", "-other"].map(|name| fixture(&format!("{version}{name}.data")));
        let [before, after] = compared.map(|path| path.display().to_string());
        let diff = sched_stats(&proc, &["diff", &before, &after]);
        let expected = text(&format!("{version}-diff.txt"));
        assert_prints(&diff, &expected);
    }
    Ok(())
}

#[test]
fn recordings_that_cannot_be_made_are_refused() -> std::io::Result<()> {
    let proc = proc_of(17);
    let refused = |words: &[&str], status: i32, parts: &[&str]| {
        let outcome = sched_stats(&proc, words);
        assert_eq!(outcome.status, status, "{words:?}: {outcome:?}");
        for part in parts {
            assert!(
                outcome.stderr.contains(part),
                "{words:?}: {}",
                outcome.stderr
            );
        }
        // Neither was a recording written nor `sh change` run.
        let exist = ["perf.data", "enabled"].map(|name| proc.path().join(name).exists());
        assert_eq!(exist, [false, false], "{words:?}");
    };
    let record: &[&str] = &["record", "--", "sh", "change"];
    refused(
        &["record", "-C", "7", "--", "sh", "change"],
        255,
        &["CPU 7 is not online: choose from 0-1"],
    );
    refused(
        &["record", "-o", "-", "--", "sh", "change"],
        129,
        &["the counters need a file"],
    );
    refused(
        &["record", "--", "absent-program"],
        255,
        &["absent-program"],
    );
    let valid = text("17-first.txt");
    for (content, parts) in [
        (
            valid.replace("version 17", "version 18"),
            &["version 18 is not known"][..],
        ),
        (
            valid.replace("domain1 MC 3 ", "domain1 MC 3 1 "),
            &["line 5 is malformed"],
        ),
        (
            valid.replace("domain0 SMT 3", "domain0 SMT x"),
            &["line 4 is malformed"],
        ),
        (
            valid.replace("cpu0 ", "cpu0 99999999999 "),
            &["line 3 is malformed"],
        ),
        ("cpu0 0\n".to_owned(), &["does not begin with a version"]),
    ] {
        proc.write("schedstat", content)?;
        refused(record, 255, parts);
    }
    fs::remove_file(proc.path().join("schedstat"))?;
    refused(
        record,
        255,
        &[
            "schedstat",
            "hint:",
            "CONFIG_SCHEDSTATS",
            "kernel.sched_schedstats",
        ],
    );
    refused(&["sh", "change"], 255, &["CONFIG_SCHEDSTATS"]);
    Ok(())
}

#[test]
fn statistics_that_only_root_may_enable_are_refused_with_a_hint() -> std::io::Result<()> {
    const TEST: &str = "commands::sched::stats::live::statistics_that_only_root_may_enable_are_refused_with_a_hint";
    let proc = proc_of(16);
    // An unprivileged user, with a copy of rperf in `proc`.
    let Some(user) = UnprivilegedUser::new(TEST, &proc) else {
        return Ok(());
    };
    let run = |value: &str| {
        proc.write("sys/kernel/sched_schedstats", value)?;
        let line = "PROCFS_PATH=$PWD exec ./rperf sched stats record -- true";
        Ok::<_, std::io::Error>(user.run(&["sh", "-c", line]))
    };
    let refused = run("0\n")?;
    assert_eq!(refused.status, 255, "{refused:?}");
    let hint = "sysctl kernel.sched_schedstats=1";
    assert!(refused.stderr.contains(hint), "{refused:?}");
    let recorded = run("1\n")?;
    assert_eq!(recorded.status, 0, "{recorded:?}");
    Ok(())
}
