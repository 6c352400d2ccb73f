//! `timechart -o FILE.pftrace`: the trace, decoded with the field numbers of Perfetto's protos, and refusals.

use std::collections::BTreeMap;

use rperf_testkit::Scratch;
use rperf_testkit::protobuf::{messages, number, text};
use rperf_wire::Endian;

use super::recording::ChartFile;
use super::{run, tasks};
use crate::commands::perfetto_trace::PACKET;

/// `TracePacket.ftrace_events`, `track_event` and `track_descriptor`.
const FTRACE_EVENTS: u64 = 1;
const TRACK_EVENT: u64 = 11;
const TRACK_DESCRIPTOR: u64 = 60;
/// `FtraceEvent.sched_switch`, `cpu_frequency`, `cpu_idle` and `sched_waking`.
const KINDS: [(u64, &str); 4] = [
    (4, "switch"),
    (11, "frequency"),
    (13, "idle"),
    (20, "waking"),
];

/// A power event: time in microseconds, kind, CPU, and idle state or frequency.
type PowerEvent = (u64, &'static str, u64, u64);

/// Returns the number of events by kind, and the power events.
fn ftrace_events(trace: &[u8]) -> (BTreeMap<&'static str, usize>, Vec<PowerEvent>) {
    let (mut counts, mut power) = (BTreeMap::new(), Vec::new());
    for packet in messages(trace, PACKET) {
        for bundle in messages(packet, FTRACE_EVENTS) {
            // `FtraceEventBundle.event`.
            for event in messages(bundle, 2) {
                for (field, kind) in KINDS {
                    let Some(found) = messages(event, field).first().copied() else {
                        continue;
                    };
                    *counts.entry(kind).or_default() += 1;
                    if matches!(kind, "frequency" | "idle") {
                        // In both kinds, `state` is field 1 and `cpu_id` field 2. `FtraceEvent.timestamp` is field 1.
                        let (cpu, state) = (number(found, 2), number(found, 1));
                        power.push((number(event, 1) / 1000, kind, cpu, state));
                    }
                }
            }
        }
    }
    power.sort_unstable();
    (counts, power)
}

#[test]
fn all_events_are_written_for_perfetto() -> std::io::Result<()> {
    let scratch = Scratch::new();
    for endian in [Endian::Little, Endian::Big] {
        scratch.write("perf.data", tasks(endian).finish())?;
        let all = [("frequency", 2), ("idle", 2), ("switch", 5), ("waking", 3)];
        for (words, expected) in [
            (&[][..], &all[..]),
            (&["-P"], &all[..2]),
            (&["-T"], &all[2..]),
            // From 500 us on.
            (
                &["--time", "0.0005"],
                &[("idle", 1), ("switch", 3), ("waking", 1)],
            ),
        ] {
            let written = run(&scratch, &[&["-o", "x.pftrace"], words].concat());
            assert_eq!((written.status, &*written.stdout), (0, ""), "{written:?}");
            assert_eq!(
                written.stderr,
                "Written 0.0 seconds of trace to x.pftrace.\n"
            );
            let trace = std::fs::read(scratch.path().join("x.pftrace"))?;
            let (counts, power) = ftrace_events(&trace);
            let counts: Vec<_> = counts.into_iter().collect();
            assert_eq!(counts, expected, "{words:?}");
            if words.is_empty() {
                // `u32::MAX` is the end of an idle state (`PWR_EVENT_EXIT`).
                let expected = [
                    (0, "frequency", 0, 1_000_000),
                    (0, "idle", 1, 2),
                    (400, "frequency", 0, 2_000_000),
                    (500, "idle", 1, u64::from(u32::MAX)),
                ];
                assert_eq!(power, expected);
            }
        }
    }
    Ok(())
}

#[test]
fn a_trace_that_cannot_be_written_is_reported() -> std::io::Result<()> {
    let scratch = Scratch::new();
    scratch.write("perf.data", tasks(Endian::Little).finish())?;
    let failed = run(&scratch, &["-o", "absent/x.pftrace"]);
    let message = "failed to write absent/x.pftrace: No such file or directory\n";
    assert_eq!((failed.status, &*failed.stderr), (255, message));
    Ok(())
}

#[test]
fn system_calls_are_slices_of_their_threads() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = ChartFile::new(Endian::Little);
    // Calls of read(2) and poll(2): thread, times of entry and return in microseconds, and return value.
    file.read(7, (100, 200), Some(4096));
    file.read(8, (150, 250), Some(-11));
    // The return from this call is missing.
    file.poll(7, (300, 0), None);
    file.read(7, (400, 500), Some(1));
    scratch.write("perf.data", file.finish())?;
    let written = run(&scratch, &["-o", "x.perfetto-trace"]);
    assert_eq!(written.status, 0, "{written:?}");
    let trace = std::fs::read(scratch.path().join("x.perfetto-trace"))?;
    let mut threads = BTreeMap::new();
    let mut slices = Vec::new();
    for packet in messages(&trace, PACKET) {
        for track in messages(packet, TRACK_DESCRIPTOR) {
            // `TrackDescriptor.uuid` and `thread`; `ThreadDescriptor.tid`.
            threads.insert(number(track, 1), number(messages(track, 4)[0], 2));
        }
        for event in messages(packet, TRACK_EVENT) {
            // `TrackEvent.debug_annotations`; `DebugAnnotation.name` and `int_value`.
            let annotations = messages(event, 4).into_iter();
            let annotations = annotations
                .map(|annotation| (text(annotation, 10), number(annotation, 4).cast_signed()));
            let annotations: Vec<_> = annotations.collect();
            // `TrackEvent.track_uuid`, `type` and `name`; `TracePacket.timestamp`.
            let thread = threads[&number(event, 11)];
            let (kind, name) = (number(event, 9), text(event, 23));
            let time = number(packet, 8) / 1000;
            slices.push((time, thread, kind, name, annotations));
        }
    }
    slices.sort();
    // Time, thread, kind (1: begin, 2: end), name and annotations. The slice of poll ends where the next call of its thread
    // begins, and has no return value. At equal times, begins are sorted before ends.
    let ret = |value: i64| vec![("ret".to_owned(), value)];
    let expected = [
        (100, 7, 1, "read", vec![]),
        (150, 8, 1, "read", vec![]),
        (200, 7, 2, "", ret(4096)),
        (250, 8, 2, "", ret(-11)),
        (300, 7, 1, "poll", vec![]),
        (400, 7, 1, "read", vec![]),
        (400, 7, 2, "", vec![]),
        (500, 7, 2, "", ret(1)),
    ];
    let expected = expected
        .map(|(time, thread, kind, name, values)| (time, thread, kind, name.to_owned(), values));
    assert_eq!(slices, expected);
    Ok(())
}

#[test]
fn picture_options_and_empty_time_ranges_are_refused() -> std::io::Result<()> {
    let scratch = Scratch::new();
    scratch.write("perf.data", tasks(Endian::Little).finish())?;
    for (words, status, message) in [
        (&["-w", "500"][..], 129, "--width applies to pictures"),
        (
            &["--io-skip-eagain"],
            129,
            "--io-skip-eagain applies to pictures",
        ),
        (&["--time", "5,6"], 255, "--time may exclude all samples"),
    ] {
        let refused = run(&scratch, &[&["-o", "x.pftrace"], words].concat());
        assert_eq!(
            (refused.status, &*refused.stdout),
            (status, ""),
            "{words:?}"
        );
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
        assert!(!scratch.path().join("x.pftrace").exists());
    }
    Ok(())
}
