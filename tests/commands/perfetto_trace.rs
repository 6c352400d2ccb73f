//! A decoder of Perfetto traces that knows only the field numbers of their protos.

use std::collections::BTreeMap;

use rperf_testkit::protobuf::{messages, number, numbers, text};

use super::folded_parser::Folded;

/// The field `Trace.packet`.
pub(super) const PACKET: u64 = 1;

/// The content of a trace.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// Names of processes (their `cmdline` in the trace) by id.
    pub(super) processes: BTreeMap<u64, String>,
    /// The name that each thread had last, by thread id.
    pub(super) threads: BTreeMap<u64, String>,
    /// Numbers of samples by stack, without names of threads.
    pub(super) stacks: Folded,
    /// Sums of periods by event.
    pub(super) periods: BTreeMap<String, u64>,
}

/// The state of a sequence of packets: the name of its event, and interned data by id.
#[derive(Default)]
struct Sequence {
    event: String,
    names: BTreeMap<u64, String>,
    /// Ids of names.
    frames: BTreeMap<u64, u64>,
    /// Ids of frames.
    callstacks: BTreeMap<u64, Vec<u64>>,
}

impl Sequence {
    /// Adds an `InternedData`: `function_names` is field 5, `frames` 6 and `callstacks` 7. In each entry, `iid` is field 1, and
    /// field 2 is the text of the name, the id of the frame's name, or the ids of the stack's frames.
    fn add_interned(&mut self, data: &[u8]) {
        for name in messages(data, 5) {
            self.names.insert(number(name, 1), text(name, 2));
        }
        for frame in messages(data, 6) {
            self.frames.insert(number(frame, 1), number(frame, 2));
        }
        for stack in messages(data, 7) {
            self.callstacks.insert(number(stack, 1), numbers(stack, 2));
        }
    }

    /// Returns the names of the frames of a callstack, outermost first.
    fn stack(&self, id: u64) -> impl Iterator<Item = &str> {
        let frames = self.callstacks[&id].iter();
        frames.map(|frame| self.names[&self.frames[frame]].as_str())
    }
}

/// Decodes a trace, whose packets are field 1.
///
/// Fields of a packet: `process_tree` is 2, `trusted_packet_sequence_id` 10, `interned_data` 12, `trace_packet_defaults` 59 and
/// `perf_sample` 66. Fields of a sample: `callstack_iid` is 4 and `timebase_count` 6.
///
/// Fields of a `process_tree`: processes are 1 (in each, pid 1 and command line 3), threads 2 (thread id 1 and name 2). In
/// `trace_packet_defaults`, `perf_sample_defaults` is 12, of which the timebase is 1; its name is 10.
pub(super) fn decode(bytes: &[u8]) -> Trace {
    let mut trace = Trace::default();
    let mut sequences: BTreeMap<u64, Sequence> = BTreeMap::new();
    for packet in messages(bytes, PACKET) {
        for tree in messages(packet, 2) {
            let processes = messages(tree, 1).into_iter();
            trace
                .processes
                .extend(processes.map(|process| (number(process, 1), text(process, 3))));
            let threads = messages(tree, 2).into_iter();
            trace
                .threads
                .extend(threads.map(|thread| (number(thread, 1), text(thread, 2))));
        }
        let sequence = sequences.entry(number(packet, 10)).or_default();
        for defaults in messages(packet, 59) {
            // The name of the timebase is that of the event.
            let timebase = messages(messages(defaults, 12)[0], 1)[0];
            sequence.event = text(timebase, 10);
        }
        for data in messages(packet, 12) {
            sequence.add_interned(data);
        }
        for sample in messages(packet, 66) {
            let stack: Vec<&str> = sequence.stack(number(sample, 4)).collect();
            *trace.stacks.entry(stack.join(";")).or_default() += 1;
            // Each event has one sequence. The count is the event's running sum: the last count is the sum of all periods.
            trace
                .periods
                .insert(sequence.event.clone(), number(sample, 6));
        }
    }
    trace
}
