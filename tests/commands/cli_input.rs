//! Messages about input files that are missing, refused or damaged.

use std::io;
use std::os::unix::fs::chown;

use rperf_testkit::{Bytes, Scratch, skip};

use super::generated_files::{Attr, file, record};
use super::rperf;
use crate::tidy::root;

const READERS: &[&str] = &["report", "script"];

#[test]
fn a_missing_file_is_named_and_the_default_name_has_advice() -> io::Result<()> {
    let scratch = Scratch::new();
    for reader in READERS {
        let default = rperf(&[reader]).within(scratch.path()).finish()?;
        let text =
            "failed to open perf.data: No such file or directory  (try 'rperf record' first)\n";
        assert_eq!((default.status, default.stderr.as_str()), (255, text));
        let named = rperf(&[reader, "-i", "/nonexistent/x"]).finish()?;
        assert_eq!(
            (named.status, named.stderr.as_str()),
            (
                255,
                "failed to open /nonexistent/x: No such file or directory\n"
            )
        );
    }
    Ok(())
}

#[test]
fn an_empty_file_and_a_directory_are_refused() -> io::Result<()> {
    let scratch = Scratch::new();
    scratch.write("empty", "")?;
    for reader in READERS {
        let empty = rperf(&[reader, "-i", "empty"])
            .within(scratch.path())
            .finish()?;
        assert_eq!(empty.status, 255);
        assert_eq!(
            empty.stderr.lines().next(),
            Some("zero-sized data (empty), nothing to do!")
        );
        let directory = rperf(&[reader, "-i", "."])
            .within(scratch.path())
            .finish()?;
        assert_eq!(directory.status, 255);
        assert!(
            directory.stderr.starts_with(". is a directory: "),
            "{}",
            directory.stderr
        );
    }
    Ok(())
}

#[test]
fn another_users_file_needs_force() -> io::Result<()> {
    let scratch = Scratch::new();
    let path = scratch.write("theirs", "not a recording")?;
    if chown(&path, Some(12345), None).is_err() {
        skip(
            "another_users_file_needs_force",
            "changing a file's owner needs root",
        );
        return Ok(());
    }
    for reader in READERS {
        let refused = rperf(&[reader, "-i", "theirs"])
            .within(scratch.path())
            .finish()?;
        let text = "File theirs not owned by current user or root (use -f to override)\n";
        assert_eq!((refused.status, refused.stderr.as_str()), (255, text));
        let forced = rperf(&[reader, "-f", "-i", "theirs"])
            .within(scratch.path())
            .finish()?;
        assert!(!forced.stderr.contains("not owned"), "{}", forced.stderr);
        assert_ne!(forced.status, 0, "it is no recording");
    }
    Ok(())
}

#[test]
fn an_invalid_stream_on_stdin_is_refused_with_and_without_a_dash() -> io::Result<()> {
    let scratch = Scratch::new();
    let stream = |bytes: &[u8]| Bytes::new().raw("PERFILE2").raw(bytes).done();
    for reader in READERS {
        for (bytes, text) in [
            (Vec::new(), "(-): the file is empty"),
            (b"GARBAGE!".to_vec(), "(-): not a perf.data file: "),
            (stream(&[]), "(-): the file is truncated inside its header"),
            (
                stream(&[99, 0, 0, 0, 0, 0, 0, 0]),
                "(-): header at offset 8 has a size of 99 bytes",
            ),
        ] {
            for words in [&[*reader, "-i", "-"][..], &[*reader]] {
                let run = rperf(words).within(scratch.path()).stdin(bytes.clone());
                let refused = run.finish()?;
                let expected = format!("incompatible file format {text}");
                assert!(refused.stderr.starts_with(&expected), "{}", refused.stderr);
                assert_eq!((refused.status, refused.stdout.as_str()), (255, ""));
            }
        }
        let without_events = stream(&[16, 0, 0, 0, 0, 0, 0, 0]);
        let run = rperf(&[reader])
            .within(scratch.path())
            .stdin(without_events);
        let refused = run.finish()?;
        assert!(
            refused.stderr.contains(": no event is described"),
            "{}",
            refused.stderr
        );
        assert_eq!((refused.status, refused.stdout.as_str()), (255, ""));
    }
    Ok(())
}

#[test]
fn foreign_truncated_and_empty_pipe_files_are_refused_with_the_reason() -> io::Result<()> {
    let scratch = Scratch::new();
    scratch.write("foreign", "hello, world\n")?;
    scratch.write("cut", Bytes::new().raw("PERFILE2").u64(104).u64(144).done())?;
    // A complete header in pipe format, but no records.
    scratch.write("pipe", Bytes::new().raw("PERFILE2").u64(16).done())?;
    for reader in READERS {
        for (name, text) in [
            (
                "foreign",
                "incompatible file format (foreign): not a perf.data file: it begins with",
            ),
            (
                "cut",
                "incompatible file format (cut): the file is truncated inside its header: it has 24 of 104 bytes",
            ),
            (
                "pipe",
                "incompatible file format (pipe): no event is described: ",
            ),
        ] {
            let refused = rperf(&[reader, "-i", name])
                .within(scratch.path())
                .finish()?;
            assert_eq!((refused.status, refused.stdout.as_str()), (255, ""));
            assert!(refused.stderr.starts_with(text), "{}", refused.stderr);
        }
    }
    Ok(())
}

