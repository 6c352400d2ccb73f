//! A recording that another process truncates while it is read.

use std::fs::File;
use std::io::{self, Read as _};
use std::process::{Command, Stdio};

use rperf_testkit::{Bytes, PerfFile, Scratch};

use super::generated_files::{Attr, ID, file, record};

/// IP, TID, TIME and ID of perf_event_attr's `sample_type`.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 64;
/// About 16 MB of records: far more than is read ahead while the output blocks.
const SAMPLES: u64 = 400_000;

#[test]
fn truncation_is_reported_without_a_crash() -> io::Result<()> {
    let scratch = Scratch::new();
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        ..Attr::default()
    };
    // Process and thread 7.
    let sample = |index: u64| {
        let (ip, time) = (0x1000 + index, 1 + index);
        let body = Bytes::new().u64(ip).u32(7).u32(7).u64(time);
        record(PerfFile::SAMPLE, PerfFile::USER, body.u64(ID))
    };
    let records: Vec<u8> = (0..SAMPLES).flat_map(sample).collect();
    let complete = file(&attr, "x86_64", &records);
    scratch.write("perf.data", &complete)?;

    let mut child = Command::new(env!("CARGO_BIN_EXE_rperf"))
        .args(["script", "-i", "perf.data"])
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut lines = child.stdout.take().expect("it is piped");
    // rperf reads the records in two passes. The first pass is over once lines are printed; the second soon waits, since the pipe
    // is full.
    let mut first_lines = [0; 4096];
    lines.read_exact(&mut first_lines)?;
    let path = scratch.path().join("perf.data");
    let recording = File::options().write(true).open(path)?;
    // The second pass has not read this far.
    recording.set_len(complete.len() as u64 / 4)?;
    let mut rest = Vec::new();
    lines.read_to_end(&mut rest)?;
    let ended = child.wait_with_output()?;
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(255), "{message}");
    assert!(
        message.contains("a file was truncated while being read"),
        "{message}"
    );
    Ok(())
}
