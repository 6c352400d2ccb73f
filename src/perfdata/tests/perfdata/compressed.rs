//! Compressed recordings: records are returned in order, however the compressed data was split, and damage is reported.

use std::io;
use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_perfdata::{
    Error, EventDesc, FeatureSet, PerfData, PipeReader, PipeWriter, StreamInput, UnpackSummary,
    ZstdError,
};
use rperf_wire::{Attr, Endian, Misc, RawRecord, RecordHeader, RecordKind};

use crate::generated;

/// The steps of a recorder.
#[derive(Debug, Clone)]
enum Step {
    /// Appends a record with a body of this size to the buffer to be compressed.
    Buffer(u8),
    /// Compresses the first part of the buffer, and writes the compressed bytes as two records. The numbers are in 255ths: the
    /// size of that part of the buffer, and how much of the compressed bytes is in the first record.
    Flush(u8, u8),
    /// Writes an uncompressed record with a body of this size.
    Write(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<u8>().prop_map(Step::Buffer),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(part, cut)| Step::Flush(part, cut)),
        1 => any::<u8>().prop_map(Step::Write),
    ];
    prop::collection::vec(step, 0..60)
}

/// The format of the compressed bytes.
#[derive(Debug, Clone, Copy)]
enum ZstdFormat {
    /// Blocks of one endless frame with a window of 1 KiB, in records of this kind.
    Blocks(RecordKind),
    /// A complete frame for each flush, in COMPRESSED records.
    Frames,
}

fn formats() -> impl Strategy<Value = ZstdFormat> {
    prop_oneof![
        Just(ZstdFormat::Blocks(RecordKind::COMPRESSED)),
        Just(ZstdFormat::Blocks(RecordKind::COMPRESSED2)),
        Just(ZstdFormat::Frames),
    ]
}

/// Creates the records of a stream, and those that a reader should return, in order.
struct Recorder {
    endian: Endian,
    format: ZstdFormat,
    /// The byte that fills the last record.
    number: u8,
    /// Bytes to be compressed.
    buffer: Vec<u8>,
    /// Whether the header of the endless frame was written.
    frame_begun: bool,
    /// The records of the stream, compressed or not.
    recorded: Vec<u8>,
    /// The flushed bytes after the last complete record, not compressed: the start of a record whose end is still in `buffer`.
    incomplete: Vec<u8>,
    /// The records that a reader should return.
    expected: Vec<u8>,
}

impl Recorder {
    fn new_record(&mut self, length: u8) -> Vec<u8> {
        self.number = self.number.wrapping_add(1);
        let body = vec![self.number; usize::from(length)];
        let raw = RawRecord {
            kind: RecordKind::SAMPLE,
            misc: Misc(2),
            body: &body,
        };
        let mut bytes = Vec::new();
        raw.encode(self.endian, &mut bytes);
        bytes
    }

    fn compress(&mut self, bytes: &[u8]) -> Vec<u8> {
        if matches!(self.format, ZstdFormat::Frames) {
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            return ruzstd::encoding::compress_to_vec(bytes, level);
        }
        let mut out = Vec::new();
        if !self.frame_begun {
            // The magic number, no optional fields, and the smallest window: 1 KiB.
            out.extend([0x28, 0xb5, 0x2f, 0xfd, 0, 0]);
            self.frame_begun = true;
        }
        for block in bytes.chunks(1024) {
            // The size above three low bits, which are 0 for an uncompressed block that is not the last one.
            let header = u32::try_from(block.len() << 3).unwrap().to_le_bytes();
            out.extend(&header[..3]);
            out.extend(block);
        }
        out
    }

    fn write_compressed(&mut self, bytes: &[u8]) {
        let kind = match self.format {
            ZstdFormat::Blocks(kind) => kind,
            ZstdFormat::Frames => RecordKind::COMPRESSED,
        };
        let mut body = Vec::new();
        if kind == RecordKind::COMPRESSED2 {
            let size = bytes.len() as u64;
            body.extend(match self.endian {
                Endian::Little => size.to_le_bytes(),
                Endian::Big => size.to_be_bytes(),
            });
        }
        body.extend(bytes);
        if kind == RecordKind::COMPRESSED2 {
            body.resize(body.len().next_multiple_of(8), 0xee);
        }
        let misc = Misc(0);
        let raw = RawRecord {
            kind,
            misc,
            body: &body,
        };
        raw.encode(self.endian, &mut self.recorded);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Buffer(length) => {
                let record = self.new_record(length);
                self.buffer.extend(record);
            }
            Step::Write(length) => {
                let record = self.new_record(length);
                self.recorded.extend(&record);
                self.expected.extend(record);
            }
            Step::Flush(part, cut) => {
                let count = self.buffer.len() * usize::from(part) / 255;
                let bytes: Vec<u8> = self.buffer.drain(..count).collect();
                let compressed = self.compress(&bytes);
                let (first, second) =
                    compressed.split_at(compressed.len() * usize::from(cut) / 255);
                self.write_compressed(first);
                self.write_compressed(second);
                self.incomplete.extend(bytes);
                while let Some((_, size)) = RawRecord::split(&self.incomplete, self.endian) {
                    self.expected.extend(self.incomplete.drain(..size));
                }
            }
        }
    }
}

