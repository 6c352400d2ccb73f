//! Unwind instructions of `.ARM.exidx` and `.ARM.extab` ("Exception Handling ABI for the Arm
//! Architecture", section 10.3).

use crate::outcome::TruncationCause;
use crate::step::{Cfa, RegisterLocation, Step};

const STACK_POINTER: u8 = 13;
const LINK: u8 = 14;
const INSTRUCTION_POINTER: u8 = 15;
/// Size of a general register in bytes.
const WORD: i64 = 4;
/// Size of a floating-point register in bytes.
const DOUBLE: i64 = 8;

/// Compiles `code` to a step.
///
/// # Errors
///
/// [`TruncationCause::NoFrameInfo`] if `code` refuses to unwind, [`TruncationCause::BadFrameInfo`] if it is invalid or
/// unsupported.
pub(crate) fn compile(code: &[u8]) -> Result<Step, TruncationCause> {
    let mut state = ArmState {
        base: Some(STACK_POINTER),
        offset: 0,
        saved: Vec::new(),
    };
    let mut code = ArmCode(code);
    while let Some(instruction) = code.next() {
        if !state.execute(instruction, &mut code)? {
            break;
        }
    }
    Ok(state.finish())
}

/// The instructions and operands not read yet.
struct ArmCode<'c>(&'c [u8]);

impl ArmCode<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads an operand byte.
    fn operand(&mut self) -> Result<u8, TruncationCause> {
        self.next().ok_or(TruncationCause::BadFrameInfo)
    }

    /// Reads an unsigned LEB128 number of at most 28 bits.
    fn number(&mut self) -> Result<i64, TruncationCause> {
        let mut number = 0;
        for shift in (0..28).step_by(7) {
            let byte = self.operand()?;
            number |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(TruncationCause::BadFrameInfo)
    }
}

/// The virtual stack pointer, and the registers popped so far.
struct ArmState {
    /// The register that the virtual stack pointer is relative to; `None` after the virtual stack pointer itself was popped.
    base: Option<u8>,
    /// The virtual stack pointer minus the value of `base`, in bytes.
    offset: i64,
    /// The locations of the popped registers.
    saved: Vec<(u8, RegisterLocation)>,
}

impl ArmState {
    /// Executes one instruction; returns `false` if it ends the program.
    fn execute(
        &mut self,
        instruction: u8,
        code: &mut ArmCode<'_>,
    ) -> Result<bool, TruncationCause> {
        let low = instruction & 7;
        match instruction {
            0x00..=0x3f => self.skip(distance(instruction))?,
            0x40..=0x7f => self.skip(-distance(instruction))?,
            0x80..=0x8f => {
                let mask = u16::from(instruction & 0xf) << 12 | u16::from(code.operand()?) << 4;
                if mask == 0 {
                    return Err(TruncationCause::NoFrameInfo);
                }
                self.pop(mask)?;
            }
            // 0x9d and 0x9f, which name the stack pointer and the instruction pointer, are reserved.
            0x90..=0x9c | 0x9e => self.set_base(instruction & 0xf)?,
            0xa0..=0xa7 => self.pop(registers_from_4(low))?,
            0xa8..=0xaf => self.pop(registers_from_4(low) | 1 << LINK)?,
            0xb0 => return Ok(false),
            0xb1 => match code.operand()? {
                mask @ 1..=0xf => self.pop(mask.into())?,
                _ => return Err(TruncationCause::BadFrameInfo),
            },
            0xb2 => self.skip(0x204 + (code.number()? << 2))?,
            // Registers saved by FSTMFDX, here and in 0xb8 to 0xbf, are followed by an extra word.
            0xb3 => self.skip(DOUBLE * register_count(code.operand()?) + WORD)?,
            // Pops the pointer authentication code.
            0xb4 => self.skip(WORD)?,
            // The stack pointer is the modifier of the authentication code, which is not checked.
            0xb5 => {}
            0xb8..=0xbf => self.skip(DOUBLE * register_count(low) + WORD)?,
            0xc0..=0xc5 | 0xd0..=0xd7 => self.skip(DOUBLE * register_count(low))?,
            0xc6 | 0xc8 | 0xc9 => self.skip(DOUBLE * register_count(code.operand()?))?,
            0xc7 => match code.operand()? {
                mask @ 1..=0xf => self.skip(WORD * i64::from(mask.count_ones()))?,
                _ => return Err(TruncationCause::BadFrameInfo),
            },
            _ => return Err(TruncationCause::BadFrameInfo),
        }
        Ok(true)
    }

    /// Adds `bytes`, which may be negative, to the virtual stack pointer.
    fn skip(&mut self, bytes: i64) -> Result<(), TruncationCause> {
        self.base.ok_or(TruncationCause::BadFrameInfo)?;
        self.offset += bytes;
        Ok(())
    }

