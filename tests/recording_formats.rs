//! The formats of a recording on disk and in a pipe: perf writes them, and perf and rperf print the same text for them.

use std::fs;

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use crate::differential::difference;
use crate::tools::without_zero_config;

/// The formats, each with the options with which perf writes it.
const FORMATS: &[(&str, &[&str])] = &[
    ("compressed", &["-z"]),
    ("compressed hard, with callchains", &["-z19", "-g"]),
    ("a directory", &["--threads"]),
    ("a directory, compressed", &["--threads", "-z", "-g"]),
    ("build-ids in the mappings", &["--buildid-mmap"]),
    (
        "switches and cgroups",
        &["--switch-events", "--all-cgroups"],
    ),
    ("namespaces", &["--namespaces"]),
];

/// A workload that causes process and mapping records between the samples.
const LOAD: &str = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); /bin/true; done";

fn tool(program: &str, scratch: &Scratch) -> Run {
    let home = scratch.path();
    Run::new(program).within(home).env("HOME", home)
}

fn outcome(run: Run) -> Outcome {
    run.finish().expect("the program starts")
}

/// Records [`LOAD`] with perf into `output`; `false` if perf fails, for example because it does not
/// support the format.
fn record(perf: &str, scratch: &Scratch, options: &[&str], output: &str) -> bool {
    let words = [&["record", "-q", "-o", output, "-F", "4999"], options].concat();
    let run = tool(perf, scratch).args(words);
    outcome(run.args(["--", "sh", "-c", LOAD])).status == 0
}

/// Returns the first difference between the outputs of perf and rperf for the same arguments, if any.
fn compare(perf: &str, scratch: &Scratch, words: &[&str]) -> Option<String> {
    let theirs = outcome(tool(perf, scratch).args(words));
    let ours = outcome(tool(env!("CARGO_BIN_EXE_rperf"), scratch).args(words));
    assert_eq!(ours.status, 0, "{words:?}: {}", ours.stderr);
    assert_ne!(theirs.stdout, "", "perf {words:?} prints nothing");
    // perf 6.1 omits `config: 0` in `evlist -v`.
    let found = difference(&theirs.stdout, &without_zero_config(&ours.stdout))?;
    Some(format!("{words:?}\n{found}"))
}

#[test]
fn every_format_is_read_as_by_perf() {
    let Some(perf) = real_perf() else {
        return skip("every_format_is_read_as_by_perf", "there is no perf");
    };
    let (perf, scratch) = (perf.display().to_string(), Scratch::new());
    let mut differences = Vec::new();
    for (number, (format, options)) in (0..).zip(FORMATS) {
        let file = format!("{number}.data");
        if !record(&perf, &scratch, options, &file) {
            skip(
                "every_format_is_read_as_by_perf",
                &format!("perf cannot record this format here: {format}"),
            );
            continue;
        }
        for words in [
            &["script", "-i", &file][..],
            &["script", "-F", "comm,tid,time,ip,sym,dso", "-i", &file],
            &["report", "--header-only", "-i", &file],
            &["report", "--stats", "-i", &file],
            &["evlist", "-v", "-i", &file],
        ] {
            differences.extend(compare(&perf, &scratch, words));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// perf and rperf print the same text for a file with a compressed stream, and rperf also for the stream from standard input.
#[test]
fn a_compressed_pipe_is_read_as_by_perf() {
    let name = "a_compressed_pipe_is_read_as_by_perf";
    let Some(perf) = real_perf() else {
        return skip(name, "there is no perf");
    };
    let (perf, scratch) = (perf.display().to_string(), Scratch::new());
    let shell = format!("{perf} record -q -z -g -F 4999 -o - -- sh -c '{LOAD}' > pipe.data");
    outcome(tool("/bin/sh", &scratch).args(["-c", &shell]));
    let bytes = fs::read(scratch.path().join("pipe.data")).expect("the stream");
    // Too short for samples.
    if bytes.len() < 4096 {
        return skip(name, "perf records nothing here");
    }
    assert_eq!(
        compare(&perf, &scratch, &["script", "-i", "pipe.data"]),
        None
    );
    let rperf = || tool(env!("CARGO_BIN_EXE_rperf"), &scratch);
    let from_file = outcome(rperf().args(["script", "-i", "pipe.data"]));
    let from_stdin = outcome(rperf().args(["script", "-i", "-"]).stdin(bytes));
    assert_eq!(
        (from_file.status, from_stdin.status),
        (0, 0),
        "{}",
        from_stdin.stderr
    );
    assert_eq!(from_file.stdout, from_stdin.stdout);
}

#[test]
fn a_directory_without_its_data_file_is_refused() {
    let scratch = Scratch::new();
    let run = tool(env!("CARGO_BIN_EXE_rperf"), &scratch).args(["script", "-i", "."]);
    let found = outcome(run);
    let expected = ". is a directory: ./data: No such file or directory\n";
    assert_eq!((found.status, found.stderr.as_str()), (255, expected));
}
