//! The raw dump of records (`-D`): file offset, bytes and decoded fields.
//!
//! ```text
//! 0x240@perf.data [0x30]: event: 3
//! .
//! . ... raw event: size 48 bytes
//! .  0000:  03 00 00 00 00 00 30 00 9c 22 00 00 9c 22 00 00  ......0.."..."..
//! …
//!
//! 0 0x240 [0x30]: PERF_RECORD_COMM: perf-exec:8860/8860
//! ```

mod branches;
mod hex;
mod kernel;
mod sample;
mod simpleperf;
mod trace;
mod user;

use std::fmt;
use std::io::{self, Write};

use rperf_perfdata::{EventDesc, Metadata, RecordAt};
use rperf_wire::{AttrFlags, DecodeError, Endian, RecordHeader, RecordKind, SampleId, SampleType};

pub use self::sample::{SampleDump, write_thread};
use crate::script::Architecture;

/// Writes records of one recording.
#[derive(Debug)]
pub struct Dump<'a> {
    recording: Metadata<'a>,
    path: &'a str,
    architecture: Architecture,
    /// Number of events known so far; in pipe mode, each HEADER_ATTR record adds one.
    known: usize,
    /// The kind of hardware traces, from the latest AUXTRACE_INFO.
    trace_kind: Option<u32>,
    /// Record types that the command does not handle.
    unhandled: Vec<RecordKind>,
    /// The sample fields that at least one known event records.
    sample_type: SampleType,
    scratch: Vec<u8>,
    /// Whether file order was requested. Records that cannot be sorted are printed in file order in any case.
    unsorted: bool,
    /// Whether the caller omits the lines with the thread and the object of samples; [`Self::write`] never writes them.
    without_threads: bool,
}

