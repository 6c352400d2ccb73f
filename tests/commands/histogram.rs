//! `rperf histogram`: ranges and counts of periods, fields and latencies, as text, JSON and SVG.

use std::fs;

use rperf_testkit::{Bytes, FileAttr, Outcome, PerfFile, Scratch, may_trace, skip};

use super::generated_files::{Attr, ID, file, record};
use super::rperf;

/// A recording with samples of these threads and periods.
fn recording(samples: &[(u32, u64)]) -> Vec<u8> {
    let attr = Attr {
        // PERF_SAMPLE_IP | TID | TIME | PERIOD | IDENTIFIER
        sample_type: 1 | 2 | 4 | 1 << 8 | 1 << 16,
        ..Attr::default()
    };
    let sample = |(tid, period): &(u32, u64)| {
        let body = Bytes::new().u64(ID).u64(0x1004).u32(7).u32(*tid);
        // PERF_RECORD_SAMPLE and PERF_RECORD_MISC_USER
        record(9, 2, body.u64(10).u64(*period))
    };
    let records: Vec<u8> = samples.iter().flat_map(sample).collect();
    file(&attr, "x86_64", &records)
}

/// A folder with a recording of 100 samples of thread 8 with period 20, and some of thread 9.
fn folder() -> Scratch {
    let scratch = Scratch::new();
    let mut samples = vec![(8, 20); 100];
    samples.extend([(9, 0), (9, 3), (9, 4), (9, u64::MAX)]);
    scratch
        .write("perf.data", recording(&samples))
        .expect("a file");
    scratch
}

fn run(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = rperf(&[&["histogram"], words].concat()).within(scratch.path());
    run.env("HOME", scratch.path())
        .finish()
        .expect("rperf starts")
}

#[track_caller]
fn printed(scratch: &Scratch, words: &[&str]) -> String {
    let outcome = run(scratch, words);
    assert_eq!(
        (outcome.status, &*outcome.stderr),
        (0, ""),
        "{words:?}: {outcome:?}"
    );
    outcome.stdout
}

/// The bounds and the count of each range.
fn ranges(text: &str) -> Vec<(String, u64)> {
    let lines = text.lines().filter_map(|line| line.split_once('|'));
    let ranges = lines.map(|(line, _)| {
        let (range, count) = line.split_once(" : ").expect("a range and a count");
        let range = range.split_whitespace().collect::<Vec<_>>().join(" ");
        (range, count.trim().parse().expect("a number"))
    });
    ranges.collect()
}

fn expected(ranges: &[(&str, u64)]) -> Vec<(String, u64)> {
    let ranges = ranges.iter();
    ranges
        .map(|(range, count)| ((*range).to_owned(), *count))
        .collect()
}

#[test]
fn periods_are_counted_in_ranges_of_powers() {
    let scratch = folder();
    let text = printed(&scratch, &["cpu-clock", "--tid", "8"]);
    let expected_ranges = expected(&[
        ("-> -1", 0),
        ("0 -> 0", 0),
        ("1 -> 3", 0),
        ("4 -> 15", 0),
        ("16 -> 63", 100),
        ("64 ->", 0),
    ]);
    assert_eq!(ranges(&text), expected_ranges, "{text}");
    let title =
        "# cpu-clock period: 100 values, mean 20.0, min 20, median 20, p90 20, p99 20, max 20\n";
    assert!(text.starts_with(title), "{text}");
    // Each value is in one of the ranges. The run with `-j 4` (four threads of rperf itself), which omits the default field
    // `period`, prints the same text.
    let all = printed(&scratch, &["cpu-clock", "period"]);
    assert_eq!(
        ranges(&all).iter().map(|(_, count)| count).sum::<u64>(),
        104
    );
    assert_eq!(printed(&scratch, &["cpu-clock", "-j", "4"]), all);
    let twos = printed(&scratch, &["cpu-clock", "--power", "2", "--tid", "9"]);
    let twos = ranges(&twos);
    assert_eq!(
        twos[2..4],
        expected(&[("1 -> 1", 0), ("2 -> 3", 1)]),
        "{twos:?}"
    );
    assert_eq!(twos[65], ("9223372036854775808 ->".to_owned(), 1));
    let bounded = printed(&scratch, &["cpu-clock", "--max", "16"]);
    assert_eq!(
        ranges(&bounded)[4..],
        expected(&[("16 ->", 101)]),
        "{bounded}"
    );
}

