//! x86 as AT&T writes it.

use std::fmt::Write as _;

use iced_x86::{Formatter, GasFormatter, Instruction, Mnemonic, OpKind, Register};

use super::lay_out;
use super::x86::{
    has_implied_one, is_destination, is_direct, is_source, is_string_operation, pops_in_place,
    push_name, repeats_destination, set_memory_options, set_options,
};

/// The formatter, and what was formatted last.
pub(super) struct Att {
    formatter: GasFormatter,
    name: String,
    operands: String,
}

impl Att {
    pub(super) fn new() -> Self {
        let mut formatter = GasFormatter::new();
        set_options(formatter.options_mut());
        Self {
            formatter,
            name: String::new(),
            operands: String::new(),
        }
    }

    pub(super) fn print(&mut self, insn: &Instruction, bytes: &[u8], text: &mut String) {
        self.name(insn, bytes);
        self.operands(insn, bytes);
        lay_out(text, &self.name, &self.operands);
    }

    fn name(&mut self, insn: &Instruction, bytes: &[u8]) {
        self.name.clear();
        let name = &mut self.name;
        push_name(&mut self.formatter, insn, bytes, name);
        // In 64-bit code these have one size, of which objdump says nothing.
        let sized = matches!(
            insn.mnemonic(),
            Mnemonic::Jmp | Mnemonic::Call | Mnemonic::Push | Mnemonic::Pop
        );
        if sized && name.ends_with('q') {
            name.pop();
        }
        if insn.mnemonic() == Mnemonic::Retf && name.ends_with('l') {
            name.pop();
        }
    }

    fn operands(&mut self, insn: &Instruction, bytes: &[u8]) {
        self.operands.clear();
        let (operands, formatter) = (&mut self.operands, &mut self.formatter);
        set_memory_options(formatter.options_mut(), insn);
        if is_direct(insn) {
            // Writing to a string cannot fail.
            let _ = write!(operands, "{:x}", insn.near_branch_target());
            return;
        }
        formatter.format_all_operands(insn, operands);
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
            name_segments(insn, operands);
            name_port(insn, operands);
        } else if matches!(insn.mnemonic(), Mnemonic::In | Mnemonic::Out) {
            name_port(insn, operands);
        } else if operands.is_empty() && pops_in_place(insn) {
            operands.push_str("%st,%st(1)");
        } else if operands.is_empty() && insn.mnemonic() == Mnemonic::Fxch {
            operands.push_str("%st(1)");
        }
    }
}

/// Puts the segments that memory is in by its registers before them.
fn name_segments(insn: &Instruction, operands: &mut String) {
    let kinds = (0..insn.op_count()).rev().map(|index| insn.op_kind(index));
    let has_segment = insn.segment_prefix() != Register::None;
    let parts = operands.split(',').zip(kinds).map(|(part, kind)| {
        if is_destination(kind) && !part.starts_with('%') {
            format!("%es:{part}")
        } else if is_source(kind) && !has_segment {
            format!("%ds:{part}")
        } else {
            part.to_owned()
        }
    });
    *operands = parts.collect::<Vec<_>>().join(",");
}

/// Puts a port that a register names into parentheses.
fn name_port(insn: &Instruction, operands: &mut String) {
    let is_port =
        |index| insn.op_kind(index) == OpKind::Register && insn.op_register(index) == Register::DX;
    if (0..insn.op_count()).any(is_port) {
        *operands = operands.replace("%dx", "(%dx)");
    }
}
