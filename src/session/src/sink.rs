//! What records are written into, and what is learnt of them on the way.

use rperf_perfdata::feature::AuxIndexEntry;
use rperf_perfdata::{FeatureSet, WriteError};
use rperf_ring::Walker;
use rperf_wire::{AuxTrace, Endian, RecordKind, UserRecord};

use crate::Error;
use crate::medium::Medium;
use crate::squeeze::Squeeze;
use crate::synthesize::Records;
use crate::tally::Tally;

/// Where records go, and what is learnt on the way.
pub(crate) struct Sink {
    pub(crate) medium: Medium,
    pub(crate) tally: Tally,
    /// What compresses the rings' data, if they are to be (`-z`).
    pub(crate) squeeze: Option<Squeeze>,
    /// Samples among the records that were rewritten, where they are: others than came out of the rings.
    rewritten: Option<u64>,
    pub(crate) walker: Walker,
    /// Bytes in other files of the same recording.
    elsewhere: u64,
    /// Where the parts of hardware traces stand.
    pub(crate) traces: Vec<AuxIndexEntry>,
}

impl Sink {
    pub(crate) fn new(medium: Medium, tally: Tally, compress: bool) -> Self {
        Self {
            medium,
            tally,
            squeeze: compress.then(Squeeze::default),
            rewritten: None,
            walker: Walker::default(),
            elsewhere: 0,
            traces: Vec::new(),
        }
    }

    /// Bytes of the recording.
    pub(crate) fn bytes(&self) -> u64 {
        self.medium.bytes() + self.elsewhere
    }

    /// Takes over what went into a part of the same recording, which is closed.
    pub(crate) fn absorb(&mut self, part: Self) -> Result<(), WriteError> {
        self.elsewhere += part.medium.bytes();
        self.tally.add(part.tally);
        if let (Some(own), Some(theirs)) = (&mut self.squeeze, &part.squeeze) {
            own.add(theirs);
        }
        let nothing = FeatureSet::new(Endian::NATIVE);
        part.medium.finish(&nothing).map(drop)
    }

    /// Samples that were written.
    pub(crate) fn samples(&self) -> u64 {
        self.rewritten.unwrap_or(self.tally.samples)
    }

    /// Writes records that were made here.
    pub(crate) fn records(&mut self, records: &mut Records) -> Result<(), WriteError> {
        let bytes = self.note(records);
        self.medium.write_data(&bytes)
    }

    /// Takes note of records that were made here.
    pub(crate) fn note(&mut self, records: &mut Records) -> Vec<u8> {
        let bytes = records.take();
        let tally = &mut self.tally;
        tally.cut_maps += std::mem::take(&mut records.cut_maps);
        self.walker.walk((&bytes, &[]), |record| {
            tally.note(&record);
        });
        bytes
    }

    /// Writes a part of a hardware trace, in pieces, behind the record that tells of it.
    pub(crate) fn trace(&mut self, told: AuxTrace, pieces: &[&[u8]]) -> Result<(), WriteError> {
        let mut records = Records::new(0);
        let record = UserRecord::AuxTrace(told);
        records.user(record.kind(), |to| record.encode_body(to));
        let record = self.note(&mut records);
        self.traces.push(AuxIndexEntry {
            file_offset: self.medium.bytes(),
            size: record.len() as u64,
        });
        self.medium.write_followed(&record, pieces)
    }

    /// Writes a run of records that came out of rings and were rewritten.
    pub(crate) fn write(&mut self, run: &[u8]) -> Result<(), WriteError> {
        let samples = self.rewritten.get_or_insert_default();
        self.walker.walk((run, &[]), |record| {
            *samples += u64::from(record.kind == RecordKind::SAMPLE);
        });
        write_run(run, &mut self.squeeze, &mut self.medium)
    }
}

/// Writes a run of records, compressed where they are to be.
pub(crate) fn write_run(
    run: &[u8],
    squeeze: &mut Option<Squeeze>,
    medium: &mut Medium,
) -> Result<(), WriteError> {
    match squeeze {
        _ if run.is_empty() => Ok(()),
        Some(squeeze) => squeeze.write(run, medium),
        None => medium.write_data(run),
    }
}

/// The path is added where it is known.
pub(crate) fn write_error(error: WriteError) -> Error {
    let (kept, cause) = match error {
        WriteError::Data { kept, source, .. } => (kept, source),
        WriteError::Header(source) => (0, source),
        other => (0, std::io::Error::other(other)),
    };
    Error::Write {
        path: std::path::PathBuf::new(),
        kept,
        cause,
    }
}
