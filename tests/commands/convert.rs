//! `rperf data convert`: perf's JSON compared with perf, and the formats of other tools with folded stacks.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;
use rperf_testkit::{Outcome, Scratch, skip};
use serde_json::Value;

use super::folded_parser::{Folded, parse};
use super::{perfetto_trace, rperf, without_notes};
use crate::differential::settled;
use crate::tools::{BOTH, Tool, Tools};

const BUSY: &str = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; ls /usr >/dev/null";

#[test]
fn the_json_is_that_of_perf() {
    let Some(tools) = Tools::find_for("commands::convert::the_json_is_that_of_perf") else {
        return;
    };
    let recordings: [(&str, &[&str]); 3] = [
        ("chains", &["-g", "-e", "cpu-clock,page-faults"]),
        ("addresses", &["-e", "cpu-clock", "-c", "500000"]),
        (
            "processors",
            &["--sample-cpu", "-g", "-e", "cpu-clock:u", "-k", "mono"],
        ),
    ];
    for tool in BOTH {
        for (name, words) in recordings {
            let words = [words, &["--", "sh", "-c", BUSY]].concat();
            // A difference counts only if each of several new recordings has one.
            let differences = settled(|| {
                let file = tools.record(tool, name, &words);
                file.map_or_else(Vec::new, |file| {
                    Vec::from_iter(first_difference(&tools, &file))
                })
            });
            assert!(differences.is_empty(), "{tool:?} {name}: {differences:?}");
        }
    }
}

/// perf 6.1 has no fields of tracepoints in its JSON; later versions of perf have them at the end of each sample.
#[test]
fn fields_of_tracepoints_are_added_to_the_json_of_perf() {
    const FIELDS: [&str; 7] = [
        "prev_comm",
        "prev_pid",
        "prev_prio",
        "prev_state",
        "next_comm",
        "next_pid",
        "next_prio",
    ];
    let Some(tools) =
        Tools::find_for("commands::convert::fields_of_tracepoints_are_added_to_the_json_of_perf")
    else {
        return;
    };
    let words = ["-g", "-e", "sched:sched_switch", "--", "sh", "-c", BUSY];
    let differences = settled(|| {
        let Some(file) = tools.record(Tool::Rperf, "switches", &words) else {
            return Vec::new();
        };
        let [(theirs, _), (ours, _)] = both_converted(&tools, &file);
        let (theirs, mut ours) = (json(theirs.as_bytes()), json(ours.as_bytes()));
        let samples = ours["samples"].as_array_mut().expect("a list");
        assert!(!samples.is_empty());
        for sample in samples {
            let sample = sample.as_object_mut().expect("an object");
            assert!(
                FIELDS.iter().all(|field| sample.contains_key(*field)),
                "{sample:?}"
            );
            assert_eq!(sample["prev_pid"], sample["tid"].to_string());
            assert_eq!(sample["prev_comm"], sample["comm"]);
            sample.retain(|key, _| !FIELDS.contains(&key.as_str()));
        }
        let is_equal = theirs == ours;
        (!is_equal)
            .then(|| "different samples".to_owned())
            .into_iter()
            .collect()
    });
    assert!(differences.is_empty(), "{differences:?}");
}

