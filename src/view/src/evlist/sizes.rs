//! The `size` field of each attr.

use rperf_perfdata::PerfData;
use rperf_wire::{Endian, RecordKind};

/// Bytes from an attr's start to its `size`.
const SIZE_OFFSET: usize = 4;

/// `perf_event_attr::size` of each event as stored in the file; 0 if it is missing.
pub(super) fn attr_sizes(data: &PerfData<'_>, file: &[u8]) -> Vec<u32> {
    let header = data.header();
    let size = |attr: &[u8], endian: Endian| endian.u32_at(attr, SIZE_OFFSET).unwrap_or_default();
    if header.is_pipe() {
        let records = data.records().map_while(Result::ok);
        let attrs = records.filter(|record| record.raw.kind == RecordKind::HEADER_ATTR);
        return attrs
            .map(|record| size(record.raw.body, header.endian))
            .collect();
    }
    // The size of an entry (`perf_file_attr`): an attr, then the offset and size of its ids. It is not the `size` of the attr.
    let attr_size = usize::try_from(header.attr_size).unwrap_or(usize::MAX);
    let attrs = header.attrs.of(file).unwrap_or_default();
    attrs
        .chunks_exact(attr_size.max(1))
        .map(|attr| size(attr, header.endian))
        .collect()
}
