//! `rperf buildid-list`, compared with perf on recordings of both tools and on generated files.

use std::fs;

use rperf_testkit::{Bytes, Outcome, PerfFile, Scratch};

use super::recording::{Recording, Sampled};
use super::{assert_refused, outcome, rperf};
use crate::tools::{BOTH, Tool, Tools};

const NONE: &str = "\
no build-ids in perf.data
hint: recordings made with -B, or written to a pipe by perf, have none
";

#[test]
fn build_ids_of_recordings_match_perf() {
    let Some(tools) = Tools::find_for("build_ids_of_recordings_match_perf") else {
        return;
    };
    // Samples in several objects and in the kernel.
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
        let Some(file) = tools.record(tool, "objects", &words) else {
            continue;
        };
        for words in [&[][..], &["-H"], &["-f"]] {
            let text = tools.assert_same(&[&["buildid-list", "-i", &file], words].concat());
            assert!(text.lines().count() > 1, "{text}");
        }
    }
    let without_ids = ["-B", "true"];
    let file = tools
        .record(Tool::Perf, "without", &without_ids)
        .expect("perf records");
    let outcome = tools.outcome(Tool::Rperf, &["buildid-list", "-v", "-i", &file]);
    assert_eq!((outcome.status, &*outcome.stdout), (0, ""));
    assert!(
        outcome.stderr.contains(&format!("no build-ids in {file}")),
        "{outcome:?}"
    );
}

#[test]
fn the_kernel_and_files_have_the_ids_that_perf_finds() {
    let Some(tools) = Tools::find_for("the_kernel_and_files_have_the_ids_that_perf_finds") else {
        return;
    };
    if fs::read("/sys/kernel/notes").is_ok() {
        // 40 hexadecimal digits and a newline.
        assert_eq!(tools.assert_same(&["buildid-list", "-k"]).len(), 41);
        tools.assert_same(&["buildid-list", "-m"]);
    }
    let shell = fs::canonicalize("/bin/sh").expect("there is a shell");
    let shell = shell.to_str().expect("its path is text");
    tools.assert_same(&["buildid-list", "-i", shell]);
}

/// `PERF_RECORD_MISC_USER`.
const USER: u16 = PerfFile::USER;

/// An entry of the build-id section; `size` is the size of the build-id, `None` if the entry does not state it.
fn entry(misc: u16, id: &[u8], size: Option<u8>, name: &str) -> Vec<u8> {
    /// `PERF_RECORD_MISC_BUILD_ID_SIZE`.
    const HAS_SIZE: u16 = 1 << 15;
    let mut padded_id = id.to_vec();
    padded_id.resize(20, 0);
    // The pid is -1: the entry is for the host, not for a guest.
    let body = Bytes::new().u32(u32::MAX).raw(padded_id);
    let body = body.raw([size.unwrap_or_default(), 0, 0, 0]).text(name, 64);
    let misc = misc | if size.is_some() { HAS_SIZE } else { 0 };
    let length = u16::try_from(8 + body.len()).expect("a short record");
    Bytes::new()
        .u32(0)
        .u16(misc)
        .u16(length)
        .raw(body.done())
        .done()
}

/// Returns `file` with a build-id section, its only feature section, after its data.
fn with_build_ids(file: Vec<u8>, section: &[u8]) -> Vec<u8> {
    /// The offset of the feature bits in the header.
    const FEATURES: usize = 72;
    /// `HEADER_BUILD_ID`, a bit number.
    const BUILD_ID: u32 = 2;
    let mut file = file;
    file[FEATURES] |= 1 << BUILD_ID;
    // The table of sections has one entry of 16 bytes.
    let offset = file.len() as u64 + 16;
    let table = Bytes::new().u64(offset).u64(section.len() as u64);
    file.extend(table.done());
    file.extend(section);
    file
}

/// Runs `buildid-list` on a file with these contents.
fn list(bytes: &[u8], words: &[&str]) -> Outcome {
    let scratch = Scratch::new();
    scratch.write("perf.data", bytes).expect("a file");
    let run = rperf(&[&["buildid-list"], words].concat());
    run.within(scratch.path()).finish().expect("rperf starts")
}

/// A recording with samples in `prog` and `plain`; `lib.so` is only in callchains.
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
fn ids_of_16_and_20_bytes_are_listed_and_objects_without_one_are_named() {
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
    if let Some(tools) =
        Tools::find_for("ids_of_16_and_20_bytes_are_listed_and_objects_without_one_are_named")
    {
        fs::write(tools.path().join("perf.data"), &bytes).expect("a file");
        tools.assert_same(&["buildid-list"]);
    }
    let hit = list(&bytes, &["-H"]);
    assert_eq!((hit.stdout, &*hit.stderr), (long.clone(), ""));
    let output = list(&bytes, &["-Hv"]);
    assert_eq!(
        (output.stdout, &*output.stderr),
        (long, "no build-id: /opt/plain\n")
    );
}

#[test]
fn a_recording_without_ids_has_a_message() {
    let none = list(&recording(), &[]);
    assert_eq!((none.status, &*none.stdout, &*none.stderr), (0, "", NONE));
    // If the header lists no objects, only those with samples are listed, as with -H.
    let output = list(&recording(), &["-v"]);
    assert_eq!(
        output.stderr,
        format!("no build-id: /opt/prog, /opt/plain\n{NONE}")
    );
}

#[test]
fn objects_without_an_id_are_refused_and_truncated_recordings_are_reported() {
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
    // Wherever a file is truncated, the command reports that on stderr, whether or not it can list anything.
    let section = entry(USER, &[0xcd; 20], Some(20), "/opt/prog");
    let complete = with_build_ids(recording(), &section);
    for length in (0..complete.len()).step_by(11) {
        let outcome = list(&complete[..length], &["-H"]);
        assert!(matches!(outcome.status, 0 | 255), "{length}: {outcome:?}");
        assert!(!outcome.stderr.is_empty(), "{length}: {outcome:?}");
    }
}

#[test]
fn positional_arguments_are_refused() {
    let outcome = outcome(&["buildid-list", "perf.data"]);
    assert_eq!((outcome.status, &*outcome.stdout), (129, ""));
}
