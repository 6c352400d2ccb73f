//! `rperf inject`: build-ids in files and pipes, decoded traces, merged scheduler events, and refused input.

use std::fs;

use rperf_testkit::{FileAttr, Outcome, PerfFile, Run, Scratch};

use super::rperf;
use crate::tidy::root;
use crate::tools::{BOTH, Tool, Tools};

/// A workload of several processes and libraries.
pub(super) const WORKLOAD: [&str; 3] = [
    "sh",
    "-c",
    "for i in 1 2 3 4; do ls -R /usr/lib >/dev/null; done",
];

/// Options of `record` for a recording without build-ids.
pub(super) const WITHOUT_IDS: [&str; 6] = ["-B", "-N", "-e", "cpu-clock", "-F", "2000"];

/// Asserts that the program succeeded without messages.
#[track_caller]
pub(super) fn assert_success(outcome: &Outcome) {
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{outcome:?}");
}

/// The lines of perf's `buildid-list` about files of user space, sorted. Lines without a build-id begin with a space and are not
/// included.
fn listed(tools: &Tools, file: &str) -> Vec<String> {
    let list = tools
        .outcome(Tool::Perf, &["buildid-list", "-i", file])
        .stdout;
    let mut lines: Vec<String> = list
        .lines()
        .filter(|line| line.contains(" /") && !line.starts_with(' '))
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

/// The text that a command prints, without the tips of `report`, which change from run to run.
pub(super) fn printed(tools: &Tools, reader: Tool, words: &[&str]) -> String {
    let text = tools.outcome(reader, words).stdout;
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !line.contains("(Tip: ")).collect()
}

/// Runs a shell line in which `linux-perf` and `rperf` are the two programs.
pub(super) fn shell(tools: &Tools, line: &str) -> Outcome {
    let line = line
        .replace(
            "rperf ",
            &format!("{} ", tools.program(Tool::Rperf).display()),
        )
        .replace(
            "linux-perf ",
            &format!("{} ", tools.program(Tool::Perf).display()),
        );
    let run = Run::new("sh").args(["-c", &line]).within(tools.path());
    run.env("HOME", tools.path())
        .finish()
        .expect("a shell starts")
}

#[test]
fn build_ids_in_files_match_those_of_perf() {
    let Some(tools) = Tools::find_for("build_ids_in_files_match_those_of_perf") else {
        return;
    };
    for tool in BOTH {
        let words = [&WITHOUT_IDS[..], &WORKLOAD].concat();
        let Some(file) = tools.record(tool, "without", &words) else {
            continue;
        };
        assert_eq!(listed(&tools, &file), [""; 0], "{tool:?}");
        for injector in BOTH {
            let output = format!("{injector:?}.data");
            let words = ["inject", "-b", "-i", &file, "-o", &output];
            assert_success(&tools.outcome(injector, &words));
        }
        let expected = listed(&tools, "Perf.data");
        assert!(expected.len() > 2, "{expected:?}");
        assert_eq!(listed(&tools, "Rperf.data"), expected, "{tool:?}");
        // Both readers print the same reports and samples as before.
        for reader in BOTH {
            for words in [&["report", "--stdio"][..], &["script"]] {
                let text = |input: &str| printed(&tools, reader, &[words, &["-i", input]].concat());
                assert_eq!(text(&file), text("Rperf.data"), "{reader:?} {words:?}");
            }
        }
        let dump = tools.outcome(Tool::Perf, &["script", "-D", "-i", "Rperf.data"]);
        assert!(dump.stdout.contains("PERF_RECORD_BUILD_ID"));
    }
}

#[test]
fn buildid_all_adds_at_least_the_build_ids_that_perf_adds() {
    let Some(tools) = Tools::find_for("buildid_all_adds_at_least_the_build_ids_that_perf_adds")
    else {
        return;
    };
    let words = [&WITHOUT_IDS[..], &WORKLOAD].concat();
    let file = tools
        .record(Tool::Perf, "all", &words)
        .expect("perf records");
    for tool in BOTH {
        let output = format!("{tool:?}.data");
        assert_success(&tools.outcome(
            tool,
            &["inject", "--buildid-all", "-i", &file, "-o", &output],
        ));
    }
    let [theirs, ours] = ["Perf.data", "Rperf.data"].map(|file| listed(&tools, file));
    assert!(!theirs.is_empty());
    for line in theirs {
        assert!(ours.contains(&line), "{line}: {ours:?}");
    }
    // The shell is included even if no sample hit it.
    assert!(ours.iter().any(|line| line.ends_with("/dash")), "{ours:?}");
}