    /// Pops the registers of `mask`, the lowest one from the lowest address. The last pop of a register counts.
    fn pop(&mut self, mask: u16) -> Result<(), TruncationCause> {
        let base = self.base.ok_or(TruncationCause::BadFrameInfo)?;
        for register in (0..16).filter(|register| mask >> register & 1 == 1) {
            let offset = self.offset;
            self.saved.retain(|(saved, _)| *saved != register);
            let place = RegisterLocation::AtRegister {
                register: base,
                offset,
            };
            self.saved.push((register, place));
            self.offset += WORD;
        }
        if mask >> STACK_POINTER & 1 == 1 {
            self.base = None;
        }
        Ok(())
    }

    /// Sets the virtual stack pointer to `register`.
    ///
    /// # Errors
    ///
    /// If `register` or the stack pointer was popped before: a step cannot describe this.
    fn set_base(&mut self, register: u8) -> Result<(), TruncationCause> {
        if self.base.is_none() || self.restores(register) {
            return Err(TruncationCause::BadFrameInfo);
        }
        (self.base, self.offset) = (Some(register), 0);
        Ok(())
    }

    /// Whether `register` was popped.
    fn restores(&self, register: u8) -> bool {
        self.saved.iter().any(|(saved, _)| *saved == register)
    }

    fn finish(self) -> Step {
        let restores_ip = self.restores(INSTRUCTION_POINTER);
        Step {
            // Functions don't save the caller's stack pointer; only the kernel does, in signal frames.
            is_signal: restores_ip && self.base.is_none(),
            // If the stack pointer was popped, its location in `saved` overrides this.
            cfa: Cfa::Register {
                register: self.base.unwrap_or(STACK_POINTER),
                offset: self.offset,
            },
            return_address_register: if restores_ip {
                INSTRUCTION_POINTER
            } else {
                LINK
            },
            saved: self.saved.into_boxed_slice(),
        }
    }
}

/// The distance in bytes: the low six bits are the number of words, minus one.
fn distance(instruction: u8) -> i64 {
    (i64::from(instruction & 0x3f) << 2) + WORD
}

/// Mask of r4 and `more` following registers.
fn registers_from_4(more: u8) -> u16 {
    ((2_u16 << more) - 1) << 4
}

/// Number of registers: the low four bits of `operand`, which is an operand byte or a field of an instruction, plus one.
fn register_count(operand: u8) -> i64 {
    i64::from(operand & 0xf) + 1
}

#[cfg(test)]
mod tests {
    use rperf_wire::Endian;

    use super::*;
    use crate::machine::FrameState;
    use crate::{Arch, Registers, StackBytes};

    /// The address of the stack's first byte.
    const START: u64 = 0x7000;
    /// The return address in `lr`.
    const RETURNS_TO: u64 = 0x1234;

    /// The registers that `code` changes, with their new values. Before, `sp` is 0x7010, `lr` is [`RETURNS_TO`], `rN` for N from
    /// 0 to 11 is 0x7100 + 4 * N, and the others are unknown; each word of the stack contains its own address.
    fn run(code: &[u8]) -> Result<Vec<(u8, u64)>, TruncationCause> {
        let words = (0..0x400_u32).flat_map(|word| (0x7000 + word * 4).to_le_bytes());
        let bytes: Vec<u8> = words.collect();
        let stack = StackBytes {
            start: START,
            bytes: &bytes,
            may_continue: true,
            endian: Endian::Little,
        };
        let mut before = Registers::new(0x1000);
        for register in 0..12 {
            before.set(register, START + 0x100 + u64::from(register) * 4);
        }
        before.set(STACK_POINTER, START + 0x10);
        before.set(LINK, RETURNS_TO);
        let frame = FrameState {
            arch: Arch::Arm,
            registers: &before,
            stack: &stack,
        };
        let after = compile(code)?.apply(&frame)?.expect("a caller");
        assert_eq!(after.get(INSTRUCTION_POINTER), Some(after.ip));
        let is_changed = |register: &u8| after.get(*register) != before.get(*register);
        let registers = (0..16).filter(is_changed);
        Ok(registers
            .map(|register| (register, after.get(register).unwrap()))
            .collect())
    }

    /// The number of bytes by which a program moves the stack pointer, if it does nothing else.
    fn moves(code: &[u8]) -> u64 {
        match run(code).expect("a program")[..] {
            [(STACK_POINTER, to), (INSTRUCTION_POINTER, RETURNS_TO)] => to - START - 0x10,
            [(INSTRUCTION_POINTER, RETURNS_TO)] => 0,
            ref other => panic!("{code:x?}: {other:x?}"),
        }
    }