#[test]
fn all_adds_records_to_the_json_and_keeps_its_samples() {
    let scratch = Scratch::new();
    let options = &["-g", "-F", "999", "-e", "cpu-clock:u,page-faults:u"];
    recorded(&scratch, options);
    let plain = json(&converted(&scratch, "json", &[]));
    // `--force`, since the files of `plain` have the same names.
    let all = json(&converted(&scratch, "json", &["--all", "--force"]));
    assert_eq!(plain["headers"], all["headers"]);
    assert_eq!(plain.get("records"), None);
    // The samples are the same, except that only those of `--all` have an event and a period.
    let mut samples = all["samples"].as_array().expect("a list").clone();
    let mut events = BTreeSet::new();
    for sample in &mut samples {
        let sample = sample.as_object_mut().expect("an object");
        let event = sample.remove("event").expect("an event");
        events.insert(event.as_str().expect("a name").to_owned());
        let period = sample.remove("period").and_then(|period| period.as_u64());
        assert!(period > Some(0), "{sample:?}");
    }
    assert_eq!(plain["samples"].as_array(), Some(&samples));
    assert_eq!(Vec::from_iter(events), ["cpu-clock:u", "page-faults:u"]);
    // The records are those that 'script' lists.
    let words = [
        "script",
        "--show-task-events",
        "--show-mmap-events",
        "-F",
        "comm",
    ];
    let run = rperf(&words).within(scratch.path());
    let script = run.env("HOME", scratch.path()).finish().expect("it starts");
    let records = all["records"].as_array().expect("a list");
    for (kind, name) in [
        ("comm", "PERF_RECORD_COMM"),
        ("fork", "PERF_RECORD_FORK"),
        ("exit", "PERF_RECORD_EXIT"),
        // The blank excludes MMAP2.
        ("mmap", "PERF_RECORD_MMAP "),
        ("mmap2", "PERF_RECORD_MMAP2"),
    ] {
        let listed = script.stdout.lines().filter(|line| line.contains(name));
        let converted = records.iter().filter(|record| record["type"] == kind);
        assert_eq!(converted.count(), listed.count(), "{kind}");
    }
    let is_mapping_of_shell = |record: &&Value| {
        let name = record["filename"].as_str().unwrap_or_default();
        name.ends_with("/sh") || name.ends_with("/dash")
    };
    let mapping = records
        .iter()
        .find(is_mapping_of_shell)
        .expect("a mapping of the shell");
    assert!(mapping["len"].as_u64() > Some(0), "{mapping}");
}

/// The JSON of both tools for one recording, each with the tool's messages. The messages lack the name of the output file, and
/// those of rperf name perf instead, so that they can be compared.
fn both_converted(tools: &Tools, file: &str) -> [(String, String); 2] {
    BOTH.map(|by| {
        let target = format!("{by:?}-{file}.json");
        let path = tools.path().join(&target);
        // Neither tool overwrites a file.
        let _ = fs::remove_file(&path);
        let words = ["data", "convert", "--to-json", &target, "-i", file];
        let outcome = tools.outcome(by, &words);
        assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
        let messages = without_notes(&outcome.stderr).replace("rperf data", "perf data");
        let json = fs::read_to_string(path).expect("a file");
        (json, messages.replace(&target, ""))
    })
}

/// The first difference between the tools' JSON for one recording; if there is none, both tools' messages if they differ.
fn first_difference(tools: &Tools, file: &str) -> Option<String> {
    let [(theirs, their_messages), (ours, our_messages)] = both_converted(tools, file);
    let difference = rperf_testkit::golden::difference(&theirs, &ours);
    difference.or_else(|| {
        (their_messages != our_messages).then(|| format!("{their_messages} {our_messages}"))
    })
}

/// Records a busy shell into perf.data with these options.
#[track_caller]
pub(super) fn recorded(scratch: &Scratch, words: &[&str]) {
    let words = [
        &["record", "-q", "-o", "perf.data"],
        words,
        &["--", "sh", "-c", BUSY],
    ]
    .concat();
    ran(scratch, &words);
}

/// Runs rperf, which must succeed.
#[track_caller]
pub(super) fn ran(scratch: &Scratch, words: &[&str]) {
    let run = rperf(words)
        .within(scratch.path())
        .env("HOME", scratch.path());
    let outcome = run.finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
}

/// Runs `data convert` with these words.
pub(super) fn convert(scratch: &Scratch, words: &[&str]) -> Outcome {
    let words = [&["data", "convert"], words].concat();
    let run = rperf(&words).within(scratch.path());
    run.env("HOME", scratch.path()).finish().expect("it starts")
}

/// The output of a conversion of perf.data, which must not depend on the number of threads. The file `FORMAT-1` has it, too.
#[track_caller]
pub(super) fn converted(scratch: &Scratch, format: &str, words: &[&str]) -> Vec<u8> {
    let [one, four] = ["1", "4"].map(|jobs| {
        let to = format!("--to-{format}");
        let file = format!("{format}-{jobs}");
        let start = ["data", "convert", &to, &file, "-j", jobs];
        ran(scratch, &[&start, words].concat());
        fs::read(scratch.path().join(file)).expect("a file")
    });
    assert_eq!(one, four, "{format} on one thread and on four");
    one
}

