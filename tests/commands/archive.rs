//! `rperf archive`: the contents of archives, and their use on another machine.

use std::fs;
use std::path::Path;

use rperf_testkit::{Run, Scratch, copy_program, skip};

use super::recording::{Recording, Sampled};
use super::{assert_refused, rperf};
use crate::tools::{BOTH, Tool, Tools};

/// Runs tar in this folder and returns its output; `None`, with a printed reason, if it fails. Warnings of tar fail the test.
fn tar(test: &str, folder: &Path, words: &[&str]) -> Option<String> {
    let outcome = Run::new("tar").args(words).within(folder).finish();
    match outcome {
        Ok(outcome) if outcome.status == 0 => {
            assert_eq!(outcome.stderr, "", "tar prints no warnings");
            Some(outcome.stdout)
        }
        other => {
            skip(test, &format!("tar fails: {other:?}"));
            None
        }
    }
}

/// A C program that spins for a while and then executes the given program.
const SPINNING: &str = r"
#include <unistd.h>
int main(int argc, char **argv)
{
	for (volatile long i = 0; i < ROUNDS; i++)
		;
	return argc > 1 ? execv(argv[1], argv + 1) : 0;
}
";

/// Compiles two programs, which are static so that no shared library is packed: build-id caches consist of hard links, and if the
/// cache of another test linked or unlinked a library meanwhile, perf's tar would report that the file changed while it was read.
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
fn archives_of_both_tools_match_and_are_read_elsewhere() {
    const TEST: &str = "archives_of_both_tools_match_and_are_read_elsewhere";
    let Some(tools) = Tools::find_for(TEST) else {
        return;
    };
    let program = tools.path().join("prog");
    compile(tools.path());
    let words = ["-e", "cpu-clock:u", "-F", "5000", "./prog", "./other"];
    let file = tools
        .record(Tool::Perf, "packed", &words)
        .expect("perf records");
    let name = format!("{file}.tar.bz2");
    let mut outputs = Vec::new();
    for tool in BOTH {
        let outcome = tools.outcome(tool, &["archive", &file]);
        assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{tool:?}");
        let text = outcome.stdout.replace("'rperf ", "'perf ");
        let Some(list) = tar(TEST, tools.path(), &["tjf", &name]) else {
            return;
        };
        let mut list: Vec<String> = list.lines().map(str::to_owned).collect();
        list.sort();
        outputs.push((text, list));
    }
    assert_eq!(outputs[0], outputs[1]);
    let packed = &outputs[0].1;
    for name in ["/prog/", "/other/"] {
        let is_packed = packed.iter().any(|path| path.contains(name));
        assert!(is_packed, "{name}: {packed:?}");
    }
    // `prog` and the cache are removed, so the symbols of `prog` come from the archive alone.
    let report = ["report", "-i", &file, "--stdio", "-s", "dso,sym", "-q"];
    let before = tools.outcome(Tool::Rperf, &report);
    fs::remove_file(&program).expect("the program can be removed");
    let cache = tools.path().join(".debug");
    fs::remove_dir_all(&cache).expect("there is a cache");
    fs::create_dir(&cache).expect("a new one");
    tar(TEST, &cache, &["xjf", &format!("../{name}")]).expect("tar unpacks what it listed");
    assert_eq!(tools.outcome(Tool::Rperf, &report), before);
}

