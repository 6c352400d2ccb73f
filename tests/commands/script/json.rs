//! `script --json`: objects, compared with the text of `script`; the types of their members; refused options.

use serde_json::{Value, json};

use super::super::{assert_refused, outcome};
use crate::tidy::root;

/// The objects printed for a fixture.
fn objects(name: &str, words: &[&str]) -> Vec<Value> {
    let lines = printed(name, &[&["--json"], words].concat());
    let object = |line| serde_json::from_str(line).expect("an object on a line");
    lines.lines().map(object).collect()
}

fn fixture(name: &str) -> String {
    let path = root().join("tests/fixtures/x86_64").join(name);
    path.display().to_string()
}

fn printed(name: &str, words: &[&str]) -> String {
    let file = fixture(name);
    let outcome = outcome(&[&["script", "-f", "-i", &file], words].concat());
    assert_eq!(outcome.status, 0, "{name} {words:?}: {outcome:?}");
    outcome.stdout
}

/// An object formatted as the line of text with the fields comm, pid, tid, time and event, with single blanks.
fn line(object: &Value) -> String {
    let number = |key: &str| object[key].as_u64().expect("a number");
    let text = |key: &str| object[key].as_str().expect("a text");
    let (seconds, nanos) = (
        number("time") / 1_000_000_000,
        number("time") % 1_000_000_000,
    );
    format!(
        "{} {}/{} {seconds}.{nanos:09}: {}:",
        text("comm"),
        number("pid"),
        number("tid"),
        text("event")
    )
}

#[test]
fn objects_are_the_samples_of_the_text() {
    for name in ["kprobe.data", "memory.data", "leader.data", "zstd.data"] {
        let fields = ["--ns", "-F", "comm,pid,tid,time,event"];
        let text = printed(name, &fields);
        let single_blanks = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected: Vec<String> = text.lines().map(single_blanks).collect();
        assert!(expected.len() > 3, "{name}: {text}");
        let with_fields: Vec<String> = objects(name, &fields).iter().map(line).collect();
        assert_eq!(with_fields, expected, "{name}");
        let by_default = objects(name, &[]);
        assert!(
            by_default.iter().all(|object| object["version"] == 1),
            "{name}"
        );
        let lines: Vec<String> = by_default.iter().map(line).collect();
        assert_eq!(lines, expected, "{name}");
    }
}

#[test]
fn fields_of_tracepoints_have_their_types() {
    let samples = objects("kprobe.data", &[]);
    let opened = &samples[0];
    assert_eq!(opened["event"], "kprobes:opened");
    assert_eq!(opened["fields"]["dfd"], -100);
    assert_eq!(opened["fields"]["file"], "/proc/self/status");
    let trace = opened["trace"].as_str().expect("a text");
    assert!(
        trace.ends_with(r#"dfd=-100 file="/proc/self/status""#),
        "{trace}"
    );
    assert_eq!(samples[1]["fields"]["ret"], 3);
}

#[test]
fn memory_samples_have_the_members_of_their_accesses() {
    let samples = objects("memory.data", &["--max-stack", "1"]);
    let keys = [
        "addr",
        "data_src",
        "phys_addr",
        "weight",
        "ins_lat",
        "ip",
        "dso",
    ];
    let members = keys.map(|key| samples[1][key].clone());
    let expected = json!([
        "0x7ffecc5fb7c8",
        "0x29100142",
        "0x82277c8",
        42,
        7,
        "0x7fc0a5503431",
        "/payload/load"
    ]);
    assert_eq!(json!(members), expected);
}

#[test]
fn unsupported_fields_and_options_are_refused() {
    let file = fixture("branches.data");
    for (words, message) in [
        (&["-F", "ip,brstack"][..], "--json has no field 'brstack'\n"),
        (
            &["-D"],
            "--json and -D exclude each other: -D applies to the text output\n",
        ),
        (
            &["--deltatime"],
            "--json and --deltatime exclude each other: --deltatime applies to the text output\n",
        ),
    ] {
        let line = [&["script", "--json", "-f", "-i", &file], words].concat();
        assert_refused(&line, 129, message);
    }
}
