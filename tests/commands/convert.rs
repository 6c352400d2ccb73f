//! `rperf data convert`: perf's JSON beside perf, and the formats of other tools against folded stacks.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;
use rperf_testkit::{Scratch, skip};
use serde_json::Value;

use super::beside::{BOTH, Beside};
use super::folded::{Folded, parse};
use super::rperf;
use crate::differential::settled;

const BUSY: &str = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; ls /usr >/dev/null";

#[test]
fn the_json_is_that_of_perf() {
    let Some(beside) = Beside::find("commands::convert::the_json_is_that_of_perf") else {
        return;
    };
    let recordings: [(&str, &[&str]); 4] = [
        ("chains", &["-g", "-e", "cpu-clock,page-faults"]),
        ("addresses", &["-e", "cpu-clock", "-c", "500000"]),
        (
            "processors",
            &["--sample-cpu", "-g", "-e", "cpu-clock:u", "-k", "mono"],
        ),
        ("tracepoints", &["-e", "sched:sched_switch"]),
    ];
    for tool in BOTH {
        for (name, words) in recordings {
            let words = [words, &["--", "sh", "-c", BUSY]].concat();
            let found = settled(|| {
                let file = beside.record(tool, name, &words);
                file.map_or_else(Vec::new, |file| Vec::from_iter(differing(&beside, &file)))
            });
            assert!(found.is_empty(), "{tool:?} {name}: {found:?}");
        }
    }
}

/// What differs in the JSON of one recording, and in what is told of it.
fn differing(beside: &Beside, file: &str) -> Option<String> {
    let [(theirs, they), (ours, us)] = BOTH.map(|by| {
        let target = format!("{by:?}-{file}.json");
        let path = beside.path().join(&target);
        // Neither writes over a file.
        let _ = fs::remove_file(&path);
        let words = ["data", "convert", "--to-json", &target, "-i", file];
        let outcome = beside.outcome(by, &words);
        assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
        let told = outcome.stderr.replace("rperf data", "perf data");
        let json = fs::read_to_string(path).expect("a file");
        (json, told.replace(&target, ""))
    });
    let difference = rperf_testkit::golden::difference(&theirs, &ours);
    difference.or_else(|| (they != us).then(|| format!("{they} {us}")))
}

fn recorded(scratch: &Scratch, words: &[&str]) {
    let words = [
        &["record", "-q", "-o", "perf.data"],
        words,
        &["--", "sh", "-c", BUSY],
    ]
    .concat();
    ran(scratch, &words);
}

#[track_caller]
fn ran(scratch: &Scratch, words: &[&str]) {
    let run = rperf(words)
        .within(scratch.path())
        .env("HOME", scratch.path());
    let outcome = run.finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
}

/// What a conversion writes; on any number of threads the same.
#[track_caller]
fn converted(scratch: &Scratch, format: &str, words: &[&str]) -> Vec<u8> {
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

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

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

fn count(stacks: &mut Folded, comm: &str, frames: impl Iterator<Item = String>) {
    let comm = comm.replace(' ', "_");
    let stack: Vec<String> = std::iter::once(comm).chain(frames).collect();
    *stacks.entry(stack.join(";")).or_default() += 1;
}

/// The stacks of a speedscope file, after a look at what its schema demands.
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
            count(&mut stacks, comm, names);
        }
    }
    stacks
}

/// Columns of a table, all of the length that it states.
fn columns_are_whole(table: &Value) {
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

/// The stacks of a Firefox profile, after a look at its tables.
fn of_firefox(file: &Value) -> Folded {
    assert_eq!(file["meta"]["preprocessedProfileVersion"], 48);
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
            columns_are_whole(&thread[table]);
        }
        let symbols = &thread["nativeSymbols"];
        for lib in list(&symbols["libIndex"]) {
            at(&file["libs"], lib);
        }
        let (table, frames, funcs) = (
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
                let func = at(&frames["func"], &at(&table["frame"], &next));
                names.push(text(&at(
                    &thread["stringArray"],
                    &at(&funcs["name"], &func),
                )));
                let prefix = at(&table["prefix"], &next);
                assert!(
                    prefix.is_null() || prefix.as_u64() < next.as_u64(),
                    "callers come first"
                );
                next = prefix;
            }
            count(&mut stacks, &text(&thread["name"]), names.into_iter().rev());
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
        converted(&scratch, "perfetto", &[]);
        converted(&scratch, "json", &[]);
        // What is compressed is the same.
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
fn samples_of_other_events_are_markers() {
    let scratch = Scratch::new();
    recorded(&scratch, &["-g", "-e", "cpu-clock:u,page-faults:u"]);
    let file = json(&converted(&scratch, "firefox", &[]));
    let mut markers = 0;
    for thread in list(&file["threads"]) {
        let names = &thread["markers"]["name"];
        for name in list(names) {
            assert_eq!(text(&at(&thread["stringArray"], name)), "page-faults:u");
        }
        for data in list(&thread["markers"]["data"]) {
            at(&thread["stackTable"]["frame"], &data["cause"]["stack"]);
        }
        markers += list(names).len();
    }
    assert!(markers > 3, "{markers}");
}

#[test]
fn pprof_itself_reads_what_is_for_it() {
    let test = "commands::convert::pprof_itself_reads_what_is_for_it";
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
    // `count period: location...`, and a line of labels behind each.
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
    // Functions of the outermost frames are there by name.
    let name = expected
        .keys()
        .find_map(|stack| stack.split(';').find(|name| name.contains("syscall")));
    if let Some(name) = name {
        assert!(raw.contains(name), "{name}: {raw}");
    }
}

/// What `go tool pprof` says of the file `pprof-1`.
fn pprof(folder: &Path, form: &str) -> Option<String> {
    let mut command = Command::new("go");
    command.args(["tool", "pprof", form, "pprof-1"]);
    let outcome = command
        .current_dir(folder)
        .env("HOME", folder)
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(outcome.status.success(), "{said}");
    Some(String::from_utf8_lossy(&outcome.stdout).into_owned())
}

#[test]
fn a_file_is_replaced_by_force_alone() {
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
fn what_makes_no_sense_is_refused() {
    for (words, status, said) in [
        (
            &["convert"][..],
            255,
            "You must specify one of --to-ctf or --to-json.\n",
        ),
        (
            &["convert", "--to-json", "a", "--to-pprof", "b"],
            255,
            "You cannot specify both --to-json and --to-pprof.\n",
        ),
        (
            &["convert", "--to-json", "a", "--all"],
            255,
            "--all is currently unsupported for JSON output.\n",
        ),
        (
            &["convert", "--to-pprof", "a", "--tod"],
            255,
            "--tod is currently unsupported for pprof output.\n",
        ),
        (
            &["convert", "--to-ctf", "a"],
            129,
            "rperf data: --to-ctf is not supported yet; --to-json and",
        ),
        (
            &["convert", "x", "--to-json", "a"],
            129,
            "rperf data convert: 'x' is no option\n",
        ),
        (
            &["check", "--to-json", "a"],
            129,
            "rperf data check: --to-json is for 'data convert'\n",
        ),
    ] {
        let outcome = super::outcome(&[&["data"], words].concat());
        assert_eq!(
            (outcome.status, &*outcome.stdout),
            (status, ""),
            "{words:?}"
        );
        assert!(outcome.stderr.starts_with(said), "{words:?}: {outcome:?}");
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
