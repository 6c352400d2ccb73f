//! `rperf report --json` and `--csv`: the rows of the text, with numbers that are not rounded.

use rperf_testkit::Scratch;
use serde_json::Value;

use super::convert::{json, list, ran, recorded};
use super::rperf;

const FIELDS: &str = "overhead,sample,period,comm,dso,symbol";

/// The output of `report`.
fn report(scratch: &Scratch, words: &[&str]) -> String {
    let words = [&["report", "-q"], words].concat();
    let run = rperf(&words)
        .within(scratch.path())
        .env("HOME", scratch.path());
    let outcome = run.finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
    outcome.stdout
}

/// The cells of a JSON row without the event, formatted as in the text and sorted.
fn cells(row: &Value) -> Vec<String> {
    let text = |(key, value): (&String, &Value)| match (key.as_str(), value) {
        ("overhead" | "overhead_children", share) => {
            format!("{:.2}%", share.as_f64().expect("a number"))
        }
        (_, Value::String(text)) => text.clone(),
        (_, number) => number.to_string(),
    };
    let row = row.as_object().expect("an object").iter();
    let mut cells: Vec<String> = row.filter(|(key, _)| *key != "event").map(text).collect();
    cells.sort();
    cells
}

/// The sorted cells of each row of the text.
fn text_rows(text: &str) -> Vec<Vec<String>> {
    let rows = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let cells = rows.map(|row| {
        let mut cells: Vec<String> = row.split('\t').map(str::to_owned).collect();
        cells.sort();
        cells
    });
    cells.collect()
}

#[test]
fn rows_are_those_of_the_text() {
    let scratch = Scratch::new();
    recorded(
        &scratch,
        &["-g", "-F", "1999", "-e", "cpu-clock:u,page-faults:u"],
    );
    for words in [
        &["--no-children", "-F", FIELDS][..],
        &["--children", "-F", "overhead_children,overhead,symbol"],
        &["--no-children", "-s", "comm", "-n", "--percent-limit", "5"],
        &["--no-children", "-s", "comm,symbol", "--comms", "sh"],
    ] {
        let text = report(
            &scratch,
            &[words, &["--stdio", "-t", "\t", "-g", "none"]].concat(),
        );
        let printed = report(&scratch, &[words, &["--json"]].concat());
        let document = json(printed.as_bytes());
        assert_eq!(document["version"], 1);
        assert_eq!(document["lost_samples"], 0);
        let rows = list(&document["rows"]);
        let cells_in_text = |row: &Value| {
            let cells = cells(row).into_iter();
            // With --comms of one name, the rows of the text do not have the name, which is in a line before them.
            cells
                .filter(|cell| !words.contains(&"--comms") || cell != "sh")
                .collect::<Vec<_>>()
        };
        assert_eq!(
            rows.iter().map(cells_in_text).collect::<Vec<_>>(),
            text_rows(&text),
            "{words:?}"
        );
        assert!(rows.len() > 1, "{text}");
        let csv = report(&scratch, &[words, &["--csv"]].concat());
        let titles: Vec<&String> = rows[0].as_object().expect("an object").keys().collect();
        // The keys of a JSON object are sorted when it is parsed.
        let mut csv_titles: Vec<&str> = csv.lines().next().expect("titles").split(',').collect();
        csv_titles.sort_unstable();
        assert_eq!(csv_titles, titles);
        assert_eq!(csv.lines().count(), rows.len() + 1);
    }
}

#[test]
fn totals_are_the_sums_of_the_rows() {
    let scratch = Scratch::new();
    recorded(
        &scratch,
        &["-F", "1999", "-e", "{cpu-clock:u,page-faults:u}"],
    );
    let document = json(report(&scratch, &["--json", "-F", FIELDS]).as_bytes());
    let rows = list(&document["rows"]);
    let events = list(&document["events"]);
    assert_eq!(events.len(), 2);
    let number = |value: &Value| value.as_u64().expect("a number");
    for event in events {
        let rows_of_event = || rows.iter().filter(|row| row["event"] == event["event"]);
        // A row of a group is repeated for each event.
        assert_eq!(rows_of_event().count(), rows.len() / 2);
        let period: u64 = rows_of_event().map(|row| number(&row["period"])).sum();
        let samples: u64 = rows_of_event().map(|row| number(&row["sample"])).sum();
        assert_eq!(
            (period, samples),
            (number(&event["period"]), number(&event["samples"]))
        );
        let overhead: f64 = rows_of_event()
            .map(|row| row["overhead"].as_f64().expect("a number"))
            .sum();
        assert!((overhead - 100.0).abs() < 1e-6, "{overhead}");
    }
}

#[test]
fn conflicting_options_are_refused() {
    let scratch = Scratch::new();
    ran(
        &scratch,
        &[
            "record",
            "-q",
            "-e",
            "page-faults",
            "-o",
            "perf.data",
            "--",
            "true",
        ],
    );
    for (words, message) in [
        (
            &["--json", "--csv"][..],
            "--json and --csv exclude each other\n",
        ),
        (
            &["--csv", "-t", ";"],
            "--csv and --field-separator exclude each other\n",
        ),
        (
            &["--json", "--stats"],
            "--json and --stats exclude each other\n",
        ),
        (
            &["--json", "-H"],
            "--json and --hierarchy exclude each other\n",
        ),
        (
            &["--json", "-g"],
            "--json has rows without call graphs\nhint: omit -g, ",
        ),
    ] {
        let words = [&["report"], words].concat();
        let outcome = rperf(&words)
            .within(scratch.path())
            .finish()
            .expect("rperf starts");
        assert_eq!((outcome.status, &*outcome.stdout), (129, ""), "{words:?}");
        assert!(
            outcome.stderr.starts_with(message),
            "{words:?}: {outcome:?}"
        );
    }
}