#[test]
fn given_ranges_are_all_shown() {
    let scratch = folder();
    // `-b` is short for `--edges`.
    for edges in ["4 21 1000", "1000,4,21"] {
        let text = printed(&scratch, &["cpu-clock", "-b", edges]);
        let expected_ranges = expected(&[
            ("-> 3", 2),
            ("4 -> 20", 101),
            ("21 -> 999", 0),
            ("1000 ->", 1),
        ]);
        assert_eq!(ranges(&text), expected_ranges, "{text}");
    }
}

#[test]
fn json_and_pictures_have_the_same_ranges() {
    let scratch = folder();
    let words = ["cpu-clock", "-b", "4 21"];
    let json = printed(&scratch, &[&words[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let range = serde_json::json!({"from": 4, "to": 20, "count": 101});
    assert_eq!((&json["ranges"][1], &json["count"]), (&range, &104.into()));
    assert_eq!(json["max"], u64::MAX);
    let drawn = run(&scratch, &[&words[..], &["--svg"]].concat());
    assert_eq!((drawn.status, &*drawn.stdout), (0, ""), "{drawn:?}");
    assert_eq!(drawn.stderr, "[ histogram.svg: 104 values ]\n");
    let picture = fs::read_to_string(scratch.path().join("histogram.svg")).expect("a picture");
    assert!(
        picture.contains("<title>4 -&gt; 20: 101 (97.12%)</title>"),
        "{picture}"
    );
    let direct = printed(&scratch, &[&words[..], &["--svg", "-o", "-"]].concat());
    assert_eq!(direct, picture);
}

#[test]
fn values_and_latencies_of_a_command_are_all_counted() {
    let test = "commands::histogram::values_and_latencies_of_a_command_are_all_counted";
    if !may_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let event = "syscalls:sys_exit_write";
    let copy = [
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=4k",
        "count=50",
        "status=none",
    ];
    let words = [&[event, "ret", "--"][..], &copy].concat();
    let live = run(&scratch, &words);
    assert_eq!(live.status, 0, "{live:?}");
    assert!(
        ranges(&live.stdout).contains(&("4096 -> 16383".to_owned(), 50)),
        "{live:?}"
    );
    let files_left = fs::read_dir(scratch.path()).expect("the folder").count();
    assert_eq!(files_left, 0, "the recording is temporary");
    // The exit status is that of the recorded command.
    let failed = run(
        &scratch,
        &[event, "ret", "--", "sh", "-c", "echo x; exit 3"],
    );
    assert_eq!(failed.status, 3, "{failed:?}");

    let both = "syscalls:sys_enter_write,syscalls:sys_exit_write";
    let line = [&["record", "-q", "-o", "perf.data", "-e", both][..], &copy].concat();
    let recorded = rperf(&line).within(scratch.path()).finish();
    let recorded = recorded.expect("rperf starts");
    if recorded.status != 0 {
        return skip(test, &recorded.stderr);
    }
    let in_folder = |words: &[&str]| {
        let run = rperf(words).within(scratch.path());
        run.finish().expect("rperf starts").stdout
    };
    let script = in_folder(&["script", "-F", "event,trace"]);
    let exits = script.lines().filter(|line| line.contains(event));
    let exits = exits.count() as u64;
    let text = printed(&scratch, &[event, "ret"]);
    assert_eq!(
        ranges(&text).iter().map(|(_, count)| count).sum::<u64>(),
        exits,
        "{text}"
    );
    // Latencies are rounded down to whole microseconds: the range `1 ->` has those for which the heat map prints 1.0 us or more.
    let pair = ["--from", "syscalls:sys_enter_write", "--to", event];
    let latencies = in_folder(&[&["heatmap", "--format", "text"][..], &pair].concat());
    let long = latencies.lines().filter_map(|line| line.split(' ').nth(1));
    let long = long.filter(|latency| latency.parse::<f64>().expect("microseconds") >= 1.0);
    let long = long.count() as u64;
    let counted = run(&scratch, &[&pair[..], &["-b", "1"]].concat());
    assert_eq!(counted.status, 0, "{counted:?}");
    assert!(counted.stdout.contains(" latency in us: "), "{counted:?}");
    assert_eq!(
        ranges(&counted.stdout)[1],
        ("1 ->".to_owned(), long),
        "{counted:?}"
    );
    let unknown = run(&scratch, &[event, "rte"]);
    assert_eq!(unknown.status, 255, "{unknown:?}");
    let message = "syscalls:sys_exit_write has no field 'rte' with a number\nhint: its fields with numbers, most similar first: ret, ";
    assert!(unknown.stderr.contains(message), "{unknown:?}");
}

#[test]
fn a_tracepoint_without_format_is_named_as_such() {
    let attr = FileAttr {
        // PERF_TYPE_TRACEPOINT and PERF_SAMPLE_IDENTIFIER
        kind: 2,
        config: 300,
        sample_type: 1 << 16,
        ..FileAttr::default()
    };
    let mut recording = PerfFile::new();
    recording.event(&attr, &[ID]);
    let sample = Bytes::new().u64(ID).done();
    recording.record(PerfFile::SAMPLE, PerfFile::USER, sample);
    recording.event_names(&["sched:sched_switch"]);
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording.finish())
        .expect("a file");
    let hint = "hint: its format cannot be used: the recording has no format of this tracepoint\n";
    let counted = run(&scratch, &["sched:sched_switch", "prev_pid"]);
    assert_eq!(counted.status, 255, "{counted:?}");
    assert!(counted.stderr.ends_with(hint), "{counted:?}");
    let weighed = rperf(&["flamegraph", "--weight", "prev_pid"]).within(scratch.path());
    let weighed = weighed.finish().expect("rperf starts");
    assert_eq!(weighed.status, 129, "{weighed:?}");
    assert!(weighed.stderr.ends_with(hint), "{weighed:?}");
}

#[test]
fn processes_override_the_whole_system_with_a_warning() {
    if !may_trace("commands::histogram::processes_override_the_whole_system_with_a_warning") {
        return;
    }
    let pid = std::process::id().to_string();
    let event = ["syscalls:sys_exit_write", "ret"];
    let words = [&event[..], &["-a", "-p", &pid, "--", "true"]].concat();
    let outcome = run(&Scratch::new(), &words);
    let warning = "Warning: PID/TID switch overriding SYSTEM\n";
    assert!(outcome.stderr.contains(warning), "{outcome:?}");
}

/// Status 129: the arguments are invalid. Status 255: they are valid, but do not fit the recording, or there is none.
#[test]
fn invalid_arguments_are_refused() {
    let scratch = folder();
    // The words without options are event, field and seconds; for a pair of events (`--from`, `--to`), only seconds.
    for (words, status, message) in [
        (
            &[][..],
            129,
            "histogram needs an event\nhint: name it with a field",
        ),
        (&["a", "b", "x"], 129, "'x' is not a number of seconds"),
        (&["a", "b", "-0"], 129, "unknown switch"),
        (&["a", "b", "0"], 129, "'0' is not a number of seconds"),
        (
            &["a", "b", "1", "dd"],
            129,
            "unexpected word 'dd'\nhint: a command to record follows --",
        ),
        (
            &["--from", "a"],
            129,
            "--from: needs a start and an end event",
        ),
        (
            &["--unit", "us", "a"],
            129,
            "--unit: needs a start and an end event",
        ),
        (
            &["--from", "a", "--to", "b", "--unit", "s"],
            129,
            "--unit takes ns, us or ms",
        ),
        (
            &["--from", "a", "--to", "b", "1", "c"],
            129,
            "unexpected word 'c'",
        ),
        (&["a", "--edges", "1,x"], 129, "--edges takes whole numbers"),
        (
            &["a", "--edges", "1", "--max", "7"],
            129,
            "--edges and --max exclude each other",
        ),
        (&["a", "--power", "1"], 129, "--power: give 2 or more"),
        (
            &["a", "--json", "--svg"],
            129,
            "--json and --svg exclude each other",
        ),
        (&["a", "--title", "x"], 129, "--title needs --svg"),
        (&["a", "-i", "perf.data", "-a"], 129, "-i reads a recording"),
        (&["cycles"], 255, "perf.data has no event 'cycles'"),
        (
            &["cpu-clock", "len"],
            255,
            "cpu-clock has no field 'len' with a number\nhint: the event is not a tracepoint",
        ),
        (
            &["cpu-clock", "--tid", "1", "--svg"],
            255,
            "perf.data: no values to count",
        ),
        (&["cpu-clock", "-i", "none"], 255, "failed to open none"),
    ] {
        let outcome = run(&scratch, words);
        assert_eq!(outcome.status, status, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{words:?}: {outcome:?}");
        assert!(!scratch.path().join("histogram.svg").exists(), "{words:?}");
    }
}