pub(super) fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// The element of a list at this index. Panics if the list is too short, so that calls also check an index.
fn at(value: &Value, index: &Value) -> Value {
    let index = usize::try_from(index.as_u64().expect("a number")).expect("a small one");
    list(value)
        .get(index)
        .expect("an index within the table")
        .clone()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// Adds a sample with this stack, outermost frame first.
fn add_sample(stacks: &mut Folded, comm: &str, frames: impl Iterator<Item = String>) {
    let comm = comm.replace(' ', "_");
    let stack: Vec<String> = std::iter::once(comm).chain(frames).collect();
    *stacks.entry(stack.join(";")).or_default() += 1;
}

/// The stacks of a speedscope file, after checking its structure.
fn of_speedscope(file: &Value) -> Folded {
    assert_eq!(
        file["$schema"],
        "https://www.speedscope.app/file-format-schema.json"
    );
    let frames = &file["shared"]["frames"];
    let mut stacks = Folded::new();
    for profile in list(&file["profiles"]) {
        assert_eq!(
            (&profile["type"], &profile["unit"]),
            (&"sampled".into(), &"nanoseconds".into())
        );
        let (samples, weights) = (list(&profile["samples"]), list(&profile["weights"]));
        assert_eq!(samples.len(), weights.len());
        let sum: u64 = weights
            .iter()
            .map(|weight| weight.as_u64().expect("a number"))
            .sum();
        assert_eq!(
            (&profile["startValue"], &profile["endValue"]),
            (&0.into(), &sum.into())
        );
        let name = text(&profile["name"]);
        let (comm, _ids) = name.rsplit_once(' ').expect("name and ids");
        for sample in samples {
            let names = list(sample)
                .iter()
                .map(|frame| text(&at(frames, frame)["name"]));
            add_sample(&mut stacks, comm, names);
        }
    }
    stacks
}

/// Checks that the columns of a table have the length that the table states.
fn check_columns(table: &Value) {
    for (name, column) in table.as_object().expect("a table") {
        if let Some(column) = column.as_array() {
            assert_eq!(
                column.len() as u64,
                table["length"].as_u64().expect("a length"),
                "{name}"
            );
        }
    }
}

/// Checks the fields from which the profiler computes times. The profile is of cpu-clock at 1999 Hz, recorded in the last hour.
fn check_times(file: &Value) {
    let meta = &file["meta"];
    let number = |value: &Value| value.as_f64().expect("a number");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("after 1970").as_millis() as f64;
    let start = number(&meta["startTime"]);
    assert!((now - 3_600_000.0..=now).contains(&start), "{start} {now}");
    // Milliseconds.
    assert!((number(&meta["interval"]) - 0.5).abs() < 0.1, "{meta}");
    assert_eq!(meta["sampleUnits"]["threadCPUDelta"], "ns");
    let end = number(&meta["profilingEndTime"]);
    for thread in list(&file["threads"]) {
        let samples = &thread["samples"];
        assert_eq!(samples["weightType"], "tracing-ms");
        let weights = list(&samples["weight"]).iter().map(number);
        let deltas = list(&samples["threadCPUDelta"]).iter().map(number);
        let weights: Vec<f64> = weights.collect();
        let deltas: Vec<f64> = deltas.map(|nanos| nanos / 1e6).collect();
        assert_eq!(weights, deltas);
        // A thread runs at most as long as it is recorded; the tolerance is for late timers.
        let sum: f64 = weights.iter().sum();
        assert!(sum > 0.0 && sum < 2.0 * end + 5.0, "{sum} {end}");
        let times: Vec<f64> = list(&samples["time"]).iter().map(number).collect();
        // The profiler omits samples at or after the end.
        assert!(times.is_sorted() && times.iter().all(|time| (0.0..end).contains(time)));
    }
}

/// The stacks of a Firefox profile, after checking its tables.
fn of_firefox(file: &Value) -> Folded {
    assert_eq!(file["meta"]["preprocessedProfileVersion"], 48);
    check_times(file);
    let mut stacks = Folded::new();
    for thread in list(&file["threads"]) {
        for table in [
            "stackTable",
            "frameTable",
            "funcTable",
            "resourceTable",
            "nativeSymbols",
            "samples",
            "markers",
        ] {
            check_columns(&thread[table]);
        }
        let symbols = &thread["nativeSymbols"];
        for lib in list(&symbols["libIndex"]) {
            at(&file["libs"], lib);
        }
        let (stack_table, frames, funcs) = (
            &thread["stackTable"],
            &thread["frameTable"],
            &thread["funcTable"],
        );
        for category in list(&frames["category"]) {
            at(&file["meta"]["categories"], category);
        }
        for stack in list(&thread["samples"]["stack"]) {
            let mut names = Vec::new();
            let mut next = stack.clone();
            while !next.is_null() {
                let func = at(&frames["func"], &at(&stack_table["frame"], &next));
                names.push(text(&at(
                    &thread["stringArray"],
                    &at(&funcs["name"], &func),
                )));
                let prefix = at(&stack_table["prefix"], &next);
                assert!(
                    prefix.is_null() || prefix.as_u64() < next.as_u64(),
                    "callers come first"
                );
                next = prefix;
            }
            add_sample(&mut stacks, &text(&thread["name"]), names.into_iter().rev());
        }
    }
    stacks
}

#[test]
fn other_formats_have_the_stacks_that_are_folded() {
    for chains in [&["-g"][..], &["--call-graph", "dwarf"], &[]] {
        let scratch = Scratch::new();
        recorded(
            &scratch,
            &[chains, &["-F", "1999", "-e", "cpu-clock:u"]].concat(),
        );
        let expected = parse(&String::from_utf8_lossy(&converted(
            &scratch,
            "folded",
            &[],
        )));
        assert!(expected.values().sum::<u64>() > 20, "{expected:?}");
        let speedscope = converted(&scratch, "speedscope", &[]);
        assert_eq!(of_speedscope(&json(&speedscope)), expected, "{chains:?}");
        let firefox = json(&converted(&scratch, "firefox", &[]));
        assert_eq!(of_firefox(&firefox), expected, "{chains:?}");
        let perfetto = perfetto_trace::decode(&converted(&scratch, "perfetto", &[]));
        let mut stacks = Folded::new();
        for (stack, count) in &expected {
            let (_comm, frames) = stack.split_once(';').expect("comm and frames");
            *stacks.entry(frames.to_owned()).or_default() += count;
        }
        assert_eq!(perfetto.stacks, stacks, "{chains:?}");
        let speedscope_file = json(&speedscope);
        let profiles = list(&speedscope_file["profiles"]).iter();
        let periods = profiles.map(|profile| profile["endValue"].as_u64().expect("a number"));
        let period: u64 = periods.sum();
        assert_eq!(perfetto.periods.values().sum::<u64>(), period, "{chains:?}");
        // JSON is not compared with the folded stacks, but `converted` checks that one thread and four write the same.
        converted(&scratch, "json", &[]);
        // The output is compressed because of the name's ending; its contents are the same.
        ran(&scratch, &["data", "convert", "--to-speedscope", "s.gz"]);
        let mut unpacked = Vec::new();
        let packed = File::open(scratch.path().join("s.gz")).expect("a file");
        GzDecoder::new(packed)
            .read_to_end(&mut unpacked)
            .expect("gzip");
        assert_eq!(unpacked, speedscope);
    }
}

#[test]
fn samples_of_other_events_are_markers_in_firefox() {
    let scratch = Scratch::new();
    recorded(&scratch, &["-g", "-e", "cpu-clock:u,page-faults:u"]);
    let file = json(&converted(&scratch, "firefox", &[]));
    let mut markers = 0;
    for thread in list(&file["threads"]) {
        let names = &thread["markers"]["name"];
        for name in list(names) {
            assert_eq!(text(&at(&thread["stringArray"], name)), "page-faults:u");
        }
        // Each marker has a stack of the thread's table.
        for data in list(&thread["markers"]["data"]) {
            at(&thread["stackTable"]["frame"], &data["cause"]["stack"]);
        }
        markers += list(names).len();
    }
    assert!(markers > 3, "{markers}");
}

#[test]
fn pprof_reads_converted_profiles() {
    let test = "commands::convert::pprof_reads_converted_profiles";
    let scratch = Scratch::new();
    recorded(&scratch, &["-g", "-F", "1999", "-e", "cpu-clock"]);
    converted(&scratch, "pprof", &[]);
    let expected = parse(&String::from_utf8_lossy(&converted(
        &scratch,
        "folded",
        &[],
    )));
    let Some(raw) = pprof(scratch.path(), "-raw") else {
        return skip(test, "there is no pprof");
    };
    assert!(
        raw.contains("samples/count cpu-clock/nanoseconds[dflt]"),
        "{raw}"
    );
    let samples = raw.split("Samples:").nth(1).expect("samples");
    let samples = samples
        .split("Locations")
        .next()
        .expect("before the locations");
    // `count period: location...`, each followed by a line of labels.
    let counts = samples.lines().filter_map(|line| {
        let (values, _) = line.split_once(": ")?;
        values.split_whitespace().next()?.parse::<u64>().ok()
    });
    assert_eq!(counts.sum::<u64>(), expected.values().sum::<u64>(), "{raw}");
    for comm in ["sh", "ls"] {
        assert!(samples.contains(&format!("comm:[{comm}]")), "{samples}");
    }
    let sorted = pprof(scratch.path(), "-top").expect("it was there");
    assert!(sorted.contains("Type: cpu-clock"), "{sorted}");
    // The file that pprof names may be that of either program.
    let file = sorted.lines().find(|line| line.starts_with("File:"));
    assert!(
        file.is_none_or(|line| ["File: dash", "File: sh", "File: ls"].contains(&line)),
        "{sorted}"
    );
    // Functions of the kernel have names.
    let name = expected
        .keys()
        .find_map(|stack| stack.split(';').find(|name| name.contains("syscall")));
    if let Some(name) = name {
        assert!(raw.contains(name), "{name}: {raw}");
    }
}

/// The output of `go tool pprof` with `option` for the file `pprof-1`, which [`converted`] wrote. `None` if there is no Go.
pub(super) fn pprof(folder: &Path, option: &str) -> Option<String> {
    let mut command = Command::new("go");
    command.args(["tool", "pprof", option, "pprof-1"]);
    let outcome = command
        .current_dir(folder)
        .env("HOME", folder)
        .output()
        .ok()?;
    let message = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(outcome.status.success(), "{message}");
    Some(String::from_utf8_lossy(&outcome.stdout).into_owned())
}

#[test]
fn a_file_is_replaced_with_force_only() {
    let scratch = Scratch::new();
    recorded(&scratch, &["-e", "cpu-clock"]);
    let path = scratch.write("out", "mine").expect("a file");
    let words = ["data", "convert", "--to-json", "out"];
    let refused = rperf(&words)
        .within(scratch.path())
        .finish()
        .expect("rperf starts");
    assert_eq!(refused.status, 255);
    assert_eq!(
        refused.stderr,
        "Output file exists. Use --force to overwrite it.\n"
    );
    assert_eq!(fs::read_to_string(&path).expect("a file"), "mine");
    ran(&scratch, &[&words[..], &["--force"]].concat());
    assert!(
        fs::read_to_string(&path)
            .expect("a file")
            .starts_with("{\n\t\"linux-perf-json-version\": 1,")
    );
}

#[test]
fn invalid_options_are_refused_and_a_failure_leaves_no_file() {
    for (words, status, message) in [
        (
            &["convert"][..],
            255,
            "You must specify one of the output formats.\n",
        ),
        (
            &["convert", "--to-json", "a", "--to-pprof", "b"],
            255,
            "You cannot specify both --to-json and --to-pprof.\n",
        ),
        (
            &["convert", "--to-pprof", "a", "--all"],
            255,
            "--all is currently unsupported for pprof output.\n\
                hint: only --to-json and --to-ctf write records other than samples\n",
        ),
        (
            &["convert", "--to-pprof", "a", "--tod"],
            255,
            "--tod is currently unsupported for pprof output.\n",
        ),
        (
            &["convert", "--to-ctf", "a", "--to-ndjson", "b"],
            255,
            "You cannot specify both --to-ctf and --to-ndjson.\n",
        ),
        (
            &["convert", "x", "--to-json", "a"],
            129,
            "rperf data convert: unexpected word 'x'\n",
        ),
        (
            &["check", "-v", "a"],
            129,
            "rperf data check: --verbose is an option of 'data convert'\n",
        ),
        (
            &["check", "--to-json", "a"],
            129,
            "rperf data check: --to-json is an option of 'data convert'\n",
        ),
    ] {
        let outcome = super::outcome(&[&["data"], words].concat());
        assert_eq!(
            (outcome.status, &*outcome.stdout),
            (status, ""),
            "{words:?}"
        );
        assert!(
            outcome.stderr.starts_with(message),
            "{words:?}: {outcome:?}"
        );
    }
    let scratch = Scratch::new();
    let words = ["data", "convert", "-i", "none", "--to-json", "new"];
    let outcome = rperf(&words)
        .within(scratch.path())
        .finish()
        .expect("rperf starts");
    assert_eq!(outcome.status, 255, "{outcome:?}");
    assert!(
        !scratch.path().join("new").exists(),
        "nothing is left behind"
    );
}
