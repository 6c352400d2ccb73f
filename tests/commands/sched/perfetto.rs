//! `sched perfetto`: the trace, decoded by the field numbers of Perfetto's protos.

use rperf_testkit::Scratch;
use rperf_testkit::protobuf::{messages, number, text};

use super::recording::SchedFile;
use super::{run, waits};
use crate::commands::perfetto_trace::PACKET;

/// `TracePacket.ftrace_events` and `process_tree`.
const FTRACE: u64 = 1;
const PROCESS_TREE: u64 = 2;
/// `FtraceEvent.sched_switch` and `sched_waking`.
const SWITCH: u64 = 4;
const WAKING: u64 = 20;
/// `FtraceEventBundle.cpu`, `event` and `lost_events`.
const CPU: u64 = 1;
const EVENT: u64 = 2;
const LOST_EVENTS: u64 = 3;

/// An event of a trace.
#[derive(Debug, PartialEq, Eq)]
enum Traced {
    /// Time, running thread, and the fields `prev_pid`, `prev_state`, `next_pid`.
    Switch(u64, u64, [u64; 3]),
    /// Time, running thread, and woken thread.
    Waking(u64, u64, u64),
}

/// The events of a trace, its threads with their names, and the number of bundles before which events were lost.
fn decode(trace: &[u8]) -> (Vec<Traced>, Vec<(u64, String)>, u64) {
    let (mut events, mut threads, mut losses) = (Vec::new(), Vec::new(), 0);
    for packet in messages(trace, PACKET) {
        for tree in messages(packet, PROCESS_TREE) {
            // `ProcessTree.threads`; `Thread.tid` and `name`.
            let named = messages(tree, 2).into_iter();
            threads.extend(named.map(|thread| (number(thread, 1), text(thread, 2))));
        }
        for bundle in messages(packet, FTRACE) {
            assert_eq!(number(bundle, CPU), 0, "the CPU");
            losses += number(bundle, LOST_EVENTS);
            for event in messages(bundle, EVENT) {
                // `FtraceEvent.timestamp` and `pid`.
                let (time, running) = (number(event, 1), number(event, 2));
                for switch in messages(event, SWITCH) {
                    // `prev_pid`, `prev_state` and `next_pid`.
                    let fields = [2, 4, 6].map(|field| number(switch, field));
                    events.push(Traced::Switch(time, running, fields));
                }
                for waking in messages(event, WAKING) {
                    // `SchedWakingFtraceEvent.pid`.
                    events.push(Traced::Waking(time, running, number(waking, 2)));
                }
            }
        }
    }
    (events, threads, losses)
}

#[test]
fn switches_and_wakeups_are_traced() -> std::io::Result<()> {
    let scratch = Scratch::new();
    for mut file in [SchedFile::new(), SchedFile::big_endian()] {
        waits(&mut file);
        file.lost(310_000, 5);
        // From the idle task, whose state is 0, to `eight`.
        file.switch(320_000, (0, 0), 8);
        scratch.write("perf.data", file.finish())?;
        let written = run(&scratch, &["sched", "perfetto"]);
        assert_eq!((written.status, &*written.stdout), (0, ""), "{written:?}");
        assert!(
            written.stderr.contains("5 records were lost"),
            "{written:?}"
        );
        let trace = std::fs::read(scratch.path().join("sched.pftrace"))?;
        let (events, threads, losses) = decode(&trace);
        // The events of `waits`, then the switch above. State 1 is interruptible sleep, 0x100 runnable: the task was preempted.
        let expected = [
            Traced::Waking(100_000, 0, 7),
            Traced::Switch(110_000, 0, [0, 0, 7]),
            Traced::Switch(150_000, 7, [7, 0x100, 8]),
            Traced::Switch(250_000, 8, [8, 1, 7]),
            Traced::Switch(300_000, 7, [7, 1, 0]),
            Traced::Switch(320_000, 0, [0, 0, 8]),
        ];
        assert_eq!(events, expected);
        assert_eq!(losses, 1, "{written:?}");
        for known in [(7, "seven".to_owned()), (8, "eight".to_owned())] {
            assert!(threads.contains(&known), "{threads:?}");
        }
    }
    Ok(())
}
