//! `rperf heatmap`: cells, latencies compared with the times of `script`, and selecting a time range in a browser.

use std::collections::HashMap;
use std::fs;

use rperf_testkit::{Bytes, Scratch, skip};

use super::flamegraph::{browse, shown};
use super::generated_files::{Attr, ID, file, record};
use super::rperf;

const SECOND: u64 = 1_000_000_000;

/// A recording with samples at these times.
fn recording(times: &[u64]) -> Vec<u8> {
    let attr = Attr {
        // PERF_SAMPLE_IP | TID | TIME | IDENTIFIER
        sample_type: 1 | 2 | 4 | 1 << 16,
        ..Attr::default()
    };
    let sample = |time: &u64| {
        record(
            // PERF_RECORD_SAMPLE
            9,
            // PERF_RECORD_MISC_USER
            2,
            Bytes::new().u64(ID).u64(0x1004).u32(7).u32(8).u64(*time),
        )
    };
    file(
        &attr,
        "x86_64",
        &times.iter().flat_map(sample).collect::<Vec<u8>>(),
    )
}

#[track_caller]
fn drawn(scratch: &Scratch, words: &[&str]) -> String {
    let run = rperf(&[&["heatmap", "-o", "heat.svg"], words].concat());
    let outcome = run.within(scratch.path()).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
    fs::read_to_string(scratch.path().join("heat.svg")).expect("a picture")
}

/// Column, row and title of every cell.
fn cells(picture: &str) -> Vec<(u64, u64, String)> {
    let number = |cell: &str, name: &str| {
        let from = cell
            .split(&format!("data-{name}=\""))
            .nth(1)
            .expect("a number");
        from.split('"')
            .next()
            .expect("its end")
            .parse()
            .expect("a number")
    };
    let cells = picture.split("<rect class=\"c\"").skip(1).map(|cell| {
        let title = cell.split("<title>").nth(1).expect("a title");
        let title = title.split("</title>").next().expect("its end");
        (number(cell, "c"), number(cell, "r"), title.to_owned())
    });
    cells.collect()
}

#[test]
fn seconds_are_columns_and_a_browser_selects_a_time_range() {
    let scratch = Scratch::new();
    // On a machine that has been up for a year.
    let base = 31_536_000 * SECOND;
    let times = [0, 5, 20_000_000, SECOND + 999_999_999, 3 * SECOND].map(|time| base + time);
    scratch
        .write("perf.data", recording(&times))
        .expect("a file");
    let picture = drawn(&scratch, &[]);
    let expected = [
        (0, 0, "31536000s, 0 ns: 2 samples, 66.7% of the column"),
        (0, 1, "31536000.02s, 20 ms: 1 sample, 33.3% of the column"),
        (
            1,
            49,
            "31536001.98s, 980 ms: 1 sample, 100.0% of the column",
        ),
        (3, 0, "31536003s, 0 ns: 1 sample, 100.0% of the column"),
    ];
    let drawn_cells = cells(&picture);
    let drawn_cells: Vec<_> = drawn_cells
        .iter()
        .map(|(column, row, title)| (*column, *row, &**title))
        .collect();
    assert_eq!(drawn_cells, expected);
    assert_eq!(drawn(&scratch, &["-j", "4"]), picture);
    let part = drawn(&scratch, &["--time", "31536000.000000001,31536002"]);
    assert_eq!(cells(&part).len(), 3, "{part}");

    let path = scratch.path().join("whole.svg");
    fs::write(&path, &picture).expect("a file");
    // `from` and `to` number the cells: column after column, each from the bottom.
    let Some(page) = browse(&path, "from=1&to=99") else {
        let test = "commands::heatmap::seconds_are_columns_and_a_browser_selects_a_time_range";
        return skip(test, "there is no browser");
    };
    let chosen = shown(&page, "chosen").to_owned();
    assert_eq!(chosen, "--time 31536000.020000000,31536001.999999999");
    assert_eq!(
        page.matches("class=\"mark\"").count(),
        2,
        "a mark in each column"
    );
    // Reversed bounds select the same time range, and the text of the page can be passed to `script --time`.
    let again = browse(&path, "from=99&to=1").expect("the browser is there");
    assert_eq!(shown(&again, "chosen"), chosen);
    let (option, range) = chosen.split_once(' ').expect("option and range");
    let run = rperf(&["script", "-F", "time", option, range]);
    let outcome = run.within(scratch.path()).finish().expect("rperf starts");
    assert_eq!(outcome.stdout.lines().count(), 2, "{outcome:?}");

    // With 7 rows, a cell starts 142857142 ns (rounded down) after the one below; the first cell of a column starts at a full
    // second. Cell 20 is the last of column 2, and 21 the first of column 3.
    fs::write(&path, drawn(&scratch, &["--rows", "7"])).expect("a file");
    let page = browse(&path, "from=20&to=21").expect("the browser is there");
    let cells_of_two_columns = "--time 31536002.857142852,31536003.142857141";
    assert_eq!(shown(&page, "chosen"), cells_of_two_columns);
}

/// The thread, and the time in nanoseconds, of a line of `script -F tid,time,event --ns`.
fn thread_and_time(line: &str) -> (&str, u64) {
    let mut words = line.split_whitespace();
    let tid = words.next().expect("a thread");
    let time = words.next().expect("a time").trim_end_matches(':');
    (tid, time.replace('.', "").parse().expect("nanoseconds"))
}

