//! Recordings with records that cannot be decoded, have unknown types, or are late. Records that cannot be decoded are skipped: a
//! message names the first of them, and the status is 1. The others only cause a warning.

use std::io;

use rperf_testkit::{Bytes, Scratch};

use super::generated_files::{Attr, ID, file, record};
use super::rperf;
use crate::tools::{Tool, Tools};

/// `PERF_SAMPLE_IP | TID | TIME | IDENTIFIER`.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 1 << 16;
const COMM: u32 = 3;
const SAMPLE: u32 = 9;
const FINISHED_ROUND: u32 = 68;
/// A record type that neither the kernel nor perf defines.
const UNKNOWN: u32 = 60;
/// `PERF_RECORD_MISC_USER`.
const USER: u16 = 2;

fn recording(records: &[Vec<u8>]) -> Vec<u8> {
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        ..Attr::default()
    };
    file(&attr, "x86_64", &records.concat())
}

fn sample(time: u64) -> Vec<u8> {
    let body = Bytes::new().u64(ID).u64(0x1004).u32(7).u32(8);
    record(SAMPLE, USER, body.u64(time))
}

fn round() -> Vec<u8> {
    record(FINISHED_ROUND, 0, Bytes::new())
}

/// Commands that read all records of the file.
const READERS: &[&[&str]] = &[
    &["report", "--stdio"],
    &["report", "--stats"],
    &["script"],
    &["flamegraph", "-o", "-"],
    &["flamegraph", "--folded"],
    &["heatmap", "-o", "-"],
    &["histogram", "cpu-clock"],
    &["data", "convert", "--to-json", "-"],
    &["data", "convert", "--to-speedscope", "-"],
    &["annotate", "--stdio", "--stdio-color=never"],
];

#[test]
fn damaged_records_are_named_by_type_and_offset_and_end_with_status_1() -> io::Result<()> {
    let scratch = Scratch::new();
    let short_comm = record(COMM, 0, Bytes::new().u16(1));
    let short_sample = record(SAMPLE, USER, Bytes::new().u64(ID).u32(7));
    // The first record is at offset 256, the COMM after a sample of 40 bytes.
    let records = [sample(10), short_comm, short_sample, sample(20)];
    scratch.write("perf.data", recording(&records))?;
    let undecoded_comm =
        "perf.data: 1 record cannot be decoded; the first, PERF_RECORD_COMM (3) at offset 0x128: ";
    let undecoded_sample = "perf.data: 1 sample cannot be decoded; the first, PERF_RECORD_SAMPLE (9) at offset 0x132: ";
    let hint = "hint: the output lacks these records; 'data check' lists all damage\n";
    for words in READERS {
        let outcome = rperf(words).within(scratch.path()).finish()?;
        let context = format!("{words:?}: {outcome:?}");
        if words[0] == "annotate" {
            // There is no code to show, which is an error of its own.
            assert_ne!(outcome.status, 0, "{context}");
            continue;
        }
        assert_eq!(outcome.status, 1, "{context}");
        assert!(!outcome.stdout.is_empty(), "{context}");
        assert!(outcome.stderr.contains(undecoded_comm), "{context}");
        assert!(outcome.stderr.ends_with(hint), "{context}");
        // Samples are not decoded for statistics.
        let is_statistics = words.contains(&"--stats");
        let is_sample_named = outcome.stderr.contains(undecoded_sample);
        assert_eq!(is_sample_named, !is_statistics, "{context}");
    }
    let outcome = rperf(&["script"]).within(scratch.path()).finish()?;
    assert_eq!(outcome.stdout.lines().count(), 2, "{outcome:?}");
    Ok(())
}

#[test]
fn records_of_unknown_types_are_counted() -> io::Result<()> {
    let scratch = Scratch::new();
    let unknown = record(UNKNOWN, 0, Bytes::new().u64(1));
    scratch.write("perf.data", recording(&[sample(10), unknown]))?;
    let outcome = rperf(&["script"]).within(scratch.path()).finish()?;
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let warning = "Warning: Found 1 unknown events!\n";
    assert!(outcome.stderr.contains(warning), "{outcome:?}");
    Ok(())
}

/// A recording whose sample at time 5 follows two `FINISHED_ROUND` records. At the second one, perf delivers the sample at time
/// 10, and thus the sample at time 5 after it; rperf delivers them in order.
fn late() -> Vec<u8> {
    recording(&[sample(10), round(), sample(20), round(), sample(5), round()])
}

#[test]
fn late_records_are_counted_once_and_shown_in_order() -> io::Result<()> {
    let scratch = Scratch::new();
    scratch.write("perf.data", late())?;
    for words in [&["report", "--stdio"][..], &["script"]] {
        let outcome = rperf(words).within(scratch.path()).finish()?;
        let context = format!("{words:?}: {outcome:?}");
        assert_eq!(outcome.status, 0, "{context}");
        let warning = "1 out of order events recorded.";
        assert_eq!(outcome.stderr.matches(warning).count(), 1, "{context}");
    }
    let times = rperf(&["script", "--ns", "-F", "time"]).within(scratch.path());
    let times = times.finish()?.stdout;
    let times: Vec<&str> = times.split_whitespace().collect();
    assert_eq!(times, ["0.000000005:", "0.000000010:", "0.000000020:"]);
    Ok(())
}

#[test]
fn perf_warns_of_late_records_too() {
    let Some(tools) = Tools::find_for("perf_warns_of_late_records_too") else {
        return;
    };
    let path = tools.path().join("late.data");
    std::fs::write(&path, late()).expect("written");
    for tool in [Tool::Perf, Tool::Rperf] {
        let words = ["report", "-f", "-i", "late.data", "--stdio"];
        let outcome = tools.outcome(tool, &words);
        let warning = "1 out of order events recorded.";
        assert!(outcome.stderr.contains(warning), "{tool:?}: {outcome:?}");
    }
}

#[test]
fn damaged_records_of_types_that_change_no_mapping_or_name_are_reported() -> io::Result<()> {
    let scratch = Scratch::new();
    for (kind, name) in [
        (4, "EXIT"),
        (5, "THROTTLE"),
        (15, "SWITCH_CPU_WIDE"),
        (18, "BPF_EVENT"),
    ] {
        // No type has a content of two bytes.
        let short = record(kind, 0, Bytes::new().u16(1));
        scratch.write("perf.data", recording(&[sample(10), short, sample(20)]))?;
        let outcome = rperf(&["script"]).within(scratch.path()).finish()?;
        assert_eq!(outcome.status, 1, "{name}: {outcome:?}");
        let message = format!(
            "perf.data: 1 record cannot be decoded; the first, PERF_RECORD_{name} ({kind}) at offset 0x128: "
        );
        assert!(outcome.stderr.contains(&message), "{name}: {outcome:?}");
        assert_eq!(outcome.stdout.lines().count(), 2, "{name}: {outcome:?}");
    }
    Ok(())
}
