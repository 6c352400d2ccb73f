//! The caller that a frame-pointer chain misses: that of a function which has no frame of its own yet, or never.

use crate::Arch;
use crate::registers::Registers;
use crate::space::AddressSpace;
use crate::stack::Stack;
use crate::unwinder::{Snapshot, Unwinder};

/// Where a sample was taken of which the link register is known, and nothing of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// The task's architecture.
    pub arch: Arch,
    /// The address of the innermost frame.
    pub ip: u64,
    /// The link register, in which the return address may still be.
    pub link: u64,
}

impl Unwinder {
    /// The address of the caller, in the way of [`Unwinder::unwind`]; `None` where the return address is not in the link
    /// register, or nothing says so.
    pub fn caller_of_leaf(&mut self, leaf: Leaf, space: &impl AddressSpace) -> Option<u64> {
        let Leaf { arch, ip, link } = leaf;
        let mut registers = Registers::new(ip);
        // Frames are counted from it, but none is read.
        registers.set(arch.stack_pointer(), 0);
        registers.set(arch.link_register()?, link);
        let snapshot = Snapshot {
            arch,
            registers,
            stack: Stack::EMPTY,
        };
        let mut frames = Vec::with_capacity(2);
        let outcome = self.unwind(&snapshot, space, 2, &mut frames);
        match frames[..] {
            [_, caller] if outcome.guessed == 0 => Some(caller),
            _ => None,
        }
    }
}
