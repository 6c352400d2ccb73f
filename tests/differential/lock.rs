//! `lock`: the same text as perf 6.1 on recordings of contended locks, and on generated ones with the events of lockdep or
//! `lock:contention_*`.
//!
//! The order of rows with equal values differs (docs/compatibility.md): rows are compared in alphabetical order; another test
//! checks that those of rperf are in order of their key.

use std::fs;

use rperf_testkit::{Outcome, may_trace, skip};

use super::{Tool, Tools, assert_alike, settled};
use crate::commands::lock::recording;

/// Name and command of each recording.
const RECORDINGS: &[(&str, &str)] = &[
    (
        "files",
        "mkdir d; for j in 1 2 3 4; do (i=0; while [ $i -lt 300 ]; do i=$((i+1)); : > d/$j$i; \
         rm d/$j$i; done) & done; wait; rm -r d",
    ),
    ("pipes", "perf bench sched messaging -g 2 -l 30 > /dev/null"),
    (
        "mappings",
        "perf bench mem mmap -s 1MB -l 20 > /dev/null 2>&1 || perf bench mem memset -s 1MB > /dev/null; \
         perf bench futex wake > /dev/null",
    ),
];

/// Command lines whose text is the same in both tools, and the column that their rows are sorted by. Columns are counted from 0;
/// in `report`, column 0 is the name. The number is unused for `info`, which sorts by no value.
const SAME: &[(&[&str], usize)] = &[
    (&["report"], 1),
    (&["report", "-v"], 1),
    (&["report", "-t"], 1),
    (&["report", "-c"], 1),
    (&["report", "-k", "wait_max", "-F", "wait_max,acquired"], 1),
    (&["report", "-k", "contended"], 2),
    (&["report", "-q"], 1),
    (&["info", "-t"], 0),
    (&["info", "-m"], 0),
];

/// Command lines that need the events `lock:contention_*`, and the column that their rows are sorted by.
const CONTENTION: &[(&[&str], usize)] = &[
    (&["contention"], 1),
    (&["contention", "-t"], 1),
    (&["contention", "-k", "wait_max", "-F", "contended"], 1),
    (&["contention", "-k", "avg_wait", "-q"], 3),
];

/// Command lines compared on [`RECORDINGS`]: fewer than [`SAME`] and [`CONTENTION`], since perf takes seconds for each.
const RECORDED: &[(&[&str], usize)] = &[
    (&["report"], 1),
    (&["report", "-t"], 1),
    (&["report", "-c"], 1),
    (&["info", "-t"], 0),
    (&["info", "-m"], 0),
    (&["contention"], 1),
    (&["contention", "-k", "avg_wait", "-q", "-t"], 3),
];

