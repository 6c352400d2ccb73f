//! AUXTRACE: where the AUX area traces stand in the file.

use rperf_wire::{Cursor, DecodeError, Encoder};

/// One AUXTRACE record with its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuxIndexEntry {
    /// Offset of the record from the file's start.
    pub file_offset: u64,
    /// Bytes of record and trace.
    pub size: u64,
}

impl AuxIndexEntry {
    pub(crate) fn decode_list(at: &mut Cursor<'_>) -> Result<Vec<Self>, DecodeError> {
        let count = at.u64("aux trace count")?;
        let words = at.u64s(count.saturating_mul(2), "aux trace index")?;
        let firsts = words.iter().step_by(2);
        let seconds = words.iter().skip(1).step_by(2);
        let entry = |(file_offset, size)| Self { file_offset, size };
        Ok(firsts.zip(seconds).map(entry).collect())
    }

    pub(crate) fn encode_list(entries: &[Self], to: &mut Encoder<'_>) {
        to.u64(entries.len() as u64);
        for entry in entries {
            to.u64(entry.file_offset);
            to.u64(entry.size);
        }
    }
}
