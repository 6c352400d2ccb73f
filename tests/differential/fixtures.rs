//! Recordings made in guests by perf (tests/guest), of what few machines under these tests can record: hardware
//! counters, groups, branch stacks, memory accesses, AUX data, probes in the kernel, registers of arm64.

use std::fs;
use std::path::{Path, PathBuf};

use rperf_testkit::skip;

use super::{Tool, Tools, compare_texts, difference};
use crate::tidy::root;

/// Text that is compared as it is.
const EXACT: &[&[&str]] = &[
    &["script"],
    &["script", "-F", "+addr,+period"],
    &["evlist"],
    &["evlist", "-v"],
    &["report", "--header-only"],
];

/// Reports, whose rows are compared.
const REPORTS: &[&[&str]] = &[
    &["report", "--stdio", "--no-children", "-g", "none"],
    &["report", "--stdio", "-s", "comm,dso"],
];

/// What is not compared, by file and first word, and why.
const EXCEPT: &[(&str, &str, &str)] = &[
    ("x86_64/bts", "report", "needs the decoding of AUX data"),
    (
        "x86_64/branches",
        "report",
        "shows branches instead of samples",
    ),
    (
        "x86_64/branches-flags",
        "report",
        "shows branches instead of samples",
    ),
    (
        "aarch64/dwarf",
        "script",
        "Debian's perf unwinds no other architecture",
    ),
    (
        "aarch64/dwarf",
        "report",
        "Debian's perf unwinds no other architecture",
    ),
    (
        "x86_64/dwarf",
        "script",
        "without the program perf shows no frame of it",
    ),
    (
        "x86_64/dwarf",
        "report",
        "without the program perf shows no frame of it",
    ),
    (
        "aarch64/group",
        "report",
        "perf shows no group whose leader has no samples",
    ),
];

/// The recordings, directories of the newer form among them.
fn recordings() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for machine in ["x86_64", "aarch64"] {
        let folder = root().join("tests/fixtures").join(machine);
        let entries = fs::read_dir(&folder).expect("the folder of the fixtures");
        found.extend(entries.map(|entry| entry.expect("a fixture").path()));
    }
    found.sort();
    found
}

fn compare(tools: &Tools, recording: &Path, words: &[&str]) -> Option<String> {
    let machine = recording.parent()?.file_name()?.to_str()?;
    let name = format!("{machine}/{}", recording.file_stem()?.to_str()?);
    let excepted = EXCEPT
        .iter()
        .any(|except| (except.0, except.1) == (name.as_str(), words[0]));
    if excepted && !words.contains(&"--header-only") {
        return None;
    }
    let path = recording.to_str()?;
    let line = [words, &["-f", "-i", path]].concat();
    let perf = tools.outcome(Tool::Perf, &line);
    // By that name, advice is about perf as well.
    let rperf = tools.run(Tool::Rperf, &line).arg0("perf");
    let rperf = rperf.finish().expect("rperf starts");
    let found = if REPORTS.contains(&words) {
        compare_texts(&perf.stdout, &rperf.stdout)
    } else {
        difference(&perf.stdout, &rperf.stdout)
    };
    let status = (perf.status != rperf.status).then(|| {
        format!(
            "  status {} of perf, {} of rperf: {}",
            perf.status, rperf.status, rperf.stderr
        )
    });
    let found = status.or(found)?;
    Some(format!("{}\n{found}", line.join(" ")))
}

#[test]
fn recordings_of_guests_read_alike() {
    let Some(tools) = Tools::find() else {
        return skip(
            "differential::fixtures::recordings_of_guests_read_alike",
            "there is no perf",
        );
    };
    let recordings = recordings();
    assert!(recordings.len() >= 20, "{recordings:?}");
    let mut found = Vec::new();
    for recording in &recordings {
        for words in EXACT.iter().chain(REPORTS) {
            found.extend(compare(&tools, recording, words));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
