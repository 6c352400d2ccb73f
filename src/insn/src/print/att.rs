//! x86 in AT&T syntax.

use iced_x86::{Formatter, GasFormatter, Instruction, Mnemonic, OpKind, Register};

use super::x86::{
    Style, has_implied_one, is_string_destination, is_string_operation, is_string_source,
    pops_in_place, repeats_destination,
};

impl Style for GasFormatter {
    fn fix_name(&self, insn: &Instruction, name: &mut String) {
        // objdump prints no suffix for an instruction's default size: `q` (only in 64-bit mode) for these four mnemonics, and `l`
        // for a far return.
        let is_64_bit_by_default = matches!(
            insn.mnemonic(),
            Mnemonic::Jmp | Mnemonic::Call | Mnemonic::Push | Mnemonic::Pop
        );
        let has_default_q = is_64_bit_by_default && name.ends_with('q');
        if has_default_q || insn.mnemonic() == Mnemonic::Retf && name.ends_with('l') {
            name.pop();
        }
    }

    fn operands(&mut self, insn: &Instruction, bytes: &[u8], operands: &mut String) {
        self.format_all_operands(insn, operands);
        // Differences from the formatter: objdump prints `shl %eax` without the implied 1, and `imul $3,%eax,%eax` with both
        // registers.
        if has_implied_one(insn, bytes)
            && let Some(rest) = operands.strip_prefix("$0x1,")
        {
            *operands = rest.to_owned();
        } else if repeats_destination(insn)
            && let Some((_, last)) = operands.rsplit_once(',')
        {
            let last = format!(",{last}");
            operands.push_str(&last);
        } else if is_string_operation(insn) {
            add_segments(insn, operands);
            parenthesize_port(insn, operands);
        } else if matches!(insn.mnemonic(), Mnemonic::In | Mnemonic::Out) {
            parenthesize_port(insn, operands);
        } else if operands.is_empty() && pops_in_place(insn) {
            // Operands that the formatter omits: here those of `faddp`, below that of `fxch`.
            operands.push_str("%st,%st(1)");
        } else if operands.is_empty() && insn.mnemonic() == Mnemonic::Fxch {
            operands.push_str("%st(1)");
        }
    }
}

/// Adds the implied segment registers to the memory operands of a string instruction, unless they are already printed.
fn add_segments(insn: &Instruction, operands: &mut String) {
    // AT&T syntax has the operands in reverse order.
    let kinds = (0..insn.op_count()).rev().map(|index| insn.op_kind(index));
    let has_segment_prefix = insn.segment_prefix() != Register::None;
    let parts = operands.split(',').zip(kinds).map(|(part, kind)| {
        if is_string_destination(kind) && !part.starts_with('%') {
            format!("%es:{part}")
        } else if is_string_source(kind) && !has_segment_prefix {
            format!("%ds:{part}")
        } else {
            part.to_owned()
        }
    });
    *operands = parts.collect::<Vec<_>>().join(",");
}

/// Puts a port register into parentheses.
fn parenthesize_port(insn: &Instruction, operands: &mut String) {
    let is_port =
        |index| insn.op_kind(index) == OpKind::Register && insn.op_register(index) == Register::DX;
    if (0..insn.op_count()).any(is_port) {
        *operands = operands.replace("%dx", "(%dx)");
    }
}
