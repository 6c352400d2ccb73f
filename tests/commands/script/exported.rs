//! `mem-phys-addr` and `export-to-sqlite`: results, arguments and refused recordings; and settings of perf that scripts read.

use rperf_testkit::{Outcome, Run, Scratch, skip};

use crate::tidy::root;

fn rperf(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = Run::new(env!("CARGO_BIN_EXE_rperf")).args(words);
    run.within(scratch.path()).finish().expect("rperf starts")
}

fn fixture(name: &str) -> String {
    let path = root().join("tests/fixtures/x86_64").join(name);
    path.to_string_lossy().into_owned()
}

/// The name of a region with its range of addresses (`begin-end : name`, indented in an outer region), its count and its
/// percentage; `None` if the line is no such row.
fn row(line: &str) -> Option<(&str, u64, f64)> {
    let (rest, percent) = line.rsplit_once(' ')?;
    let (name, count) = rest.trim_end().rsplit_once(' ')?;
    Some((name.trim_end(), count.parse().ok()?, percent.parse().ok()?))
}

/// The regions are those of the machine that runs the script, not of the recorded one: some samples may be outside of all.
/// Below the titles (`lines[1]`) is a line of dashes, then the rows.
#[test]
fn samples_are_counted_by_region_of_memory() {
    let test = "samples_are_counted_by_region_of_memory";
    if !crate::kernel::is_root() {
        return skip(test, "regions of memory are hidden from unprivileged users");
    }
    let scratch = Scratch::new();
    let file = fixture("memory.data");
    let addresses = rperf(&scratch, &["script", "-f", "-i", &file, "-F", "phys_addr"]);
    let addresses: Vec<u64> = addresses
        .stdout
        .lines()
        .filter_map(|line| u64::from_str_radix(line.trim(), 16).ok())
        .collect();
    let outcome = rperf(
        &scratch,
        &["script", "-f", "report", "mem-phys-addr", "-i", &file],
    );
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines[0], "Event: cpu/mem-loads,ldlat=30/P");
    assert_eq!(
        lines[1],
        format!(
            "{:<40}  {:>10}  {:>10}",
            "Memory type", "count", "percentage"
        )
    );
    let rows: Vec<_> = lines[3..].iter().filter_map(|line| row(line)).collect();
    assert_eq!(rows.len(), lines.len() - 3, "{}", outcome.stdout);
    let is_outermost = |name: &str| !name.starts_with(' ');
    let total: u64 = rows
        .iter()
        .filter(|(name, ..)| is_outermost(name))
        .map(|(_, count, _)| count)
        .sum();
    // A warning counts the samples outside of all regions, if there are any.
    let mut messages = outcome.stderr.lines();
    let warning = messages.find(|line| line.contains("outside of all regions"));
    let outside: u64 = warning.map_or(0, |warning| {
        let mut numbers = warning
            .split_whitespace()
            .filter_map(|word| word.parse().ok());
        numbers.next().expect("a number of samples")
    });
    assert_eq!(total + outside, addresses.len() as u64, "{outcome:?}");
    for (name, count, percent) in &rows {
        let (range, _) = name.trim_start().split_once(" : ").expect("a region");
        let (begin, end) = range.split_once('-').expect("a range");
        let number = |text| u64::from_str_radix(text, 16).expect("an address");
        let range = number(begin)..=number(end);
        let inside = addresses.iter().filter(|address| range.contains(address));
        assert_eq!(*count, inside.count() as u64, "{name}");
        // The percentage is rounded to one decimal.
        assert!(
            (percent - *count as f64 * 100.0 / total as f64).abs() < 0.06,
            "{name}"
        );
    }
}

#[test]
fn scripts_refuse_wrong_words_and_recordings() {
    if !super::scripts::has_python() {
        return skip(
            "scripts_refuse_wrong_words_and_recordings",
            "there is no Python",
        );
    }
    let scratch = Scratch::new();
    let (cycles, memory) = (fixture("cycles.data"), fixture("memory.data"));
    for (words, status, message) in [
        (
            &["report", "mem-phys-addr", "-i", &cycles][..],
            255,
            "cycles.data: the recording has no physical addresses\nhint: record with --phys-data\n",
        ),
        (
            &["report", "mem-phys-addr", "-i", &memory, "x"],
            129,
            "usage: script report mem-phys-addr\n",
        ),
        (
            &["report", "export-to-sqlite", "-i", &cycles],
            129,
            "the name of a database is missing",
        ),
        (
            &[
                "report",
                "export-to-sqlite",
                "-i",
                &cycles,
                "own.db",
                "some",
            ],
            129,
            "export-to-sqlite: unknown word 'some'\nusage: script report export-to-sqlite",
        ),
        (
            &["report", "export-to-sqlite", "-i", "/nosuch", "other.db"],
            255,
            "/nosuch",
        ),
        (
            &["report", "export-to-sqlite", "-i", &cycles, "no/such.db"],
            255,
            "export-to-sqlite: no/such.db: No such file or directory",
        ),
    ] {
        let outcome = rperf(&scratch, &[&["script", "-f"], words].concat());
        assert_eq!(outcome.status, status, "{words:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains(message),
            "{words:?}: {}",
            outcome.stderr
        );
    }
    // Nothing is left of an export that fails.
    assert!(!scratch.path().join("other.db").exists());
}

#[test]
fn words_after_dashes_are_the_command_that_a_script_records() {
    let test = "words_after_dashes_are_the_command_that_a_script_records";
    if !super::scripts::has_python() {
        return skip(test, "there is no Python");
    }
    let scratch = Scratch::new();
    // `all` is also a word that the script takes, but here it is an argument of true(1).
    let script = ["script", "-f", "export-to-sqlite", "own.db"];
    let exported = rperf(&scratch, &[&script[..], &["--", "true", "all"]].concat());
    assert_eq!(exported.status, 0, "{}", exported.stderr);
    assert!(scratch.path().join("own.db").exists());
}

#[test]
fn scripts_read_settings_of_perf() {
    if !super::scripts::has_python() {
        return skip("scripts_read_settings_of_perf", "there is no Python");
    }
    let scratch = Scratch::new();
    // perf changes the names of settings to lower case, but not the names that a script asks for: `last` replaces `Last`, and
    // `own.Last` is not found.
    let config = "[annotate]\n\tobjdump = own dump\n[own]\n\tLast = 1\n\tlast = 2\n";
    let script = "from perf_trace_context import perf_config_get as get\n\
        print([get(name) for name in ('annotate.objdump', 'own.last', 'own.Last', 'no.such')])\n";
    for (name, text) in [("config", config), ("own.py", script)] {
        scratch
            .write(name, text.as_bytes())
            .expect("a file can be written");
    }
    let words = [
        "script",
        "-f",
        "-i",
        &fixture("cycles.data"),
        "-s",
        "own.py",
    ];
    let run = Run::new(env!("CARGO_BIN_EXE_rperf")).args(words);
    let run = run.env("PERF_CONFIG", scratch.path().join("config"));
    let outcome = run.within(scratch.path()).finish().expect("rperf starts");
    assert_eq!(
        outcome.stdout, "['own dump', '2', None, None]\n",
        "{}",
        outcome.stderr
    );
}
