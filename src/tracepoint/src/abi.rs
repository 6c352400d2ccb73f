//! The parts of a kernel's binary interface that raw data depend on.

use rperf_wire::Endian;

/// How the kernel that recorded the samples lays out numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abi {
    /// Byte order.
    pub endian: Endian,
    /// Bytes of a `long`: 4 or 8.
    pub long_size: u8,
}

impl Abi {
    /// That of the machine this program runs on.
    pub const NATIVE: Self = Self {
        endian: Endian::NATIVE,
        long_size: size_of::<usize>() as u8,
    };
}
