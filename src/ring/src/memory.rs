//! What a forward ring is, to those who drain it.

/// Memory that one side fills forward and the other drains.
///
/// Positions count bytes since the ring was made and never wrap. The writer never touches bytes
/// between tail and head, so they may be borrowed until [`Memory::release`] moves the tail, which
/// takes `&mut self` for that reason.
pub trait Memory {
    /// Where the writer will write next. What was written below it is visible (Acquire).
    fn head(&self) -> u64;

    /// Up to where the reader has given bytes back.
    fn tail(&self) -> u64;

    /// The bytes between two positions, in two pieces where they run over the end of the memory.
    /// Both are empty unless `tail <= from <= to <= head`.
    fn bytes(&self, from: u64, to: u64) -> (&[u8], &[u8]);

    /// Gives the bytes below `tail` back to the writer (Release).
    fn release(&mut self, tail: u64);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Memory;

    /// A ring over a `Vec`; the test is its writer.
    #[derive(Debug)]
    pub(crate) struct Fake {
        data: Vec<u8>,
        head: u64,
        tail: u64,
    }

    impl Fake {
        pub(crate) fn new(size: usize) -> Self {
            Self {
                data: vec![0; size],
                head: 0,
                tail: 0,
            }
        }

        /// Appends, as the kernel does, all or nothing.
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

    impl Memory for Fake {
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
            let first = length.min(self.data.len() - start);
            (
                &self.data[start..start + first],
                &self.data[..length - first],
            )
        }

        fn release(&mut self, tail: u64) {
            self.tail = tail;
        }
    }
}