/// A recorder after these steps and a flush of the whole buffer.
fn run_steps(steps: &[Step], format: ZstdFormat, endian: Endian) -> Recorder {
    let mut recorder = Recorder {
        endian,
        format,
        number: 0,
        buffer: Vec::new(),
        frame_begun: false,
        recorded: Vec::new(),
        incomplete: Vec::new(),
        expected: Vec::new(),
    };
    for step in steps {
        recorder.step(step);
    }
    recorder.step(&Step::Flush(255, 128));
    recorder
}

/// A pipe-mode stream with these records.
fn stream(records: &[u8], endian: Endian) -> Vec<u8> {
    let events = [EventDesc::new(Attr::default(), vec![7])];
    let features = FeatureSet::new(endian);
    let mut bytes = Vec::new();
    let mut writer = PipeWriter::with_endian(&mut bytes, &events, &features, endian).unwrap();
    writer.write_data(records).unwrap();
    bytes
}

/// Returns at most three bytes per read.
struct Trickle<'a>(&'a [u8]);

impl io::Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let room = into.len().min(3);
        self.0.read(&mut into[..room])
    }
}

impl StreamInput for Trickle<'_> {
    fn is_ready(&self) -> bool {
        true
    }
}

/// The SAMPLE records of a stream, and the error that ended it.
fn streamed(bytes: &[u8], endian: Endian) -> (Vec<u8>, Option<Error>) {
    streamed_from(bytes, endian, Trickle)
}

/// As [`streamed`]; `input` returns the input from the bytes after the header.
fn streamed_from<'a, I: StreamInput>(
    bytes: &'a [u8],
    endian: Endian,
    input: impl FnOnce(&'a [u8]) -> I,
) -> (Vec<u8>, Option<Error>) {
    let (pipe_header, rest) = bytes.split_at(16);
    let mut reader = PipeReader::new(pipe_header.to_vec(), input(rest)).unwrap();
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) if record.raw.kind == RecordKind::SAMPLE => {
                record.raw.encode(endian, &mut records);
            }
            Ok(Some(record)) => assert!(!matches!(
                record.raw.kind,
                RecordKind::COMPRESSED | RecordKind::COMPRESSED2
            )),
            Ok(None) => return (records, None),
            Err(error) => return (records, Some(error)),
        }
    }
}

/// Fails after these bytes.
struct Failing<'a>(&'a [u8]);

impl io::Read for Failing<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into)? {
            0 => Err(io::ErrorKind::ConnectionReset.into()),
            count => Ok(count),
        }
    }
}

impl StreamInput for Failing<'_> {
    fn is_ready(&self) -> bool {
        true
    }
}

/// The records of a recording unpacked on this many threads; `parts` are the records of further files that belong to it.
fn unpacked_on(threads: usize, data: &PerfData<'_>, parts: &[&[u8]]) -> (Vec<u8>, UnpackSummary) {
    let threads = NonZeroUsize::new(threads).unwrap();
    let mut records = Vec::new();
    let summary = data.unpack_on(threads, parts, &mut records).unwrap();
    (records, summary)
}

