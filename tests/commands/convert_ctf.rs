//! `rperf data convert --to-ctf`: traces as babeltrace2 reads them, compared with the text of `script`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use rperf_testkit::{FileAttr, PerfFile, Scratch, skip};

use super::convert::{convert, converted, json, list, ran, recorded};
use super::rperf;

/// An event as babeltrace2 prints it.
#[derive(Debug)]
struct TraceEvent {
    /// Nanoseconds of the trace's clock.
    time: u64,
    name: String,
    /// Text of each field.
    fields: BTreeMap<String, String>,
}

impl TraceEvent {
    /// The value of a field with a number, decimal or hexadecimal with `0x`.
    #[track_caller]
    fn number(&self, field: &str) -> i64 {
        let text = &self.fields[field];
        parsed_number(text).unwrap_or_else(|| panic!("{field} = {text}"))
    }

    /// The elements of a sequence.
    fn numbers(&self, field: &str) -> Vec<u64> {
        let text = &self.fields[field];
        let elements = text.split(',').filter_map(|element| {
            let (_, value) = element.split_once(" = ")?;
            let value = value.trim_end_matches([' ', ']']);
            parsed_number(value).map(i64::cast_unsigned)
        });
        elements.collect()
    }
}

fn parsed_number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(u64::cast_signed),
        None => text.parse().ok(),
    }
}

/// Whether babeltrace2 is installed; otherwise prints that the test is skipped.
fn has_babeltrace(test: &str) -> bool {
    let version = Command::new("babeltrace2").arg("--version").output();
    let is_here = version.is_ok_and(|output| output.status.success());
    if !is_here {
        skip(test, "there is no babeltrace2");
    }
    is_here
}

