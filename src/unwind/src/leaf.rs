//! Finds the caller that a frame-pointer callchain lacks: of functions without a frame, or before
//! the frame is set up.

use rperf_wire::Endian;

use crate::Arch;
use crate::registers::Registers;
use crate::space::AddressSpace;
use crate::stack::StackBytes;
use crate::unwinder::{Snapshot, Unwinder};

/// A sample whose link register is known, but not its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafSample {
    /// The task's architecture.
    pub arch: Arch,
    /// The address of the innermost frame.
    pub ip: u64,
    /// The link register, which may still contain the return address.
    pub link: u64,
}

/// Size of the synthetic stack in which return addresses are searched, in bytes.
const STACK_SIZE: usize = 16 << 10;
const WORD: usize = 8;
/// Start address of the synthetic stack.
const START: u64 = 0x10_0000;
/// Offset of the frame pointer in it, above any frame relative to the stack pointer.
const FRAME: usize = STACK_SIZE - 2 * WORD;
/// Base of the distinct words stored in it: they look like addresses, but are unused.
const PLACEHOLDER_BASE: u64 = 0x10_0000_0000;
static SYNTHETIC_STACK: [u8; STACK_SIZE] = synthetic_stack();

const fn synthetic_stack() -> [u8; STACK_SIZE] {
    let mut bytes = [0; STACK_SIZE];
    let mut at = 0;
    while at < STACK_SIZE {
        // Words differ by more than 1, which is subtracted from return addresses.
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
    pub fn hides_caller(&mut self, arch: Arch, ip: u64, space: &impl AddressSpace) -> Option<bool> {
        if arch != Arch::X86_64 {
            return None;
        }
        let frame = START + FRAME as u64;
        let mut registers = Registers::new(ip);
        registers.set(arch.stack_pointer(), START);
        registers.set(arch.frame_pointer()?, frame);
        let snapshot = Snapshot {
            arch,
            registers,
            stack: StackBytes {
                start: START,
                bytes: &SYNTHETIC_STACK,
                is_full: true,
                endian: Endian::Little,
            },
        };
        let mut frames = Vec::with_capacity(2);
        let outcome = self.unwind(&snapshot, space, 2, &mut frames);
        let [_, caller] = frames[..] else {
            return None;
        };
        // The return address is above the saved frame pointer.
        let framed = PLACEHOLDER_BASE + (FRAME + WORD) as u64;
        (outcome.guessed == 0).then_some(caller.abs_diff(framed) > 1)
    }

    /// The address of the caller, like those of [`Unwinder::unwind`]; `None` if the return address
    /// isn't in the link register, or that is unknown.
    pub fn caller_of_leaf(&mut self, leaf: LeafSample, space: &impl AddressSpace) -> Option<u64> {
        let LeafSample { arch, ip, link } = leaf;
        let mut registers = Registers::new(ip);
        // Any stack pointer will do: frames are relative to it, but the stack isn't read.
        registers.set(arch.stack_pointer(), 0);
        registers.set(arch.link_register()?, link);
        let snapshot = Snapshot {
            arch,
            registers,
            stack: StackBytes::EMPTY,
        };
        let mut frames = Vec::with_capacity(2);
        let outcome = self.unwind(&snapshot, space, 2, &mut frames);
        match frames[..] {
            [_, caller] if outcome.guessed == 0 => Some(caller),
            _ => None,
        }
    }
}
