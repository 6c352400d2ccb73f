//! x86: what both ways of writing it share.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, FormatMnemonicOptions, Formatter, FormatterOptions,
    Instruction, MemorySizeOptions, Mnemonic, OpKind, Register,
};

use super::att::Att;
use super::intel::Intel;
use super::{Flow, Printed, Syntax};
use crate::MAX_LEN;

/// Instructions of one mode in one way of writing.
pub(super) struct X86 {
    bits: u32,
    style: Style,
}

enum Style {
    Att(Att),
    Intel(Intel),
}

impl X86 {
    pub(super) fn new(bits: u32, syntax: Syntax) -> Self {
        let style = match syntax {
            Syntax::Att => Style::Att(Att::new()),
            Syntax::Intel => Style::Intel(Intel::new()),
        };
        Self { bits, style }
    }

    pub(super) fn print(&mut self, address: u64, bytes: &[u8], text: &mut String) -> Printed {
        let bytes = &bytes[..bytes.len().min(MAX_LEN)];
        let mut decoder = Decoder::with_ip(self.bits, bytes, address, DecoderOptions::NONE);
        let insn = decoder.decode();
        if insn.is_invalid() {
            text.push_str("(bad)");
            return Printed {
                len: 1,
                flow: Flow::Next,
                target: None,
                refers: None,
            };
        }
        let bytes = &bytes[..insn.len().min(bytes.len())];
        match &mut self.style {
            Style::Att(att) => att.print(&insn, bytes, text),
            Style::Intel(intel) => intel.print(&insn, bytes, text),
        }
        Printed {
            len: insn.len(),
            flow: flow(&insn),
            target: is_direct(&insn).then(|| insn.near_branch_target()),
            refers: insn
                .is_ip_rel_memory_operand()
                .then(|| insn.ip_rel_memory_address()),
        }
    }
}

fn flow(insn: &Instruction) -> Flow {
    match insn.flow_control() {
        FlowControl::ConditionalBranch
        | FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch => Flow::Jump,
        FlowControl::Call | FlowControl::IndirectCall if insn.mnemonic() == Mnemonic::Call => {
            Flow::Call
        }
        FlowControl::Return => Flow::Return,
        _ => Flow::Next,
    }
}

/// Whether the first operand is the number of an address.
pub(super) fn is_direct(insn: &Instruction) -> bool {
    matches!(
        insn.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    )
}

/// What both styles write alike.
pub(super) fn set_options(options: &mut FormatterOptions) {
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

/// What depends on how an instruction was encoded: an index has its scale, a displacement that is there is shown.
pub(super) fn set_memory_options(options: &mut FormatterOptions, insn: &Instruction) {
    options.set_always_show_scale(insn.memory_index() != Register::None);
    options.set_show_zero_displacements(insn.memory_displ_size() != 0);
}

/// The prefixes of a long nop, which mean nothing and make it longer; `None` of others.
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
    // One is what makes it a word; of the one-byte nop it makes another register.
    let superfluous = sizes.len().saturating_sub(1);
    let segment = if segments.is_empty() { "" } else { "cs " };
    Some("data16 ".repeat(superfluous) + segment)
}

/// The instructions that mean a one without having it as a byte: shifts and rotations.
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
    LEGACY.contains(&byte) || (0x40..0x50).contains(&byte)
}

/// Whether these bytes have this prefix before the opcode.
fn has_prefix(bytes: &[u8], prefix: u8) -> bool {
    let mut prefixes = bytes.iter().take_while(|byte| is_prefix(**byte));
    prefixes.any(|byte| *byte == prefix)
}

/// Appends the name with its prefixes.
pub(super) fn push_name(
    formatter: &mut impl Formatter,
    insn: &Instruction,
    bytes: &[u8],
    name: &mut String,
) {
    const REPEATED: u8 = 0xf3;
    if let Some(padding) = padding(insn, bytes) {
        name.push_str(&padding);
        formatter.format_mnemonic_options(insn, name, FormatMnemonicOptions::NO_PREFIXES);
    } else if insn.mnemonic() == Mnemonic::Ret && has_prefix(bytes, REPEATED) {
        name.push_str("repz ret");
    } else {
        formatter.format_mnemonic(insn, name);
    }
}

/// A product of a register and a number that goes into the same register: objdump names it twice.
pub(super) fn repeats_destination(insn: &Instruction) -> bool {
    insn.mnemonic() == Mnemonic::Imul
        && insn.op_count() == 3
        && insn.op1_kind() == OpKind::Register
        && insn.op0_register() == insn.op1_register()
}

fn is_string_operand(kind: OpKind) -> bool {
    is_source(kind) || is_destination(kind)
}

pub(super) fn is_source(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::MemorySegSI | OpKind::MemorySegESI | OpKind::MemorySegRSI
    )
}

pub(super) fn is_destination(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::MemoryESDI | OpKind::MemoryESEDI | OpKind::MemoryESRDI
    )
}

pub(super) fn is_string_operation(insn: &Instruction) -> bool {
    (0..insn.op_count()).any(|index| is_string_operand(insn.op_kind(index)))
}

/// Whether it is one of the x87's that work on the two places at the top of its stack and leave one.
pub(super) fn pops_in_place(insn: &Instruction) -> bool {
    use Mnemonic as M;
    let all = [M::Faddp, M::Fmulp, M::Fsubp, M::Fsubrp, M::Fdivp, M::Fdivrp];
    all.contains(&insn.mnemonic())
}
