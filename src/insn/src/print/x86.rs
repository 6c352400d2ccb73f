//! x86: parts common to both syntaxes.

use std::fmt::Write as _;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, FormatMnemonicOptions, Formatter, FormatterOptions,
    GasFormatter, Instruction, IntelFormatter, MemorySizeOptions, Mnemonic, OpKind, Register,
};

use super::{InsnFlow, Printed, Syntax, lay_out};
use crate::MAX_LEN;

/// Prints instructions of one mode in one syntax.
pub(super) struct X86 {
    /// The mode: 64 or 32.
    bits: u32,
    style: Box<dyn Style>,
    /// Buffers for the mnemonic and the operands, reused.
    name: String,
    operands: String,
}

/// A formatter, and its differences from objdump.
pub(super) trait Style: Formatter {
    /// Changes a mnemonic to objdump's.
    fn fix_name(&self, insn: &Instruction, name: &mut String);

    /// Writes the operands of an instruction to the empty string `operands`. Not called for direct branches.
    fn operands(&mut self, insn: &Instruction, bytes: &[u8], operands: &mut String);
}

impl X86 {
    pub(super) fn new(bits: u32, syntax: Syntax) -> Self {
        let mut style: Box<dyn Style> = match syntax {
            Syntax::Att => Box::new(GasFormatter::new()),
            Syntax::Intel => Box::new(IntelFormatter::new()),
        };
        set_options(style.options_mut());
        Self {
            bits,
            style,
            name: String::new(),
            operands: String::new(),
        }
    }

    pub(super) fn print(&mut self, address: u64, bytes: &[u8], text: &mut String) -> Printed {
        let bytes = &bytes[..bytes.len().min(MAX_LEN)];
        let mut decoder = Decoder::with_ip(self.bits, bytes, address, DecoderOptions::NONE);
        let insn = decoder.decode();
        if insn.is_invalid() {
            text.push_str("(bad)");
            return Printed {
                len: 1,
                flow: InsnFlow::Next,
                target: None,
                referenced: None,
            };
        }
        let bytes = &bytes[..insn.len().min(bytes.len())];
        self.name(&insn, bytes);
        self.operands(&insn, bytes);
        lay_out(text, &self.name, &self.operands);
        Printed {
            len: insn.len(),
            flow: flow(&insn),
            target: is_direct(&insn).then(|| insn.near_branch_target()),
            referenced: insn
                .is_ip_rel_memory_operand()
                .then(|| insn.ip_rel_memory_address()),
        }
    }

    /// Sets `self.name` to the mnemonic with its prefixes.
    fn name(&mut self, insn: &Instruction, bytes: &[u8]) {
        const REPEATED: u8 = 0xf3;
        let (style, name) = (&mut self.style, &mut self.name);
        name.clear();
        if let Some(padding) = padding(insn, bytes) {
            name.push_str(&padding);
            style.format_mnemonic_options(insn, name, FormatMnemonicOptions::NO_PREFIXES);
        } else if insn.mnemonic() == Mnemonic::Ret && has_prefix(bytes, REPEATED) {
            name.push_str("repz ret");
        } else {
            style.format_mnemonic(insn, name);
        }
        style.fix_name(insn, name);
    }

    /// Sets `self.operands`.
    fn operands(&mut self, insn: &Instruction, bytes: &[u8]) {
        self.operands.clear();
        if is_direct(insn) {
            // Writing to a string cannot fail.
            let _ = write!(self.operands, "{:x}", insn.near_branch_target());
            return;
        }
        set_memory_options(self.style.options_mut(), insn);
        self.style.operands(insn, bytes, &mut self.operands);
    }
}

fn flow(insn: &Instruction) -> InsnFlow {
    match insn.flow_control() {
        FlowControl::ConditionalBranch
        | FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch => InsnFlow::Jump,
        // The decoder counts instructions such as `syscall` as calls, too.
        FlowControl::Call | FlowControl::IndirectCall if insn.mnemonic() == Mnemonic::Call => {
            InsnFlow::Call
        }
        FlowControl::Return => InsnFlow::Return,
        _ => InsnFlow::Next,
    }
}

/// Whether the first operand is the target of a near branch or of `xbegin`.
fn is_direct(insn: &Instruction) -> bool {
    matches!(
        insn.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    )
}

