//! `stat --control`: orders through a fifo, answers through another.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use rperf_testkit::Scratch;

use super::outcome;

/// A fifo, open for both directions so that nobody waits for anybody.
pub(super) fn fifo(path: &Path) -> File {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo starts").success());
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.expect("the fifo opens")
}

#[test]
fn orders_are_carried_out_in_turn_and_answered() {
    let scratch = Scratch::new();
    let (orders, answers) = (
        scratch.path().join("orders"),
        scratch.path().join("answers"),
    );
    let (mut to, mut replies) = (fifo(&orders), fifo(&answers));
    let place = format!("--control=fifo:{},{}", orders.display(), answers.display());
    let words = [
        "stat",
        "-D",
        "-1",
        "-e",
        "cs,faults",
        &place,
        "-x,",
        "sleep",
        "60",
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_rperf"));
    let command = command
        .args(words)
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let child = command.spawn().expect("rperf starts");
    for order in [
        "ping",
        "enable faults",
        "disable cs",
        "enable x",
        "evlist -F",
        "stop",
    ] {
        writeln!(to, "{order}").expect("the fifo takes an order");
        let mut answer = [0; 5];
        replies.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, *b"ack\n\0", "{order}");
    }
    let ended = child.wait_with_output().expect("rperf ends");
    assert_eq!(ended.status.code(), Some(143), "the workload was ended");
    let said = String::from_utf8_lossy(&ended.stderr);
    let expected = "Events disabled
Event faults enabled
Event cs disabled
failed: can't find 'x' event
cs: sample_period=0
faults: sample_period=0
";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.contains("<not counted>,,cs,"), "{said}");
    assert!(!said.contains("<not counted>,,faults,"), "{said}");
}

#[test]
fn places_that_are_none_are_named() {
    for (place, said) in [
        ("pipe:3", "'pipe:3' names no place that orders come from"),
        ("fifo:", "'fifo:' names no place that orders come from"),
        ("fd:99", "Failed to open '99': Bad file descriptor"),
        (
            "fifo:/no/such",
            "Failed to open '/no/such': No such file or directory",
        ),
    ] {
        let refused = outcome(&["stat", "--control", place, "-e", "cs", "true"]);
        assert_eq!(refused.status, 129, "{place}");
        assert!(refused.stderr.contains(said), "{place}: {}", refused.stderr);
    }
}
