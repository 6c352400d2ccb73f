//! Recordings read from a pipe in pieces, compared with the same recordings read from a file; broken pipes.

use std::io::{self, Read};
use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_perfdata::{
    Error, EventDesc, FeatureSet, FileHeader, PerfData, PipeReader, PipeWriter, StreamInput,
};
use rperf_replay::{Diagnostics, FoldControl, Render, Replay, Stream};
use rperf_wire::{Endian, RecordKind, SampleType};

use crate::USER;
use crate::file::{FileBuilder, attr};
use crate::oracle::{Look, events, record};

/// A pipe that returns at most `size` bytes per read. If `size` is odd, it never reports that it is ready. With `fails`, it ends
/// with an error.
pub(crate) struct PiecewiseInput<'a> {
    bytes: &'a [u8],
    size: usize,
    fails: bool,
}

impl Read for PiecewiseInput<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() && self.fails {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let most = self.size.min(into.len());
        self.bytes.read(&mut into[..most])
    }
}

impl StreamInput for PiecewiseInput<'_> {
    fn is_ready(&self) -> bool {
        self.size.is_multiple_of(2)
    }
}

/// A file as a pipe-mode stream, and the number of bytes by which its records are nearer to the start in the stream than in the
/// file.
pub(crate) fn piped(file: &[u8]) -> (Vec<u8>, u64) {
    let data = PerfData::parse(file).expect("a valid file");
    let mut bytes = Vec::new();
    let (events, no_features) = (data.events(), FeatureSet::new(Endian::Little));
    let mut writer =
        PipeWriter::with_endian(&mut bytes, events, &no_features, Endian::Little).expect("memory");
    let records_at = writer.bytes();
    writer.write_data(data.data()).expect("memory");
    (bytes, data.data_offset() - records_at)
}

/// A stream that reads from [`PiecewiseInput`] with this `size` and `fails`.
pub(crate) fn stream(bytes: &[u8], size: usize, fails: bool) -> Stream<PiecewiseInput<'_>> {
    let header = usize::try_from(FileHeader::PIPE_SIZE).expect("16");
    let (first, bytes) = bytes.split_at(header);
    let input = PiecewiseInput { bytes, size, fails };
    Stream::new(PipeReader::new(first.to_vec(), input).expect("a header"))
}

/// The rendered samples of a stream, and the number of batches: calls of [`Stream::advance`] that return true.
pub(crate) fn streamed<V, T>(
    stream: &mut Stream<PiecewiseInput<'_>>,
    render: &V,
    workers: usize,
) -> (Vec<T>, usize)
where
    V: Render<Out = Vec<T>, Scratch = ()>,
{
    let (mut seen, mut batches) = (Vec::new(), 0);
    let mut scratches = vec![(); workers];
    while stream.advance().expect("not compressed") {
        batches += 1;
        let mut take = |block: &mut Vec<T>| {
            seen.append(block);
            FoldControl::Continue
        };
        stream.deliver(render, &mut scratches, &mut take);
    }
    (seen, batches)
}

/// The rendered samples of a file, and its diagnostics.
pub(crate) fn whole<V, T>(bytes: &[u8], render: &V, threads: NonZeroUsize) -> (Vec<T>, Diagnostics)
where
    V: Render<Out = Vec<T>>,
{
    let data = PerfData::parse(bytes).expect("a valid file");
    let replay = Replay::open(&data).expect("a valid recording");
    let mut seen = Vec::new();
    let mut take = |block: &mut Vec<T>| {
        seen.append(block);
        FoldControl::Continue
    };
    replay.ordered(threads, render, &mut take).expect("threads");
    (seen, replay.diagnostics())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pipe_matches_its_file(events in events(), size in 1_usize..3000, workers in 1_usize..3) {
        let (file, _) = record(&events);
        let (bytes, moved) = piped(&file);
        let (mut expected, diagnostics) = whole(&file, &Look, NonZeroUsize::MIN);
        expected.iter_mut().for_each(|(position, ..)| *position -= moved);
        let fails = false;
        let mut stream = stream(&bytes, size, fails);
        let (seen, _) = streamed(&mut stream, &Look, workers);
        prop_assert_eq!(&seen, &expected);
        let mut found = stream.diagnostics();
        // Only the pipe has HEADER_ATTR records.
        let attr_records = found.count(RecordKind::HEADER_ATTR);
        found.kinds.retain(|(kind, _)| *kind != RecordKind::HEADER_ATTR);
        found.records -= attr_records;
        prop_assert_eq!(found, diagnostics);
        // The bytes from the pipe, written to a file, are a valid recording.
        prop_assert_eq!(whole(&bytes, &Look, NonZeroUsize::MIN).0, expected);
    }
}

/// A pipe-mode stream of 300 rounds, each with 39 samples and a FINISHED_ROUND record.
fn long() -> Vec<u8> {
    let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
    let mut file = FileBuilder::new(Endian::Little, &[(attr(sample_type), vec![1])]);
    for round in 0..300_u64 {
        for time in 1..40 {
            // Address, process and thread, time.
            let words = [round, 7 | 7 << 32, round * 100 + time];
            let body = words.map(u64::to_le_bytes).concat();
            file.raw(RecordKind::SAMPLE, USER, &body);
        }
        file.round();
    }
    piped(&file.finish()).0
}

#[test]
fn complete_rounds_are_delivered_before_the_end() {
    let bytes = long();
    // With an odd size the pipe is never ready: a batch ends when a round has ended and no complete record is buffered. A read
    // returns less than a round, which has 39 * 32 + 8 bytes, so there are about as many batches as rounds.
    let (size, fails) = (999, false);
    let mut stream = stream(&bytes, size, fails);
    let (seen, batches) = streamed(&mut stream, &Look, 1);
    assert_eq!(seen.len(), 300 * 39);
    assert!(seen.is_sorted_by_key(|(position, ..)| *position));
    assert!(batches > 250, "delivered in {batches} batches");
}

#[test]
fn a_broken_pipe_delivers_its_complete_records() {
    let bytes = long();
    let (size, fails) = (4096, true);
    let mut broken = stream(&bytes, size, fails);
    let (seen, _) = streamed(&mut broken, &Look, 1);
    assert_eq!(seen.len(), 300 * 39);
    let kind = io::ErrorKind::ConnectionReset;
    let offset = bytes.len() as u64;
    assert_eq!(broken.diagnostics().end, Some(Error::Read { offset, kind }));
    // Without the last record, FINISHED_ROUND of 8 bytes, and with an incomplete sample before it.
    let truncated = &bytes[..bytes.len() - 9];
    let fails = false;
    let mut truncated = stream(truncated, size, fails);
    let (seen, _) = streamed(&mut truncated, &Look, 2);
    assert_eq!(seen.len(), 300 * 39 - 1);
    let end = truncated.diagnostics().end;
    assert!(matches!(end, Some(Error::Truncated { .. })), "{end:?}");
}

#[test]
fn a_stream_without_events_is_an_error_at_its_end() {
    let mut bytes = Vec::new();
    let no_events: [EventDesc; 0] = [];
    let features = FeatureSet::new(Endian::NATIVE);
    PipeWriter::new(&mut bytes, &no_events, &features).expect("memory");
    let (size, fails) = (10, false);
    let mut stream = stream(&bytes, size, fails);
    assert!(!stream.advance().expect("nothing is compressed"));
    assert_eq!(stream.diagnostics().end, Some(Error::NoAttrRecord));
}
