//! Programs whose paths and names are not UTF-8: found, named and printed byte by byte, as in perf.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output};

use rperf_testkit::{Scratch, real_perf, skip};

/// The source of a program that spends its time in one function.
const BUSY: &str = "\
__attribute__((noinline)) static int busy(int n) { for (volatile long i = 0; i < 40000000; i++) ; return n; }
int main(void) { return busy(0); }
";
/// The program's name: "café" in Latin-1.
const NAME: &[u8] = b"caf\xe9";

/// Returns what rperf or perf prints on stdout.
fn printed(program: &Path, scratch: &Scratch, words: &[&str]) -> Vec<u8> {
    let mut command = Command::new(program);
    let command = command.args(words).current_dir(scratch.path());
    let command = command
        .env("HOME", scratch.path())
        .env("PERF_CONFIG", "/dev/null");
    let Output { stdout, status, .. } = command.output().expect("it starts");
    assert!(status.success(), "{words:?}");
    stdout
}

#[test]
fn names_that_are_not_utf_8_are_printed_as_perf_prints_them() {
    const TEST: &str =
        "commands::non_utf8_names::names_that_are_not_utf_8_are_printed_as_perf_prints_them";
    let scratch = Scratch::new();
    let program = scratch.path().join(OsStr::from_bytes(NAME));
    fs::write(scratch.path().join("busy.c"), BUSY).expect("a source");
    let mut compiler = Command::new("cc");
    let compiler = compiler
        .args(["-O1", "-Wl,--build-id", "-o"])
        .arg(&program)
        .arg("busy.c");
    let Ok(compiled) = compiler.current_dir(scratch.path()).status() else {
        return skip(TEST, "there is no C compiler");
    };
    assert!(compiled.success());
    let rperf = Path::new(env!("CARGO_BIN_EXE_rperf"));
    let mut record = Command::new(rperf);
    let record = record.args(["record", "-q", "-o", "x.data", "-e", "task-clock:u", "--"]);
    let record = record.arg(&program).current_dir(scratch.path());
    assert!(
        record
            .env("HOME", scratch.path())
            .status()
            .expect("rperf starts")
            .success()
    );

    let report = printed(rperf, &scratch, &["report", "--stdio", "-i", "x.data"]);
    let has = |text: &[u8], part: &[u8]| text.windows(part.len()).any(|window| window == part);
    assert!(
        has(&report, b"] busy"),
        "{}",
        String::from_utf8_lossy(&report)
    );
    let listed = printed(rperf, &scratch, &["buildid-list", "-i", "x.data"]);
    assert!(has(&listed, NAME), "{}", String::from_utf8_lossy(&listed));
    // Exports are always UTF-8.
    let svg = printed(rperf, &scratch, &["flamegraph", "-i", "x.data", "-o", "-"]);
    let svg = std::str::from_utf8(&svg).expect("UTF-8");
    assert!(svg.contains("busy"), "{svg}");

    let Some(perf) = real_perf() else {
        return skip(TEST, "no perf to compare with");
    };
    for words in [
        &["report", "--stdio", "-i", "x.data", "-s", "comm,dso,sym"][..],
        &["script", "-i", "x.data"],
        &["script", "-i", "x.data", "-F", "comm,ip,sym,dso"],
        &["buildid-list", "-i", "x.data"],
    ] {
        let [ours, theirs] = [rperf, &perf].map(|program| {
            let text = printed(program, &scratch, words);
            // perf's last lines are a random tip, which begins with `#`, like the heading.
            let lines = text
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.starts_with(b"#"));
            lines.map(<[u8]>::to_vec).collect::<Vec<_>>()
        });
        match words[0] {
            // Each of perf's lines must be among rperf's; `commands::buildid_list` also compares their number and order.
            "buildid-list" => assert!(theirs.iter().all(|line| ours.contains(line))),
            _ => assert_eq!(ours, theirs, "{words:?}"),
        }
    }
}