#[test]
fn build_ids_in_streams_match_those_of_perf() {
    let Some(tools) = Tools::find_for("build_ids_in_streams_match_those_of_perf") else {
        return;
    };
    let workload = "ls -R /usr/lib";
    let line = format!("linux-perf record -q -B -e cpu-clock -F 2000 -o - {workload} >pipe.data");
    assert_eq!(shell(&tools, &line).status, 0);
    assert_success(&shell(&tools, "cat pipe.data | rperf inject -b >ours.data"));
    assert_success(&shell(
        &tools,
        "cat pipe.data | linux-perf inject -b >perfs.data",
    ));
    assert_success(&shell(
        &tools,
        "cat pipe.data | rperf inject -b -o file.data",
    ));
    let expected = listed(&tools, "perfs.data");
    assert!(!expected.is_empty());
    assert_eq!(listed(&tools, "ours.data"), expected);
    let bytes = |name: &str| fs::read(tools.path().join(name)).expect("an output");
    assert_eq!(bytes("ours.data"), bytes("file.data"));
    // Without options a stream is copied.
    assert_success(&shell(&tools, "cat pipe.data | rperf inject >copy.data"));
    assert!(bytes("copy.data") == bytes("pipe.data"));
    // An ordinary recording is read from a pipe, too, which perf 6.1 cannot do, and is written as a stream.
    let words = [&WITHOUT_IDS[..], &["ls", "-R", "/usr/lib"]].concat();
    let file = tools
        .record(Tool::Perf, "plain", &words)
        .expect("perf records");
    assert_success(&shell(
        &tools,
        &format!("cat {file} | rperf inject -b >stream.data"),
    ));
    assert_success(&shell(
        &tools,
        &format!("rperf inject -b -i {file} -o seen.data"),
    ));
    assert_eq!(listed(&tools, "stream.data"), listed(&tools, "seen.data"));
    let profile = |input: &str| {
        let words = ["report", "--stdio", "--sort", "comm,dso", "-i", input];
        let text = tools.outcome(Tool::Perf, &words).stdout;
        let rows = text.lines().filter(|line| line.contains('%'));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(!profile(&file).is_empty());
    assert_eq!(profile("stream.data"), profile(&file));
}

#[test]
fn mappings_get_build_ids_and_unused_ones_are_dropped() {
    let Some(tools) = Tools::find_for("mappings_get_build_ids_and_unused_ones_are_dropped") else {
        return;
    };
    let words = [&WITHOUT_IDS[..], &WORKLOAD].concat();
    let file = tools
        .record(Tool::Perf, "maps", &words)
        .expect("perf records");
    let mut counts = Vec::new();
    for option in ["--mmap2-buildid-all", "-B"] {
        assert_success(&tools.outcome(
            Tool::Rperf,
            &["inject", option, "-i", &file, "-o", "out.data"],
        ));
        let words = ["script", "--show-mmap-events", "-i", "out.data"];
        let text = tools.outcome(Tool::Perf, &words).stdout;
        let maps = text
            .lines()
            .filter(|line| line.contains("PERF_RECORD_MMAP2 "));
        let maps: Vec<&str> = maps.filter(|line| line.contains(" /")).collect();
        // With a build-id: [0x7fd61e620000(0x26000) @ 0x1000 <7ebc…>]: r-xp PATH
        assert!(maps.iter().all(|line| line.contains(" <")), "{maps:#?}");
        counts.push(maps.len());
        let words = |input| ["report", "--stdio", "-i", input];
        let [before, after] =
            [&*file, "out.data"].map(|input| printed(&tools, Tool::Perf, &words(input)));
        assert_eq!(after, before, "{option}");
    }
    // `-B` also drops the mappings of objects that no sample hits.
    assert!(counts[1] > 0 && counts[1] < counts[0], "{counts:?}");
}

/// A recording of one sample in `/bin/absent`, in either byte order.
fn one_sample(is_big_endian: bool) -> Vec<u8> {
    let mut file = match is_big_endian {
        true => PerfFile::big_endian(),
        false => PerfFile::new(),
    };
    let attr = FileAttr {
        kind: 1,
        period: 1000,
        // IP | TID | TIME
        sample_type: 7,
        flags: FileAttr::SAMPLE_ID_ALL,
        ..FileAttr::default()
    };
    file.event(&attr, &[]);
    let trailer = file.bytes().u32(7).u32(7).u64(10).done();
    let map = file.bytes().u32(7).u32(7).u64(0x1000).u64(0x1000).u64(0);
    // Device and inode, all zero; then the protection (PROT_READ | PROT_EXEC) and flags (MAP_PRIVATE).
    let map = map.raw([0; 24]).u32(5).u32(2).text("/bin/absent", 8);
    file.record(PerfFile::MMAP2, PerfFile::USER, map.raw(trailer).done());
    let sample = file.bytes().u64(0x1800).u32(7).u32(7).u64(20).done();
    file.record(PerfFile::SAMPLE, PerfFile::USER, sample);
    file.machine("x86_64");
    file.finish()
}

#[test]
fn known_build_ids_are_used_in_either_byte_order() {
    const ID: &str = "0123456789abcdef0123456789abcdef01234567";
    for is_big_endian in [false, true] {
        let scratch = Scratch::new();
        let recording = one_sample(is_big_endian);
        scratch.write("perf.data", recording).expect("a file");
        scratch
            .write("ids", format!("\n{ID} /bin/absent\n"))
            .expect("a list");
        let known = format!("{} /bin/other,{ID} /bin/absent", "ab".repeat(20));
        for value in [&*known, "file://ids"] {
            for option in ["-b", "--buildid-all", "--mmap2-buildid-all"] {
                let words = [
                    "inject",
                    option,
                    "--known-build-ids",
                    value,
                    "-o",
                    "out.data",
                ];
                let run =
                    |words: &[&str]| rperf(words).within(scratch.path()).finish().expect("runs");
                assert_success(&run(&words));
                let list = run(&["buildid-list", "-H", "-i", "out.data"]);
                assert_eq!(
                    list.stdout,
                    format!("{ID} /bin/absent\n"),
                    "{option} {is_big_endian}"
                );
                let list = run(&["buildid-list", "-i", "perf.data"]);
                assert_eq!(list.stdout, "", "{list:?}");
            }
        }
    }
}

#[test]
fn compressed_recordings_and_directories_become_plain_files() {
    let Some(tools) = Tools::find_for("compressed_recordings_and_directories_become_plain_files")
    else {
        return;
    };
    for option in ["-z", "--threads"] {
        let words = [&WITHOUT_IDS[..], &[option], &WORKLOAD].concat();
        let Some(file) = tools.record(Tool::Rperf, option.trim_start_matches('-'), &words) else {
            continue;
        };
        assert_success(&tools.outcome(
            Tool::Rperf,
            &["inject", "-b", "-i", &file, "-o", "out.data"],
        ));
        assert!(tools.path().join("out.data").is_file(), "{option}");
        assert!(!listed(&tools, "out.data").is_empty(), "{option}");
        let words = |input| ["report", "--stdio", "-i", input];
        let before = tools.outcome(Tool::Rperf, &words(&file)).stdout;
        assert_eq!(
            tools.outcome(Tool::Rperf, &words("out.data")).stdout,
            before
        );
        let checked = tools.outcome(Tool::Rperf, &["data", "check", "out.data"]);
        assert_eq!(checked.status, 0, "{checked:?}");
    }
}

#[test]
fn a_decoded_trace_replaces_other_samples() {
    let scratch = Scratch::new();
    let bytes = fs::read(root().join("tests/fixtures/x86_64/bts.data")).expect("the fixture");
    scratch.write("perf.data", bytes).expect("a copy");
    let run = |words: &[&str]| rperf(words).within(scratch.path()).finish().expect("runs");
    assert_eq!(
        run(&["inject", "--itrace=b", "--strip", "-f", "-o", "out.data"]).status,
        0
    );
    let words = ["script", "-f", "-F", "comm,tid,event,ip,addr"];
    let decoded = run(&[&words[..], &["--itrace=b"]].concat()).stdout;
    let branches: Vec<&str> = decoded
        .lines()
        .filter(|line| line.contains("branches:"))
        .collect();
    let stripped = run(&[&words[..], &["-i", "out.data"]].concat()).stdout;
    assert!(!branches.is_empty());
    assert_eq!(stripped.lines().collect::<Vec<_>>(), branches);
}

#[test]
fn failed_runs_leave_no_output_file() {
    let scratch = Scratch::new();
    let is_big_endian = false;
    let complete = one_sample(is_big_endian);
    scratch.write("perf.data", &complete).expect("a file");
    // Without its last 100 bytes: 84 of the only feature (16 for its offset and size, and 68 of content), and the last 16 of the
    // sample.
    scratch
        .write("truncated.data", &complete[..complete.len() - 100])
        .expect("a file");
    scratch
        .write("text", "no recording at all\n")
        .expect("a file");
    let run = |words: &[&str]| rperf(words).within(scratch.path()).finish().expect("runs");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["-i", "truncated.data"], 255, "truncated.data: "),
        (
            &["-b", "-i", "absent.data"],
            255,
            "failed to open absent.data",
        ),
        (&["-i", "text"], 255, "incompatible file format (text)"),
        (&["-b", "--buildid-all", "-B"], 129, "exclude each other"),
        (
            &["--known-build-ids", "12 /bin/a"],
            129,
            "has no effect without build-ids",
        ),
        (
            &["-b", "--known-build-ids", "xy /bin/a"],
            129,
            "is not a build-id and a path",
        ),
        (&["-b", "--known-build-ids", "file://none"], 255, "none: "),
        (&["--strip"], 129, "--itrace, which is not given"),
        (
            &["--strip", "--itrace"],
            255,
            "perf.data has no hardware trace",
        ),
        (&["--itrace=z"], 129, "unknown letter 'z'"),
        (&["--guest-data"], 129, "not supported yet"),
        (&["--vm-time-correlation"], 129, "not supported yet"),
        (&["--kallsyms=x"], 129, "not supported yet"),
    ];
    for (words, status, message) in cases {
        let outcome = run(&[&["inject", "-o", "out.data"], *words].concat());
        assert_eq!(outcome.status, *status, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{words:?}: {outcome:?}");
        assert!(!scratch.path().join("out.data").exists(), "{words:?}");
    }
    let outcome = run(&["inject", "-o", "./perf.data"]);
    assert_eq!(outcome.status, 255);
    assert!(
        outcome.stderr.contains("is input and output"),
        "{outcome:?}"
    );
    assert_eq!(
        fs::read(scratch.path().join("perf.data")).expect("the input"),
        complete
    );
    let outcome = run(&["inject", "-o", "nowhere/out.data"]);
    assert_eq!(outcome.status, 255, "{outcome:?}");
    assert!(outcome.stderr.contains("nowhere/out.data"), "{outcome:?}");
}

