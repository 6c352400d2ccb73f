//! `diff --stream`: hot streams of branches in a compiled program, with the same text as perf's.

use std::collections::HashMap;
use std::process::Command;

use rperf_testkit::{Bytes, FileAttr, PerfFile, skip};

use super::{Tool, Tools, assert_alike, difference};
use crate::tidy::root;

/// The sample id of the first event; those of the other events follow it.
const ID: u64 = 55;
/// `PERF_RECORD_MISC_USER`.
const USER: u16 = 2;
/// File offset and address of the code of a program that is linked without PIE.
const TEXT: (u64, u64) = (0x1000, 0x40_1000);

const SOURCE: &str = "\
volatile int v;
__attribute__((noinline)) void leaf(void)
{
	v++;
	v += 2;
	v += 3;
	v += 4;
}
__attribute__((noinline)) void middle_with_a_long_name_that_exceeds_its_column(void)
{
	v += 5;
	leaf();
	v += 6;
}
int main(void)
{
	middle_with_a_long_name_that_exceeds_its_column();
	leaf();
	return 0;
}
";

/// An address: the letter of a function (`l` for `leaf`, `m` for `middle…`, `M` for `main`), and the offset from its start.
type Point = (char, u64);
/// A branch: from, to, cycles.
type Branch = (Point, Point, u64);
/// Address, period, branches (the newest first).
type Sample<'a> = (Point, u64, &'a [Branch]);

const RETURN: Branch = (('l', 40), ('m', 20), 5);
const CALL_LEAF: Branch = (('m', 12), ('l', 0), 3);
const CALL_MIDDLE: Branch = (('M', 2), ('m', 0), 4);
/// From code outside of the program (`?`), which no mapping contains.
const OUTSIDE: Branch = (('?', 0x10), ('M', 0), 9);

/// The addresses of the functions by letter (see [`Point`]), and of `?` outside of the program. `None` if `nm` does not run.
fn functions(program: &str) -> Option<HashMap<char, u64>> {
    let listed = Command::new("nm").arg(program).output().ok()?;
    let listed = String::from_utf8(listed.stdout).ok()?;
    let lines = listed.lines().filter_map(|line| {
        let (address, name) = line.split_once(" T ")?;
        let letter = match name {
            "leaf" => 'l',
            "main" => 'M',
            name if name.starts_with("middle") => 'm',
            _ => return None,
        };
        Some((letter, u64::from_str_radix(address, 16).ok()?))
    });
    Some(lines.chain([('?', 0x50_0000)]).collect())
}

