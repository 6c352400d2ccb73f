//! The interface of a forward ring to its reader.

/// Memory of a ring that a writer fills forward and a reader drains.
///
/// Positions count bytes since the ring's creation and never wrap. The writer never changes bytes
/// between tail and head, so they can be borrowed until [`Memory::release`] moves the tail. For this
/// reason `release` takes `&mut self`.
pub trait Memory {
    /// Position at which the writer continues. The bytes below it are visible to the reader (Acquire).
    fn head(&self) -> u64;

    /// Position up to which the reader has released bytes.
    fn tail(&self) -> u64;

    /// The bytes from `from` (inclusive) to `to` (exclusive), in two pieces if they wrap around the end of the memory.
    /// Both pieces are empty unless `tail <= from <= to <= head`.
    fn bytes(&self, from: u64, to: u64) -> (&[u8], &[u8]);

    /// Gives the bytes below `tail` back to the writer (Release).
    fn release(&mut self, tail: u64);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Memory;

    /// A ring over a `Vec`, for the tests of its readers; the test is its writer. Its `bytes` does not check the range.
    #[derive(Debug)]
    pub(crate) struct FakeRing {
        data: Vec<u8>,
        head: u64,
        tail: u64,
    }

    impl FakeRing {
        pub(crate) fn new(size: usize) -> Self {
            Self {
                data: vec![0; size],
                head: 0,
                tail: 0,
            }
        }

        /// Appends all of `bytes`; returns `false`, and appends nothing, if they do not fit.
        pub(crate) fn write(&mut self, bytes: &[u8]) -> bool {
            let size = self.data.len() as u64;
            if self.head - self.tail + bytes.len() as u64 > size {
                return false;
            }
            for byte in bytes {
                self.data[usize::try_from(self.head % size).unwrap()] = *byte;
                self.head += 1;
            }
            true
        }
    }

    impl Memory for FakeRing {
        fn head(&self) -> u64 {
            self.head
        }

        fn tail(&self) -> u64 {
            self.tail
        }

        fn bytes(&self, from: u64, to: u64) -> (&[u8], &[u8]) {
            let size = self.data.len() as u64;
            let start = usize::try_from(from % size).unwrap();
            let length = usize::try_from(to - from).unwrap();
            let first_length = length.min(self.data.len() - start);
            (
                &self.data[start..start + first_length],
                &self.data[..length - first_length],
            )
        }

        fn release(&mut self, tail: u64) {
            self.tail = tail;
        }
    }
}