/// The SAMPLE records of a recording after unpacking, and the first error.
fn unpacked(bytes: &[u8]) -> (Vec<u8>, Option<Error>) {
    let data = PerfData::parse(bytes).unwrap();
    // The records as stored: `data` gets the unpacked ones below.
    let stored = data.records().flatten().map(|record| record.raw.kind);
    let count = |wanted| stored.clone().filter(|kind| *kind == wanted).count() as u64;
    let (records, summary) = unpacked_on(1, &data, &[]);
    assert_eq!(
        unpacked_on(3, &data, &[]),
        (records.clone(), summary.clone())
    );
    let data = data.with_records(&records, summary);
    let summary = data.unpacked().expect("a summary");
    if summary.first_error.is_none() {
        let counts = [RecordKind::COMPRESSED, RecordKind::COMPRESSED2].map(count);
        assert_eq!([summary.compressed, summary.compressed2], counts);
    }
    let samples = data.records().map(|record| record.unwrap().raw);
    let mut encoded = Vec::new();
    samples
        .filter(|raw| raw.kind == RecordKind::SAMPLE)
        .for_each(|raw| raw.encode(data.endian(), &mut encoded));
    (encoded, data.unpack_error().cloned())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A record whose parts are in two flushes is returned at the place of the second one: after the uncompressed records that
    /// were written between the flushes.
    #[test]
    fn records_are_returned_when_complete(steps in steps(), format in formats(), big in any::<bool>()) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let recorder = run_steps(&steps, format, endian);
        prop_assert!(recorder.incomplete.is_empty());
        let bytes = stream(&recorder.recorded, endian);
        prop_assert_eq!(&unpacked(&bytes), &(recorder.expected.clone(), None));
        prop_assert_eq!(&streamed(&bytes, endian), &(recorder.expected, None));
    }

    /// The records before a failed read are those of a stream that ends where the read fails.
    #[test]
    fn records_before_a_failed_read_are_returned(
        steps in steps(),
        format in formats(),
        big in any::<bool>(),
        part in 0.0..=1.0,
    ) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let bytes = stream(&run_steps(&steps, format, endian).recorded, endian);
        let len = 16 + ((bytes.len() - 16) as f64 * part) as usize;
        let (expected, _) = streamed(&bytes[..len], endian);
        let (records, error) = streamed_from(&bytes[..len], endian, Failing);
        prop_assert_eq!(records, expected);
        prop_assert!(matches!(error, Some(Error::Read { .. })), "{:?}", error);
    }

    /// The number of threads changes nothing, even if the files are damaged.
    #[test]
    fn parts_are_merged_alike_by_any_number_of_threads(
        files in prop::collection::vec((steps(), formats(), any::<u8>()), 1..4),
        damaged: bool,
    ) {
        let endian = Endian::Little;
        let parts: Vec<Vec<u8>> = files.iter().map(|(steps, format, damage)| {
            let mut records = run_steps(steps, *format, endian).recorded;
            if damaged {
                let at = records.len() * usize::from(*damage) / 256;
                records[at] ^= 0x55;
            }
            records
        }).collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        // The first part is the recording itself, the others are further files.
        let bytes = stream(parts[0], endian);
        let data = PerfData::parse(&bytes).unwrap();
        let single_threaded = unpacked_on(1, &data, &parts[1..]);
        for threads in [2, 5] {
            prop_assert_eq!(&unpacked_on(threads, &data, &parts[1..]), &single_threaded);
        }
    }

    /// Unpacking and [`PipeReader`] return the same records, which are the first ones of the complete stream.
    #[test]
    fn a_truncated_stream_returns_its_first_records(steps in steps(), format in formats(), part in any::<u8>()) {
        let endian = Endian::Little;
        let recorder = run_steps(&steps, format, endian);
        let bytes = stream(&recorder.recorded, endian);
        let head_size = bytes.len() - recorder.recorded.len();
        let end = head_size + recorder.recorded.len() * usize::from(part) / 255;
        let (at_once, _) = unpacked(&bytes[..end]);
        let (flowing, _) = streamed(&bytes[..end], endian);
        prop_assert!(recorder.expected.starts_with(&at_once));
        prop_assert_eq!(at_once, flowing);
    }
}

/// A stream with one COMPRESSED record, which has this body.
fn with_compressed(body: &[u8]) -> Vec<u8> {
    let record = generated::record(RecordKind::COMPRESSED, body, Endian::Little);
    stream(&record, Endian::Little)
}

#[test]
fn invalid_zstd_is_reported_with_its_offset() {
    let body = b"not zstd at all";
    let bytes = with_compressed(body);
    let offset = (bytes.len() - RecordHeader::SIZE - body.len()) as u64;
    let (records, end) = unpacked(&bytes);
    let source = ZstdError::Magic;
    assert!(records.is_empty());
    assert_eq!(end, Some(Error::Zstd { offset, source }));
    assert_eq!(streamed(&bytes, Endian::Little).1, end);
}

