//! Decoding of single machine instructions: length, branches and disassembly.
//!
//! **Invariants.** No input causes a panic. The crate reads no files and knows nothing of perf's formats.

mod arm64;
mod isa;
mod print;
mod x86;

pub use isa::Isa;
pub use print::{InsnFlow, Printed, Printer, Syntax};

/// Properties of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insn {
    /// Its length in bytes, at least 1.
    pub len: usize,
    /// Whether it is a branch, such as a jump, call, return, system call or software interrupt.
    pub is_branch: bool,
    /// Offset of the branch target from the start of the instruction, for direct near branches.
    pub target_offset: Option<i64>,
}

/// The kind of a branch instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchKind {
    /// An unconditional jump.
    Jump,
    /// A conditional jump, also one that tests a counter register (`jrcxz`, `loop`).
    Conditional,
    /// A call of a function.
    Call,
    /// A return from a function.
    Return,
    /// A system call.
    SystemCall,
    /// A return from a system call.
    SystemReturn,
    /// A software interrupt.
    Interrupt,
    /// A return from an interrupt.
    InterruptReturn,
    /// The entry to a virtual machine.
    VmEntry,
}

/// The maximum instruction length of all architectures, in bytes.
pub const MAX_LEN: usize = 15;

/// Decodes the instruction at the start of `bytes`; `None` if it is incomplete or, on x86, invalid.
#[must_use]
pub fn decode(isa: Isa, bytes: &[u8]) -> Option<Insn> {
    match isa {
        Isa::X86 => x86::decode(32, bytes),
        Isa::X86_64 => x86::decode(64, bytes),
        Isa::Arm64 => arm64::decode(bytes),
    }
}

/// The kind of the branch at the start of `bytes`; `None` for another instruction, an invalid or incomplete one, and for
/// architectures other than x86.
#[must_use]
pub fn branch_kind(isa: Isa, bytes: &[u8]) -> Option<BranchKind> {
    match isa {
        Isa::X86 => x86::branch_kind(32, bytes),
        Isa::X86_64 => x86::branch_kind(64, bytes),
        Isa::Arm64 => None,
    }
}
