//! `stat --control`: commands through a FIFO, acknowledgements through another.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use rperf_testkit::Scratch;

use super::outcome;

/// Creates a FIFO and opens it for reading and writing, so that no open blocks.
pub(super) fn fifo(path: &Path) -> File {
    let status = Command::new("mkfifo").arg(path).status();
    assert!(status.expect("mkfifo starts").success());
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.expect("the FIFO opens")
}

#[test]
fn control_commands_are_executed_in_order_and_acknowledged() {
    let scratch = Scratch::new();
    let (control, ack) = (scratch.path().join("control"), scratch.path().join("ack"));
    let (mut requests, mut acknowledgements) = (fifo(&control), fifo(&ack));
    let option = format!("--control=fifo:{},{}", control.display(), ack.display());
    let words = [
        "stat",
        "-D",
        "-1",
        "-e",
        "cs,faults",
        &option,
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
    for request in [
        "ping",
        "enable faults",
        "disable cs",
        "enable x",
        "evlist -F",
        "stop",
    ] {
        writeln!(requests, "{request}").expect("the FIFO is writable");
        let mut reply = [0; 5];
        acknowledgements.read_exact(&mut reply).expect("a reply");
        assert_eq!(reply, *b"ack\n\0", "{request}");
    }
    let ended = child.wait_with_output().expect("rperf ends");
    assert_eq!(ended.status.code(), Some(143), "the workload was ended");
    let message = String::from_utf8_lossy(&ended.stderr);
    let expected = "Events disabled
Event faults enabled
Event cs disabled
failed: can't find 'x' event
cs: sample_period=0
faults: sample_period=0
";
    assert!(message.starts_with(expected), "{message}");
    assert!(message.contains("<not counted>,,cs,"), "{message}");
    assert!(!message.contains("<not counted>,,faults,"), "{message}");
}

#[test]
fn invalid_control_arguments_are_rejected() {
    for (option, message) in [
        ("pipe:3", "'pipe:3' is neither a fifo nor a file descriptor"),
        ("fifo:", "'fifo:' is neither a fifo nor a file descriptor"),
        ("fd:99", "Failed to open '99': Bad file descriptor"),
        (
            "fifo:/no/such",
            "Failed to open '/no/such': No such file or directory",
        ),
    ] {
        let rejected = outcome(&["stat", "--control", option, "-e", "cs", "true"]);
        assert_eq!(rejected.status, 129, "{option}");
        assert!(
            rejected.stderr.contains(message),
            "{option}: {}",
            rejected.stderr
        );
    }
}
