//! Byte strings built field by field.

/// A byte string under construction. Numbers are little-endian, unless [`Bytes::big_endian`] created the string.
#[derive(Debug, Clone, Default)]
pub struct Bytes {
    data: Vec<u8>,
    is_big_endian: bool,
}

impl Bytes {
    /// Creates an empty little-endian string.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty big-endian string.
    pub fn big_endian() -> Self {
        Self {
            data: Vec::new(),
            is_big_endian: true,
        }
    }

    /// Appends raw bytes.
    #[must_use]
    pub fn raw(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.data.extend_from_slice(bytes.as_ref());
        self
    }

    /// Appends a number of two bytes.
    #[must_use]
    pub fn u16(self, value: u16) -> Self {
        let bytes = if self.is_big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        };
        self.raw(bytes)
    }

    /// Appends a number of four bytes.
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        let bytes = if self.is_big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        };
        self.raw(bytes)
    }

    /// Appends a number of eight bytes.
    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        let bytes = if self.is_big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        };
        self.raw(bytes)
    }

    /// Appends text and a NUL, then more NULs until the length of the whole byte string is a multiple of `align`.
    #[must_use]
    pub fn text(mut self, text: &str, align: usize) -> Self {
        self.data.extend_from_slice(text.as_bytes());
        self.data.push(0);
        self.aligned(align)
    }

    /// Appends NULs until the length is a multiple of `align`.
    #[must_use]
    pub fn aligned(mut self, align: usize) -> Self {
        let length = self.data.len().next_multiple_of(align.max(1));
        self.data.resize(length, 0);
        self
    }

    /// Returns the length so far.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Returns the finished string.
    pub fn done(self) -> Vec<u8> {
        self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_byte_orders_and_padding() {
        let little = Bytes::new().u16(1).u32(2).text("ab", 8).done();
        assert_eq!(
            little,
            [1, 0, 2, 0, 0, 0, b'a', b'b', 0, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(Bytes::big_endian().u64(1).done(), [0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
