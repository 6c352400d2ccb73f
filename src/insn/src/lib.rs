//! Machine code, one instruction at a time: how long it is, whether the processor may go on elsewhere behind it, and what it
//! reads as.
//!
//! **Invariants.** No bytes make it panic. Nothing is known of addresses, files or perf: bytes in, facts out.

mod arm64;
mod isa;
mod print;
mod x86;

pub use isa::Isa;
pub use print::{Flow, Printed, Printer, Syntax};

/// What is known of one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insn {
    /// Its length in bytes, at least 1.
    pub len: usize,
    /// Whether control may go on elsewhere: jumps, calls, returns, system calls, software interrupts.
    pub is_branch: bool,
    /// Bytes from its start to where it branches to, for a branch that names its target.
    pub displacement: Option<i64>,
}

/// The longest instruction of any architecture, in bytes.
pub const MAX_LEN: usize = 15;

/// The instruction at the start of `bytes`; `None` where they are none, or less than one.
#[must_use]
pub fn decode(isa: Isa, bytes: &[u8]) -> Option<Insn> {
    match isa {
        Isa::X86 => x86::decode(32, bytes),
        Isa::X86_64 => x86::decode(64, bytes),
        Isa::Arm64 => arm64::decode(bytes),
    }
}
