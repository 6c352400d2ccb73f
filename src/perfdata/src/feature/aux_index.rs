//! AUXTRACE: offsets of the AUX area traces in the file.
//!
//! perf writes a count of 8 bytes followed by entries of 16 bytes; simpleperf writes the entries alone.

use rperf_wire::{Cursor, DecodeError, Encoder, Endian};

/// The position of one AUXTRACE record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuxIndexEntry {
    /// Offset of the record from the start of the file.
    pub file_offset: u64,
    /// Size of the record without its trace, in bytes.
    pub size: u64,
}

/// Size of an entry in bytes.
const ENTRY: usize = 16;

/// Whether a count precedes the entries: then the size of the section is not a multiple of [`ENTRY`].
fn is_counted(section: &[u8]) -> bool {
    !section.len().is_multiple_of(ENTRY)
}

impl AuxIndexEntry {
    pub(crate) fn decode_list(at: &mut Cursor<'_>) -> Result<Vec<Self>, DecodeError> {
        let section = at.rest();
        let count = if is_counted(section) {
            at.u64("aux trace count")?
        } else {
            (section.len() / ENTRY) as u64
        };
        let words = at.u64s(count.saturating_mul(2), "aux trace index")?;
        let file_offsets = words.iter().step_by(2);
        let sizes = words.iter().skip(1).step_by(2);
        let entry = |(file_offset, size)| Self { file_offset, size };
        Ok(file_offsets.zip(sizes).map(entry).collect())
    }

    pub(crate) fn encode_list(entries: &[Self], to: &mut Encoder<'_>) {
        to.u64(entries.len() as u64);
        entries.iter().for_each(|entry| entry.encode(to));
    }

    fn encode(&self, to: &mut Encoder<'_>) {
        to.u64(self.file_offset);
        to.u64(self.size);
    }

    /// Returns the section for a file whose records start `distance` bytes later (wrapping if they start earlier), with a count
    /// if `section` has one. A section that cannot be decoded is returned unchanged.
    pub(crate) fn moved(section: &[u8], distance: u64, endian: Endian) -> Vec<u8> {
        let Ok(mut entries) = Self::decode_list(&mut Cursor::new(section, endian)) else {
            return section.to_vec();
        };
        for entry in &mut entries {
            entry.file_offset = entry.file_offset.wrapping_add(distance);
        }
        let mut bytes = Vec::new();
        let to = &mut Encoder::new(&mut bytes, endian);
        if is_counted(section) {
            Self::encode_list(&entries, to);
        } else {
            entries.iter().for_each(|entry| entry.encode(to));
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_lists_have_a_count_only_if_they_had_one() {
        for endian in [Endian::Little, Endian::Big] {
            for count in [Some(2), None] {
                let section = |first: u64, second: u64| {
                    let mut bytes = Vec::new();
                    let mut to = Encoder::new(&mut bytes, endian);
                    count.into_iter().for_each(|count| to.u64(count));
                    [first, 48, second, 64]
                        .iter()
                        .for_each(|word| to.u64(*word));
                    bytes
                };
                let before = section(1000, 2000);
                let entries = AuxIndexEntry::decode_list(&mut Cursor::new(&before, endian));
                let offsets =
                    entries.map(|entries| entries.iter().map(|entry| entry.file_offset).sum());
                assert_eq!(offsets, Ok(3000));
                let moved = AuxIndexEntry::moved(&before, 8_u64.wrapping_neg(), endian);
                assert_eq!(moved, section(992, 1992));
            }
        }
    }

    #[test]
    fn a_list_shorter_than_its_count_is_an_error_and_unchanged() {
        let mut bytes = 2_u64.to_le_bytes().to_vec();
        bytes.extend([7; ENTRY]);
        let decoded = AuxIndexEntry::decode_list(&mut Cursor::new(&bytes, Endian::Little));
        assert!(decoded.is_err());
        assert_eq!(AuxIndexEntry::moved(&bytes, 8, Endian::Little), bytes);
    }
}
