//! Perfetto's format: a `Trace` of packets, described by its protos
//! (`protos/perfetto/trace/trace_packet.proto` of github.com/google/perfetto). Its viewer shows the
//! samples of each thread over time, and flame graphs.

mod proto;
pub mod sched;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use self::proto::{
    Callstack, Defaults, Frame, InternedData, InternedString, Mapping, Packet, PerfDefaults,
    PerfSample, Process, ProcessTree, Thread, Timebase,
};
use crate::pprof::hex;
use crate::profile::{CodeKind, Profile, ProfileEvent, ProfileSample};

/// Field number of the packets in a `Trace`.
const PACKET: u32 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: the tables of the packet's sequence are empty before it.
const CLEARED: u32 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`: the packet adds to the tables of its sequence or refers to them.
const NEEDS_STATE: u32 = 2;
/// Maximum number of table entries in a packet, for packets of some kilobytes.
const CHUNK: usize = 256;
/// The sequence of the packet with the names of processes and threads.
const NAMES_SEQUENCE: u32 = 1;
/// The sequence of the packets of event 0. Each further event has the next sequence.
const FIRST_EVENT_SEQUENCE: u32 = 2;

/// Writes `profile`.
///
/// # Errors
///
/// Errors of `out`.
pub fn write(profile: &Profile, out: impl Write) -> io::Result<()> {
    let mut writer = Writer {
        profile,
        out,
        buffer: Vec::new(),
    };
    writer.write_threads()?;
    for (number, event) in profile.sampled_events() {
        writer.write_event(number, event)?;
    }
    writer.out.flush()
}

struct Writer<'p, W> {
    profile: &'p Profile,
    out: W,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<'_, W> {
    fn put(&mut self, packet: &Packet) -> io::Result<()> {
        self.buffer.clear();
        prost::encoding::message::encode(PACKET, packet, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    /// Writes the names of processes and threads. A profile has an entry for each name of a thread. Readers use the last one, so
    /// the entries of a thread are ordered by their last samples.
    fn write_threads(&mut self) -> io::Result<()> {
        let mut last_times = vec![0; self.profile.threads.len()];
        for track in &self.profile.tracks {
            if let Some(last) = last_times.get_mut(track.thread as usize) {
                *last = track.samples.last().map_or(0, |row| row.time).max(*last);
            }
        }
        let mut threads: Vec<_> = self.profile.threads.iter().zip(last_times).collect();
        threads.sort_by_key(|(thread, last_time)| (thread.pid, thread.tid, *last_time));
        let names = threads.into_iter().map(|(thread, _)| Thread {
            tid: thread.tid.cast_signed(),
            tgid: thread.pid.cast_signed(),
            name: thread.name.clone(),
        });
        let processes = self.profile.processes.iter().map(|process| Process {
            pid: process.pid.cast_signed(),
            cmdline: vec![process.name.clone()],
        });
        let (first_time, _) = self.profile.span();
        let tree = ProcessTree {
            processes: processes.collect(),
            threads: names.collect(),
        };
        self.put(&Packet {
            process_tree: Some(tree),
            timestamp: Some(first_time),
            sequence: NAMES_SEQUENCE,
            ..Packet::default()
        })
    }

    /// Writes the samples of an event, as a sequence of packets with tables of its own.
    fn write_event(&mut self, number: u32, event: &ProfileEvent) -> io::Result<()> {
        let base = Packet {
            sequence: FIRST_EVENT_SEQUENCE + number,
            ..Packet::default()
        };
        self.put(&Packet {
            flags: CLEARED,
            defaults: Some(Defaults {
                perf_sample: Some(PerfDefaults {
                    timebase: Some(Timebase {
                        // Counts are in single events: each sample has the number of events so far.
                        period: 1,
                        name: event.name.clone(),
                    }),
                }),
            }),
            ..base.clone()
        })?;
        let callstacks = Callstacks::of(self.profile, number);
        for interned in tables(self.profile).chain(callstacks.tables(self.profile)) {
            self.put(&Packet {
                flags: NEEDS_STATE,
                interned: Some(interned),
                ..base.clone()
            })?;
        }
        self.write_samples(number, &base, &callstacks)
    }

    /// Writes the samples in order of time, since readers sort packets only within a window.
    fn write_samples(
        &mut self,
        event: u32,
        base: &Packet,
        callstacks: &Callstacks,
    ) -> io::Result<()> {
        let tracks = &self.profile.tracks;
        let tracks: Vec<_> = tracks.iter().filter(|track| track.event == event).collect();
        // The next sample of each track: its time, and the indices of the track and the sample.
        let mut next: BinaryHeap<_> = (0..tracks.len())
            .filter_map(|track_index| {
                let first = tracks.get(track_index)?.samples.first()?;
                Some(Reverse((first.time, track_index, 0)))
            })
            .collect();
        let mut count = 0_u64;
        while let Some(Reverse((_, track_index, index))) = next.pop() {
            let Some(track) = tracks.get(track_index) else {
                continue;
            };
            let Some(row) = track.samples.get(index) else {
                continue;
            };
            if let Some(later) = track.samples.get(index + 1) {
                next.push(Reverse((later.time, track_index, index + 1)));
            }
            count = count.saturating_add(row.period);
            let thread = self.profile.threads.get(track.thread as usize);
            let (pid, tid) = thread.map_or((0, 0), |thread| (thread.pid, thread.tid));
            self.put(&Packet {
                timestamp: Some(row.time),
                flags: NEEDS_STATE,
                sample: Some(sample(row, pid, tid, count, callstacks)),
                ..base.clone()
            })?;
        }
        Ok(())
    }
}

/// Returns the packet's sample for `row`, a sample of the profile. `count` is the number of events up to and including `row`.
fn sample(
    row: &ProfileSample,
    pid: u32,
    tid: u32,
    count: u64,
    callstacks: &Callstacks,
) -> PerfSample {
    PerfSample {
        cpu: (row.cpu != u32::MAX).then_some(row.cpu),
        pid,
        tid,
        callstack: row
            .stack
            .and_then(|stack| callstacks.numbers.get(&stack).copied()),
        timebase_count: count,
    }
}

/// The stacks of one event's samples, numbered from 1.
struct Callstacks {
    /// The number of each stack, by its index in [`Profile::stacks`].
    numbers: FxHashMap<u32, u64>,
    /// The index of each stack in [`Profile::stacks`], by number.
    stacks: Vec<u32>,
}

impl Callstacks {
    fn of(profile: &Profile, event: u32) -> Self {
        let mut callstacks = Self {
            numbers: FxHashMap::default(),
            stacks: Vec::new(),
        };
        for track in profile.tracks.iter().filter(|track| track.event == event) {
            for stack in track.samples.iter().filter_map(|row| row.stack) {
                callstacks.numbers.entry(stack).or_insert_with(|| {
                    callstacks.stacks.push(stack);
                    callstacks.stacks.len() as u64
                });
            }
        }
        callstacks
    }

    fn tables<'p>(&'p self, profile: &'p Profile) -> impl Iterator<Item = InternedData> + 'p {
        let numbered = numbered_chunks(&self.stacks);
        numbered.map(|chunk| InternedData {
            callstacks: chunk
                .map(|(iid, stack)| {
                    let mut path = Vec::new();
                    profile.frames_outermost_first(Some(*stack), &mut path);
                    Callstack {
                        iid,
                        frames: path.iter().map(|frame| u64::from(*frame) + 1).collect(),
                    }
                })
                .collect(),
            ..InternedData::default()
        })
    }
}

/// Chunks of a table, each entry with its number in the whole table, from 1.
fn numbered_chunks<T>(table: &[T]) -> impl Iterator<Item = impl Iterator<Item = (u64, &T)>> {
    let chunks = table.chunks(CHUNK).enumerate();
    chunks.map(|(chunk, items)| ((chunk * CHUNK) as u64 + 1..).zip(items))
}

/// The tables that callstacks refer to.
fn tables(profile: &Profile) -> impl Iterator<Item = InternedData> + '_ {
    let string = |(iid, text): (u64, &str)| InternedString {
        iid,
        text: text.as_bytes().to_vec(),
    };
    let functions = numbered_chunks(&profile.functions).map(move |chunk| InternedData {
        function_names: chunk
            .map(|(iid, function)| string((iid, &function.name)))
            .collect(),
        ..InternedData::default()
    });
    let sources = numbered_chunks(&profile.files).map(move |chunk| InternedData {
        source_paths: chunk.map(|(iid, path)| string((iid, path))).collect(),
        ..InternedData::default()
    });
    let objects = numbered_chunks(&profile.objects).map(move |chunk| {
        let mut data = InternedData::default();
        for (iid, object) in chunk {
            // An object's path, build-id and mapping have the same number: each kind is numbered separately.
            data.mapping_paths.push(string((iid, &object.path)));
            let build_id = object.build_id.as_deref().map(hex);
            let build_id = build_id.inspect(|id| data.build_ids.push(string((iid, id))));
            data.mappings.push(Mapping {
                iid,
                build_id: build_id.map(|_| iid),
                // The mapping contains the addresses of all its frames.
                end: u64::MAX,
                path: vec![iid],
            });
        }
        data
    });
    let frames = numbered_chunks(&profile.frames).map(|chunk| InternedData {
        frames: chunk
            .map(|(iid, frame)| self::frame(profile, iid, frame))
            .collect(),
        ..InternedData::default()
    });
    functions.chain(sources).chain(objects).chain(frames)
}

fn frame(profile: &Profile, iid: u64, frame: &crate::profile::ProfileFrame) -> Frame {
    let function = profile.functions.get(frame.function as usize);
    let object = function.and_then(|function| function.object);
    Frame {
        iid,
        function: u64::from(frame.function) + 1,
        mapping: object.map(|object| u64::from(object) + 1),
        address: object.map(|_| frame.address),
        source: frame.place.map(|place| u64::from(place.file) + 1),
        line: frame.place.map(|place| place.line),
        kind: match function.map(|function| function.kind) {
            Some(CodeKind::Kernel) => proto::KIND_KERNEL,
            Some(CodeKind::Jit) => proto::KIND_JIT,
            _ => proto::KIND_NATIVE,
        },
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost::bytes::Buf as _;

    use super::*;
    use crate::profile::{
        PeriodUnit, ProfileFunction, ProfileObject, ProfileStack, Thread as ProfiledThread, Track,
    };

    /// The packets of a trace.
    fn packets(mut bytes: &[u8]) -> Vec<Packet> {
        let mut packets = Vec::new();
        while bytes.has_remaining() {
            let (tag, kind) = prost::encoding::decode_key(&mut bytes).unwrap();
            assert_eq!(tag, PACKET);
            let mut packet = Packet::default();
            let context = prost::encoding::DecodeContext::default();
            prost::encoding::message::merge(kind, &mut packet, &mut bytes, context).unwrap();
            packets.push(packet);
        }
        packets
    }

    fn row(time: u64, stack: u32) -> ProfileSample {
        ProfileSample {
            time,
            period: 10,
            stack: Some(stack),
            cpu: 1,
        }
    }

    /// Threads 7 and 8 in `main`, which calls `leaf`. Thread 8 changes its name from `before` to `after`.
    fn profile() -> Profile {
        let function = |name: &str| ProfileFunction {
            name: name.to_owned(),
            object: Some(0),
            kind: CodeKind::User,
            range: None,
        };
        let frame = |function, address| crate::profile::ProfileFrame {
            function,
            address,
            inline_depth: 0,
            place: None,
        };
        let thread = |tid, name: &str| ProfiledThread {
            pid: 7,
            tid,
            name: name.to_owned(),
        };
        let track = |thread, samples| Track {
            thread,
            event: 0,
            samples,
        };
        Profile {
            events: vec![ProfileEvent {
                name: "cycles".to_owned(),
                unit: PeriodUnit::Count,
            }],
            objects: vec![ProfileObject {
                name: "app".to_owned(),
                path: "/bin/app".to_owned(),
                build_id: Some(vec![0xab, 1]),
            }],
            files: Vec::new(),
            functions: vec![function("main"), function("leaf")],
            frames: vec![frame(0, 0x10), frame(1, 0x20)],
            stacks: vec![
                ProfileStack {
                    caller: None,
                    frame: 0,
                },
                ProfileStack {
                    caller: Some(0),
                    frame: 1,
                },
            ],
            processes: vec![crate::profile::Process {
                pid: 7,
                name: "service".to_owned(),
            }],
            threads: vec![thread(7, "app"), thread(8, "after"), thread(8, "before")],
            tracks: vec![
                track(0, vec![row(100, 1), row(300, 0)]),
                track(1, vec![row(400, 1)]),
                // The name of the earlier sample is listed last, so the names must be sorted.
                track(2, vec![row(200, 1)]),
            ],
        }
    }

    /// Also checks the names of processes and threads, which are in the first packet.
    #[test]
    fn samples_are_ordered_and_follow_their_interned_data() {
        let mut bytes = Vec::new();
        write(&profile(), &mut bytes).unwrap();
        let packets = packets(&bytes);
        let mut stacks = FxHashMap::default();
        let mut functions = FxHashMap::default();
        let mut frames = FxHashMap::default();
        let mut seen = Vec::new();
        for packet in &packets {
            for data in packet.interned.iter() {
                let function_names = data.function_names.iter();
                functions.extend(
                    function_names
                        .map(|name| (name.iid, String::from_utf8_lossy(&name.text).into_owned())),
                );
                frames.extend(data.frames.iter().map(|frame| (frame.iid, frame.function)));
                stacks.extend(
                    data.callstacks
                        .iter()
                        .map(|stack| (stack.iid, stack.frames.clone())),
                );
                let build_ids: Vec<_> = data.build_ids.iter().map(|id| &*id.text).collect();
                assert!(build_ids.is_empty() || build_ids == [b"ab01"]);
            }
            let Some(sample) = &packet.sample else {
                continue;
            };
            let stack_frames = stacks[&sample.callstack.unwrap()].iter();
            let stack_names: Vec<&str> = stack_frames
                .map(|frame| functions[&frames[frame]].as_str())
                .collect();
            seen.push((
                packet.timestamp,
                sample.tid,
                stack_names.join(";"),
                sample.timebase_count,
            ));
        }
        let expected = [
            (Some(100), 7, "main;leaf".to_owned(), 10),
            (Some(200), 8, "main;leaf".to_owned(), 20),
            (Some(300), 7, "main".to_owned(), 30),
            (Some(400), 8, "main;leaf".to_owned(), 40),
        ];
        assert_eq!(seen, expected);
        let tree = packets[0].process_tree.as_ref().unwrap();
        let [process] = &*tree.processes else {
            panic!("{tree:?}");
        };
        assert_eq!(process.cmdline, ["service"]);
        let thread_names: Vec<_> = tree
            .threads
            .iter()
            .map(|thread| (thread.tid, &*thread.name))
            .collect();
        assert_eq!(thread_names, [(7, "app"), (8, "before"), (8, "after")]);
    }

    #[test]
    fn fields_have_the_numbers_of_perfettos_protos() {
        // `Frame`: iid 1, function_name_id 2, mapping_id 3, rel_pc 4, source_path_iid 5, line_number 6, kind 7.
        let frame = Frame {
            iid: 1,
            function: 2,
            mapping: Some(3),
            address: Some(4),
            source: Some(5),
            line: Some(6),
            kind: proto::KIND_JIT,
        };
        let bytes = [8, 1, 16, 2, 24, 3, 32, 4, 40, 5, 48, 6, 56, 4];
        assert_eq!(frame.encode_to_vec(), bytes);
        // `TracePacket`: timestamp 8, trusted_packet_sequence_id 10, sequence_flags 13, perf_sample 66, with cpu 1, pid 2, tid 3,
        // callstack_iid 4 and timebase_count 6.
        let packet = Packet {
            timestamp: Some(9),
            sequence: 1,
            flags: NEEDS_STATE,
            sample: Some(PerfSample {
                cpu: Some(0),
                pid: 7,
                tid: 8,
                callstack: Some(1),
                timebase_count: 10,
            }),
            ..Packet::default()
        };
        let sample = [8, 0, 16, 7, 24, 8, 32, 1, 48, 10];
        let bytes = [&[64, 9, 80, 1, 104, 2, 0x92, 4, 10][..], &sample].concat();
        assert_eq!(packet.encode_to_vec(), bytes);
    }
}