#[test]
fn installed_objects_need_not_be_cached() {
    const TEST: &str = "installed_objects_need_not_be_cached";
    let Some(tools) = Tools::find_for(TEST) else {
        return;
    };
    let words = ["-N", "-e", "cpu-clock:u", "-F", "20000", "ls", "/usr/bin"];
    let file = tools
        .record(Tool::Perf, "bare", &words)
        .expect("perf records");
    let hits = tools.outcome(Tool::Rperf, &["buildid-list", "-H", "-i", &file]);
    let outcome = tools.outcome(Tool::Rperf, &["archive", &file]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let Some(list) = tar(TEST, tools.path(), &["tjf", &format!("{file}.tar.bz2")]) else {
        return;
    };
    assert_ne!(hits.stdout, "");
    for line in hits.stdout.lines() {
        let (id, path) = line.split_once(' ').expect("id and path");
        let elf = format!("{}/{id}/elf", path.trim_start_matches('/'));
        assert!(list.lines().any(|line| line == elf), "{elf} in {list}");
    }
}

#[test]
fn a_recording_is_unpacked_with_its_objects_elsewhere() {
    const TEST: &str = "a_recording_is_unpacked_with_its_objects_elsewhere";
    let Some(tools) = Tools::find_for(TEST) else {
        return;
    };
    let words = ["-e", "cpu-clock:u", "-F", "20000", "ls", "/usr/bin"];
    let file = tools
        .record(Tool::Rperf, "travels", &words)
        .expect("rperf records");
    let packed = tools.outcome(Tool::Rperf, &["archive", "--all", &file]);
    assert_eq!((packed.status, &*packed.stderr), (0, ""), "{packed:?}");
    let name = packed.stdout.lines().find_map(|line| {
        let (_, name) = line.split_once("archive --unpack ")?;
        Some(name.to_owned())
    });
    let name = name.expect("the name of the archive is printed");
    assert!(name.starts_with("perf.all-"), "{name}");
    let report = ["report", "-i", &file, "--stdio", "-s", "dso,sym", "-q"];
    let before = tools.outcome(Tool::Rperf, &report);
    assert_ne!(before.stdout, "");
    // The working directory and home on another machine. `copy_program` copies any file, with cp(1).
    let other_machine = Scratch::new();
    copy_program(tools.path().join(&name), other_machine.path().join(&name));
    let run = |words: &[&str]| {
        let run = rperf(words).within(other_machine.path());
        let run = run.env("HOME", other_machine.path());
        run.finish().expect("rperf starts")
    };
    let unpacked = run(&["archive", "--unpack"]);
    assert_eq!(
        (unpacked.status, &*unpacked.stderr),
        (0, ""),
        "{unpacked:?}"
    );
    assert_eq!(run(&report).stdout, before.stdout);
    let hits = tools.outcome(Tool::Rperf, &["buildid-list", "-H", "-i", &file]);
    let cached = run(&["buildid-cache", "-l"]).stdout;
    assert_ne!(hits.stdout, "");
    for line in hits.stdout.lines() {
        assert!(cached.contains(line), "{line} in {cached}");
    }
    // The second time, the recording exists and is replaced only with -f.
    let again = run(&["archive", "--unpack", &name]);
    let stderr = format!("Warning: skipped {file}: the file exists; -f overwrites it\n");
    assert_eq!((again.status, again.stderr), (1, stderr));
    assert_eq!(run(&["archive", "-f", "--unpack", &name]).status, 0);
    // With two archives the user has to choose.
    fs::copy(
        other_machine.path().join(&name),
        other_machine.path().join("perf.tar.bz2"),
    )
    .expect("a copy");
    let ambiguous = run(&["archive", "--unpack"]);
    assert_eq!(ambiguous.status, 1, "{ambiguous:?}");
    assert!(
        ambiguous.stderr.contains("several archives: perf.all-"),
        "{ambiguous:?}"
    );
}

#[test]
fn recordings_without_build_ids_and_missing_recordings_are_refused() {
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
    let stderr = "rperf archive: no build-ids found\n\
        hint: the recording has no build-ids: it was made with -B, or written to a pipe by perf\n";
    assert_eq!(
        (outcome.status, &*outcome.stdout, &*outcome.stderr),
        (1, "", stderr)
    );
    // Only perf.data is there: no archive was written.
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
fn recordings_that_are_not_one_file_are_not_packed() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path().join("parts")).expect("a folder");
    let made = Run::new("mkfifo").args(["pipe"]).within(scratch.path());
    assert_eq!(made.finish().expect("mkfifo starts").status, 0);
    let to_file = "write the recording to a file first";
    for (name, message, hint) in [
        ("-", "this is stdin", to_file),
        ("pipe", "this is a FIFO", to_file),
        (
            "parts",
            "this is a directory",
            "pack only the objects, without --all, and copy the directory",
        ),
    ] {
        let run = rperf(&["archive", "--all", name]).within(scratch.path());
        let outcome = run.finish().expect("rperf starts");
        let named = if name == "-" {
            String::new()
        } else {
            format!("{name}: ")
        };
        let text = format!(
            "{named}--all packs a recording that is one file, and {message}\nhint: {hint}\n"
        );
        assert_eq!((outcome.status, outcome.stderr), (255, text));
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn missing_objects_are_named_and_the_rest_is_packed() {
    const TEST: &str = "missing_objects_are_named_and_the_rest_is_packed";
    let Some(tools) = Tools::find_for(TEST) else {
        return;
    };
    let program = tools.path().join("prog");
    copy_program("/bin/sh", &program);
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
    let file = tools
        .record(Tool::Perf, "missing", &words)
        .expect("perf records");
    fs::remove_file(&program).expect("the program can be removed");
    let outcome = tools.outcome(Tool::Rperf, &["archive", &file]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    let named = format!(
        " {}: neither in the build-id cache nor installed\n",
        program.display()
    );
    assert!(outcome.stderr.ends_with(&named), "{outcome:?}");
    let Some(list) = tar(TEST, tools.path(), &["tjf", &format!("{file}.tar.bz2")]) else {
        return;
    };
    // Another object is packed: the C library, which the shell calls.
    assert!(list.lines().any(|path| path.ends_with("/elf")), "{list}");
    assert!(!list.contains("/prog/"), "{list}");
}

#[test]
fn sizes_are_shown_and_nothing_is_written() {
    let Some(tools) = Tools::find_for("sizes_are_shown_and_nothing_is_written") else {
        return;
    };
    let words = ["-N", "-e", "cpu-clock:u", "-F", "20000", "ls", "/usr/bin"];
    let recorded = tools.record(Tool::Rperf, "sizes", &words);
    let file = recorded.expect("rperf records");
    let outcome = tools.outcome(Tool::Rperf, &["archive", "--size", &file]);
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{outcome:?}");
    assert!(!tools.path().join(format!("{file}.tar.bz2")).exists());
    let states = tools.outcome(
        Tool::Rperf,
        &["buildid-list", "-H", "--missing", "-i", &file],
    );
    assert_eq!((states.status, &*states.stderr), (0, ""), "{states:?}");
    let mut total = 0;
    for line in states.stdout.lines() {
        let (state, object) = line.split_once(' ').expect("state and object");
        assert_eq!(state, "installed", "{line}");
        let object = object.trim_start();
        let row = outcome.stdout.lines().find(|row| row.ends_with(object));
        let size = row.expect(object).split_whitespace().next();
        let size: u64 = size.and_then(|size| size.parse().ok()).expect("a size");
        let (_, path) = object.split_once(' ').expect("id and path");
        assert_eq!(size, fs::metadata(path).expect(path).len());
        total += size;
    }
    assert!(total > 0, "{states:?}");
    let last = outcome.stdout.lines().last().unwrap_or_default();
    assert_eq!(last.trim(), format!("{total} bytes before compression"));
}
