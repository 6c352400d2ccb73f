//! Unwinding steps derived from instructions: of signal returns, and of code without frame information.

use crate::Arch;
use crate::step::{Cfa, RegisterLocation, Step};

/// The code around an instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instructions<'a> {
    /// The object's file.
    pub(crate) bytes: &'a [u8],
    /// Offset in `bytes` of the instruction that is executed next.
    pub(crate) next: usize,
}

impl Instructions<'_> {
    /// Whether `code` starts at the next instruction.
    fn begin_with(&self, code: &[u8]) -> bool {
        self.has_after(0, code)
    }

    /// Whether `code` starts `distance` bytes after the start of the next instruction.
    fn has_after(&self, distance: usize, code: &[u8]) -> bool {
        let from = self.next.saturating_add(distance);
        self.bytes
            .get(from..)
            .is_some_and(|rest| rest.starts_with(code))
    }

    /// The `length` bytes before the next instruction; fewer at the start of the file.
    fn before(&self, length: usize) -> &[u8] {
        let from = self.next.saturating_sub(length);
        self.bytes.get(from..self.next).unwrap_or_default()
    }

    /// Whether `code` starts `distance` bytes before the next instruction.
    fn has_before(&self, distance: usize, code: &[u8]) -> bool {
        let from = self.next.checked_sub(distance);
        let rest = from.and_then(|from| self.bytes.get(from..));
        rest.is_some_and(|rest| rest.starts_with(code))
    }
}

