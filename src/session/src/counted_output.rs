//! Writes records to the output and collects statistics.

use rperf_perfdata::feature::AuxIndexEntry;
use rperf_perfdata::{FeatureSet, WriteError};
use rperf_ring::RecordWalker;
use rperf_wire::{AuxTrace, Endian, RecordKind, UserRecord};

use crate::Error;
use crate::compressor::Compressor;
use crate::output_stream::OutputStream;
use crate::record_stats::RecordStats;
use crate::synthesize::RecordBuffer;

/// The output with statistics.
pub(crate) struct CountedOutput {
    pub(crate) output_sink: OutputStream,
    pub(crate) stats: RecordStats,
    /// Compressor of ring data (`-z`).
    pub(crate) compressor: Option<Compressor>,
    /// Number of samples written, if a [`RewriteThread`](crate::rewriting::RewriteThread) changes the records from the rings
    /// before they are written: there may be fewer or more samples than in the rings. `None` otherwise or before the first write.
    rewritten: Option<u64>,
    /// Splits bytes into records, for the statistics.
    pub(crate) walker: RecordWalker,
    /// Bytes in other files of the same recording: those given to [`Self::absorb`].
    elsewhere: u64,
    /// Positions of the parts of hardware traces (AUXTRACE records with their data) in the output. Such a part is what is
    /// read from an AUX area at once.
    pub(crate) traces: Vec<AuxIndexEntry>,
}

impl CountedOutput {
    pub(crate) fn new(output_sink: OutputStream, stats: RecordStats, compress: bool) -> Self {
        Self {
            output_sink,
            stats,
            compressor: compress.then(Compressor::default),
            rewritten: None,
            walker: RecordWalker::default(),
            elsewhere: 0,
            traces: Vec::new(),
        }
    }

    /// Returns the total size of the recording.
    pub(crate) fn bytes(&self) -> u64 {
        self.output_sink.bytes() + self.elsewhere
    }

    /// Adds the statistics of another file of the recording (`--threads`), `part`, and closes that file. Its `traces` are not
    /// added: they are positions in that file. Nor is `rewritten`: rewriters are not used with `--threads`.
    pub(crate) fn absorb(&mut self, part: Self) -> Result<(), WriteError> {
        self.elsewhere += part.output_sink.bytes();
        self.stats.add(part.stats);
        if let (Some(own), Some(theirs)) = (&mut self.compressor, &part.compressor) {
            own.add(theirs);
        }
        let no_features = FeatureSet::new(Endian::NATIVE);
        part.output_sink.finish(&no_features).map(drop)
    }

    /// Returns the number of samples written.
    pub(crate) fn samples(&self) -> u64 {
        self.rewritten.unwrap_or(self.stats.samples)
    }

    /// Writes synthesized records.
    pub(crate) fn write_records(&mut self, records: &mut RecordBuffer) -> Result<(), WriteError> {
        let bytes = self.take_counted(records);
        self.output_sink.write_data(&bytes)
    }

    /// Adds synthesized records to the statistics, and returns their bytes.
    pub(crate) fn take_counted(&mut self, records: &mut RecordBuffer) -> Vec<u8> {
        let bytes = records.take();
        let stats = &mut self.stats;
        stats.truncated_maps += std::mem::take(&mut records.truncated_maps);
        // The walker takes two pieces, because data of a ring may wrap. These bytes are in one piece.
        self.walker.walk([&bytes, &[]], |record| {
            stats.note(&record);
        });
        bytes
    }

    /// Writes the header record of a part of a hardware trace, and then the part, which consists of `pieces`.
    pub(crate) fn write_trace(
        &mut self,
        header: AuxTrace,
        pieces: &[&[u8]],
    ) -> Result<(), WriteError> {
        // 0: only records of the kernel's types have a trailer (the `sample_id` fields), AUXTRACE has none.
        let mut records = RecordBuffer::new(0);
        let record = UserRecord::AuxTrace(header);
        records.user(record.kind(), |to| record.encode_body(to));
        let record = self.take_counted(&mut records);
        self.traces.push(AuxIndexEntry {
            file_offset: self.output_sink.bytes(),
            size: record.len() as u64,
        });
        self.output_sink.write_with_payload(&record, pieces)
    }

    /// Writes a run of rewritten records. `stats` already counts the original records of the rings, so only samples are
    /// counted here.
    pub(crate) fn write(&mut self, run: &[u8]) -> Result<(), WriteError> {
        let samples = self.rewritten.get_or_insert_default();
        self.walker.walk([run, &[]], |record| {
            *samples += u64::from(record.kind == RecordKind::SAMPLE);
        });
        write_run(run, &mut self.compressor, &mut self.output_sink)
    }
}

/// Writes a run of records, compressed if requested.
pub(crate) fn write_run(
    run: &[u8],
    compressor: &mut Option<Compressor>,
    output_sink: &mut OutputStream,
) -> Result<(), WriteError> {
    match compressor {
        _ if run.is_empty() => Ok(()),
        Some(compressor) => compressor.write(run, output_sink),
        None => output_sink.write_data(run),
    }
}

/// Converts an error; the path is added by the caller.
pub(crate) fn write_error(error: WriteError) -> Error {
    // `kept`: the bytes of complete records in the file. Only errors of kind `Data` contain it; it is 0 for the others.
    let (kept, cause) = match error {
        WriteError::Data { kept, source, .. } => (kept, source),
        WriteError::Header(source) | WriteError::End(source) => (0, source),
        other => (0, std::io::Error::other(other)),
    };
    Error::Write {
        path: std::path::PathBuf::new(),
        kept,
        cause,
    }
}
