//! Reads bytes that may be a recording. For any bytes nothing panics and everything terminates.
//!
//! The tests run mutated recordings through this file, and the fuzz target `recording` includes it.

use std::num::NonZeroUsize;

use rperf_perfdata::{Error, Features, PerfData, PipeReader};
use rperf_replay::{Fold, FoldControl, Render, Replay, Sample, Stream, World};
use rperf_wire::{Endian, Record, RecordKind, U64s, UserRecord};

/// The number of samples in a recording, and the error that ended the records; 0 and `None` if the recording cannot be
/// replayed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) samples: u64,
    pub(crate) end: Option<Error>,
}

/// Reads bytes as a stream, if they begin like a stream, and as a file. Returns the outcome of reading them as a file; `None`
/// if they cannot be read as a file or decompressed.
pub(crate) fn exercise(bytes: &[u8]) -> Option<Outcome> {
    stream(bytes);
    let data = PerfData::parse(bytes).ok()?;
    features(data.features(), data.endian());
    if !data.is_compressed() {
        return Some(replay(&data));
    }
    let mut records = Vec::new();
    // The recording is one file, not a directory: it has no other parts.
    let summary = data.unpack(&[], &mut records).ok()?;
    Some(replay(&data.with_records(&records, summary)))
}

fn replay(data: &PerfData<'_>) -> Outcome {
    for record in data.records().map_while(Result::ok) {
        if record.raw.kind.is_user() {
            drop(UserRecord::decode(&record.raw, data.endian()));
        } else if record.raw.kind != RecordKind::SAMPLE {
            drop(Record::decode(&record.raw, data.endian()));
        }
    }
    let Ok(replay) = Replay::open(data) else {
        let (samples, end) = (0, None);
        return Outcome { samples, end };
    };
    let one_thread = NonZeroUsize::MIN;
    let count = replay.fold(one_thread, Count::default);
    // Samples are rendered in blocks; each block gives its number of samples.
    let mut ordered = 0;
    let result = replay.ordered(one_thread, &OrderedCount, &mut |in_block: &mut u64| {
        ordered += *in_block;
        FoldControl::Continue
    });
    result.expect("enough memory");
    let samples = count.0;
    assert_eq!(samples, ordered, "both passes see the same samples");
    let end = replay.diagnostics().end;
    Outcome { samples, end }
}

fn stream(bytes: &[u8]) {
    // The size of the header in pipe mode.
    let Some((first, rest)) = bytes.split_at_checked(16) else {
        return;
    };
    let Ok(reader) = PipeReader::new(first.to_vec(), rest) else {
        return;
    };
    let mut stream = Stream::new(reader);
    // One scratch, for one worker.
    let mut scratches = [()];
    while let Ok(true) = stream.advance() {
        stream.deliver(&OrderedCount, &mut scratches, &mut |_: &mut u64| {
            FoldControl::Continue
        });
    }
    features(stream.head().features(), stream.endian());
}

fn features(features: &Features<'_>, endian: Endian) {
    let _malformed = features.malformed();
    let types = features.btf().unwrap_or_default();
    for program in features.bpf_programs().unwrap_or_default() {
        for function in program.functions(endian).into_iter().flatten() {
            for set in &types {
                // A type is found by a linear search: small ids limit the time.
                let _name = set.type_name(function.type_id % 100, endian);
            }
        }
    }
    if let Ok(formats) = features.formats() {
        // An arbitrary id.
        let _name = formats.name(47);
    }
}

/// Counts samples, and queries the World (the processes and mappings at a time) about each.
#[derive(Default)]
pub(crate) struct Count(pub(crate) u64);

impl Fold for Count {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        query(world, sample);
        self.0 += 1;
    }

    fn merge(&mut self, later: Self) {
        self.0 += later.0;
    }
}

/// Like `Count`, for a replay in order of time.
pub(crate) struct OrderedCount;

impl Render for OrderedCount {
    type Out = u64;
    type Scratch = ();

    fn render(&self, world: &World, sample: &Sample<'_>, _: &mut (), out: &mut u64) {
        query(world, sample);
        *out += 1;
    }
}

fn query(world: &World, sample: &Sample<'_>) {
    let (machine, mode, order) = (sample.machine(), sample.cpu_mode(), sample.order);
    let chain = sample.wire.callchain.iter().flat_map(U64s::iter);
    // The number of look-ups is limited, because a damaged callchain can be long.
    for ip in chain.take(200).chain(sample.wire.ip) {
        let found = world.lookup(machine, mode, sample.pid, order, ip);
        let _address = found.map(|id| world.mapping(id).object_address(ip));
    }
    // The state of the mappings at this time.
    let _epoch = world.epoch(machine, sample.pid, order);
    let _names = [
        world.comm(world.comm_at(sample.tid, order)),
        world.comm(world.comm_at_or_later(sample.tid, order)),
        world.comm(world.comm_last(sample.tid, order)),
    ];
    let _values = sample.wire.read.map(|read| read.values());
    if let Some(stack) = sample.wire.branch_stack {
        let _last = stack.iter().last();
    }
}
