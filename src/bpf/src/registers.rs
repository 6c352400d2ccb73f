//! Where a system call's number and arguments are in the saved registers (`struct pt_regs`) of this architecture.

use crate::Error;

/// A register in `struct pt_regs` by which calls of 32-bit programs are recognized: for these calls, `register & mask == value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompatMark {
    /// The offset in bytes.
    pub(crate) offset: i16,
    pub(crate) mask: i32,
    pub(crate) value: i32,
}

/// Offsets in `struct pt_regs`, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegisterLayout {
    /// How many bytes are read from the start of the structure: they contain all registers below.
    pub(crate) size: i16,
    /// The arguments, which are still there when the call returns.
    pub(crate) arguments: [i16; 6],
    /// The number of the call, of which 32 bits are read.
    pub(crate) number: i16,
    pub(crate) compat: CompatMark,
}

impl RegisterLayout {
    /// Returns the layout of this architecture. A 32-bit program is recognized by the code segment (`__USER32_CS`) on
    /// x86-64, and by the mode bit of the processor state on arm64.
    ///
    /// # Errors
    /// [`Error::Architecture`].
    pub(crate) fn native() -> Result<Self, Error> {
        if cfg!(target_arch = "x86_64") {
            Ok(Self {
                size: 144,
                // di, si, dx, r10, r8, r9.
                arguments: [112, 104, 96, 56, 72, 64],
                // orig_ax.
                number: 120,
                compat: CompatMark {
                    offset: 136,
                    mask: 0xffff,
                    value: 0x23,
                },
            })
        } else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
            Ok(Self {
                size: 288,
                // The result replaces the first argument in its register; the kernel keeps the argument in `orig_x0`.
                arguments: [272, 8, 16, 24, 32, 40],
                number: 280,
                compat: CompatMark {
                    offset: 264,
                    mask: 0x10,
                    value: 0x10,
                },
            })
        } else {
            Err(Error::Architecture)
        }
    }
}
