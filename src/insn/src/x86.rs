//! x86, in 32 and 64 bits.

use iced_x86::{Decoder, DecoderError, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

use crate::{BranchKind, Insn, MAX_LEN};

/// One-byte opcodes that are invalid in 64-bit mode. They occur where data are decoded as code; they are decoded as in 32-bit
/// mode, so that they have a length. Not listed: far calls and far jumps, which stay invalid, and opcodes that became prefixes.
const ONLY_32: [u8; 18] = [
    0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61, 0x82, 0xce, 0xd4,
    0xd5, 0xd6,
];

/// Decodes the instruction at the start of `bytes`, for code of `bits` bits; `None` if it is invalid or truncated.
pub(crate) fn decode(bits: u32, bytes: &[u8]) -> Option<Insn> {
    let insn = instruction(bits, bytes)?;
    // Near branches with the target in the instruction, not in a register or memory.
    let is_direct = insn.is_jcc_short_or_near()
        || insn.is_jmp_short_or_near()
        || insn.is_call_near()
        || insn.is_jcx_short()
        || insn.is_loop()
        || insn.is_loopcc();
    Some(Insn {
        len: insn.len(),
        is_branch: is_branch(&insn),
        target_offset: is_direct.then(|| target_offset(&insn)),
    })
}

/// The target of a near branch, sign-extended if it has only 16 or 32 bits. As [`instruction`] decodes at address 0, the target
/// is its offset from the start of the instruction.
fn target_offset(insn: &Instruction) -> i64 {
    match insn.op0_kind() {
        OpKind::NearBranch16 => insn.near_branch16().cast_signed().into(),
        OpKind::NearBranch32 => insn.near_branch32().cast_signed().into(),
        _ => insn.near_branch_target().cast_signed(),
    }
}

/// Decodes the instruction at the start of `bytes` as located at address 0; `None` if it is invalid or truncated.
fn instruction(bits: u32, bytes: &[u8]) -> Option<Instruction> {
    let bits = match bytes.first() {
        Some(opcode) if ONLY_32.contains(opcode) => 32,
        _ => bits,
    };
    let bytes = &bytes[..bytes.len().min(MAX_LEN)];
    // Executed code was accepted by the processor, so reserved encodings must be decoded too.
    let address = 0;
    let mut decoder = Decoder::with_ip(bits, bytes, address, DecoderOptions::NO_INVALID_CHECK);
    let insn = decoder.decode();
    (decoder.last_error() == DecoderError::None).then_some(insn)
}

/// The kind of the branch at the start of `bytes`; `None` if it is another instruction, invalid or truncated.
pub(crate) fn branch_kind(bits: u32, bytes: &[u8]) -> Option<BranchKind> {
    let insn = instruction(bits, bytes)?;
    match (insn.flow_control(), insn.mnemonic()) {
        (FlowControl::ConditionalBranch, _) => Some(BranchKind::Conditional),
        (FlowControl::UnconditionalBranch | FlowControl::IndirectBranch, _) => {
            Some(BranchKind::Jump)
        }
        (_, Mnemonic::Syscall | Mnemonic::Sysenter) => Some(BranchKind::SystemCall),
        (_, Mnemonic::Sysret | Mnemonic::Sysretq | Mnemonic::Sysexit | Mnemonic::Sysexitq) => {
            Some(BranchKind::SystemReturn)
        }
        (_, Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq | Mnemonic::Uiret) => {
            Some(BranchKind::InterruptReturn)
        }
        (_, Mnemonic::Ret | Mnemonic::Retf) => Some(BranchKind::Return),
        (_, Mnemonic::Vmlaunch | Mnemonic::Vmresume) => Some(BranchKind::VmEntry),
        (_, Mnemonic::Call) => Some(BranchKind::Call),
        (_, Mnemonic::Int | Mnemonic::Int3 | Mnemonic::Into) => Some(BranchKind::Interrupt),
        _ => None,
    }
}

fn is_branch(insn: &Instruction) -> bool {
    match insn.flow_control() {
        FlowControl::ConditionalBranch
        | FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::IndirectCall
        | FlowControl::Return
        | FlowControl::Interrupt => true,
        // The decoder classifies hypercalls as calls, but they are not branches of the program.
        FlowControl::Call => !matches!(
            insn.mnemonic(),
            Mnemonic::Vmcall
                | Mnemonic::Vmmcall
                | Mnemonic::Vmgexit
                | Mnemonic::Tdcall
                | Mnemonic::Seamcall
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode64(bytes: &[u8]) -> Option<Insn> {
        decode(64, bytes)
    }

    #[test]
    fn kinds_of_branches() {
        for (bytes, kind) in [
            (&[0x89, 0xc8][..], None),                             // mov eax, ecx
            (&[0xc3], Some(BranchKind::Return)),                   // ret
            (&[0xf3, 0xc3], Some(BranchKind::Return)),             // repz ret
            (&[0xeb, 0xfe], Some(BranchKind::Jump)),               // jmp .
            (&[0xff, 0xe0], Some(BranchKind::Jump)),               // jmp rax
            (&[0x75, 0x10], Some(BranchKind::Conditional)),        // jne
            (&[0xe3, 0x02], Some(BranchKind::Conditional)),        // jrcxz
            (&[0xe2, 0x02], Some(BranchKind::Conditional)),        // loop
            (&[0xe8, 0, 0, 0, 0], Some(BranchKind::Call)),         // call
            (&[0xff, 0xd0], Some(BranchKind::Call)),               // call rax
            (&[0x0f, 0x05], Some(BranchKind::SystemCall)),         // syscall
            (&[0x48, 0x0f, 0x07], Some(BranchKind::SystemReturn)), // sysretq
            (&[0xcd, 0x80], Some(BranchKind::Interrupt)),          // int 0x80
            (&[0x48, 0xcf], Some(BranchKind::InterruptReturn)),    // iretq
            (&[0x0f, 0x01, 0xc2], Some(BranchKind::VmEntry)),      // vmlaunch
            (&[0x0f, 0x01, 0xc1], None),                           // vmcall
            (&[0x0f, 0x0b], None),                                 // ud2
            (&[0xe8], None),                                       // truncated
        ] {
            assert_eq!(branch_kind(64, bytes), kind, "{bytes:x?}");
        }
    }

    #[test]
    fn lengths_and_branches() {
        for (bytes, is_branch, target_offset) in [
            (&[0x89, 0xc8][..], false, None),                     // mov eax, ecx
            (&[0xc3], true, None),                                // ret
            (&[0xeb, 0xfe], true, Some(0)),                       // jmp .
            (&[0x75, 0x10], true, Some(0x12)),                    // jne
            (&[0xe8, 0xfb, 0xff, 0xff, 0xff], true, Some(0)),     // call .
            (&[0x0f, 0x84, 0, 1, 0, 0], true, Some(0x106)),       // je
            (&[0xff, 0xe0], true, None),                          // jmp rax
            (&[0xff, 0xd0], true, None),                          // call rax
            (&[0x0f, 0x05], true, None),                          // syscall
            (&[0xcd, 0x80], true, None),                          // int 0x80
            (&[0xcc], true, None),                                // int3
            (&[0x48, 0xcf], true, None),                          // iretq
            (&[0xe3, 0x02], true, Some(4)),                       // jrcxz
            (&[0x0f, 0x0b], false, None),                         // ud2
            (&[0x0f, 0x01, 0xc1], false, None),                   // vmcall
            (&[0x0f, 0x01, 0xc2], true, None),                    // vmlaunch
            (&[0xf3, 0x0f, 0x01, 0xd9], false, None),             // vmgexit
            (&[0xf3, 0x0f, 0x1e, 0xfa], false, None),             // endbr64
            (&[0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1], false, None), // vmovaps zmm0, zmm1
        ] {
            let mut longer = bytes.to_vec();
            longer.extend([0x90; 15]);
            let insn = decode64(&longer).unwrap();
            assert_eq!(
                (insn.len, insn.is_branch),
                (bytes.len(), is_branch),
                "{bytes:x?}"
            );
            assert_eq!(insn.target_offset, target_offset, "{bytes:x?}");
            assert_eq!(decode64(bytes), Some(insn));
            assert_eq!(decode64(&bytes[..bytes.len() - 1]), None, "{bytes:x?}");
        }
    }

    /// Code of 32 and of 64 bits, an instruction that is too long, and instructions of 32-bit mode in 64-bit code.
    #[test]
    fn modes_differ() {
        // 0x48 is a prefix in 64-bit mode, but an instruction in 32-bit mode.
        let bytes = [0x48, 0x89, 0xe5];
        assert_eq!(decode64(&bytes).unwrap().len, 3);
        assert_eq!(decode(32, &bytes).unwrap().len, 1);
        // More prefixes than an instruction can have.
        assert_eq!(decode64(&[0x66; 16]), None);
        // A jump backwards, by its 32-bit target.
        assert_eq!(decode(32, &[0xeb, 0xfc]).unwrap().target_offset, Some(-2));
        // pop ss and aam are invalid in 64-bit mode: they are decoded as in 32-bit mode.
        assert_eq!(decode64(&[0x17]).unwrap().len, 1);
        assert_eq!(decode64(&[0xd4, 0x0a]).unwrap().len, 2);
    }
}
