//! `rperf buildid-list`: beside perf over recordings of both, and over files that no recorder makes.

use std::fs;
use std::path::Path;

use rperf_testkit::{Bytes, Outcome, Scratch};

use super::beside::{BOTH, Beside, Tool};
use super::recording::{Recording, Sampled};
use super::{assert_refused, outcome, rperf};

const NONE: &str = "\
no build-ids in perf.data
hint: a recording has none if it was made with -B, or by perf into a pipe
";

#[test]
fn recordings_list_what_perf_lists() {
    let Some(beside) = Beside::find("recordings_list_what_perf_lists") else {
        return;
    };
    // Hits in several objects and in the kernel.
    let words = [
        "-e",
        "cpu-clock",
        "-F",
        "20000",
        "sh",
        "-c",
        "ls / | sort; ls /usr > /dev/null",
    ];
    for tool in BOTH {
        let Some(file) = beside.record(tool, "objects", &words) else {
            continue;
        };
        for words in [&[][..], &["-H"], &["-f"]] {
            let text = beside.assert_same(&[&["buildid-list", "-i", &file], words].concat());
            assert!(text.lines().count() > 1, "{text}");
        }
    }
    let without = ["-B", "true"];
    let file = beside
        .record(Tool::Perf, "without", &without)
        .expect("perf records");
    let outcome = beside.outcome(Tool::Rperf, &["buildid-list", "-v", "-i", &file]);
    assert_eq!((outcome.status, &*outcome.stdout), (0, ""));
    assert!(
        outcome.stderr.contains(&format!("no build-ids in {file}")),
        "{outcome:?}"
    );
}

#[test]
fn the_kernel_and_files_have_the_ids_that_perf_finds() {
    let Some(beside) = Beside::find("the_kernel_and_files_have_the_ids_that_perf_finds") else {
        return;
    };
    if fs::read("/sys/kernel/notes").is_ok() {
        assert_eq!(beside.assert_same(&["buildid-list", "-k"]).len(), 41);
        beside.assert_same(&["buildid-list", "-m"]);
    }
    let shell = fs::canonicalize("/bin/sh").expect("there is a shell");
    let shell = shell.to_str().expect("its path is text");
    beside.assert_same(&["buildid-list", "-i", shell]);
}

/// One entry of the build-id section, its size said or left out.
fn entry(misc: u16, id: &[u8], size: Option<u8>, name: &str) -> Vec<u8> {
    const SIZE_IS_SAID: u16 = 1 << 15;
    let mut room = id.to_vec();
    room.resize(20, 0);
    let body = Bytes::new().u32(u32::MAX).raw(room);
    let body = body.raw([size.unwrap_or_default(), 0, 0, 0]).text(name, 64);
    let misc = misc | if size.is_some() { SIZE_IS_SAID } else { 0 };
    let length = u16::try_from(8 + body.len()).expect("a short record");
    Bytes::new()
        .u32(0)
        .u16(misc)
        .u16(length)
        .raw(body.done())
        .done()
}

/// The file with a build-id section behind its data.
fn with_build_ids(file: Vec<u8>, section: &[u8]) -> Vec<u8> {
    const FEATURES: usize = 72;
    let mut file = file;
    file[FEATURES] |= 1 << 2;
    let offset = file.len() as u64 + 16;
    let table = Bytes::new().u64(offset).u64(section.len() as u64);
    file.extend(table.done());
    file.extend(section);
    file
}

fn list(bytes: &[u8], words: &[&str]) -> Outcome {
    let scratch = Scratch::new();
    scratch.write("perf.data", bytes).expect("a file");
    let run = rperf(&[&["buildid-list"], words].concat());
    run.within(scratch.path()).finish().expect("rperf starts")
}

/// Samples in a program; a library that none hits.
fn recording() -> Vec<u8> {
    let mut file = Recording::new();
    file.comm(0, (7, 7), "prog", 0);
    file.mmap(7, (0x40_0000, 0x1000, 0), "/opt/prog", 0);
    file.mmap(7, (0x50_0000, 0x1000, 0), "/opt/lib.so", 0);
    file.mmap(7, (0x60_0000, 0x1000, 0), "/opt/plain", 0);
    for (time, ip) in [(10, 0x40_0010), (20, 0x60_0010)] {
        let chain = &[ip, 0x50_0010];
        file.sample(Sampled {
            ids: (7, 7),
            time,
            chain,
        });
    }
    file.finish()
}

#[test]
fn ids_of_every_length_and_objects_without_one() {
    const USER: u16 = 2;
    let section = [
        entry(USER, &[0xab; 16], Some(16), "/opt/lib.so"),
        entry(USER, &[0xcd; 20], None, "/opt/prog"),
    ];
    let bytes = with_build_ids(recording(), &section.concat());
    let short = format!("{:40} /opt/lib.so\n", "ab".repeat(16));
    let long = format!("{} /opt/prog\n", "cd".repeat(20));
    let all = list(&bytes, &[]);
    assert_eq!(
        (all.status, all.stdout, &*all.stderr),
        (0, format!("{short}{long}"), "")
    );
    if let Some(beside) = Beside::find("padding of short ids") {
        fs::write(beside.path().join("perf.data"), &bytes).expect("a file");
        beside.assert_same(&["buildid-list"]);
    }
    let hit = list(&bytes, &["-H"]);
    assert_eq!((hit.stdout, &*hit.stderr), (long.clone(), ""));
    let told = list(&bytes, &["-Hv"]);
    assert_eq!(
        (told.stdout, &*told.stderr),
        (long, "no build-id: /opt/plain\n")
    );
}

#[test]
fn a_recording_without_ids_says_so() {
    let none = list(&recording(), &[]);
    assert_eq!((none.status, &*none.stdout, &*none.stderr), (0, "", NONE));
    let told = list(&recording(), &["-v"]);
    assert_eq!(
        told.stderr,
        format!("no build-id: /opt/prog, /opt/plain\n{NONE}")
    );
}

#[test]
fn what_is_no_recording_and_no_object_is_refused() {
    assert_refused(
        &["buildid-list", "-i", "/nonexistent/file"],
        255,
        "failed to open /nonexistent/file: No such file or directory\n",
    );
    let scratch = Scratch::new();
    let magic = scratch.write("magic", "\x7fELF").expect("a file");
    let magic = magic.to_str().expect("its path is text");
    let stderr = format!("{magic} has no build-id\nhint: link it with -Wl,--build-id\n");
    assert_refused(&["buildid-list", "-i", magic], 255, &stderr);
    // Cut anywhere, it lists what is left or says what is missing.
    let section = entry(2, &[0xcd; 20], Some(20), "/opt/prog");
    let whole = with_build_ids(recording(), &section);
    for length in (0..whole.len()).step_by(11) {
        let outcome = list(&whole[..length], &["-Hv"]);
        assert!(matches!(outcome.status, 0 | 255), "{length}: {outcome:?}");
        assert!(!outcome.stderr.is_empty(), "{length}: {outcome:?}");
    }
}

#[test]
fn a_word_of_its_own_is_not_taken_for_the_file() {
    let outcome = outcome(&["buildid-list", "perf.data"]);
    assert_eq!(
        (outcome.status, Path::new(&outcome.stdout)),
        (129, Path::new(""))
    );
}
