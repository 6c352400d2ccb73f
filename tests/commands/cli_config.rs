//! The configuration files that are read, and the messages about invalid lines.

use std::io;
use std::os::unix::fs::chown;

use rperf_testkit::{Scratch, skip};

use super::rperf;

const BAD: &str = "[report]\n\tchildren = maybe\n";

#[test]
fn a_bad_line_is_reported_and_skipped() -> io::Result<()> {
    let scratch = Scratch::new();
    let path = scratch.write("config", BAD)?;
    let outcome = rperf(&["version"]).env("PERF_CONFIG", &path).finish()?;
    let expected = format!(
        "bad config file line 2 in {}: report.children = maybe: expected true or false\n",
        path.display()
    );
    assert_eq!((outcome.status, outcome.stderr), (0, expected));
    Ok(())
}

#[test]
fn the_users_file_is_read_unless_perf_config_names_another() -> io::Result<()> {
    let scratch = Scratch::new();
    scratch.write(".perfconfig", BAD)?;
    let home = rperf(&["version"])
        .env_remove("PERF_CONFIG")
        .env("HOME", scratch.path())
        .finish()?;
    assert!(
        home.stderr.contains("/.perfconfig: report.children"),
        "{}",
        home.stderr
    );
    let none = rperf(&["version"])
        .env("PERF_CONFIG", "/dev/null")
        .env("HOME", scratch.path())
        .finish()?;
    assert_eq!(none.stderr, "");
    Ok(())
}

#[test]
fn another_users_file_is_ignored() -> io::Result<()> {
    let scratch = Scratch::new();
    let path = scratch.write("config", BAD)?;
    if chown(&path, Some(12345), None).is_err() {
        skip(
            "another_users_file_is_ignored",
            "changing a file's owner needs root",
        );
        return Ok(());
    }
    let outcome = rperf(&["version"]).env("PERF_CONFIG", &path).finish()?;
    let expected = format!(
        "File {} not owned by current user or root, ignoring it.\n",
        path.display()
    );
    assert_eq!(outcome.stderr, expected);
    Ok(())
}
