//! Reading and writing numbers in either byte order.

use byteorder::{BigEndian, ByteOrder, LittleEndian};

use crate::DecodeError;

/// Byte order of a file or a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Least significant byte first (x86, arm64, riscv).
    Little,
    /// Most significant byte first (s390, older powerpc).
    Big,
}

impl Endian {
    /// The byte order of the machine that runs this code.
    pub const NATIVE: Self = if cfg!(target_endian = "big") {
        Self::Big
    } else {
        Self::Little
    };

    /// Reads two bytes.
    #[inline]
    #[must_use]
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => LittleEndian::read_u16(&bytes),
            Self::Big => BigEndian::read_u16(&bytes),
        }
    }

    /// Reads four bytes.
    #[inline]
    #[must_use]
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => LittleEndian::read_u32(&bytes),
            Self::Big => BigEndian::read_u32(&bytes),
        }
    }

    /// Reads eight bytes.
    #[inline]
    #[must_use]
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => LittleEndian::read_u64(&bytes),
            Self::Big => BigEndian::read_u64(&bytes),
        }
    }

    /// The number in the eight bytes at `offset`; `None` if the slice is too short.
    #[inline]
    #[must_use]
    pub fn u64_at(self, bytes: &[u8], offset: usize) -> Option<u64> {
        let field = bytes.get(offset..)?.first_chunk()?;
        Some(self.u64(*field))
    }

    /// The number in the four bytes at `offset`; `None` if the slice is too short.
    #[inline]
    #[must_use]
    pub fn u32_at(self, bytes: &[u8], offset: usize) -> Option<u32> {
        let field = bytes.get(offset..)?.first_chunk()?;
        Some(self.u32(*field))
    }
}

/// The bytes before the first NUL, or all of them.
#[must_use]
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or(bytes)
}

/// Reads consecutive fields and tracks the offset for error messages.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
    endian: Endian,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the start of `bytes`.
    #[must_use]
    #[inline]
    pub fn new(bytes: &'a [u8], endian: Endian) -> Self {
        Self {
            bytes,
            offset: 0,
            endian,
        }
    }

    /// The number of bytes read so far.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes not read yet.
    #[must_use]
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.offset..).unwrap_or_default()
    }

    /// Takes `need` bytes for `field`.
    ///
    /// # Errors
    /// [`DecodeError::Short`] when fewer are left.
    #[inline]
    pub fn take(&mut self, need: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let rest = self.rest();
        let taken = rest.get(..need).ok_or(DecodeError::Short {
            field,
            offset: self.offset,
            need,
            have: rest.len(),
        })?;
        self.offset += need;
        Ok(taken)
    }

    /// Takes an array of `N` bytes for `field`.
    ///
    /// # Errors
    /// [`DecodeError::Short`] when fewer are left.
    #[inline]
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let rest = self.rest();
        let taken = rest.first_chunk::<N>().ok_or(DecodeError::Short {
            field,
            offset: self.offset,
            need: N,
            have: rest.len(),
        })?;
        self.offset += N;
        Ok(*taken)
    }

    /// Takes one byte for `field`.
    ///
    /// # Errors
    /// [`DecodeError::Short`] when none is left.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    /// Takes a 16-bit number for `field`.
    ///
    /// # Errors
    /// [`DecodeError::Short`] when fewer than two bytes are left.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(|bytes| self.endian.u16(bytes))
    }

    /// Takes a 32-bit number for `field`.
    ///
    /// # Errors
    /// [`DecodeError::Short`] when fewer than four bytes are left.
    #[inline]
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(|bytes| self.endian.u32(bytes))
    }

    /// Takes a 64-bit number for `field`.
    ///
    /// # Errors
    /// [`DecodeError::Short`] when fewer than eight bytes are left.
    #[inline]
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(|bytes| self.endian.u64(bytes))
    }

    /// Takes `count` 64-bit numbers for `field` without copying them.
    ///
    /// # Errors
    /// [`DecodeError::TooLarge`] when fewer than `count` numbers are left.
    #[inline]
    pub fn u64s(&mut self, count: u64, field: &'static str) -> Result<U64s<'a>, DecodeError> {
        let too_large = DecodeError::TooLarge {
            field,
            offset: self.offset,
            value: count,
        };
        let size = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(8));
        let size = size
            .filter(|&size| size <= self.rest().len())
            .ok_or(too_large)?;
        Ok(U64s {
            bytes: self.take(size, field)?,
            endian: self.endian,
        })
    }
}

/// A run of 64-bit numbers inside a record, not aligned and in the file's byte order.
#[derive(Debug, Clone, Copy)]
pub struct U64s<'a> {
    bytes: &'a [u8],
    endian: Endian,
}

impl<'a> U64s<'a> {
    /// Wraps `bytes`; a trailing partial number is ignored.
    #[must_use]
    pub fn new(bytes: &'a [u8], endian: Endian) -> Self {
        Self { bytes, endian }
    }

    /// Byte order of the numbers.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// Whether the run is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number at `index`; `None` if there are fewer.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<u64> {
        self.endian.u64_at(self.bytes, index.checked_mul(8)?)
    }

    /// The numbers in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + 'a {
        let endian = self.endian;
        self.bytes
            .as_chunks()
            .0
            .iter()
            .map(move |bytes| endian.u64(*bytes))
    }

    /// The undecoded bytes, including a trailing partial number. Within one file, which has one byte order, equal bytes mean
    /// equal numbers.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl PartialEq for U64s<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for U64s<'_> {}

/// Appends numbers in one byte order to a buffer.
#[derive(Debug)]
pub struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    endian: Endian,
}

impl<'a> Encoder<'a> {
    /// Creates an encoder that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>, endian: Endian) -> Self {
        Self { out, endian }
    }

    /// Byte order of the appended numbers.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Length of the buffer, including earlier content.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether the buffer is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Appends bytes unchanged.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends `count` zero bytes.
    pub fn zeros(&mut self, count: usize) {
        self.out.resize(self.out.len() + count, 0);
    }

    /// Appends a 16-bit number.
    pub fn u16(&mut self, value: u16) {
        match self.endian {
            Endian::Little => self.out.extend_from_slice(&value.to_le_bytes()),
            Endian::Big => self.out.extend_from_slice(&value.to_be_bytes()),
        }
    }

    /// Appends a 32-bit number.
    pub fn u32(&mut self, value: u32) {
        match self.endian {
            Endian::Little => self.out.extend_from_slice(&value.to_le_bytes()),
            Endian::Big => self.out.extend_from_slice(&value.to_be_bytes()),
        }
    }

    /// Appends a 64-bit number.
    pub fn u64(&mut self, value: u64) {
        match self.endian {
            Endian::Little => self.out.extend_from_slice(&value.to_le_bytes()),
            Endian::Big => self.out.extend_from_slice(&value.to_be_bytes()),
        }
    }

    /// Appends `text`, a NUL, and zeros until the length of these bytes is a multiple of `align`, as the
    /// kernel pads names in records.
    pub fn padded_str(&mut self, text: &[u8], align: usize) {
        self.bytes(text);
        let padded = (text.len() + 1).next_multiple_of(align.max(1));
        self.zeros(padded - text.len());
    }
}
