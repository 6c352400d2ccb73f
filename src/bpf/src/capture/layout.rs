//! Layouts of the values of two BPF maps (plans and buffers), and of the records. A plan lists the memory to copy when one system
//! call begins or returns. A buffer, one for each CPU, has the registers of a call and the record so far. Offsets and sizes are
//! in bytes.

use rperf_syscalls::captured_record;

/// System calls with a number below this one can be captured.
pub(super) const CALL_LIMIT: i32 = 512;
/// The maximum number of entries of a plan.
pub(super) const MAX_ENTRIES: i16 = rperf_syscalls::MAX_CAPTURES as i16;

/// One entry of a plan: the memory to copy for one argument.
pub(super) mod entry {
    /// The kind of memory (`SOURCE_*`); 0 after the last entry.
    pub(in super::super) const SOURCE: i16 = 0;
    /// The index of the argument that is the address of the memory.
    pub(in super::super) const ARGUMENT: i16 = 1;
    /// The kind of the length (`LENGTH_*`).
    pub(in super::super) const LENGTH: i16 = 2;
    /// The index of the argument that is the length, or points to it.
    pub(in super::super) const LENGTH_ARGUMENT: i16 = 3;
    /// The number of bytes (`LENGTH_FIXED`), or the factor of the argument or result.
    pub(in super::super) const UNIT: i16 = 4;
    /// The maximum number of bytes to copy.
    pub(in super::super) const LIMIT: i16 = 8;
    /// The size of an entry, whose last four bytes are unused.
    pub(in super::super) const SIZE: i16 = 16;
}

// Kinds of memory, as in `CaptureSource`.
pub(super) const SOURCE_BYTES: i32 = 1;
pub(super) const SOURCE_TEXT: i32 = 2;
pub(super) const SOURCE_TEXTS: i32 = 3;
pub(super) const SOURCE_VECTORS: i32 = 4;
pub(super) const SOURCE_MESSAGE: i32 = 5;
pub(super) const SOURCE_MESSAGES: i32 = 6;

// Kinds of lengths, as in `CaptureLength`.
pub(super) const LENGTH_FIXED: i32 = 0;
pub(super) const LENGTH_OF_ARGUMENT: i32 = 1;
pub(super) const LENGTH_OF_RESULT: i32 = 2;
pub(super) const LENGTH_POINTED: i32 = 3;

/// The buffer of a CPU.
pub(super) mod buffer {
    /// The first bytes of `struct pt_regs`: at most 288 (arm64).
    pub(in super::super) const REGISTERS: i16 = 0;
    /// Room for eight arguments of 64 bits, so that an index of three bits stays inside.
    pub(in super::super) const ARGUMENTS: i16 = 288;
    /// The result of the call; the largest signed number while there is none, so that it limits no length. While a message of
    /// a list is read, the number of bytes of this message. While the buffers of an iovec list are copied, the number of bytes
    /// left: it is reduced by the size of each buffer.
    pub(in super::super) const RESULT: i16 = 352;
    /// The size of the record so far.
    pub(in super::super) const RECORD_SIZE: i16 = 360;
    /// Not 0 if memory could not be read.
    pub(in super::super) const FAILED: i16 = 368;
    pub(in super::super) const RECORD: i16 = 376;
    /// No segment begins beyond this offset in the record, except one with the state `IS_MORE`.
    pub(in super::super) const SEGMENT_START_LIMIT: i32 = 16384;
    /// The maximum size of the data of a segment. The longest texts, such as paths, need 4098 (see `super::encode`).
    pub(in super::super) const MAX_SEGMENT_DATA: i32 = 4200;
    /// The maximum size of a record: up to `SEGMENT_START_LIMIT`, then a segment with its padding, and a segment `IS_MORE`, which
    /// has no data.
    pub(in super::super) const MAX_RECORD_SIZE: i32 =
        SEGMENT_START_LIMIT + 2 * super::record::DATA as i32 + MAX_SEGMENT_DATA + 7;
    /// The size of the buffer. The last 17 bytes are unused: 1 byte pads the size to a multiple of 8, and 16 are spare.
    pub(in super::super) const BUFFER_SIZE: i32 = RECORD as i32 + MAX_RECORD_SIZE + 17;
}

/// The record, as [`rperf_syscalls::CapturedRecord`] reads it: a header, then segments.
pub(super) mod record {
    use super::captured_record as wire;

    // The header: offsets in the record.
    /// The number of the call.
    pub(in super::super) const NUMBER: i16 = 0;
    pub(in super::super) const IS_RETURN: i16 = 4;
    /// The size of the header.
    pub(in super::super) const HEADER: i16 = wire::HEADER_SIZE as i16;

    // A segment: offsets from its start.
    pub(in super::super) const ARGUMENT: i16 = 0;
    pub(in super::super) const STATE: i16 = 1;
    /// The index of the item, for lists and messages.
    pub(in super::super) const ITEM: i16 = 2;
    /// The size of the data.
    pub(in super::super) const LENGTH: i16 = 4;
    /// The size of the memory; for a text, the maximum size that is copied.
    pub(in super::super) const WANTED: i16 = 8;
    pub(in super::super) const DATA: i16 = wire::SEGMENT_SIZE as i16;

    // States of a segment.
    pub(in super::super) const IS_BYTES: i32 = wire::STATE_BYTES as i32;
    pub(in super::super) const IS_TEXT: i32 = wire::STATE_TEXT as i32;
    pub(in super::super) const IS_UNREADABLE: i32 = wire::STATE_UNREADABLE as i32;
    /// A segment without data: a list or message has more items than the record.
    pub(in super::super) const IS_MORE: i32 = wire::STATE_MORE as i32;
}
