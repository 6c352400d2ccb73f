//! What steps and programs read: the registers of a frame, and the stack.

use crate::Arch;
use crate::outcome::Cause;
use crate::registers::Registers;
use crate::stack::{Stack, Unreadable};

/// One frame's view of its machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine<'a> {
    pub(crate) arch: Arch,
    pub(crate) registers: &'a Registers,
    pub(crate) stack: &'a Stack<'a>,
}

impl Machine<'_> {
    /// A register that frame information depends on.
    #[inline]
    pub(crate) fn register(&self, number: u8) -> Result<u64, Cause> {
        self.registers.get(number).ok_or(Cause::BadFrameInfo)
    }

    /// A register plus `offset`.
    #[inline]
    pub(crate) fn offset(&self, register: u8, offset: i64) -> Result<u64, Cause> {
        Ok(self.register(register)?.wrapping_add_signed(offset))
    }

    /// The word of an address's width that is saved at `address`.
    #[inline]
    pub(crate) fn word(&self, address: u64) -> Result<u64, Cause> {
        self.memory(address, self.arch.address_size())
    }

    /// `size` bytes at `address`.
    #[inline]
    pub(crate) fn memory(&self, address: u64, size: u8) -> Result<u64, Cause> {
        let address = self.arch.truncate(address);
        self.stack
            .read(address, size)
            .map_err(|unreadable| match unreadable {
                Unreadable::Behind => Cause::DumpEnd,
                Unreadable::Elsewhere => Cause::OtherStack,
            })
    }
}