#[test]
fn garbage_after_the_magic_is_refused_without_panic() -> io::Result<()> {
    let scratch = Scratch::new();
    for seed in 0..40_u64 {
        // The magic, the header's size and the size of an entry of the attr section (0, 68 or 136), then garbage.
        let mut bytes = Bytes::new().raw("PERFILE2").u64(104).u64(seed % 3 * 68);
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for _ in 0..seed {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Half of the files have small numbers, which are more plausible as offsets and sizes.
            bytes = bytes.u64(if seed % 2 == 0 { state } else { state % 512 });
        }
        scratch.write("garbage", bytes.done())?;
        for reader in READERS {
            let refused = rperf(&[reader, "-i", "garbage"])
                .within(scratch.path())
                .finish()?;
            assert_ne!(refused.status, 0, "seed {seed}");
            assert!(!refused.stderr.is_empty(), "seed {seed}");
            assert!(
                !refused.stderr.contains("panicked"),
                "seed {seed}: {}",
                refused.stderr
            );
        }
    }
    Ok(())
}

#[test]
fn missing_features_of_a_file_with_a_branch_trace_are_reported() -> io::Result<()> {
    let scratch = Scratch::new();
    let trace = root().join("tests/fixtures/x86_64/bts.data");
    let complete = std::fs::read(trace)?;
    // The last bytes of a file belong to header features.
    scratch.write("perf.data", &complete[..complete.len() - 1000])?;
    for words in [&["report", "--stdio"][..], &["script", "--itrace=b"]] {
        let outcome = rperf(words).within(scratch.path()).finish()?;
        assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains("beyond the end of the file"),
            "{words:?}: {}",
            outcome.stderr
        );
    }
    Ok(())
}

#[test]
fn a_truncated_branch_trace_is_reported_with_its_status() -> io::Result<()> {
    let scratch = Scratch::new();
    let trace = root().join("tests/fixtures/x86_64/bts.data");
    let complete = std::fs::read(trace)?;
    // The header's offset and size of the records (`struct perf_file_header`, field `data`).
    let field = |at: usize| {
        let bytes = complete[at..at + 8].try_into().expect("8 bytes");
        usize::try_from(u64::from_le_bytes(bytes)).expect("a small file")
    };
    let end_of_records = field(40) + field(48);
    scratch.write("perf.data", &complete[..end_of_records - 8])?;
    let error = "perf.data: the file is truncated\nhint: the output contains only the records before this damage\n";
    for words in [
        &["report", "--stdio"][..],
        &["report", "--stats"],
        &["script", "--itrace=b"],
        &["script", "-D"],
    ] {
        let outcome = rperf(words).within(scratch.path()).finish()?;
        assert_eq!(outcome.status, 255, "{words:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.ends_with(error),
            "{words:?}: {}",
            outcome.stderr
        );
        assert_ne!(outcome.stdout, "", "{words:?}");
    }
    Ok(())
}

#[test]
fn damaged_records_of_stat_are_reported_with_the_name_of_the_file() -> io::Result<()> {
    const STAT: u32 = 76;
    const EVENT_UPDATE: u32 = 78;
    let scratch = Scratch::new();
    let attr = Attr::default();
    // A header and 8 bytes, too few for the fields of the record.
    let short = record(STAT, 0, Bytes::new().u64(1));
    // A size of 7 bytes, less than that of a header.
    let torn = Bytes::new().u32(STAT).u16(0).u16(7).done();
    let mut outcomes = Vec::new();
    for records in [short.clone(), [short, torn].concat()] {
        scratch.write("perf.data", file(&attr, "x86_64", &records))?;
        let run = rperf(&["stat", "report"]).within(scratch.path());
        let outcome = run.finish()?;
        outcomes.push((outcome.status, outcome.stderr));
    }
    let (statuses, texts): (Vec<i32>, Vec<String>) = outcomes.into_iter().unzip();
    // The first file has no counts, as its only record is skipped; after a wrong size, no further records can be found.
    assert_eq!(statuses, [1, 255], "{texts:?}");
    let warning =
        "perf.data: 1 record cannot be decoded; the first, PERF_RECORD_STAT (76) at offset 0x";
    assert!(texts.iter().all(|text| text.contains(warning)), "{texts:?}");
    let end = "bytes, smaller than its header\nhint: the output contains only the records before this damage\n";
    assert!(
        texts[1].contains("\nperf.data: record at offset "),
        "{texts:?}"
    );
    assert!(texts[1].ends_with(end), "{texts:?}");
    let update = record(EVENT_UPDATE, 0, Bytes::new().u64(0));
    scratch.write("perf.data", file(&attr, "x86_64", &update))?;
    let outcome = rperf(&["stat", "report"]).within(scratch.path()).finish()?;
    let warning = "the first, PERF_RECORD_EVENT_UPDATE (78) at offset 0x";
    assert!(outcome.stderr.contains(warning), "{outcome:?}");
    Ok(())
}