    #[test]
    fn the_stack_pointer_is_moved() {
        assert_eq!(moves(&[]), 0);
        assert_eq!(moves(&[0xb0, 0x3f]), 0, "no instruction after the end");
        assert_eq!(moves(&[0x00]), 4);
        assert_eq!(moves(&[0x3f, 0x41]), 0x100 - 8);
        assert_eq!(moves(&[0xb2, 0x00]), 0x204);
        assert_eq!(moves(&[0xb2, 0x81, 0x01]), 0x204 + (0x81 << 2));
    }

    #[test]
    fn saved_registers_other_than_general_ones_are_skipped() {
        for (code, bytes) in [
            (&[0xb3, 0x80][..], 8 + 4),
            (&[0xb3, 0x83], 4 * 8 + 4),
            (&[0xb4], 4),
            (&[0xb5], 0),
            (&[0xb8], 8 + 4),
            (&[0xbf], 8 * 8 + 4),
            (&[0xc5], 6 * 8),
            (&[0xc6, 0x12], 3 * 8),
            (&[0xc7, 0x0b], 3 * 4),
            (&[0xc8, 0x0f], 16 * 8),
            (&[0xc9, 0x80], 8),
            (&[0xd0], 8),
            (&[0xd7], 8 * 8),
        ] {
            assert_eq!(moves(code), bytes, "{code:x?}");
        }
    }

    #[test]
    fn registers_are_popped_lowest_first() {
        let sp = STACK_POINTER;
        let ip = INSTRUCTION_POINTER;
        // After push {r4, r5, lr}.
        let popped = vec![
            (4, 0x7010),
            (5, 0x7014),
            (sp, 0x701c),
            (14, 0x7018),
            (ip, 0x7018),
        ];
        assert_eq!(run(&[0xa9]), Ok(popped.clone()));
        assert_eq!(run(&[0x84, 0x03, 0xb0, 0xb0]), Ok(popped));
        // After push {r4}; sub sp, 8.
        let popped = vec![(4, 0x7018), (sp, 0x701c), (ip, RETURNS_TO)];
        assert_eq!(run(&[0x01, 0xa0]), Ok(popped));
        // Pops the arguments r1 and r3, then the instruction pointer itself.
        let popped = vec![(1, 0x7010), (3, 0x7014), (sp, 0x701c), (ip, 0x7018)];
        assert_eq!(run(&[0xb1, 0x0a, 0x88, 0x00]), Ok(popped));
    }

    #[test]
    fn frames_may_be_relative_to_other_registers() {
        // After push {r11, lr}; add r11, sp, 4. In this test, r11 is 0x712c.
        let popped = vec![(11, 0x7128), (13, 0x7130), (14, 0x712c), (15, 0x712c)];
        assert_eq!(run(&[0x9b, 0x40, 0x84, 0x80]), Ok(popped));
        // Relative to a register that was popped before.
        assert_eq!(run(&[0x84, 0x80, 0x9b]), Err(TruncationCause::BadFrameInfo));
    }

    #[test]
    fn a_signal_saves_everything() {
        let code = [0xb1, 0x0f, 0x8f, 0xff];
        let step = compile(&code).unwrap();
        assert!(step.is_signal);
        let after = run(&code).unwrap();
        assert_eq!(after.len(), 16);
        assert_eq!(after[13..], [(13, 0x7044), (14, 0x7048), (15, 0x704c)]);
        assert!(!compile(&[0x88, 0x00]).unwrap().is_signal);
    }

    #[test]
    fn nothing_is_popped_after_the_stack_pointer() {
        // After the stack pointer was popped, nothing can be popped or skipped, and no other register can replace it.
        assert_eq!(run(&[0x8f, 0xff, 0xa0]), Err(TruncationCause::BadFrameInfo));
        assert_eq!(run(&[0x8f, 0xff, 0x00]), Err(TruncationCause::BadFrameInfo));
        assert_eq!(run(&[0x82, 0x00, 0x94]), Err(TruncationCause::BadFrameInfo));
    }

    #[test]
    fn reserved_and_truncated_opcodes_are_refused() {
        assert_eq!(run(&[0x80, 0x00]), Err(TruncationCause::NoFrameInfo));
        for code in [
            &[0x80][..],
            &[0x9d],
            &[0x9f],
            &[0xb1],
            &[0xb1, 0x00],
            &[0xb1, 0x10],
            &[0xb2],
            &[0xb2, 0x80],
            &[0xb2, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0xb3],
            &[0xb6],
            &[0xb7],
            &[0xc7, 0x00],
            &[0xc7, 0x10],
            &[0xca],
            &[0xcf],
            &[0xd8],
            &[0xff],
        ] {
            assert_eq!(run(code), Err(TruncationCause::BadFrameInfo), "{code:x?}");
        }
    }
}
