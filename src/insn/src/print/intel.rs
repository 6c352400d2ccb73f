//! x86 in Intel syntax.

use iced_x86::{
    Code, Formatter, Instruction, IntelFormatter, MemorySize, Mnemonic, OpKind, Register,
};

use super::x86::{Style, has_implied_one, is_string_operation, pops_in_place, repeats_destination};

impl Style for IntelFormatter {
    fn fix_name(&self, insn: &Instruction, name: &mut String) {
        if is_long_move(insn) {
            name.replace_range(name.len() - "mov".len().., "movabs");
        } else if is_string_operation(insn) {
            // Removes the suffix for the size, which is printed with the memory operand.
            name.pop();
        }
    }

    fn operands(&mut self, insn: &Instruction, bytes: &[u8], operands: &mut String) {
        if is_string_operation(insn) {
            *operands = string_operands(insn);
            return;
        }
        self.format_all_operands(insn, operands);
        // The formatter omits some implied operands that objdump prints, and prints `st` where objdump omits it.
        if pops_in_place(insn) && operands.is_empty() {
            operands.push_str("st(1),st");
        } else if hides_top(insn) {
            let parts = operands.split(',').filter(|part| *part != "st");
            *operands = parts.collect::<Vec<_>>().join(",");
        }
        if operands.is_empty() && insn.mnemonic() == Mnemonic::Fxch {
            operands.push_str("st(1)");
        }
        // objdump prints both registers of `imul rdi,rdi,0x6a8`, and the implied 1 of a shift without `0x`.
        if repeats_destination(insn)
            && let Some((first, _)) = operands.split_once(',')
        {
            *operands = format!("{first},{operands}");
        }
        if has_implied_one(insn, bytes) && operands.ends_with(",0x1") {
            operands.truncate(operands.len() - "0x1".len());
            operands.push('1');
        }
        fix_address(insn, operands);
    }
}

/// Prints absolute and program-counter-relative memory operands like objdump.
fn fix_address(insn: &Instruction, operands: &mut String) {
    let (Some(begin), Some(end)) = (operands.find('['), operands.find(']')) else {
        return;
    };
    match insn.memory_base() {
        Register::RIP => {
            let displacement = insn.memory_displacement64().wrapping_sub(insn.next_ip());
            operands.replace_range(begin..=end, &format!("[rip+0x{displacement:x}]"));
        }
        Register::EIP => {
            let next = insn.next_ip32();
            let displacement = insn.memory_displacement32().wrapping_sub(next);
            let extended = i64::from(displacement.cast_signed());
            operands.replace_range(begin..=end, &format!("[eip+0x{extended:x}]"));
        }
        Register::None if insn.memory_index() == Register::None => {
            operands.remove(end);
            let segment = match operands[..begin].ends_with(':') {
                true => "",
                false => "ds:",
            };
            operands.replace_range(begin..=begin, segment);
        }
        _ => {}
    }
}

/// Whether objdump omits `st`, the top of the x87 stack, as an implied operand. Also true for instructions with a memory
/// operand that don't use the x87 stack, and so have no `st` to omit.
fn hides_top(insn: &Instruction) -> bool {
    use Mnemonic as M;
    let mnemonic = insn.mnemonic();
    let with_one_operand = [
        M::Fld,
        M::Fst,
        M::Fstp,
        M::Fxch,
        M::Fcom,
        M::Fcomp,
        M::Fucom,
        M::Fucomp,
        M::Fucompp,
        M::Fcompp,
    ];
    // Other instructions without a memory operand are printed with both registers.
    with_one_operand.contains(&mnemonic) || insn.memory_size() != MemorySize::Unknown
}

/// Operands of string instructions: memory with its segment, and the implied register.
fn string_operands(insn: &Instruction) -> String {
    let size = match insn.memory_size().size() {
        1 => "BYTE",
        2 => "WORD",
        4 => "DWORD",
        _ => "QWORD",
    };
    let name = |register: Register| format!("{register:?}").to_lowercase();
    let operand = |index| {
        let kind = insn.op_kind(index);
        let (segment, register) = match kind {
            OpKind::MemoryESDI => ("es".to_owned(), "di"),
            OpKind::MemoryESEDI => ("es".to_owned(), "edi"),
            OpKind::MemoryESRDI => ("es".to_owned(), "rdi"),
            OpKind::MemorySegSI => (name(insn.memory_segment()), "si"),
            OpKind::MemorySegESI => (name(insn.memory_segment()), "esi"),
            OpKind::MemorySegRSI => (name(insn.memory_segment()), "rsi"),
            _ => return name(insn.op_register(index)),
        };
        format!("{size} PTR {segment}:[{register}]")
    };
    let operands = (0..insn.op_count()).map(operand);
    operands.collect::<Vec<_>>().join(",")
}

/// Whether the instruction is a move with an eight-byte immediate or an eight-byte absolute address.
fn is_long_move(insn: &Instruction) -> bool {
    let of_immediate = insn.code() == Code::Mov_r64_imm64;
    let of_address = matches!(
        insn.code(),
        Code::Mov_AL_moffs8
            | Code::Mov_AX_moffs16
            | Code::Mov_EAX_moffs32
            | Code::Mov_RAX_moffs64
            | Code::Mov_moffs8_AL
            | Code::Mov_moffs16_AX
            | Code::Mov_moffs32_EAX
            | Code::Mov_moffs64_RAX
    );
    of_immediate || of_address && insn.memory_displ_size() == 8
}
