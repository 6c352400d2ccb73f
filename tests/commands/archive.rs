//! `rperf archive`: what it packs, and that it is read elsewhere.

use std::fs;
use std::path::Path;

use rperf_testkit::{Run, Scratch, skip};

use super::beside::{BOTH, Beside, Tool};
use super::recording::{Recording, Sampled};
use super::{assert_refused, rperf};

/// Runs tar in this folder; `None`, said, where it can't read such archives.
fn tar(test: &str, folder: &Path, words: &[&str]) -> Option<String> {
    let outcome = Run::new("tar").args(words).within(folder).finish();
    match outcome {
        Ok(outcome) if outcome.status == 0 => {
            assert_eq!(outcome.stderr, "", "tar has nothing to complain of");
            Some(outcome.stdout)
        }
        other => {
            skip(test, &format!("tar does not unpack: {other:?}"));
            None
        }
    }
}

#[test]
fn both_tools_pack_the_same_and_it_is_read_elsewhere() {
    const TEST: &str = "both_tools_pack_the_same_and_it_is_read_elsewhere";
    let Some(beside) = Beside::find(TEST) else {
        return;
    };
    let program = beside.path().join("prog");
    fs::copy("/bin/sh", &program).expect("a program can be copied");
    let shell = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let words = ["-e", "cpu-clock:u", "-F", "5000", "./prog", "-c", shell];
    let file = beside
        .record(Tool::Perf, "packed", &words)
        .expect("perf records");
    let name = format!("{file}.tar.bz2");
    let mut lists = Vec::new();
    for tool in BOTH {
        let outcome = beside.outcome(tool, &["archive", &file]);
        assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{tool:?}");
        let text = outcome.stdout.replace("'rperf ", "'perf ");
        let Some(list) = tar(TEST, beside.path(), &["tjf", &name]) else {
            return;
        };
        let mut list: Vec<String> = list.lines().map(str::to_owned).collect();
        list.sort();
        lists.push((text, list));
    }
    assert_eq!(lists[0], lists[1]);
    // The program is gone, and so is the cache: the archive has both.
    let report = ["report", "-i", &file, "--stdio", "-s", "dso,sym", "-q"];
    let before = beside.outcome(Tool::Rperf, &report);
    fs::remove_file(&program).expect("the program can be removed");
    let cache = beside.path().join(".debug");
    fs::remove_dir_all(&cache).expect("there is a cache");
    fs::create_dir(&cache).expect("a new one");
    tar(TEST, &cache, &["xjf", &format!("../{name}")]);
    assert_eq!(beside.outcome(Tool::Rperf, &report), before);
}

#[test]
fn what_is_installed_need_not_be_cached() {
    const TEST: &str = "what_is_installed_need_not_be_cached";
    let Some(beside) = Beside::find(TEST) else {
        return;
    };
    let words = ["-N", "-e", "cpu-clock:u", "-F", "20000", "ls", "/usr/bin"];
    let file = beside
        .record(Tool::Perf, "bare", &words)
        .expect("perf records");
    let hits = beside.outcome(Tool::Rperf, &["buildid-list", "-H", "-i", &file]);
    let outcome = beside.outcome(Tool::Rperf, &["archive", &file]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let Some(list) = tar(TEST, beside.path(), &["tjf", &format!("{file}.tar.bz2")]) else {
        return;
    };
    for line in hits.stdout.lines() {
        let (id, path) = line.split_once(' ').expect("id and path");
        let elf = format!("{}/{id}/elf", path.trim_start_matches('/'));
        assert!(list.lines().any(|line| line == elf), "{elf} in {list}");
    }
}

#[test]
fn nothing_to_pack_is_an_error() {
    let scratch = Scratch::new();
    let mut file = Recording::new();
    file.mmap(7, (0x40_0000, 0x1000, 0), "/opt/prog", 0);
    let (ids, chain) = ((7, 7), &[0x40_0010][..]);
    file.sample(Sampled {
        ids,
        time: 10,
        chain,
    });
    scratch.write("perf.data", file.finish()).expect("a file");
    let run = rperf(&["archive"]).within(scratch.path());
    let outcome = run.finish().expect("rperf starts");
    let stderr = "rperf archive: no build-ids found\nhint: the recording was made with -B, or by perf into a pipe\n";
    assert_eq!(
        (outcome.status, &*outcome.stdout, &*outcome.stderr),
        (1, "", stderr)
    );
    assert_eq!(
        fs::read_dir(scratch.path()).map(Iterator::count).ok(),
        Some(1)
    );
    assert_refused(
        &["archive", "/nonexistent/file"],
        255,
        "failed to open /nonexistent/file: No such file or directory\n",
    );
}

#[test]
fn what_is_missing_is_named_and_the_rest_is_packed() {
    let Some(beside) = Beside::find("what_is_missing_is_named_and_the_rest_is_packed") else {
        return;
    };
    let program = beside.path().join("prog");
    fs::copy("/bin/sh", &program).expect("a program can be copied");
    let shell = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let words = [
        "-N",
        "-e",
        "cpu-clock:u",
        "-F",
        "5000",
        "./prog",
        "-c",
        shell,
    ];
    let file = beside
        .record(Tool::Perf, "missing", &words)
        .expect("perf records");
    fs::remove_file(&program).expect("the program can be removed");
    let outcome = beside.outcome(Tool::Rperf, &["archive", &file]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    let named = format!(" {}: neither cached nor installed\n", program.display());
    assert!(outcome.stderr.ends_with(&named), "{outcome:?}");
    assert!(beside.path().join(format!("{file}.tar.bz2")).is_file());
}
