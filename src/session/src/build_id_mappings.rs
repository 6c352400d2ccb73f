//! Mappings that the kernel marks as having a build-id although they have device and inode.
//!
//! The kernel writes an MMAP2 record of a mapping for each event that observes the task, and uses one
//! header for all of them. For an event that requested build-ids (`--buildid-mmap`), it sets the flag
//! `PERF_RECORD_MISC_MMAP_BUILD_ID` in this header, and does not clear it for the following events. If
//! these did not request build-ids, their records have the flag, but device and inode. Linux perf fails
//! on such records, so the flag is cleared.

use std::borrow::Cow;

use rperf_wire::{Endian, Misc, MmapId, RawRecord, Record, RecordKind};

/// Offset of `misc` in `struct perf_event_header`.
const MISC: usize = 4;

/// Whether the record has the flag but no build-id. [`Record::decode`] does not rely on the flag alone: it examines the bytes.
pub(crate) fn is_mismarked(record: &RawRecord<'_>) -> bool {
    if record.kind != RecordKind::MMAP2 || !record.misc.contains(Misc::MMAP_BUILD_ID) {
        return false;
    }
    let decoded = Record::decode(record, Endian::NATIVE);
    matches!(decoded, Ok(Record::Mmap2(mapping)) if matches!(mapping.id, MmapId::Inode { .. }))
}

/// Returns the consecutive records `run`, with the flag cleared in those that have no build-id.
pub(crate) fn corrected(run: &[u8]) -> Cow<'_, [u8]> {
    let mut bytes = Cow::Borrowed(run);
    let mut at = 0;
    for (record, encoded) in RawRecord::all(run, Endian::NATIVE) {
        let flag = Misc::MMAP_BUILD_ID.0;
        if is_mismarked(&record)
            && let Some(misc) = bytes.to_mut().get_mut(at + MISC..at + MISC + 2)
        {
            misc.copy_from_slice(&(record.misc.0 & !flag).to_ne_bytes());
        }
        at += encoded.len();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{Mmap, Mmap2, RecordHeader};

    fn mapping(id: MmapId, misc: Misc) -> Vec<u8> {
        let mmap = Mmap {
            pid: 1,
            tid: 1,
            start: 0x1000,
            len: 0x1000,
            pgoff: 0,
            filename: b"/usr/bin/true",
        };
        let mapping = Mmap2 {
            mmap,
            id,
            prot: 5,
            flags: 2,
        };
        let mut bytes = Vec::new();
        let record = Record::Mmap2(mapping);
        assert!(RecordHeader::encode_record(
            RecordKind::MMAP2,
            misc,
            &mut bytes,
            Endian::NATIVE,
            |body| record.encode_body(body)
        ));
        bytes
    }

    #[test]
    fn mmap_build_id_is_cleared_only_without_a_build_id() {
        let device = MmapId::Inode {
            major: 254,
            minor: 0,
            inode: 7,
            generation: 0,
        };
        let identified = MmapId::BuildId {
            size: 20,
            bytes: [7; 20],
        };
        let (user, marked) = (Misc(2), Misc(2 | Misc::MMAP_BUILD_ID.0));
        let run = [
            mapping(identified, marked),
            mapping(device, marked),
            mapping(device, user),
        ];
        let expected = [
            mapping(identified, marked),
            mapping(device, user),
            mapping(device, user),
        ];
        assert_eq!(*corrected(&run.concat()), expected.concat());
        assert!(matches!(corrected(&expected.concat()), Cow::Borrowed(_)));
    }
}
