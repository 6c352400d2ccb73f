//! Recordings published by other projects for their tests, and the fixtures of this project: each is read as perf reads it.
//! Files that perf cannot read may be refused, with a message that names the file.
//!
//! Other projects' recordings are in the folder named by `RPERF_CORPUS`, by default `shared/corpus` next to the project's folder.

use std::fs;
use std::path::{Path, PathBuf};

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip_for_lack_of};

use crate::differential::difference;
use crate::tools::without_zero_config;

/// How two texts may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// Equal.
    Same,
    /// Different only after the addresses of frames.
    SameAddresses,
    /// Different only after the first colon of each line, which follows a name.
    SameNames,
    /// rperf prints additional lines.
    More,
    /// Different in any way.
    Other,
}

use Relation::{More, Other, Same, SameAddresses, SameNames};

/// Intended differences: the end of the file's path, the command, how the output may differ.
const INTENDED_DIFFERENCES: &[(&str, &str, Relation)] = &[
    // perf uses the running kernel's symbols and clips the recorded kernel mapping to their addresses.
    ("perf_display_bitmaps.data", "script", SameAddresses),
    ("perf_merge2.data", "script", SameAddresses),
    ("perf_with_jit_symbol.data", "script", SameAddresses),
    ("perf_with_mini_debug_info.data", "script", SameAddresses),
    // perf does not unwind stacks of other architectures, and ends some callchains at unmapped addresses.
    ("perf_no_unwind.data", "script", More),
    ("dwarf.data", "script", More),
    ("perf_with_ip_zero_in_callchain.data", "script", More),
    // To decode the hardware trace, perf reads the instruction of each branch; it prints an error for each, as it has no code.
    ("bts.data", "script", Other),
    // In pipe mode, perf's evlist reads attrs only; it takes the ids after a short attr for fields of the attr.
    ("sleep.compressed.pipe.data", "evlist", Other),
    ("perf.data.piped.lost_samples-4.4", "evlist", Other),
    ("perf.data.piped.target-3.8", "evlist", Other),
    // perf does not print header sections of newer releases.
    ("sleep.compressed.pipe.data", "report", More),
    // After a feature that perf cannot decode, it prints zeros.
    ("perf.data.armv7.perf_3.14-3.8", "report", SameNames),
];

/// The folder of other projects' recordings, which may not exist.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment names the folder of the files"
)]
pub(crate) fn corpus_folder() -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    std::env::var_os("RPERF_CORPUS").map_or_else(default, PathBuf::from)
}

/// Other projects' recordings; `None` if there are none.
fn corpus() -> Option<Vec<PathBuf>> {
    let recordings = files(corpus_folder());
    (!recordings.is_empty()).then_some(recordings)
}