/// `mov $15, %rax; syscall`: rt_sigreturn(2).
const X86_64_SIGNAL_RETURN: &[u8] = &[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
/// `mov x8, #139; svc #0`.
const AARCH64_SIGNAL_RETURN: &[u8] = &[0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4];

/// The DWARF numbers of the saved registers in `struct ucontext` of x86-64 (`asm/ucontext.h`, `asm/sigcontext.h`), and their
/// offsets in bytes; in the kernel's order, which starts with r8 to r15. At a signal return, the stack pointer points to this
/// structure.
const X86_64_CONTEXT: [(u8, i64); 17] = [
    (8, 40),
    (9, 48),
    (10, 56),
    (11, 64),
    (12, 72),
    (13, 80),
    (14, 88),
    (15, 96),
    (5, 104),
    (4, 112),
    (6, 120),
    (3, 128),
    (1, 136),
    (0, 144),
    (2, 152),
    (7, 160),
    (16, 168),
];

/// Offset of x0 in a signal frame on 64-bit Arm: `siginfo`, the start of `struct ucontext`,
/// `fault_address`.
const AARCH64_X0: i64 = 128 + 176 + 8;
/// DWARF number of the program counter on 64-bit Arm, the [`Step::return_address_register`] of a signal frame.
/// Other frames return to the address in the link register.
const AARCH64_PC: u8 = 32;

/// The step of a signal return, which restores all registers from where the kernel saved them; `None` for other code, and on
/// 32-bit architectures.
pub(crate) fn signal_return(arch: Arch, code: Instructions<'_>) -> Option<Step> {
    // A signal return has two instructions. The next instruction is one of them; or it is the one after them, while the kernel
    // executes the second.
    match arch {
        Arch::X86_64 => {
            let is_return = code.begin_with(X86_64_SIGNAL_RETURN)
                || code.has_before(7, X86_64_SIGNAL_RETURN)
                || code.has_before(9, X86_64_SIGNAL_RETURN);
            is_return.then(|| {
                signal_frame(
                    arch,
                    X86_64_CONTEXT.into_iter(),
                    arch.return_address_register(),
                )
            })
        }
        Arch::Aarch64 => {
            let is_return = code.begin_with(AARCH64_SIGNAL_RETURN)
                || code.has_before(4, AARCH64_SIGNAL_RETURN)
                || code.has_before(8, AARCH64_SIGNAL_RETURN);
            // DWARF's numbers and the kernel's structure have the same order: x0 to x30, the stack pointer, the program counter.
            let all = (0..=AARCH64_PC).zip(0..);
            let saved = all.map(|(register, index): (u8, i64)| (register, AARCH64_X0 + index * 8));
            is_return.then(|| signal_frame(arch, saved, AARCH64_PC))
        }
        Arch::X86 | Arch::Arm => None,
    }
}

/// The step of a signal frame. `saved` are its registers and their offsets from the stack pointer.
fn signal_frame(
    arch: Arch,
    saved: impl Iterator<Item = (u8, i64)>,
    return_address_register: u8,
) -> Step {
    let stack_pointer = arch.stack_pointer();
    let location = |offset| RegisterLocation::AtRegister {
        register: stack_pointer,
        offset,
    };
    let saved = saved.map(|(register, offset)| (register, location(offset)));
    Step {
        cfa: Cfa::Register {
            register: stack_pointer,
            offset: 0,
        },
        saved: saved.collect(),
        return_address_register,
        is_signal: true,
    }
}

/// Whether the previous instruction may be a call.
pub(crate) fn follows_call(arch: Arch, code: Instructions<'_>) -> bool {
    match arch {
        Arch::X86_64 | Arch::X86 => {
            // Direct `call`; or indirect through a register or memory, with several possible lengths.
            let indirect = [2, 3, 4, 6, 7].iter().any(|length| {
                let bytes = code.before(*length);
                matches!(bytes, [0xff, modrm, ..] if modrm >> 3 & 7 == 2)
            });
            indirect || matches!(code.before(5), [0xe8, ..])
        }
        // `bl`, and `blr` with or without pointer authentication.
        Arch::Aarch64 => match code.before(4) {
            [_, _, _, high] if high >> 2 == 0x25 => true,
            [_, _, 0x3f, 0xd6 | 0xd7] => true,
            _ => false,
        },
        // Thumb code has shorter, ambiguous encodings.
        Arch::Arm => true,
    }
}

/// The step of the next instruction if it is known without the function's frame information: on 64-bit x86, in PLT entries and at
/// the first and last instructions of functions; on 64-bit Arm, in PLT entries and at `ret`. `in_plt` means that the instruction
/// is in a PLT section; it is used only on 64-bit Arm, as PLT entries of x86-64 are found by their bytes.
pub(crate) fn well_known_step(arch: Arch, code: Instructions<'_>, in_plt: bool) -> Option<Step> {
    match arch {
        Arch::X86_64 => {
            let not_saved = None;
            Some(match x86_64_stack_top(code)? {
                StackTop::ReturnAddress => pushed(arch, 8, not_saved),
                StackTop::OnePushed => pushed(arch, 16, not_saved),
                StackTop::FramePointerPushed => pushed(arch, 16, arch.frame_pointer()),
            })
        }
        Arch::Aarch64 => {
            let is_return = code.begin_with(&[0xc0, 0x03, 0x5f, 0xd6]);
            (in_plt || is_return).then(|| link_register_step(arch))
        }
        Arch::X86 | Arch::Arm => None,
    }
}

/// What is at the top of the stack.
enum StackTop {
    /// The return address.
    ReturnAddress,
    /// One pushed word, then the return address.
    OnePushed,
    /// The caller's frame pointer, then the return address.
    FramePointerPushed,
}

/// The top of the stack at the next instruction, if it is known.
fn x86_64_stack_top(code: Instructions<'_>) -> Option<StackTop> {
    // `jmp *offset(%rip)`, without and with the `bnd` prefix.
    const JUMP_THROUGH_TABLE: [&[u8]; 2] = [&[0xff, 0x25], &[0xf2, 0xff, 0x25]];
    // `ret`, `repz ret`, `ret $number`.
    const RETURN: [&[u8]; 3] = [&[0xc3], &[0xf3, 0xc3], &[0xc2]];
    const PUSH_NUMBER: u8 = 0x68;
    const PUSH_NUMBER_LEN: usize = 5;
    const JUMP: u8 = 0xe9;
    const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const PUSH_FRAME_POINTER: u8 = 0x55;
    // `mov %rsp, %rbp` in its two encodings.
    const SET_FRAME_POINTER: [&[u8]; 2] = [&[0x48, 0x89, 0xe5], &[0x48, 0x8b, 0xec]];
    const POP_AND_RETURN: &[u8] = &[0x5d, 0xc3];

    let skip = if code.begin_with(ENDBR64) {
        ENDBR64.len()
    } else {
        0
    };
    let sets_frame_pointer = |from| {
        let mut all = SET_FRAME_POINTER.iter();
        all.any(|set| code.has_after(from, set))
    };
    let returns = RETURN.iter().any(|bytes| code.begin_with(bytes));
    let mut jumps = JUMP_THROUGH_TABLE.iter();
    let jumps_through_table = jumps.any(|jump| code.has_after(skip, jump));
    let begins_lazy_binding =
        code.has_after(skip, &[PUSH_NUMBER]) && code.has_after(skip + PUSH_NUMBER_LEN, &[JUMP]);
    let begins_function =
        code.has_after(skip, &[PUSH_FRAME_POINTER]) && sets_frame_pointer(skip + 1);
    if returns || jumps_through_table || begins_lazy_binding || begins_function {
        return Some(StackTop::ReturnAddress);
    }
    if code.begin_with(&[JUMP]) && code.has_before(PUSH_NUMBER_LEN, &[PUSH_NUMBER]) {
        return Some(StackTop::OnePushed);
    }
    let has_pushed = sets_frame_pointer(0) && code.has_before(1, &[PUSH_FRAME_POINTER]);
    (has_pushed || code.begin_with(POP_AND_RETURN)).then_some(StackTop::FramePointerPushed)
}

/// The step of code on x86-64 whose return address is directly below the caller's stack, which begins `size` bytes above the
/// stack pointer. If `frame_pointer` is given, the caller's value of this register is below the return address.
fn pushed(arch: Arch, size: i64, frame_pointer: Option<u8>) -> Step {
    let return_address_register = arch.return_address_register();
    let mut saved = vec![(return_address_register, RegisterLocation::AtCfa(-8))];
    saved.extend(frame_pointer.map(|register| (register, RegisterLocation::AtCfa(-16))));
    Step {
        cfa: Cfa::Register {
            register: arch.stack_pointer(),
            offset: size,
        },
        saved: saved.into_boxed_slice(),
        return_address_register,
        is_signal: false,
    }
}

/// The step of code whose return address is still in the link register, and that has not moved the stack pointer.
pub(crate) fn link_register_step(arch: Arch) -> Step {
    Step {
        cfa: Cfa::Register {
            register: arch.stack_pointer(),
            offset: 0,
        },
        saved: Box::default(),
        return_address_register: arch.return_address_register(),
        is_signal: false,
    }
}