/// The events of a trace, and what babeltrace2 prints on stderr.
#[track_caller]
fn events(scratch: &Scratch, trace: &str) -> (Vec<TraceEvent>, String) {
    let output = Command::new("babeltrace2")
        .args(["--clock-cycles", "--no-delta", "--names=all", trace])
        .env("LC_ALL", "C.UTF-8")
        .current_dir(scratch.path())
        .output()
        .expect("babeltrace2 starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    (text.lines().map(event).collect(), errors)
}

/// Parses `timestamp = 00123, name = cpu-clock, stream.packet.context = { … }, event.fields = { … }`.
#[track_caller]
fn event(line: &str) -> TraceEvent {
    let parsed = || {
        let line = line.strip_prefix("timestamp = ")?;
        let (time, line) = line.split_once(", name = ")?;
        let (name, line) = line.split_once(", stream.packet.context = { ")?;
        let (context, fields) = line.split_once(" }, event.fields = { ")?;
        let fields = fields.strip_suffix(" }").unwrap_or(fields);
        let mut event = TraceEvent {
            time: time.parse().ok()?,
            name: name.trim_matches('"').to_owned(),
            fields: BTreeMap::new(),
        };
        for text in [context, fields] {
            let mut rest = text;
            while let Some((field, value)) = rest.split_once(" = ") {
                let end = value_end(value);
                let (value, after) = value.split_at(end);
                let text = value.trim_matches('"').to_owned();
                event.fields.insert(field.to_owned(), text);
                rest = after.strip_prefix(", ").unwrap_or(after);
            }
        }
        Some(event)
    };
    parsed().unwrap_or_else(|| panic!("unexpected line {line:?}"))
}

/// Length of the first value: a list in brackets, a quoted text, or up to the next comma.
fn value_end(text: &str) -> usize {
    let end = |closing: &str| text.find(closing).map(|at| at + closing.len());
    let length = match text.chars().next() {
        Some('[') => end(" ]"),
        Some('"') => text[1..].find('"').map(|at| at + 2),
        _ => text.find(", "),
    };
    length.unwrap_or(text.len())
}

/// The words of each line of `script`.
fn script(scratch: &Scratch, fields: &str) -> Vec<Vec<String>> {
    let words = ["script", "--ns", "-F", fields];
    let run = rperf(&words).within(scratch.path());
    let outcome = run.env("HOME", scratch.path()).finish().expect("it starts");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let lines = outcome.stdout.lines().map(|line| {
        let words = line.split_whitespace().map(str::to_owned);
        words.collect()
    });
    lines.collect()
}

/// The addresses of each sample's callchain, from the output of `--to-json`.
fn callchains(scratch: &Scratch) -> Vec<Vec<u64>> {
    let json = json(&converted(scratch, "json", &[]));
    let samples = list(&json["samples"]).iter().map(|sample| {
        let frames = list(&sample["callchain"]).iter().map(|frame| {
            let ip = frame["ip"].as_str().expect("text");
            parsed_number(ip).expect("a number").cast_unsigned()
        });
        frames.collect()
    });
    samples.collect()
}

/// Nanoseconds of `12.000000345:`.
fn nanoseconds(text: &str) -> u64 {
    let digits = text.trim_end_matches(':').replace('.', "");
    digits.parse().expect("a time")
}

#[test]
fn babeltrace_reads_the_samples_that_script_prints() {
    if !has_babeltrace("commands::convert_ctf::babeltrace_reads_the_samples_that_script_prints") {
        return;
    }
    for call_graph in [&["-g"][..], &["--call-graph", "dwarf"]] {
        let scratch = Scratch::new();
        let options = ["-e", "cpu-clock:u", "-F", "1999", "--sample-cpu"];
        recorded(&scratch, &[&options, call_graph].concat());
        ran(&scratch, &["data", "convert", "--to-ctf", "trace"]);
        let (events, errors) = events(&scratch, "trace");
        assert_eq!(errors, "");
        let expected = script(&scratch, "pid,tid,cpu,time,period");
        assert!(expected.len() > 20, "{expected:?}");
        assert_eq!(events.len(), expected.len());
        let chains = callchains(&scratch);
        assert_eq!(chains.len(), events.len());
        for ((event, words), chain) in events.iter().zip(&expected).zip(&chains) {
            let [ids, cpu, time, shown_period] = &words[..] else {
                panic!("{words:?}");
            };
            let [pid, tid, period] =
                ["perf_pid", "perf_tid", "perf_period"].map(|field| event.number(field));
            let cpu_of = |text: &str| text.trim_matches(['[', ']']).parse::<i64>();
            assert_eq!(event.name, "cpu-clock:u");
            assert_eq!(format!("{pid}/{tid}"), *ids);
            assert_eq!(cpu_of(cpu), Ok(event.number("cpu_id")));
            assert_eq!(event.time, nanoseconds(time));
            assert_eq!(*shown_period, period.to_string());
            let is_address = |entry: &u64| *entry < rperf_wire::PERF_CONTEXT_MAX;
            let entries = event.numbers("perf_callchain");
            assert_eq!(event.number("perf_callchain_size"), entries.len() as i64);
            let addresses: Vec<u64> = entries.into_iter().filter(is_address).collect();
            assert_eq!(addresses, *chain, "{event:?}");
            assert_eq!(
                addresses.first().copied(),
                Some(event.number("perf_ip").cast_unsigned())
            );
        }
    }
}

#[test]
fn fields_of_tracepoints_are_fields_of_events() {
    let test = "commands::convert_ctf::fields_of_tracepoints_are_fields_of_events";
    if !has_babeltrace(test) || !rperf_testkit::may_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    recorded(
        &scratch,
        &["-e", "sched:sched_switch,sched:sched_process_exec"],
    );
    ran(&scratch, &["data", "convert", "--to-ctf", "trace", "--all"]);
    let (events, _) = events(&scratch, "trace");
    let mut script_lines = script(&scratch, "event,trace").into_iter();
    let mut switches = 0;
    let is_sample = |event: &&TraceEvent| event.name.starts_with("sched:");
    for event in events.iter().filter(is_sample) {
        let words = script_lines.next().expect("a sample");
        let text = words.join(" ");
        assert_eq!(words[0].trim_end_matches(':'), event.name);
        if event.name == "sched:sched_process_exec" {
            let expected = format!(
                "filename={} pid={}",
                event.fields["filename"], event.fields["pid"]
            );
            assert!(text.contains(&expected), "{text}: {event:?}");
            continue;
        }
        switches += 1;
        for field in [
            "prev_comm",
            "prev_pid",
            "prev_prio",
            "next_comm",
            "next_pid",
        ] {
            let expected = format!("{field}={}", event.fields[field]);
            assert!(text.contains(&expected), "{text}: {event:?}");
        }
    }
    assert!(switches > 0 && script_lines.next().is_none());
    // Records of tasks that ran before the recording have time 0. In the trace, they have the time of its first event instead: a
    // sample, or an earlier record.
    let comm = events.iter().find(|event| event.name == "perf_comm");
    let comm = comm.expect("a record of the recorder");
    let first = events
        .iter()
        .filter(is_sample)
        .map(|event| event.time)
        .min();
    assert!(Some(comm.time) <= first && comm.time > 0, "{comm:?}");
    // `recorded` runs `sh`, which runs `ls`: one exec of `ls`, and the exits of both.
    let execs = events.iter().filter(|event| {
        event.name == "perf_comm" && event.fields["comm"] == "ls" && event.number("pid") > 0
    });
    assert_eq!(execs.count(), 1);
    let exits = events.iter().filter(|event| event.name == "perf_exit");
    assert!(exits.count() >= 2);
}

#[test]
fn wall_clock_times_need_a_clock_reference() {
    let scratch = Scratch::new();
    recorded(&scratch, &["-e", "cpu-clock:u", "-k", "mono"]);
    ran(&scratch, &["data", "convert", "--to-ctf", "trace", "--tod"]);
    let metadata = fs::read_to_string(scratch.path().join("trace/metadata")).expect("a file");
    let offset = metadata.split("offset_s = ").nth(1).expect("an offset");
    let seconds: u64 = offset
        .split(';')
        .next()
        .and_then(|text| text.parse().ok())
        .expect("a number");
    // The clock's offset is the time of this boot, which is after 2019.
    assert!(seconds > 1_577_836_800, "{seconds}");
    recorded(&scratch, &["-e", "cpu-clock:u"]);
    let outcome = convert(&scratch, &["--to-ctf", "other", "--tod"]);
    assert_eq!(outcome.status, 255);
    let message = "--tod: the recording has no clock reference\n";
    assert!(outcome.stderr.starts_with(message), "{outcome:?}");
    assert!(!scratch.path().join("other").exists());
}

/// The sorted names of the entries of a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("a name").file_name().to_string_lossy().into())
        .collect();
    names.sort_unstable();
    names
}

