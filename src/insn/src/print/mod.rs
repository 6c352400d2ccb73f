//! Disassembly in the format of GNU objdump.

mod arm64;
mod att;
mod intel;
mod x86;

use crate::Isa;

/// Operand syntax, for architectures with several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Syntax {
    /// Source first, registers with a `%`.
    #[default]
    Att,
    /// Destination first, sizes of memory operands spelled out (`DWORD PTR`).
    Intel,
}

/// Control flow after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InsnFlow {
    /// To the next instruction; also after traps and system calls.
    Next,
    /// To another address, always or conditionally.
    Jump,
    /// To a function, with a return address.
    Call,
    /// Back to the caller, or from an exception.
    Return,
}

/// Properties of a disassembled instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Printed {
    /// Its length in bytes, at least 1 and at most the available bytes.
    pub len: usize,
    /// The control flow.
    pub flow: InsnFlow,
    /// The target of a direct jump or call, or of `xbegin`, whose flow is [`InsnFlow::Next`]; the text ends with this address.
    pub target: Option<u64>,
    /// The absolute address of an operand that is relative to the program counter.
    pub referenced: Option<u64>,
}

/// Disassembles instructions one by one.
pub struct Printer(Kind);

enum Kind {
    X86(x86::X86),
    Arm64,
}

impl Printer {
    /// Creates a printer for `isa`. `syntax` only affects x86.
    #[must_use]
    pub fn new(isa: Isa, syntax: Syntax) -> Self {
        Self(match isa {
            Isa::X86 => Kind::X86(x86::X86::new(32, syntax)),
            Isa::X86_64 => Kind::X86(x86::X86::new(64, syntax)),
            Isa::Arm64 => Kind::Arm64,
        })
    }

    /// Appends the instruction at the start of `bytes`, located at `address`, to `text`. If it has operands, its mnemonic is
    /// padded to six characters. Truncated instructions, and invalid ones of x86, are printed as `(bad)`; invalid ones of Arm, as
    /// their encoding. Returns `None` if `bytes` is empty.
    pub fn print(&mut self, address: u64, bytes: &[u8], text: &mut String) -> Option<Printed> {
        if bytes.is_empty() {
            return None;
        }
        Some(match &mut self.0 {
            Kind::X86(x86) => x86.print(address, bytes, text),
            Kind::Arm64 => arm64::print(address, bytes, text),
        })
    }
}

/// Appends a mnemonic and its operands in objdump's layout.
fn lay_out(text: &mut String, name: &str, operands: &str) {
    text.push_str(name);
    if operands.is_empty() {
        return;
    }
    let blanks = 6_usize.saturating_sub(name.len());
    text.extend(std::iter::repeat_n(' ', blanks + 1));
    text.push_str(operands);
}

#[cfg(test)]
mod tests;