/// The files and recording directories below a folder, sorted, without `*.md`.
fn files(root: PathBuf) -> Vec<PathBuf> {
    let mut folders = vec![root];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_readme = path.extension().is_some_and(|extension| extension == "md");
            // A folder with a file `data` is a recording directory.
            if path.is_dir() && !path.join("data").is_file() {
                folders.push(path);
            } else if !is_readme {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Runs a program with a time limit: perf does not terminate on some files.
fn outcome(program: &str, scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = Run::new("timeout").args(["60", program]).args(words);
    let run = run.within(scratch.path()).env("HOME", scratch.path());
    run.finish().expect("timeout starts")
}

/// The fault of rperf's outcome: a panic, a status other than 0 and 255, or an error message without the file name.
fn fault(path: &str, ours: &Outcome) -> Option<String> {
    let is_valid = match ours.status {
        0 => true,
        255 => ours.stderr.contains(path),
        _ => false,
    };
    let is_fault = !is_valid || ours.stderr.contains("panicked");
    is_fault.then(|| format!("status {}: {}", ours.status, ours.stderr))
}

/// Describes the first unintended differences between the outputs of both tools, or says that an intended difference no longer
/// exists; otherwise `None`.
fn compare(path: &str, words: &[&str], theirs: &Outcome, ours: &Outcome) -> Option<String> {
    let intended = INTENDED_DIFFERENCES
        .iter()
        .find(|(name, command, _)| path.ends_with(name) && words.first() == Some(command));
    let relation = intended.map_or(Same, |(.., relation)| *relation);
    // Messages name the program as it was called.
    let theirs = theirs.stdout.replace("'perf ", "'rperf ");
    // perf 6.1 does not print the `config: 0` of `evlist -v`.
    let ours = without_zero_config(&ours.stdout);
    let (theirs, ours) = (theirs.as_str(), ours.as_str());
    let difference = match relation {
        Same => difference(theirs, ours),
        SameAddresses => difference(&addresses(theirs), &addresses(ours)),
        Other => None,
        SameNames => difference(&names(theirs), &names(ours)),
        More => {
            let mut lines = ours.lines();
            let missing = theirs.lines().find(|line| !lines.any(|ours| ours == *line));
            missing.map(|line| format!("not printed: {line}"))
        }
    };
    if relation != Same && theirs == ours {
        return Some("no longer differs: the exception can go".to_owned());
    }
    difference
}

/// Lines truncated after their first address, as in frames; other lines unchanged.
fn addresses(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let is_address = |word: &&str| {
            let word = word.trim_start();
            // Shorter words may be names or numbers.
            word.len() > 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let end = words.iter().position(is_address);
        end.map_or(line.to_owned(), |end| words[..=end].join(" "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Lines truncated at their first colon.
fn names(text: &str) -> String {
    let names = text
        .lines()
        .map(|line| line.split(':').next().unwrap_or(line));
    names.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_recording_is_read_or_refused_with_a_message() {
    let mut files = files(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"));
    match corpus() {
        Some(corpus) => files.extend(corpus),
        None => skip_for_lack_of(
            "every_recording_is_read_or_refused_with_a_message",
            "other projects' recordings",
        ),
    }
    let perf = real_perf().map(|perf| perf.display().to_string());
    let scratch = Scratch::new();
    let mut faults = Vec::new();
    for file in &files {
        let path = file.display().to_string();
        // Damaged files are not compared with perf: its output differs. If perf fails or prints nothing for one of the command
        // lines, the following ones are not compared either.
        let mut is_compared = !path.contains("/fuzz/");
        for words in [
            &["script"][..],
            &["report", "--header-only"],
            &["evlist", "-v"],
        ] {
            let words = [words, &["-f", "-i", &path]].concat();
            let ours = outcome(env!("CARGO_BIN_EXE_rperf"), &scratch, &words);
            let theirs = perf.as_ref().filter(|_| is_compared);
            let theirs = theirs.map(|perf| outcome(perf, &scratch, &words));
            let theirs = theirs.filter(|theirs| theirs.status == 0 && !theirs.stdout.is_empty());
            is_compared = theirs.is_some();
            let found = fault(&path, &ours).or_else(|| match theirs? {
                _ if ours.status != 0 => Some(format!("refused: {}", ours.stderr)),
                theirs => compare(&path, &words, &theirs, &ours),
            });
            faults.extend(found.map(|found| format!("{words:?}\n{found}")));
        }
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// Files that perf 6.1 cannot read but rperf can: the samples are counted.
#[test]
fn recordings_that_perf_refuses_are_read() {
    let name = "recordings_that_perf_refuses_are_read";
    let Some(files) = corpus() else {
        return skip_for_lack_of(name, "other projects' recordings");
    };
    let scratch = Scratch::new();
    for (ending, samples) in [
        ("linux-perf-data/files/sleep.data", 7),
        ("fibo.compressed2.pipe.data", 547),
        ("perf_lbr.data", 19),
        ("perf_with_trace_offcpu_v2.data", 304),
        ("perf_with_tracepoint_event.data", 45),
    ] {
        let Some(file) = files.iter().find(|file| file.ends_with(ending)) else {
            skip_for_lack_of(name, ending);
            continue;
        };
        let path = file.display().to_string();
        let words = ["script", "-f", "-F", "tid,event", "-i", &path];
        let ours = outcome(env!("CARGO_BIN_EXE_rperf"), &scratch, &words);
        assert_eq!(ours.status, 0, "{path}: {}", ours.stderr);
        // The line of a sample has a colon after the name of the event.
        let lines = ours.stdout.lines().filter(|line| line.contains(':'));
        assert_eq!(lines.count(), samples, "{path}");
    }
}