/// The decoded content of a record.
#[derive(Debug)]
pub enum DumpContent<'a> {
    /// A sample.
    Sample(SampleDump<'a>),
    /// A sample of an event that the recording does not describe.
    UnknownEvent,
    /// A sample that cannot be decoded.
    Broken(&'a DecodeError),
    /// A kernel record other than a sample.
    Kernel {
        /// The fields of the record type, without the trailer.
        body: &'a [u8],
        /// The trailer: thread, time, event id and CPU, each if recorded.
        trailer: SampleId,
    },
    /// A record written by the recorder.
    User,
}

impl<'a> Dump<'a> {
    /// Creates a dump of this recording, whose file is called `path`.
    #[must_use]
    pub fn new(recording: Metadata<'a>, path: &'a str) -> Self {
        let machine = recording.features.arch().unwrap_or_default();
        let mut dump = Self {
            recording,
            path: if recording.is_pipe { "pipe" } else { path },
            architecture: Architecture::from_machine(&machine),
            known: 0,
            trace_kind: None,
            unhandled: Vec::new(),
            sample_type: SampleType::default(),
            scratch: Vec::new(),
            unsorted: false,
            without_threads: false,
        };
        if !recording.is_pipe {
            dump.learn(recording.events.len());
        }
        dump
    }

    /// Adds record types that the command does not handle; their records are marked as unhandled, as in perf.
    #[must_use]
    pub fn with_unhandled(mut self, kinds: &[RecordKind]) -> Self {
        self.unhandled.extend(kinds);
        self
    }

    /// Dumps records in file order.
    #[must_use]
    pub fn in_file_order(mut self) -> Self {
        self.unsorted = true;
        self
    }

    /// Omits the lines with the thread and the object of each sample, as perf's commands other than script and report do.
    #[must_use]
    pub fn without_threads(mut self) -> Self {
        self.without_threads = true;
        self
    }

    /// Whether the caller prints the thread and the object of samples, with [`write_thread`].
    #[must_use]
    pub fn shows_threads(&self) -> bool {
        !self.without_threads
    }

    /// Whether records are in time order instead of file order.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        !self.unsorted && self.can_be_sorted()
    }

    /// Whether perf can sort the records by time. In pipe mode perf assumes that it can: the events are not known at the start.
    fn can_be_sorted(&self) -> bool {
        self.recording.is_pipe || self.has_trailers()
    }

    /// Writes perf's warning before the first record if the records cannot be sorted by time.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write_start(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.can_be_sorted() {
            true => Ok(()),
            false => writeln!(
                out,
                "WARNING: No sample_id_all support, falling back to unordered processing"
            ),
        }
    }

    /// Writes one record, without the lines of [`write_thread`].
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write(
        &mut self,
        out: &mut dyn Write,
        record: &RecordAt<'_>,
        content: &DumpContent<'_>,
    ) -> io::Result<()> {
        let kind = record.raw.kind;
        let is_unhandled = self.unhandled.contains(&kind);
        let position = AlternateHex(self.position(record));
        let size = AlternateHex((RecordHeader::SIZE + record.raw.body.len()) as u64);
        writeln!(
            out,
            "\n{position}@{} [{size}]: event: {}",
            self.path, kind.0
        )?;
        self.write_bytes(out, record)?;
        self.write_stamp(out, kind, content)?;
        write!(out, "{position} [{size}]: ")?;
        // `kernel::write` writes the name itself.
        if !matches!(content, DumpContent::Kernel { .. }) {
            write!(out, "PERF_RECORD_{}", name(kind))?;
        }
        match content {
            DumpContent::Sample(sample) => {
                sample::write(out, sample, record.raw.misc, self.architecture)?;
            }
            DumpContent::UnknownEvent => writeln!(out, ": of an event that is not described")?,
            DumpContent::Broken(error) => writeln!(out, " cannot be decoded: {error}")?,
            DumpContent::Kernel { body, trailer } => {
                let raw = rperf_wire::RawRecord { body, ..record.raw };
                kernel::write(out, &raw, trailer, self.event_of(trailer), self.endian())?;
            }
            DumpContent::User if is_unhandled => user::write_unhandled(out, record, self.endian())?,
            DumpContent::User => user::write(out, record, self.endian())?,
        }
        self.write_trace(out, record)?;
        if is_unhandled {
            out.write_all(user::UNHANDLED.as_bytes())?;
        }
        if kind == RecordKind::HEADER_ATTR {
            self.learn(self.known + 1);
        }
        Ok(())
    }

    /// Keeps the kind of hardware traces of an AUXTRACE_INFO record. After an AUXTRACE record, writes the trace if that kind can
    /// be printed.
    fn write_trace(&mut self, out: &mut dyn Write, record: &RecordAt<'_>) -> io::Result<()> {
        match record.raw.kind {
            RecordKind::AUXTRACE_INFO => self.trace_kind = self.endian().u32_at(record.raw.body, 0),
            RecordKind::AUXTRACE if trace::is_printed(self.trace_kind) => {
                return trace::write(out, record.payload, self.endian());
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns a record's offset as perf prints it: in pipe mode, relative to the end of the header.
    fn position(&self, record: &RecordAt<'_>) -> u64 {
        match self.recording.is_pipe {
            true => record
                .position
                .saturating_sub(rperf_perfdata::FileHeader::PIPE_SIZE),
            false => record.position,
        }
    }

    fn endian(&self) -> Endian {
        self.recording.endian
    }

    /// Makes the first `count` events of the recording known, or all if there are fewer.
    fn learn(&mut self, count: usize) {
        self.known = count.min(self.recording.events.len());
        for event in self.events() {
            self.sample_type |= event.attr.sample_type;
        }
    }

    fn events(&self) -> &'a [EventDesc] {
        self.recording.events.get(..self.known).unwrap_or_default()
    }

    /// Whether records other than samples have trailers, according to the first event.
    fn has_trailers(&self) -> bool {
        let first = self.events().first();
        first.is_some_and(|event| event.attr.flags.contains(AttrFlags::SAMPLE_ID_ALL))
    }

    /// The event of a trailer; the first event if the trailer has no id or an unknown one; `None` if no event is known.
    fn event_of(&self, trailer: &SampleId) -> Option<&'a EventDesc> {
        let mut events = self.events().iter();
        let has_id = |event: &&EventDesc| trailer.id.is_some_and(|id| event.ids.contains(&id));
        events.find(has_id).or(self.events().first())
    }

    fn write_bytes(&mut self, out: &mut dyn Write, record: &RecordAt<'_>) -> io::Result<()> {
        self.scratch.clear();
        let header = RecordHeader {
            kind: record.raw.kind,
            misc: record.raw.misc,
            size: u16::try_from(RecordHeader::SIZE + record.raw.body.len()).unwrap_or(u16::MAX),
        };
        let endian = self.endian();
        header.encode(&mut rperf_wire::Encoder::new(&mut self.scratch, endian));
        self.scratch.extend_from_slice(record.raw.body);
        hex::write(out, &self.scratch)
    }

    /// Writes CPU and time, each if any known event records it. As in perf, a field is
    /// - the largest number (an unsigned -1) if this record lacks it, is of an unknown event or cannot be decoded;
    /// - 0 in records of the recorder.
    ///
    /// If records other than samples have no trailers, these records show `-1` for both, whether or not an event records them.
    fn write_stamp(
        &self,
        out: &mut dyn Write,
        kind: RecordKind,
        content: &DumpContent<'_>,
    ) -> io::Result<()> {
        if kind != RecordKind::SAMPLE && !self.has_trailers() {
            return write!(out, "-1 -1 ");
        }
        let (cpu, time) = match content {
            DumpContent::Sample(sample) => (sample.wire.cpu, sample.wire.time),
            DumpContent::Kernel { trailer, .. } => (trailer.cpu, trailer.time),
            DumpContent::User => (Some(0), Some(0)),
            DumpContent::UnknownEvent | DumpContent::Broken(_) => (None, None),
        };
        if self.sample_type.contains(SampleType::CPU) {
            write!(out, "{} ", cpu.unwrap_or(u32::MAX))?;
        }
        if self.sample_type.contains(SampleType::TIME) {
            write!(out, "{} ", time.unwrap_or(u64::MAX))?;
        }
        Ok(())
    }
}

/// Returns the name of a record type. perf omits `HEADER_`.
fn name(kind: RecordKind) -> &'static str {
    let name = kind.name().unwrap_or("UNKNOWN");
    name.strip_prefix("HEADER_").unwrap_or(name)
}

/// Formats like `%#x` of printf: 0 has no prefix.
#[derive(Clone, Copy)]
struct AlternateHex(u64);

impl fmt::Display for AlternateHex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            value => write!(f, "{value:#x}"),
        }
    }
}
