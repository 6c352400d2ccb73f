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

/// Runs for a while, and then as the program that is named.
const SPINNING: &str = r"
#include <unistd.h>
int main(int argc, char **argv)
{
	for (volatile long i = 0; i < ROUNDS; i++)
		;
	return argc > 1 ? execv(argv[1], argv + 1) : 0;
}
";

/// Compiles two programs that share no object with anybody: caches are made of links, and each that another test makes or
/// removes changes a file in the eyes of the tar that perf runs.
fn compile(folder: &Path) {
    fs::write(folder.join("spinning.c"), SPINNING).expect("a source");
    for (name, rounds) in [
        ("prog", "-DROUNDS=40000000"),
        ("other", "-DROUNDS=50000000"),
    ] {
        let words = [
            "-O1",
            "-static",
            "-Wl,--build-id",
            rounds,
            "spinning.c",
            "-o",
            name,
        ];
        let compiled = Run::new("cc").args(words).within(folder).finish();
        let compiled = compiled.expect("cc starts");
        assert_eq!(compiled.status, 0, "{}", compiled.stderr);
    }
}

#[test]
fn both_tools_pack_the_same_and_it_is_read_elsewhere() {
    const TEST: &str = "both_tools_pack_the_same_and_it_is_read_elsewhere";
    let Some(beside) = Beside::find(TEST) else {
        return;
    };
    let program = beside.path().join("prog");
    compile(beside.path());
    let words = ["-e", "cpu-clock:u", "-F", "5000", "./prog", "./other"];
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
    for name in ["/prog/", "/other/"] {
        let is_packed = lists[0].1.iter().any(|path| path.contains(name));
        assert!(is_packed, "{name}: {:?}", lists[0].1);
    }
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
fn a_recording_travels_with_its_objects() {
    const TEST: &str = "a_recording_travels_with_its_objects";
    let Some(beside) = Beside::find(TEST) else {
        return;
    };
    let words = ["-e", "cpu-clock:u", "-F", "20000", "ls", "/usr/bin"];
    let file = beside
        .record(Tool::Rperf, "travels", &words)
        .expect("rperf records");
    let packed = beside.outcome(Tool::Rperf, &["archive", "--all", &file]);
    assert_eq!((packed.status, &*packed.stderr), (0, ""), "{packed:?}");
    let name = packed.stdout.lines().find_map(|line| {
        let (_, name) = line.split_once("archive --unpack ")?;
        Some(name.to_owned())
    });
    let name = name.expect("the name of the archive is said");
    assert!(name.starts_with("perf.all-"), "{name}");
    let report = ["report", "-i", &file, "--stdio", "-s", "dso,sym", "-q"];
    let before = beside.outcome(Tool::Rperf, &report);
    // On another machine, whose home this is.
    let there = Scratch::new();
    fs::copy(beside.path().join(&name), there.path().join(&name)).expect("it travels");
    let run = |words: &[&str]| {
        let run = rperf(words).within(there.path());
        let run = run.env("HOME", there.path());
        run.finish().expect("rperf starts")
    };
    let unpacked = run(&["archive", "--unpack"]);
    assert_eq!(
        (unpacked.status, &*unpacked.stderr),
        (0, ""),
        "{unpacked:?}"
    );
    assert_eq!(run(&report).stdout, before.stdout);
    let hits = beside.outcome(Tool::Rperf, &["buildid-list", "-H", "-i", &file]);
    let cached = run(&["buildid-cache", "-l"]).stdout;
    for line in hits.stdout.lines() {
        assert!(cached.contains(line), "{line} in {cached}");
    }
    // Once more: the recording is there, and stays.
    let again = run(&["archive", "--unpack", &name]);
    let stderr =
        format!("Warning: left out {file}: there is such a file already; -f writes over it\n");
    assert_eq!((again.status, again.stderr), (1, stderr));
    assert_eq!(run(&["archive", "-f", "--unpack", &name]).status, 0);
    // Two archives leave the choice to the user.
    fs::copy(there.path().join(&name), there.path().join("perf.tar.bz2")).expect("a copy");
    let which = run(&["archive", "--unpack"]);
    assert_eq!(which.status, 1, "{which:?}");
    assert!(
        which.stderr.contains("there are several: perf.all-"),
        "{which:?}"
    );
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
