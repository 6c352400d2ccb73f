//! Draining a ring.

use crate::Memory;

/// The content of a ring at one moment. Dropping it releases the space to the writer, even if the consumer panics.
#[derive(Debug)]
pub struct Chunk<'a, M: Memory> {
    memory: &'a mut M,
    tail: u64,
    head: u64,
}

/// Borrows the content of `memory`; `None` if it is empty.
pub fn drain<M: Memory>(memory: &mut M) -> Option<Chunk<'_, M>> {
    let (tail, head) = (memory.tail(), memory.head());
    // If the memory is empty, the new chunk is dropped at once, which releases no bytes.
    (tail < head).then_some(Chunk { memory, tail, head })
}

impl<M: Memory> Chunk<'_, M> {
    /// The bytes in order. The second piece is empty unless the content wraps around the end of the memory, where a record may
    /// straddle the two pieces.
    #[must_use]
    pub fn pieces(&self) -> [&[u8]; 2] {
        self.memory.bytes(self.tail, self.head).into()
    }

    /// Position of the first byte: the number of bytes written before it since the ring's creation.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.tail
    }

    /// Number of bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.head - self.tail
    }
}

impl<M: Memory> Drop for Chunk<'_, M> {
    fn drop(&mut self) {
        self.memory.release(self.head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::FakeRing;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn an_empty_ring_yields_nothing() {
        assert!(drain(&mut FakeRing::new(16)).is_none());
    }

    #[test]
    fn content_without_a_wrap_is_one_piece_and_is_released() {
        let mut ring = FakeRing::new(16);
        assert!(ring.write(b"abcdefgh"));
        let chunk = drain(&mut ring).unwrap();
        assert_eq!(
            (chunk.pieces(), chunk.size()),
            ([&b"abcdefgh"[..], &b""[..]], 8)
        );
        assert_eq!(chunk.start(), 0);
        drop(chunk);
        assert_eq!(ring.tail(), 8);
        assert!(drain(&mut ring).is_none());
    }

    #[test]
    fn a_wrapped_chunk_has_two_pieces() {
        let mut ring = FakeRing::new(16);
        assert!(ring.write(b"12345678"));
        drop(drain(&mut ring));
        assert!(ring.write(b"abcdefghijkl"));
        let chunk = drain(&mut ring).unwrap();
        assert_eq!(chunk.pieces(), [&b"abcdefgh"[..], &b"ijkl"[..]]);
    }

    #[test]
    fn a_full_ring_is_drained_completely() {
        let mut ring = FakeRing::new(16);
        assert!(ring.write(b"0123456789abcdef"));
        assert!(!ring.write(b"x"), "full until drained");
        let chunk = drain(&mut ring).unwrap();
        assert_eq!(chunk.pieces(), [&b"0123456789abcdef"[..], &b""[..]]);
        drop(chunk);
        assert!(ring.write(b"x"));
    }

    #[test]
    fn an_exact_fit_that_ends_where_the_memory_ends_has_no_second_piece() {
        let mut ring = FakeRing::new(16);
        assert!(ring.write(b"12345678"));
        drop(drain(&mut ring));
        assert!(ring.write(b"abcdefgh"));
        assert_eq!(
            drain(&mut ring).unwrap().pieces(),
            [&b"abcdefgh"[..], &b""[..]]
        );
    }

    #[test]
    fn a_consumer_that_panics_leaves_the_ring_empty() {
        let mut ring = FakeRing::new(16);
        assert!(ring.write(b"abcd"));
        let result = catch_unwind(AssertUnwindSafe(|| {
            let chunk = drain(&mut ring).unwrap();
            // Panics: the size is 4.
            assert_eq!(chunk.size(), 0, "the consumer's bug");
        }));
        assert!(result.is_err());
        assert_eq!((ring.tail(), ring.head()), (4, 4));
    }
}
