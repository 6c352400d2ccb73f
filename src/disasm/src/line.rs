//! One instruction of a listing.

use std::fmt;

use rperf_insn::InsnFlow;

use crate::HitCount;

/// Source location of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LineSite<'r> {
    /// The innermost function in the source.
    pub function: &'r str,
    /// Whether it is inlined into the listed function.
    pub is_inlined: bool,
    /// The file's path as recorded by the compiler, and the line from 1.
    pub line: Option<(&'r str, u32)>,
}

/// An address in an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperandAddress<'r> {
    /// The address in the object.
    pub address: u64,
    /// Its symbol and the offset in it.
    pub symbol: Option<(&'r str, u64)>,
}

/// The symbol's name and offset, `main+0x1f`; empty without a symbol.
impl fmt::Display for OperandAddress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol {
            None => Ok(()),
            Some((name, 0)) => f.write_str(name),
            Some((name, offset)) => write!(f, "{name}+0x{offset:x}"),
        }
    }
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionLine<'r> {
    /// Its address in the object.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Disassembly. It ends with the address of [`InstructionLine::target`], if there is one.
    pub text: String,
    /// Control flow after the instruction.
    pub flow: InsnFlow,
    /// The target of a direct jump or call, or of `xbegin`.
    pub target: Option<OperandAddress<'r>>,
    /// The address of an operand that is relative to the program counter, other than [`InstructionLine::target`].
    pub referenced: Option<OperandAddress<'r>>,
    /// Samples by event, indexed as [`SampledFunction::sums`](crate::SampledFunction::sums).
    pub hits: Vec<HitCount>,
    /// Its source location.
    pub site: Option<LineSite<'r>>,
}

impl InstructionLine<'_> {
    /// The text as in objdump: with the symbol of the target, and with the referenced address and its symbol as a comment.
    #[must_use]
    pub fn full_text(&self) -> String {
        let mut text = self.text.clone();
        let suffix = |operand: &OperandAddress| match operand.symbol {
            Some(_) => format!(" <{operand}>"),
            None => String::new(),
        };
        if let Some(target) = &self.target {
            text.push_str(&suffix(target));
        }
        if let Some(referenced) = &self.referenced {
            text.push_str(&format!(
                "        # {:x}{}",
                referenced.address,
                suffix(referenced)
            ));
        }
        text
    }

    /// Whether there are samples at this instruction.
    #[must_use]
    pub fn is_hit(&self) -> bool {
        self.hits.iter().any(|hit| hit.samples > 0)
    }
}