/// Options common to both syntaxes.
fn set_options(options: &mut FormatterOptions) {
    options.set_uppercase_hex(false);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_small_hex_numbers_in_decimal(false);
    options.set_branch_leading_zeros(false);
    options.set_displacement_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_rip_relative_addresses(true);
    options.set_uppercase_keywords(true);
    options.set_memory_size_options(MemorySizeOptions::Always);
}

/// Options that depend on the instruction: an index is printed with its scale even if that is 1, and an encoded displacement
/// even if it is 0.
fn set_memory_options(options: &mut FormatterOptions, insn: &Instruction) {
    options.set_always_show_scale(insn.memory_index() != Register::None);
    options.set_show_zero_displacements(insn.memory_displ_size() != 0);
}

/// The redundant prefixes of a nop, empty if it has none; `None` for other instructions.
fn padding(insn: &Instruction, bytes: &[u8]) -> Option<String> {
    const OPERAND_SIZE: u8 = 0x66;
    const CS: u8 = 0x2e;
    if insn.mnemonic() != Mnemonic::Nop {
        return None;
    }
    let prefixes = bytes
        .iter()
        .take_while(|byte| [OPERAND_SIZE, CS].contains(byte));
    let (sizes, segments): (Vec<u8>, Vec<u8>) = prefixes.partition(|byte| **byte == OPERAND_SIZE);
    // One operand size prefix is not redundant: it makes a longer nop 16 bits wide, and turns the one-byte nop into
    // `xchg %ax,%ax`.
    let redundant = sizes.len().saturating_sub(1);
    let segment = if segments.is_empty() { "" } else { "cs " };
    Some("data16 ".repeat(redundant) + segment)
}

/// Whether the instruction is a shift or rotation by 1 without an immediate: the opcode implies the 1.
pub(super) fn has_implied_one(insn: &Instruction, bytes: &[u8]) -> bool {
    use Mnemonic as M;
    let shifts = [
        M::Shr,
        M::Shl,
        M::Sar,
        M::Sal,
        M::Rol,
        M::Ror,
        M::Rcl,
        M::Rcr,
    ];
    let opcode = bytes.iter().find(|byte| !is_prefix(**byte));
    shifts.contains(&insn.mnemonic()) && matches!(opcode, Some(0xd0 | 0xd1))
}

fn is_prefix(byte: u8) -> bool {
    const LEGACY: [u8; 11] = [
        0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3,
    ];
    const REX: std::ops::Range<u8> = 0x40..0x50;
    LEGACY.contains(&byte) || REX.contains(&byte)
}

/// Whether these bytes have this prefix before the opcode.
fn has_prefix(bytes: &[u8], prefix: u8) -> bool {
    let mut prefixes = bytes.iter().take_while(|byte| is_prefix(**byte));
    prefixes.any(|byte| *byte == prefix)
}

/// Whether objdump prints the register twice: a multiplication of a register by an immediate into the same register.
pub(super) fn repeats_destination(insn: &Instruction) -> bool {
    insn.mnemonic() == Mnemonic::Imul
        && insn.op_count() == 3
        && insn.op1_kind() == OpKind::Register
        && insn.op0_register() == insn.op1_register()
}

fn is_string_operand(kind: OpKind) -> bool {
    is_string_source(kind) || is_string_destination(kind)
}

pub(super) fn is_string_source(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::MemorySegSI | OpKind::MemorySegESI | OpKind::MemorySegRSI
    )
}

pub(super) fn is_string_destination(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::MemoryESDI | OpKind::MemoryESEDI | OpKind::MemoryESRDI
    )
}

pub(super) fn is_string_operation(insn: &Instruction) -> bool {
    (0..insn.op_count()).any(|index| is_string_operand(insn.op_kind(index)))
}

/// Whether the instruction is x87 arithmetic that replaces an operand by the result and then pops the register stack.
pub(super) fn pops_in_place(insn: &Instruction) -> bool {
    use Mnemonic as M;
    let popping = [M::Faddp, M::Fmulp, M::Fsubp, M::Fsubrp, M::Fdivp, M::Fdivrp];
    popping.contains(&insn.mnemonic())
}