/// Returns the rows of a table of threads, printed by the command `line`, without the threads' names: perf 6.1 does not know all
/// (docs/compatibility.md).
fn without_threads(text: &str, line: &[&str]) -> String {
    let rows = text.lines().map(|row| match line[0] {
        // The six columns after the name: two of 10 and four of 12 characters, each with a blank after it.
        "report" => row.get(row.len().saturating_sub(74)..).unwrap_or(row),
        "info" => row.split(':').next().unwrap_or(row),
        _ => row.rsplit_once("   ").map_or(row, |(row, _)| row),
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// Returns a text with sorted rows; the statistics of `report` about bad sequences, which may follow them, keep their order.
fn sorted(text: &str) -> String {
    // perf 6.1 has no blank before the second `===`, perf 7.2 has one.
    let parts = text.split_once("\n=== output for debug");
    let (rows, rest) = match parts {
        Some((rows, rest)) => (rows, rest.trim_start_matches(' ')),
        None => (text, ""),
    };
    let mut rows: Vec<&str> = rows.lines().collect();
    rows.sort_unstable();
    format!("{}\n{rest}", rows.join("\n"))
}

/// Compares the text of both tools for each command line; the names of threads only if `with_threads`.
fn differences(
    tools: &Tools,
    file: &str,
    lines: &[(&[&str], usize)],
    with_threads: bool,
) -> Vec<String> {
    let mut differences = Vec::new();
    for (line, _) in lines {
        let words = [&["lock", "-i", file], *line].concat();
        let [perf, rperf] = tools.outcomes(&words, b"");
        // perf prints its tables on stderr, with -v after messages about symbols and, on some machines, the CPU.
        let is_row = |row: &&str| {
            !row.starts_with("/proc/{kallsyms")
                && !row.starts_with("Using CPUID ")
                && !row.contains("symbols file")
        };
        let text = |outcome: &Outcome| {
            let rows: Vec<&str> = outcome.stderr.lines().filter(is_row).collect();
            match line.contains(&"-t") && !with_threads {
                true => sorted(&without_threads(&rows.join("\n"), line)),
                false => sorted(&rows.join("\n")),
            }
        };
        let difference = rperf_testkit::golden::difference(&text(&perf), &text(&rperf));
        if let Some(difference) = difference {
            differences.push(format!("{file}: {words:?}: {difference}"));
        }
        assert_eq!((perf.status, rperf.status), (0, 0), "{words:?}: {rperf:?}");
    }
    differences
}

#[test]
fn generated_waits_are_shown_alike() {
    let Some(tools) = Tools::find_for("generated_waits_are_shown_alike") else {
        return;
    };
    let [ordered, with_impossible_orders] = [false, true].map(recording::lockdep);
    let with_threads = true;
    let mut all_differences = Vec::new();
    for (file, content, contention) in [
        ("lockdep.data", ordered, &[][..]),
        ("bad.data", with_impossible_orders, &[][..]),
        ("waits.data", recording::waits(), &CONTENTION[1..2]),
        (
            "exit.waits.data",
            recording::wait_after_exit(),
            &CONTENTION[1..2],
        ),
    ] {
        fs::write(tools.path().join(file), content).expect("a file");
        // perf shows locks that have only an address without a symbol as "Unknown": for them, only `-t` is compared.
        let has_names = !file.ends_with("waits.data");
        let same = SAME
            .iter()
            .filter(|(line, _)| has_names || line.contains(&"-t"));
        let lines: Vec<_> = same.chain(contention).copied().collect();
        all_differences.extend(differences(&tools, file, &lines, with_threads));
    }
    assert_alike(&all_differences);
}

#[test]
fn contended_locks_are_shown_alike() {
    const NAME: &str = "contended_locks_are_shown_alike";
    let (Some(tools), true) = (Tools::find_for(NAME), may_trace(NAME)) else {
        return;
    };
    let with_threads = false;
    let mut all_differences = Vec::new();
    for (number, (name, command)) in RECORDINGS.iter().enumerate() {
        // perf takes seconds for each command line, so each command is recorded by only one tool, perf and rperf alternately.
        // Recorded owners do not change these tables.
        let (tool, owners) = [(Tool::Perf, None), (Tool::Rperf, Some("--owners"))][number % 2];
        let file = format!("{name}.data");
        let mut skipped = None;
        // If there are differences, records and compares again, a few times.
        all_differences.extend(settled(|| {
            let record = ["lock", "record", "-o", &file, "-a"];
            let load = ["--", "sh", "-c", command];
            let words: Vec<&str> = record.into_iter().chain(owners).chain(load).collect();
            let made = tools.outcome(tool, &words);
            if made.status != 0 {
                skipped = Some(made.stderr);
                return Vec::new();
            }
            differences(&tools, &file, RECORDED, with_threads)
        }));
        if let Some(reason) = skipped {
            return skip(NAME, &reason);
        }
    }
    assert_alike(&all_differences);
}

/// Rows are in descending order of the column. Times are printed with different units, and rounded to three or more digits: the
/// printed values are compared, in nanoseconds.
#[test]
fn rows_are_in_order_of_their_key() {
    const NAME: &str = "rows_are_in_order_of_their_key";
    let (Some(tools), true) = (Tools::find_for(NAME), may_trace(NAME)) else {
        return;
    };
    let words = [
        "lock",
        "record",
        "-o",
        "o.data",
        "-a",
        "--",
        "sh",
        "-c",
        RECORDINGS[0].1,
    ];
    let made = tools.outcome(Tool::Rperf, &words);
    if made.status != 0 {
        return skip(NAME, &made.stderr);
    }
    for (line, column) in [SAME, CONTENTION].concat() {
        // `info` sorts by no value; `-v` adds statistics of bad sequences, which have digits but are not rows.
        if line.contains(&"info") || line.contains(&"-v") {
            continue;
        }
        let words = [&["lock", "-i", "o.data"], line].concat();
        let text = tools.outcome(Tool::Rperf, &words).stderr;
        let rows = text
            .lines()
            .filter(|row| row.contains(|c: char| c.is_ascii_digit()));
        let values: Vec<f64> = rows
            .filter_map(|row| column_value(row, line, column))
            .collect();
        assert!(
            values.is_sorted_by(|left, right| left >= right),
            "{line:?}: {text}"
        );
        assert!(!values.is_empty(), "{line:?}: {text}");
    }
}

/// Returns the value of a column, in nanoseconds or as a count; column 0 of `report` is a name.
fn column_value(row: &str, line: &[&str], column: usize) -> Option<f64> {
    let row = match line.contains(&"report") {
        // The name has 20 characters, and a blank follows.
        true => row.get(21..)?,
        false => row,
    };
    let mut values = Vec::new();
    let mut words = row.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let Ok(number) = word.parse::<f64>() else {
            break;
        };
        let unit = match words.peek() {
            Some(&"ns") => 1.0,
            Some(&"us") => 1e3,
            Some(&"ms") => 1e6,
            Some(&"s") => 1e9,
            _ => {
                values.push(number);
                continue;
            }
        };
        words.next();
        values.push(number * unit);
    }
    let index = match line.contains(&"report") {
        true => column - 1,
        false => column,
    };
    values.get(index).copied()
}
