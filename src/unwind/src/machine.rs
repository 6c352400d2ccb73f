//! The state that unwinding steps and DWARF expressions read: the registers of a frame, and the copy of the stack.

use crate::Arch;
use crate::outcome::TruncationCause;
use crate::registers::Registers;
use crate::stack::{StackBytes, Unreadable};

/// The registers of one frame, and the copy of the stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameState<'a> {
    pub(crate) arch: Arch,
    pub(crate) registers: &'a Registers,
    pub(crate) stack: &'a StackBytes<'a>,
}

impl FrameState<'_> {
    /// The value of a register that frame information uses, by its DWARF number.
    ///
    /// # Errors
    ///
    /// [`TruncationCause::BadFrameInfo`] if the value is unknown.
    #[inline]
    pub(crate) fn register(&self, number: u8) -> Result<u64, TruncationCause> {
        self.registers
            .get(number)
            .ok_or(TruncationCause::BadFrameInfo)
    }

    /// The value of a register plus `offset`.
    #[inline]
    pub(crate) fn register_plus(&self, register: u8, offset: i64) -> Result<u64, TruncationCause> {
        Ok(self.register(register)?.wrapping_add_signed(offset))
    }

    /// The address-sized word of the stack at `address`.
    #[inline]
    pub(crate) fn word(&self, address: u64) -> Result<u64, TruncationCause> {
        self.memory(address, self.arch.address_size())
    }

    /// The number in the `size` bytes of the stack at `address`.
    #[inline]
    pub(crate) fn memory(&self, address: u64, size: u8) -> Result<u64, TruncationCause> {
        let address = self.arch.truncate(address);
        self.stack
            .read(address, size)
            .map_err(|unreadable| match unreadable {
                Unreadable::BeyondCopy => TruncationCause::DumpEnd,
                Unreadable::OtherStack => TruncationCause::OtherStack,
            })
    }
}
