//! Instructions as text, in the words of GNU objdump.

mod arm64;
mod att;
mod intel;
mod x86;

use crate::Isa;

/// How operands are written, for architectures that know more than one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Syntax {
    /// Source first, registers with a `%`.
    #[default]
    Att,
    /// Destination first, sizes of memory spelled out.
    Intel,
}

/// Where control goes behind an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flow {
    /// To the next one.
    Next,
    /// To another place, always or on a condition.
    Jump,
    /// To another function, and back.
    Call,
    /// Back to the caller.
    Return,
}

/// What is known of an instruction that was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Printed {
    /// Its length in bytes, at least 1 and at most what there was.
    pub len: usize,
    /// Where control goes.
    pub flow: Flow,
    /// The address that a jump or a call names; its number is the end of the text.
    pub target: Option<u64>,
    /// The address that an operand means without naming it: memory relative to the program counter.
    pub refers: Option<u64>,
}

/// Prints one instruction after the other.
pub struct Printer(Kind);

enum Kind {
    X86(x86::X86),
    Arm64,
}

impl Printer {
    /// A printer of `isa` in `syntax`, which only x86 has more than one of.
    #[must_use]
    pub fn new(isa: Isa, syntax: Syntax) -> Self {
        Self(match isa {
            Isa::X86 => Kind::X86(x86::X86::new(32, syntax)),
            Isa::X86_64 => Kind::X86(x86::X86::new(64, syntax)),
            Isa::Arm64 => Kind::Arm64,
        })
    }

    /// Appends the instruction at the start of `bytes`, which lies at `address`, to `text`; the name comes first, padded to
    /// six characters. What is no instruction becomes `(bad)`, or its number where all have one length. `None` of no
    /// bytes.
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

/// Appends a name and its operands as objdump lays them out.
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
