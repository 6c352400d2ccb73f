//! What the reading commands say of a file they cannot read at all.

use std::io;
use std::os::unix::fs::chown;

use rperf_testkit::{Scratch, skip};

use super::rperf;

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
fn an_empty_file_and_a_directory() -> io::Result<()> {
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
fn a_pipe_is_refused_in_clear_words() -> io::Result<()> {
    let scratch = Scratch::new();
    for reader in READERS {
        let by_name = rperf(&[reader, "-i", "-"]).finish()?;
        let by_kind = rperf(&[reader])
            .within(scratch.path())
            .stdin("PERFILE2")
            .finish()?;
        for refused in [by_name, by_kind] {
            assert_eq!(refused.status, 255);
            assert!(
                refused.stderr.starts_with("the standard input is a pipe: "),
                "{}",
                refused.stderr
            );
        }
    }
    Ok(())
}