/// A recording with the samples of each event: the first list belongs to cycles, the second to instructions.
fn recording(program: &str, events: &[&[Sample<'_>]]) -> Vec<u8> {
    let functions = functions(program).expect("nm");
    let at = |(function, offset): Point| functions[&function] + offset;
    let mut file = PerfFile::new();
    for config in 0..events.len() as u64 {
        let attr = FileAttr {
            kind: 0,
            config,
            period: 1000,
            // IP | TID | TIME | PERIOD | BRANCH_STACK | IDENTIFIER
            sample_type: 1 | 2 | 4 | 1 << 8 | 1 << 11 | 1 << 16,
            flags: FileAttr::SAMPLE_ID_ALL,
            // PERF_SAMPLE_BRANCH_ANY
            branches: 8,
            ..FileAttr::default()
        };
        file.event(&attr, &[ID + config]);
    }
    let map = Bytes::new().u32(7).u32(7);
    let map = map.u64(TEXT.1).u64(0x1000).u64(TEXT.0).text(program, 8);
    // The trailer of `sample_id_all`: pid, tid, time and id.
    let map = map.u32(7).u32(7).u64(1).u64(ID);
    file.record(PerfFile::MMAP, USER, map.done());
    let samples = (ID..).zip(events);
    let samples = samples.flat_map(|(id, samples)| samples.iter().map(move |sample| (id, sample)));
    for (time, (id, (ip, period, branches))) in (10..).zip(samples) {
        let body = Bytes::new().u64(id).u64(at(*ip)).u32(7).u32(7).u64(time);
        let body = body.u64(*period).u64(branches.len() as u64);
        let body = branches.iter().fold(body, |body, (from, to, cycles)| {
            // Flags: the bit 1 (predicted), and the cycles from bit 4 on.
            body.u64(at(*from)).u64(at(*to)).u64(2 | cycles << 4)
        });
        file.record(PerfFile::SAMPLE, USER, body.done());
    }
    // BRANCH_STACK
    file.machine("x86_64").feature(15, Vec::new());
    file.finish()
}

/// Compiles the program, writes recordings of it with two different lists of samples, and copies a fixture; `None` without a
/// compiler.
fn build(tools: &Tools) -> Option<()> {
    std::fs::write(tools.path().join("work.c"), SOURCE).expect("a source file");
    let compiled = Command::new("cc")
        .args(["-O1", "-g", "-no-pie", "-fcf-protection=none"])
        .args(["work.c", "-o", "work"])
        .current_dir(tools.path())
        .status();
    assert!(compiled.ok()?.success(), "the program can't be compiled");
    let branches = [RETURN, CALL_LEAF, CALL_MIDDLE, OUTSIDE];
    let looped = [CALL_LEAF, CALL_MIDDLE, CALL_LEAF, CALL_MIDDLE, OUTSIDE];
    let slow = (CALL_LEAF.0, CALL_LEAF.1, 8);
    let (m, l, main) = (('m', 20), ('l', 6), ('M', 4));
    let old: &[Sample<'_>] = &[
        (m, 1000, &branches[..3]),
        (m, 3000, &branches),
        (l, 1000, &branches[1..2]),
        (l, 1000, &[slow]),
        (l, 2000, &branches[1..3]),
        (l, 1000, &looped),
        (('m', 0), 1000, &branches[2..3]),
        (('m', 0), 1000, &branches[2..]),
        (main, 500, &[]),
    ];
    let new: &[Sample<'_>] = &[
        (m, 1000, &branches),
        (l, 4000, &branches[1..3]),
        (l, 1000, &[CALL_LEAF, RETURN]),
        (('m', 0), 2000, &branches[2..3]),
        (main, 700, &[OUTSIDE]),
    ];
    let program = tools.path().join("work");
    let program = program.to_str().expect("a plain path");
    for (name, events) in [
        ("old.data", &[old][..]),
        ("new.data", &[new]),
        ("two.data", &[old, new]),
        ("other.data", &[new, old]),
    ] {
        std::fs::write(tools.path().join(name), recording(program, events)).expect("a file");
    }
    let fixture = root().join("tests/fixtures/x86_64/branches.data");
    std::fs::copy(fixture, tools.path().join("fixture.data")).expect("a fixture");
    Some(())
}

#[test]
fn perf_and_rperf_compare_streams_alike() {
    let test = "differential::diff_streams::perf_and_rperf_compare_streams_alike";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    if build(&tools).is_none() {
        return skip(test, "there is no C compiler");
    }
    let pairs = [
        ["old.data", "new.data"],
        ["new.data", "old.data"],
        ["old.data", "old.data"],
        ["two.data", "other.data"],
        ["new.data", "two.data"],
        ["fixture.data", "fixture.data"],
    ];
    let mut matched = 0;
    let differences = pairs.iter().filter_map(|[old, new]| {
        let words = ["diff", "--stream", *old, *new];
        let [perf, rperf] = tools.outcomes(&words, b"");
        assert_eq!((perf.status, rperf.status), (0, 0), "{words:?}: {rperf:?}");
        matched += rperf.stdout.matches("hot chain pair").count();
        let text = difference(&perf.stdout, &rperf.stdout)?;
        Some(format!("{words:?}: {text}"))
    });
    assert_alike(&differences.collect::<Vec<_>>());
    assert!(matched > 10, "{matched}");
}

#[test]
fn json_has_the_streams() {
    let test = "differential::diff_streams::json_has_the_streams";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    if build(&tools).is_none() {
        return skip(test, "there is no C compiler");
    }
    let words = ["diff", "--stream", "--json", "old.data", "new.data"];
    let outcome = tools.outcome(Tool::Rperf, &words);
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let event = &json["streams"][0];
    let name = event["event"].as_str().unwrap_or_default();
    assert!(name.starts_with("cycles"), "{json}");
    // The sample without branches is not counted.
    assert_eq!(event["periods"], serde_json::json!([11_000, 8700]));
    let streams = event["streams"].as_array().expect("a list");
    let in_files = |stream: &serde_json::Value| [0, 1].map(|file| !stream[file].is_null());
    assert!(
        streams
            .iter()
            .any(|stream| in_files(stream) == [true, true]),
        "{json}"
    );
    assert!(
        streams
            .iter()
            .any(|stream| in_files(stream) == [false, true]),
        "{json}"
    );
}
