//! DWARF expressions in frame information.

use gimli::{Encoding, EndianSlice, Evaluation, EvaluationResult, RunTimeEndian, Value};

use crate::machine::FrameState;
use crate::outcome::TruncationCause;

/// Maximum number of operations: real expressions have about ten.
const MAX_OPERATIONS: u32 = 1000;

/// A DWARF expression, copied from its section.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) endian: RunTimeEndian,
    pub(crate) encoding: Encoding,
}

impl Expression {
    /// Evaluates the expression; `initial`, if given, is pushed on its stack first.
    ///
    /// # Errors
    ///
    /// [`TruncationCause::BadFrameInfo`] if the expression is invalid or unsupported, or needs an unknown register; otherwise why
    /// the stack cannot be read.
    pub(crate) fn run(
        &self,
        frame: &FrameState<'_>,
        initial: Option<u64>,
    ) -> Result<u64, TruncationCause> {
        let malformed = |_: gimli::Error| TruncationCause::BadFrameInfo;
        let bytes = EndianSlice::new(&self.bytes, self.endian);
        let mut evaluation = Evaluation::new(bytes, self.encoding);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut state = evaluation.evaluate().map_err(malformed)?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let number = u8::try_from(register.0);
                    let number = number.map_err(|_| TruncationCause::BadFrameInfo)?;
                    let value = Value::Generic(frame.register(number)?);
                    evaluation.resume_with_register(value).map_err(malformed)?
                }
                EvaluationResult::RequiresMemory { address, size, .. }
                    if (1..=8).contains(&size) =>
                {
                    let value = Value::Generic(frame.memory(address, size)?);
                    evaluation.resume_with_memory(value).map_err(malformed)?
                }
                _ => return Err(TruncationCause::BadFrameInfo),
            };
        }
        let value = evaluation.value_result();
        let value = value.ok_or(TruncationCause::BadFrameInfo)?;
        // The argument is the mask of an address: all bits are kept.
        value.to_u64(u64::MAX).map_err(malformed)
    }
}

#[cfg(test)]
mod tests {
    use gimli::Format;
    use rperf_wire::Endian;

    use super::*;
    use crate::{Arch, Registers, StackBytes};

    fn run(bytes: &[u8], initial: Option<u64>) -> Result<u64, TruncationCause> {
        let mut registers = Registers::new(0x1016);
        registers.set(7, 0x7000);
        registers.set(16, 0x1016);
        let stack = StackBytes {
            start: 0x7000,
            bytes: &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0],
            // The copy has its maximum size: reads beyond its end fail with `DumpEnd`.
            may_continue: true,
            endian: Endian::Little,
        };
        let frame = FrameState {
            arch: Arch::X86_64,
            registers: &registers,
            stack: &stack,
        };
        let expression = Expression {
            bytes: bytes.into(),
            endian: RunTimeEndian::Little,
            encoding: Encoding {
                address_size: 8,
                format: Format::Dwarf32,
                version: 4,
            },
        };
        expression.run(&frame, initial)
    }

    #[test]
    fn registers_and_the_stack_are_read() {
        // DW_OP_breg7 8, DW_OP_deref
        assert_eq!(run(&[0x77, 8, 0x06], None), Ok(2));
        // DW_OP_plus_uconst 3 on the canonical frame address
        assert_eq!(run(&[0x23, 3], Some(0x7010)), Ok(0x7013));
        // DW_OP_breg7 0, DW_OP_deref_size 1
        assert_eq!(run(&[0x77, 0, 0x94, 1], None), Ok(1));
    }

    #[test]
    fn plt_expressions_are_evaluated() {
        // A PLT entry has 16 bytes and pushes a word: the stack is 8 bytes larger from byte 11 on. Here, the address is byte 6.
        // breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus
        let program = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        assert_eq!(run(&program, None), Ok(0x7008));
    }

    #[test]
    fn invalid_and_endless_expressions_are_errors() {
        // Beyond the copy of the stack; below it; an unknown register; a loop; no value; an unknown operation.
        assert_eq!(run(&[0x77, 16, 0x06], None), Err(TruncationCause::DumpEnd));
        assert_eq!(
            run(&[0x77, 0x78, 0x06], None),
            Err(TruncationCause::OtherStack)
        );
        assert_eq!(run(&[0x73, 0], None), Err(TruncationCause::BadFrameInfo));
        assert_eq!(
            run(&[0x2f, 0xfd, 0xff], None),
            Err(TruncationCause::BadFrameInfo)
        );
        assert_eq!(run(&[], None), Err(TruncationCause::BadFrameInfo));
        assert_eq!(run(&[0xff], None), Err(TruncationCause::BadFrameInfo));
    }
}
