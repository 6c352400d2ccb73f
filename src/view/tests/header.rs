//! The header text compared with that of the real perf, for recordings made with perf and for the corpus.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rperf_perfdata::{FeatureId, PerfData};
use rperf_testkit::{Run, Scratch, real_perf, skip, skip_for_lack_of};
use rperf_view::header::{HeaderOptions, write_header};

/// Size of an event description in a file of perf 6.1, in bytes: the attr, and the offset and size of its section of ids.
const EVENT_SIZE_OF_PERF_6_1: u64 = 128 + 16;
/// Size of the feature BPF_PROG_INFO without programs, in bytes: only the number of programs, 0.
const NO_PROGRAMS_SIZE: usize = 4;

/// The text of rperf in UTC, as `Run` sets this time zone for perf. `None` for files that are not compared: files that cannot be
/// parsed, files with a malformed feature or an empty CPUDESC, at which perf gives up, files with BPF programs, and files with
/// larger attrs than perf 6.1 supports (perf reads none of their features).
fn ours(path: &Path, full: bool) -> Option<String> {
    let bytes = fs::read(path).unwrap();
    let data = PerfData::parse(&bytes).ok()?;
    let larger_attrs = data.header().attr_size > EVENT_SIZE_OF_PERF_6_1;
    let programs = data.features().raw(FeatureId::BPF_PROG_INFO);
    let empty = |id| data.features().raw(id).is_some_and(<[u8]>::is_empty);
    if larger_attrs
        || empty(FeatureId::CPUDESC)
        || !data.features().malformed().is_empty()
        || programs.is_some_and(|bytes| bytes.len() > NO_PROGRAMS_SIZE)
    {
        return None;
    }
    let options = HeaderOptions {
        captured: fs::metadata(path).unwrap().mtime(),
        // The offset of UTC is 0 at any time.
        zone: &|_| 0,
        full,
    };
    let mut text = Vec::new();
    write_header(&mut text, &data, &options).unwrap();
    Some(String::from_utf8(text).unwrap())
}

/// The text of perf; `None` if perf refuses the file.
fn theirs(perf: &Path, path: &Path, full: bool) -> Option<String> {
    let full_option = full.then_some("-I");
    let run = Run::new(perf)
        .args(["report", "-f", "--header-only"])
        .args(full_option)
        .args([Path::new("-i"), path]);
    let outcome = run.finish().unwrap();
    let refused = outcome.status != 0 || outcome.stderr.contains("incompatible file format");
    (!refused).then_some(outcome.stdout)
}

/// The lines of features that perf 6.1 knows: it does not print the others.
fn known_lines(text: &str) -> Vec<&str> {
    let newer = [
        "# CPU_DOMAIN_INFO",
        "# schedstat version",
        "# Maximum sched domains",
        "# cpu\t",
        "# nr_domains",
        "# Domain",
        "# e_machine",
        "#   e_flags",
        "# cacheline size",
    ];
    let lines = text.lines();
    lines
        .filter(|line| !newer.iter().any(|start| line.starts_with(start)))
        .collect()
}

/// Messages about the files whose texts differ, with the first pair of different lines, or with `None` if one text is the
/// beginning of the other. Panics if fewer than `least` texts can be compared.
fn differences(perf: &Path, files: &[PathBuf], least: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for file in files {
        for full in [false, true] {
            let (Some(ours), Some(theirs)) = (ours(file, full), theirs(perf, file, full)) else {
                continue;
            };
            compared += 1;
            let known = known_lines(&ours);
            let mut lines = known.iter().zip(theirs.lines());
            let first = lines.find(|(ours, theirs)| **ours != *theirs);
            if !theirs.lines().eq(known.iter().copied()) {
                wrong.push(format!("{} full={full}: {first:#?}", file.display()));
            }
        }
    }
    assert!(compared >= least, "only {compared} texts were compared");
    wrong
}

#[test]
fn headers_of_perfs_recordings_match() {
    let Some(perf) = real_perf() else {
        return skip("headers_of_perfs_recordings_match", "no perf here");
    };
    let scratch = Scratch::new();
    let option_lists: [&[&str]; 5] = [
        &["-e", "cpu-clock", "-g", "-a"],
        &[
            "-k",
            "monotonic",
            "-z",
            "-e",
            "{cs,page-faults}",
            "-e",
            "cpu-clock",
        ],
        &["-B", "-e", "cs:u"],
        &["-e", "cpu-clock", "--call-graph", "dwarf"],
        &["-d", "-W", "--transaction", "-e", "page-faults"],
    ];
    let mut files = Vec::new();
    for (number, options) in option_lists.iter().enumerate() {
        let path = scratch.path().join(format!("{number}.data"));
        let run = Run::new(&perf)
            // BPF programs of other processes would be in the features.
            .args(["record", "--no-bpf-event", "-o"])
            .args([&path])
            .args(*options)
            .args(["--", "sh", "-c", "echo 'quoted words'"])
            .env("HOME", scratch.path());
        let recorded = run.finish().unwrap();
        if recorded.status == 0 {
            files.push(path);
        }
    }
    if files.is_empty() {
        return skip(
            "headers_of_perfs_recordings_match",
            "perf may record nothing here",
        );
    }
    let all_texts = files.len() * 2;
    let wrong = differences(&perf, &files, all_texts);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn headers_of_the_corpus_match() {
    let Some(perf) = real_perf() else {
        return skip("headers_of_the_corpus_match", "no perf here");
    };
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let folders = [
        "linux-perf-data",
        "perf_data_converter",
        "platform_system_extras",
    ];
    let mut files = Vec::new();
    for folder in folders {
        let Ok(entries) = fs::read_dir(corpus.join(folder).join("files")) else {
            return skip_for_lack_of("headers_of_the_corpus_match", "other projects' recordings");
        };
        files.extend(entries.filter_map(Result::ok).map(|entry| entry.path()));
    }
    // Fewer than the two texts of each of the 40 or so files: some files are not compared, see `ours` and `theirs`.
    let least = 20;
    let wrong = differences(&perf, &files, least);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