/// Memory for the payload of a record is limited, even if the record follows compressed ones.
#[test]
fn the_payload_of_a_record_after_compressed_ones_is_limited() {
    let compressed = run_steps(&[Step::Buffer(8)], ZstdFormat::Frames, Endian::Little);
    let mut records = compressed.recorded;
    let head_size = stream(&[], Endian::Little).len();
    let offset = (head_size + records.len()) as u64;
    // The first word is the size of the trace that follows the record.
    let trace = [1_u64 << 40, 0, 0, 0, 0].map(u64::to_le_bytes).concat();
    let trace = generated::record(RecordKind::AUXTRACE, &trace, Endian::Little);
    let size = (1 << 40) + trace.len() as u64;
    records.extend(trace);
    records.extend([0; 100]);
    let (samples, end) = streamed(&stream(&records, Endian::Little), Endian::Little);
    assert_eq!(samples, compressed.expected);
    // The limit of `PipeReader` for a record with its payload.
    let most = 1 << 30;
    assert_eq!(end, Some(Error::PayloadSize { offset, size, most }));
}

/// A stream with a frame that has the window of level 22, 128 MiB: `blocks` run-length blocks of 128 KiB, then `stored`
/// uncompressed bytes, and finally three bytes copied from `back` bytes before.
fn with_window(blocks: u32, stored: usize, back: u32) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3];
    for _ in 0..blocks {
        // 128 KiB of the byte 1.
        frame.extend([2, 0, 0x10, 1]);
    }
    for part in vec![1; stored].chunks(1 << 16) {
        frame.extend(&u32::try_from(part.len() << 3).unwrap().to_le_bytes()[..3]);
        frame.extend(part);
    }
    // No literals, and one sequence with RLE codes. The offset `back` is encoded as a value larger by 3: its code is the number
    // of bits after the value's leading one. The bit stream is the value itself: these bits, and the leading one as end mark.
    let value = back + 3;
    let code = u8::try_from(value.ilog2()).unwrap();
    let body = [0, 1, 0x54, 0, code, 0];
    let bits = &value.to_le_bytes()[..usize::from(code) / 8 + 1];
    let size = u32::try_from(body.len() + bits.len()).unwrap();
    frame.extend(&(size << 3 | 2 << 1).to_le_bytes()[..3]);
    frame.extend(body);
    frame.extend(bits);
    let parts = frame.chunks(60_000);
    let records = parts.map(|body| generated::record(RecordKind::COMPRESSED, body, Endian::Little));
    stream(&records.collect::<Vec<_>>().concat(), Endian::Little)
}

/// Windows may be as large as recorders make them, but memory is limited by the size of the file.
#[test]
fn memory_of_windows_is_limited_by_the_size_of_the_file() {
    // The only error is that the decompressed bytes are not a complete record.
    let is_decompressed = |bytes: &[u8]| {
        let end = unpacked(bytes).1.expect("an end");
        matches!(end, Error::CompressedTruncated { .. })
    };
    // A small recording at level 22 declares a large window, but has no distant references.
    assert!(is_decompressed(&with_window(8, 100, 8 << 17)));
    // References up to 32 MiB back are always allowed.
    let (window, most) = (128 << 20, 32 << 20);
    let too_large = ZstdError::Window { window, most };
    let far = unpacked(&with_window(264, 40_000, 33 << 20)).1;
    assert!(
        matches!(&far, Some(Error::Zstd { source, .. }) if *source == too_large),
        "{far:?}"
    );
    // The same reference is allowed in a larger file: the limit is eight times its size, rounded down to a power of two.
    assert!(is_decompressed(&with_window(264, 9 << 20, 33 << 20)));
}

#[test]
fn a_size_of_compressed_bytes_beyond_the_record_is_refused() {
    // The size of the compressed bytes, then only 8 of them.
    let body = [9, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let records = generated::record(RecordKind::COMPRESSED2, &body, Endian::Little);
    let bytes = stream(&records, Endian::Little);
    let offset = (bytes.len() - records.len()) as u64;
    let (size, have) = (9, 8);
    let error = Error::CompressedSize { offset, size, have };
    assert_eq!(unpacked(&bytes).1, Some(error.clone()));
    assert_eq!(streamed(&bytes, Endian::Little).1, Some(error));
}

#[test]
fn decompression_bombs_are_refused() {
    let mut body = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0];
    for _ in 0..16_000 {
        // 128 KiB of one byte.
        body.extend([2, 0, 0x10, 0]);
    }
    let (_, end) = unpacked(&with_compressed(&body));
    // Decompression stops after the block of 128 KiB that exceeds the limit; the test allows an excess of almost two blocks.
    assert!(
        matches!(end, Some(Error::Ratio { size, most, .. }) if size > most && size < most + (256 << 10)),
        "{end:?}"
    );
}

#[test]
fn an_incomplete_last_record_is_reported() {
    let bytes = with_compressed(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0, 3 << 3, 0, 0, 9, 0, 0]);
    let (records, end) = unpacked(&bytes);
    assert!(records.is_empty());
    assert_eq!(end, Some(Error::CompressedTruncated { left: 3 }));
}
