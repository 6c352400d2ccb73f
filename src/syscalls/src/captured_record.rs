//! The record of captured memory, which a program in the kernel writes, in the byte order of this machine:
//!
//! ```text
//! 0  u32  number of the call
//! 4  u32  1 if the call returned, 0 if it began
//! 8  segments, each of a multiple of 8 bytes:
//!    0  u8   index of the argument
//!    1  u8   state, 1 to 4: what the segment is (see the constants below)
//!    2  u16  index of the item: an element of a list, or a part of a message (see the constants below)
//!    4  u32  bytes of data
//!    8  u64  bytes that the buffer has in memory; for a text, the maximum number of bytes to copy
//!    16 data
//! ```

use crate::CapturedBytes;

/// The size in bytes of a record without segments. (The header of [`HEADER_ITEM`] is that of a message.)
pub const HEADER_SIZE: usize = 8;
/// The size in bytes of a segment without data.
pub const SEGMENT_SIZE: usize = 16;
/// State of a segment: bytes. The other states follow.
pub const STATE_BYTES: u8 = 1;
/// State: a text with its NUL.
pub const STATE_TEXT: u8 = 2;
/// State: memory that could not be read.
pub const STATE_UNREADABLE: u8 = 3;
/// State: no data, but there are more items.
pub const STATE_MORE: u8 = 4;
/// The index of the item that is a message's `struct user_msghdr`. Smaller indexes are those of its buffers.
pub const HEADER_ITEM: u16 = 0x3fd;
/// The index of the item that is the address in a message.
pub const ADDRESS_ITEM: u16 = 0x3fe;
/// The index of the item without data that says that a message has more buffers than were captured.
pub const MORE_ITEM: u16 = 0x3ff;
/// The number of item indexes for each message. If a call has several messages, those of message n, from 0, begin at n times
/// this number.
pub const MESSAGE_ITEMS: u16 = 0x400;
/// The maximum number of messages of one call that are captured.
pub const MAX_MESSAGES: u16 = 4;

/// A decoded record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedRecord<'a> {
    /// The number of the call.
    pub number: u32,
    /// Whether it was written when the call returned.
    pub is_return: bool,
    segments: &'a [u8],
}

impl<'a> CapturedRecord<'a> {
    /// Decodes a record; `None` if it is too short.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk::<4>()?;
        let (is_return, segments) = rest.split_first_chunk::<4>()?;
        Some(Self {
            number: u32::from_ne_bytes(*number),
            is_return: u32::from_ne_bytes(*is_return) == 1,
            segments,
        })
    }

    /// Returns the memory of each segment. A damaged segment and those after it are skipped.
    pub fn memory(&self) -> impl Iterator<Item = CapturedBytes<'a>> {
        let mut rest = self.segments;
        std::iter::from_fn(move || {
            let (segment, after) = split(rest)?;
            rest = after;
            Some(segment)
        })
    }
}

fn split(bytes: &[u8]) -> Option<(CapturedBytes<'_>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<SEGMENT_SIZE>()?;
    let ([argument, state, item_and_length @ ..], memory_size) = head.split_first_chunk::<8>()?;
    let (item, length) = item_and_length.split_first_chunk::<2>()?;
    let length = u32::from_ne_bytes(*length.first_chunk()?);
    let length = usize::try_from(length).ok()?;
    let data = rest.get(..length)?;
    let memory_size = u64::from_ne_bytes(*memory_size.first_chunk()?);
    let memory_size = usize::try_from(memory_size).unwrap_or(usize::MAX);
    let (bytes, is_truncated) = match *state {
        STATE_BYTES => (data, memory_size > length),
        // For a text, `memory_size` is the maximum number of bytes to copy: the text's limit, one more byte, and the NUL, the
        // last byte of `data`. If all of them are used, the text exceeds the limit: the byte after the limit is dropped, too.
        STATE_TEXT if length >= memory_size => (data.get(..length.saturating_sub(2))?, true),
        STATE_TEXT => (data.get(..length.saturating_sub(1))?, false),
        STATE_UNREADABLE | STATE_MORE => (data, false),
        // Damage. (Padding after the last segment is shorter than a segment's head, and has ended the decoding above.)
        _ => return None,
    };
    let segment = CapturedBytes {
        argument: usize::from(*argument),
        item: usize::from(u16::from_ne_bytes(*item)),
        bytes,
        is_truncated,
        is_unreadable: *state == STATE_UNREADABLE,
        marks_more_items: *state == STATE_MORE,
        // Late memory is read from outside the process; the program in the kernel runs in the calling thread.
        is_late: false,
    };
    Some((
        segment,
        rest.get(length.next_multiple_of(8)..).unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an encoded segment of item 7, padded to a multiple of 8 bytes.
    fn segment(argument: u8, state: u8, memory_size: u64, data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![argument, state, 7, 0];
        if cfg!(target_endian = "big") {
            bytes.swap(2, 3);
        }
        bytes.extend((data.len() as u32).to_ne_bytes());
        bytes.extend(memory_size.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn texts_bytes_and_unreadable_memory_are_decoded() {
        let mut bytes = [257_u32.to_ne_bytes(), 1_u32.to_ne_bytes()].concat();
        bytes.extend(segment(1, STATE_TEXT, 34, b"/etc/x\0"));
        bytes.extend(segment(2, STATE_TEXT, 5, b"abcd\0"));
        bytes.extend(segment(3, STATE_BYTES, 9, b"abc"));
        bytes.extend(segment(4, STATE_UNREADABLE, 0, b""));
        bytes.extend([0; 4]);
        let record = CapturedRecord::decode(&bytes).unwrap();
        assert_eq!((record.number, record.is_return), (257, true));
        let memory: Vec<CapturedBytes<'_>> = record.memory().collect();
        let contents: Vec<(&[u8], bool)> = memory
            .iter()
            .map(|one| (one.bytes, one.is_truncated))
            .collect();
        assert_eq!(
            contents,
            [
                (&b"/etc/x"[..], false),
                (b"abc", true),
                (b"abc", true),
                (b"", false)
            ]
        );
        assert!(memory[3].is_unreadable && memory.iter().all(|one| one.item == 7));
    }

    #[test]
    fn damaged_records_do_not_panic() {
        let mut bytes = [0_u32.to_ne_bytes(), 0_u32.to_ne_bytes()].concat();
        bytes.extend(segment(0, STATE_BYTES, 40, &[9; 20]));
        for end in 0..bytes.len() {
            for value in [0, 1, 2, 3, 255] {
                let mut damaged = bytes[..end].to_vec();
                if let Some(last) = damaged.last_mut() {
                    *last = value;
                }
                if let Some(record) = CapturedRecord::decode(&damaged) {
                    // At most 47 bytes have room for two segments.
                    assert!(record.memory().count() <= 2);
                }
            }
        }
    }
}