/// A recording with samples on these CPUs at these times, and with a loss of 12 records on CPU 1 at time 250.
fn recording_of(samples: &[(u32, u64)]) -> Vec<u8> {
    let mut file = PerfFile::new();
    // IP, TID, TIME, CPU, PERIOD.
    let attr = FileAttr {
        kind: 1,
        sample_type: 0x187,
        flags: FileAttr::SAMPLE_ID_ALL,
        ..FileAttr::default()
    };
    file.event(&attr, &[]);
    for (cpu, time) in samples {
        let body = file.bytes().u64(0x1000).u32(7).u32(8).u64(*time);
        let body = body.u32(*cpu).u32(0).u64(1).done();
        file.record(PerfFile::SAMPLE, PerfFile::USER, body);
    }
    const LOST: u32 = 2;
    let body = file.bytes().u64(0).u64(12);
    let body = body.u32(7).u32(8).u64(250).u32(1).u32(0).done();
    file.record(LOST, 0, body);
    file.finish()
}

#[test]
fn lost_records_are_discarded_events() {
    if !has_babeltrace("commands::convert_ctf::lost_records_are_discarded_events") {
        return;
    }
    let scratch = Scratch::new();
    let samples = [(0, 100), (1, 200), (1, 300), (3, 310)];
    fs::write(scratch.path().join("perf.data"), recording_of(&samples)).expect("a file");
    // `-f` has no effect here: there is no older trace, and the recording belongs to this user.
    ran(&scratch, &["data", "convert", "-f", "--to-ctf", "trace"]);
    let files = [
        "metadata",
        "perf_stream_0",
        "perf_stream_1",
        "perf_stream_3",
    ];
    assert_eq!(names(&scratch.path().join("trace")), files);
    let (events, errors) = events(&scratch, "trace");
    let cpu_times: Vec<(u32, u64)> = events
        .iter()
        .map(|event| {
            (
                u32::try_from(event.number("cpu_id")).expect("a CPU"),
                event.time,
            )
        })
        .collect();
    assert_eq!(cpu_times, samples);
    assert!(errors.contains("Tracer discarded 12 events"), "{errors}");
}

#[test]
fn traces_are_overwritten_with_force_and_other_files_never() {
    let scratch = Scratch::new();
    let trace = scratch.path().join("trace");
    let perf_data = scratch.path().join("perf.data");
    fs::write(&perf_data, recording_of(&[(0, 100), (5, 200)])).expect("a file");
    fs::create_dir(&trace).expect("a folder");
    // An empty folder is replaced without `--force`, since nothing is lost.
    assert_eq!(convert(&scratch, &["--to-ctf", "trace"]).status, 0);
    let refused = convert(&scratch, &["--to-ctf", "trace"]);
    let message = "Output folder exists: trace. Use --force to overwrite it.\n";
    assert_eq!((refused.status, &*refused.stderr), (255, message));
    // Streams of the old trace disappear; CPU 1 has the loss.
    fs::write(&perf_data, recording_of(&[(0, 100)])).expect("a file");
    assert_eq!(convert(&scratch, &["--to-ctf", "trace", "-f"]).status, 0);
    let expected = ["metadata", "perf_stream_0", "perf_stream_1"];
    assert_eq!(names(&trace), expected);
    fs::write(trace.join("mine"), "text").expect("a file");
    let refused = convert(&scratch, &["--to-ctf", "trace", "-f"]);
    let message = "trace/mine is not part of a trace: give another folder\n";
    assert_eq!((refused.status, &*refused.stderr), (255, message));
    let refused = convert(&scratch, &["--to-ctf", "perf.data", "-f"]);
    let message = "perf.data is a file; --to-ctf writes a directory\nhint: give another path, or remove the file\n";
    assert_eq!((refused.status, &*refused.stderr), (255, message));
    // A failure leaves nothing, not even a temporary folder.
    fs::write(&perf_data, "no recording").expect("a file");
    assert_eq!(convert(&scratch, &["--to-ctf", "new"]).status, 255);
    assert_eq!(names(scratch.path()), ["perf.data", "trace"]);
}
