//! The properties of a kernel's ABI that affect raw data.

use rperf_wire::Endian;

/// Byte order and size of `long` of the kernel that recorded the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abi {
    /// Byte order.
    pub endian: Endian,
    /// Bytes of a `long`: 4 or 8.
    pub long_size: u8,
}

impl Abi {
    /// The ABI this program is compiled for.
    pub const NATIVE: Self = Self {
        endian: Endian::NATIVE,
        // On Linux, `long` has the size of a pointer.
        long_size: size_of::<usize>() as u8,
    };
}
