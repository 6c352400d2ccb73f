//! The caller that a frame-pointer chain misses: that of a function which has no frame of its own yet, or never.

use rperf_wire::Endian;

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

/// Bytes of the made-up stack in which return addresses are looked for.
const LOOKED_THROUGH: usize = 16 << 10;
const WORD: usize = 8;
/// Where it lies.
const START: u64 = 0x10_0000;
/// The frame pointer's place in it, above any frame that is counted from the stack pointer.
const FRAME: usize = LOOKED_THROUGH - 2 * WORD;
/// What its words hold, each another: addresses, but nobody's.
const HELD: u64 = 0x10_0000_0000;
static MADE_UP: [u8; LOOKED_THROUGH] = made_up();

const fn made_up() -> [u8; LOOKED_THROUGH] {
    let mut bytes = [0; LOOKED_THROUGH];
    let mut at = 0;
    while at < LOOKED_THROUGH {
        // Apart from its neighbours by more than the one that is taken off a return address.
        bytes[at] = (at & 0xff) as u8;
        bytes[at + 1] = (at >> 8) as u8;
        bytes[at + 4] = (HELD >> 32) as u8;
        at += WORD;
    }
    bytes
}

impl Unwinder {
    /// Whether a chain of frame pointers misses the caller of the frame at `ip`: as long as the function has no frame that
    /// the frame pointer leads to, or never has one. `None` where nothing says so, and for others than 64-bit x86.
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
            stack: Stack {
                start: START,
                bytes: &MADE_UP,
                is_full: true,
                endian: Endian::Little,
            },
        };
        let mut frames = Vec::with_capacity(2);
        let outcome = self.unwind(&snapshot, space, 2, &mut frames);
        let [_, caller] = frames[..] else {
            return None;
        };
        // The return address lies above the frame pointer that was saved.
        let framed = HELD + (FRAME + WORD) as u64;
        (outcome.guessed == 0).then_some(caller.abs_diff(framed) > 1)
    }

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
