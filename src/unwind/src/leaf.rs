//! The caller that a frame-pointer callchain lacks if the innermost function has no frame, or has not set it up yet. On x86-64,
//! this module determines whether it is missing; on architectures with a link register, its address.

use rperf_wire::Endian;

use crate::Arch;
use crate::registers::Registers;
use crate::space::AddressSpace;
use crate::stack::StackBytes;
use crate::unwinder::{Snapshot, Unwinder};

/// A sample whose link register is known, but whose stack is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafSample {
    /// The task's architecture.
    pub arch: Arch,
    /// The sampled instruction pointer.
    pub ip: u64,
    /// The link register, which may still contain the return address.
    pub link: u64,
}

/// Size of the synthetic stack in bytes. For a function with a larger frame, the result is `None`.
const STACK_SIZE: usize = 16 << 10;
const WORD: usize = 8;
/// Number of frames to unwind: the innermost function's, and its caller's.
const FRAME_LIMIT: usize = 2;
/// Start address of the synthetic stack.
const START: u64 = 0x10_0000;
/// Offset of the saved frame pointer in the synthetic stack: at its end, above the place where the return address of a function
/// without a frame is.
const FRAME_OFFSET: usize = STACK_SIZE - 2 * WORD;
/// Each word of the synthetic stack is this base plus the word's offset: an address at which there is no code.
const PLACEHOLDER_BASE: u64 = 0x10_0000_0000;
/// The stack that is unwound instead of a recorded one. All its words differ, so the word that is read as the return address
/// shows from where it is read, and thus whether the function has a frame.
static SYNTHETIC_STACK: [u8; STACK_SIZE] = synthetic_stack();

const fn synthetic_stack() -> [u8; STACK_SIZE] {
    let mut bytes = [0; STACK_SIZE];
    let mut at = 0;
    while at < STACK_SIZE {
        // The words differ by more than 1, so a return address minus 1 is never equal to another word.
        bytes[at] = (at & 0xff) as u8;
        bytes[at + 1] = (at >> 8) as u8;
        bytes[at + 4] = (PLACEHOLDER_BASE >> 32) as u8;
        at += WORD;
    }
    bytes
}

impl Unwinder {
    /// Whether a frame-pointer callchain lacks the caller of the frame at `ip`, because the
    /// function doesn't have a frame there. `None` if unknown, and for architectures other than
    /// 64-bit x86.
    pub fn is_caller_missing(
        &mut self,
        arch: Arch,
        ip: u64,
        space: &impl AddressSpace,
    ) -> Option<bool> {
        if arch != Arch::X86_64 {
            return None;
        }
        let frame_pointer = START + FRAME_OFFSET as u64;
        let mut registers = Registers::new(ip);
        registers.set(arch.stack_pointer(), START);
        registers.set(arch.frame_pointer()?, frame_pointer);
        let snapshot = Snapshot {
            arch,
            registers,
            stack: StackBytes {
                start: START,
                bytes: &SYNTHETIC_STACK,
                // Determines only the error of reads beyond the end, which is not used here.
                may_continue: true,
                endian: Endian::Little,
            },
        };
        let mut frames = Vec::with_capacity(FRAME_LIMIT);
        let outcome = self.unwind(&snapshot, space, FRAME_LIMIT, &mut frames);
        let [_, caller] = frames[..] else {
            return None;
        };
        // With a frame, the return address is above the saved frame pointer; `caller` is that address minus 1. The answer is
        // unknown if the caller was guessed for lack of unwind information.
        let return_address = PLACEHOLDER_BASE + (FRAME_OFFSET + WORD) as u64;
        (outcome.guessed == 0).then_some(caller.abs_diff(return_address) > 1)
    }

    /// The address of the caller, as [`Unwinder::unwind`] returns it; `None` if the return address isn't in the link register, or
    /// if it is unknown whether it is.
    pub fn caller_of_leaf(&mut self, leaf: LeafSample, space: &impl AddressSpace) -> Option<u64> {
        let LeafSample { arch, ip, link } = leaf;
        let mut registers = Registers::new(ip);
        // Any stack pointer will do: the copy of the stack is empty, so nothing can be read from it.
        registers.set(arch.stack_pointer(), 0);
        registers.set(arch.link_register()?, link);
        let snapshot = Snapshot {
            arch,
            registers,
            stack: StackBytes::EMPTY,
        };
        let mut frames = Vec::with_capacity(FRAME_LIMIT);
        let outcome = self.unwind(&snapshot, space, FRAME_LIMIT, &mut frames);
        match frames[..] {
            [_, caller] if outcome.guessed == 0 => Some(caller),
            _ => None,
        }
    }
}