/// `inject -s` merges the `sched_stat_*` and `sched_switch` events of each task.
#[test]
fn scheduler_events_are_merged_as_by_perf() {
    const TEST: &str = "scheduler_events_are_merged_as_by_perf";
    let Some(tools) = Tools::find_for(TEST) else {
        return;
    };
    if !rperf_testkit::may_trace(TEST) {
        return;
    }
    // sched_stat_runtime exists even in kernels without CONFIG_SCHEDSTATS.
    let events = "sched:sched_stat_runtime,sched:sched_switch,sched:sched_process_exit";
    let words = ["-a", "-g", "-e", events, "sleep", "0.3"];
    let file = tools
        .record(Tool::Perf, "sched", &words)
        .expect("perf records");
    let scripts = BOTH.map(|tool| {
        let output = format!("{tool:?}-merged.data");
        let merged = tools.outcome(tool, &["inject", "-s", "-i", &file, "-o", &output]);
        assert_eq!(merged.status, 0, "{merged:?}");
        let words = [
            "script",
            "-F",
            "comm,tid,time,event,period,ip",
            "-i",
            &output,
        ];
        printed(&tools, Tool::Perf, &words)
    });
    assert!(scripts[0].contains("sched:sched_switch"), "{}", scripts[0]);
    assert_eq!(scripts[0], scripts[1]);
    let words = [&WITHOUT_IDS[..], &["true"]].concat();
    let plain = tools
        .record(Tool::Perf, "plain", &words)
        .expect("perf records");
    let words = ["inject", "-s", "-i", &plain, "-o", "out.data"];
    let refused = tools.outcome(Tool::Rperf, &words);
    assert_eq!(refused.status, 255, "{refused:?}");
    let message = "the recording lacks sched_switch or sched_stat_* events\n";
    assert!(refused.stderr.contains(message), "{refused:?}");
}
