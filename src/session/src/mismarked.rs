//! Mappings that the kernel marks as having a build-id though they have a device and an inode.
//!
//! It writes one record for all recorders that follow a task, and once one of them asked for build-ids (`--buildid-mmap`) the
//! mark stays for the others, which get no build-id. Linux perf stops at such records, so the mark is taken away.

use std::borrow::Cow;

use rperf_wire::{Endian, Misc, MmapId, RawRecord, Record, RecordKind};

/// Where `struct perf_event_header` has `misc`.
const MISC: usize = 4;

/// Whether the record is marked, and has none.
pub(crate) fn is_mismarked(record: &RawRecord<'_>) -> bool {
    if record.kind != RecordKind::MMAP2 || !record.misc.contains(Misc::MMAP_BUILD_ID) {
        return false;
    }
    let decoded = Record::decode(record, Endian::NATIVE);
    matches!(decoded, Ok(Record::Mmap2(mapping)) if matches!(mapping.id, MmapId::Inode { .. }))
}

/// The same whole records without wrong marks.
pub(crate) fn mended(run: &[u8]) -> Cow<'_, [u8]> {
    let mut bytes = Cow::Borrowed(run);
    let mut at = 0;
    for (record, whole) in RawRecord::all(run, Endian::NATIVE) {
        let mark = Misc::MMAP_BUILD_ID.0;
        if is_mismarked(&record)
            && let Some(misc) = bytes.to_mut().get_mut(at + MISC..at + MISC + 2)
        {
            misc.copy_from_slice(&(record.misc.0 & !mark).to_ne_bytes());
        }
        at += whole.len();
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
        let to = (&mut bytes, Endian::NATIVE);
        let record = Record::Mmap2(mapping);
        assert!(RecordHeader::encode_record(
            RecordKind::MMAP2,
            misc,
            to,
            |body| record.encode_body(body)
        ));
        bytes
    }

    #[test]
    fn the_mark_stays_where_there_is_a_build_id() {
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
        assert_eq!(*mended(&run.concat()), expected.concat());
        assert!(matches!(mended(&expected.concat()), Cow::Borrowed(_)));
    }
}
