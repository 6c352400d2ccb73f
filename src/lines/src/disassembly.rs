//! Instructions of samples and their disassembly: `insn`, `insnlen`, `disasm`.

use std::fmt::Write as _;

use rperf_insn::{BranchKind, Isa, Printer, Syntax};
use rperf_replay::Order;
use rperf_resolve::{AddressContext, Frame};
use rperf_wire::CpuMode;

use crate::{LineBuilder, SymbolOffset};

/// The sampled instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledInsn {
    /// Its bytes.
    pub bytes: Vec<u8>,
    isa: Isa,
}

impl SampledInsn {
    /// The kind of branch that it is; `None` for other instructions, and always on arm64.
    pub(crate) fn branch_kind(&self) -> Option<BranchKind> {
        rperf_insn::branch_kind(self.isa, &self.bytes)
    }
}

impl LineBuilder<'_, '_> {
    /// The instruction that was at `frame` just before `order`; `None` if the bytes of the code cannot be read, or are no valid
    /// instruction.
    #[must_use]
    pub fn insn(&self, frame: &Frame, order: Order) -> Option<SampledInsn> {
        let code = self.resolver().code(frame, order, rperf_insn::MAX_LEN)?;
        let isa = Isa::of_elf(code.file)?;
        let insn = rperf_insn::decode(isa, &code.bytes)?;
        let bytes = code.bytes.get(..insn.len)?.to_vec();
        Some(SampledInsn { bytes, isa })
    }

    /// Disassembles `insn` at the address `ip`; a jump or call target is resolved in the context `at`.
    #[must_use]
    pub fn insn_text(&self, insn: &SampledInsn, ip: u64, at: AddressContext) -> String {
        let mut disassembler = Disassembler::new(self, at);
        // The sample's CPU mode is not needed: targets in the kernel's half of the address space are also looked up there.
        disassembler
            .text(insn.isa, CpuMode::User, ip, &insn.bytes)
            .to_owned()
    }
}

/// Disassembles like objdump, with the symbol of a jump or call target after its address.
pub(crate) struct Disassembler<'a, 'r, 'w> {
    lines: &'a LineBuilder<'r, 'w>,
    at: AddressContext,
    /// The last used printer, kept because most instructions have the same ISA.
    printer: Option<(Isa, Printer)>,
    text: String,
}

impl<'a, 'r, 'w> Disassembler<'a, 'r, 'w> {
    /// Creates a disassembler that resolves jump and call targets in the context `at`.
    pub(crate) fn new(lines: &'a LineBuilder<'r, 'w>, at: AddressContext) -> Self {
        Self {
            lines,
            at,
            printer: None,
            text: String::new(),
        }
    }

    /// Disassembles the instruction `bytes` at `ip`, in code that runs in `mode`.
    pub(crate) fn text(&mut self, isa: Isa, mode: CpuMode, ip: u64, bytes: &[u8]) -> &str {
        self.text.clear();
        let printer = match self.printer.take() {
            Some((of, printer)) if of == isa => printer,
            _ => Printer::new(isa, Syntax::Att),
        };
        let (_, printer) = self.printer.insert((isa, printer));
        let printed = printer.print(ip, bytes, &mut self.text);
        if let Some(target) = printed.and_then(|printed| printed.target) {
            let resolver = self.lines.resolver();
            // The target is code. But like a data address, it can be in the other mode's half of the address space.
            let frame = resolver.locate_data(self.at, mode, target);
            if let Some(SymbolOffset { name, offset }) = self.lines.resolved(&frame).symbol {
                let offset = match offset {
                    0 => String::new(),
                    offset => format!("+{offset:#x}"),
                };
                // Writing to a string cannot fail.
                let _ = write!(self.text, " <{name}{offset}>");
            }
        }
        &self.text
    }
}