/// Nanoseconds in microseconds, as `--format text` prints them.
fn microseconds(nanos: u64) -> String {
    format!("{}.{:03}", nanos / 1000, nanos % 1000)
}

#[test]
fn latencies_match_the_times_of_script() {
    let test = "commands::heatmap::latencies_match_the_times_of_script";
    let scratch = Scratch::new();
    let run = |words: &[&str]| {
        let run = rperf(words)
            .within(scratch.path())
            .env("HOME", scratch.path());
        run.finish().expect("rperf starts")
    };
    let (from, to) = ("syscalls:sys_enter_read", "syscalls:sys_exit_read");
    let events = format!("{from},{to}");
    let reads = "cat /proc/cpuinfo /proc/meminfo /proc/stat >/dev/null";
    let recorded = run(&[
        "record",
        "-q",
        "-o",
        "perf.data",
        "-e",
        &events,
        "sh",
        "-c",
        reads,
    ]);
    if recorded.status != 0 {
        return skip(test, &recorded.stderr);
    }
    let script = run(&["script", "-F", "tid,time,event", "--ns"]).stdout;
    let mut starts = HashMap::new();
    let mut expected = Vec::new();
    for line in script.lines() {
        let (tid, time) = thread_and_time(line);
        if line.contains(from) {
            starts.insert(tid, time);
        } else if let Some(start) = starts.remove(tid) {
            expected.push(format!(
                "{} {}",
                microseconds(time),
                microseconds(time - start)
            ));
        }
    }
    assert!(expected.len() > 3, "{script}");
    let text = run(&["heatmap", "--from", from, "--to", to, "--format", "text"]).stdout;
    assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{script}");
    fs::write(scratch.path().join("pairs"), &text).expect("a file");
    let title = ["--title", "x"];
    let again = drawn(&scratch, &[&["--latencies", "pairs"][..], &title].concat());
    let direct = drawn(
        &scratch,
        &[&["--from", from, "--to", to][..], &title].concat(),
    );
    assert_eq!(again, direct, "the same times and latencies");
    let edges = ["--from", from, "--to", to, "--edges", "0,1,1000000"];
    let picture = drawn(&scratch, &edges);
    assert!(picture.contains("1 s and more"), "{picture}");
    assert!(
        cells(&picture)
            .iter()
            .all(|(_, row, title)| *row < 3 && title.ends_with("% of the column"))
    );
    for options in [
        &[][..],
        &["--key", "common_pid"],
        &["--scale", "log"],
        &["--scale", "linear", "--max-latency", "1"],
    ] {
        let picture = drawn(&scratch, &[&["--from", from, "--to", to], options].concat());
        let counts = cells(&picture).into_iter().map(|(_, _, title)| {
            let count = title.split(": ").nth(1).expect("a count");
            count
                .split(' ')
                .next()
                .expect("a number")
                .parse::<u64>()
                .expect("a number")
        });
        assert_eq!(counts.sum::<u64>(), expected.len() as u64, "{options:?}");
    }
    let unknown = run(&["heatmap", "--from", from, "--to", to, "--key", "color"]);
    assert_eq!(unknown.status, 255);
    assert!(
        unknown.stderr.contains("has no field 'color'"),
        "{unknown:?}"
    );
}

/// Valid options for which the recording has no event or no samples are refused, too.
#[test]
fn invalid_options_are_refused() {
    for (words, message) in [
        (
            &["--from", "a"][..],
            "--from: needs a start and an end event",
        ),
        (&["--key", "a"], "--key: needs a start and an end event"),
        (
            &["--from", "a", "--to", "b", "-e", "c"],
            "--event excludes --from and --to",
        ),
        (&["--rows", "0"], "--rows: give 1 to 1000"),
        (&["--scale", "log"], "--scale is for latencies"),
        (&["--format", "text"], "--format text is for latencies"),
        (
            &["--latencies", "x", "--pid", "1"],
            "--pid and --latencies exclude each other",
        ),
        (
            &["--latencies", "x", "--no-demangle"],
            "--demangle and --latencies exclude each other",
        ),
        (
            &["--latencies", "x", "--ignore-vmlinux"],
            "--ignore-vmlinux and --latencies exclude each other",
        ),
        (
            &["--from", "a", "--to", "b", "--scale", "x"],
            "--scale takes linear or log, not 'x'",
        ),
        (
            &["--from", "a", "--to", "b", "--edges", "1,x"],
            "--edges takes microseconds",
        ),
    ] {
        let outcome = super::outcome(&[&["heatmap"], words].concat());
        assert_eq!(outcome.status, 129, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{words:?}: {outcome:?}");
    }
    let scratch = Scratch::new();
    scratch.write("perf.data", recording(&[1])).expect("a file");
    for (words, message) in [
        (&["-e", "cycles"][..], "perf.data has no event 'cycles'"),
        (&["--pid", "1"], "no samples to draw"),
    ] {
        let run = rperf(&[&["heatmap"], words].concat()).within(scratch.path());
        let outcome = run.finish().expect("rperf starts");
        assert_eq!(outcome.status, 255, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{words:?}: {outcome:?}");
        assert!(
            !scratch.path().join("heatmap.svg").exists(),
            "nothing is left behind"
        );
    }
}
