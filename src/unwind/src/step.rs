//! Steps from a frame to its caller: frame information for one address, compiled for fast
//! evaluation.

use crate::Arch;
use crate::expression::Expression;
use crate::machine::FrameState;
use crate::outcome::TruncationCause;
use crate::registers::Registers;

/// How to compute the caller's registers from those of a frame at one address.
#[derive(Debug)]
pub(crate) struct Step {
    /// The canonical frame address, which is the caller's stack pointer unless `saved` overrides
    /// it.
    pub(crate) cfa: Cfa,
    /// Locations of the caller's registers; others are unchanged.
    pub(crate) saved: Box<[(u8, RegisterLocation)]>,
    /// The register that contains the return address. If this register is not tracked, [`Self::apply`] fails.
    pub(crate) return_address_register: u8,
    /// Whether the caller was interrupted by a signal: its address is that of its next instruction, not a return address.
    pub(crate) is_signal: bool,
}

/// Computation of the canonical frame address.
#[derive(Debug)]
pub(crate) enum Cfa {
    /// A register plus an offset.
    Register { register: u8, offset: i64 },
    /// Result of an expression.
    Expression(Expression),
}

/// Location of a caller's register.
#[derive(Debug)]
pub(crate) enum RegisterLocation {
    /// Unknown. For the return address: there is no caller.
    Undefined,
    /// In memory, at an offset from the canonical frame address.
    AtCfa(i64),
    /// The canonical frame address plus an offset.
    Cfa(i64),
    /// In another register.
    Register(u8),
    /// In memory, at an offset from a register.
    AtRegister { register: u8, offset: i64 },
    /// In memory, at the result of an expression.
    AtExpression(Expression),
    /// The result of an expression.
    Expression(Expression),
    /// A constant.
    Constant(u64),
}

impl Step {
    /// The step of the outermost frame.
    pub(crate) fn outermost(arch: Arch) -> Self {
        Self {
            cfa: Cfa::Register {
                register: arch.stack_pointer(),
                offset: 0,
            },
            saved: Box::new([(arch.return_address_register(), RegisterLocation::Undefined)]),
            return_address_register: arch.return_address_register(),
            is_signal: false,
        }
    }

    /// Computes the caller's registers; `None` if this frame is the outermost.
    ///
    /// Only the canonical frame address, the return address and the stack pointer are required. Other registers become unknown if
    /// they are unreadable: few frames need them.
    pub(crate) fn apply(
        &self,
        frame: &FrameState<'_>,
    ) -> Result<Option<Registers>, TruncationCause> {
        let arch = frame.arch;
        // Expressions for the canonical frame address start with an empty stack, others with that address on it.
        let no_initial_value = None;
        let cfa = match &self.cfa {
            Cfa::Register { register, offset } => frame.register_plus(*register, *offset)?,
            Cfa::Expression(expression) => expression.run(frame, no_initial_value)?,
        };
        let mut caller = *frame.registers;
        caller.set(arch.stack_pointer(), arch.truncate(cfa));
        for (register, location) in &self.saved {
            let is_needed =
                *register == self.return_address_register || *register == arch.stack_pointer();
            match location.value(frame, cfa) {
                Ok(Some(value)) => caller.set(*register, arch.truncate(value)),
                Ok(None) if *register == self.return_address_register => return Ok(None),
                Err(cause) if is_needed => return Err(cause),
                Ok(None) | Err(_) => caller.forget(*register),
            }
        }
        let ip = caller
            .get(self.return_address_register)
            .ok_or(TruncationCause::BadFrameInfo)?;
        caller.set_ip(arch, arch.code_address(ip));
        Ok(Some(caller))
    }
}

impl RegisterLocation {
    /// The value of the register; `None` if it is undefined.
    fn value(&self, frame: &FrameState<'_>, cfa: u64) -> Result<Option<u64>, TruncationCause> {
        Ok(Some(match self {
            Self::Undefined => return Ok(None),
            Self::AtCfa(offset) => frame.word(cfa.wrapping_add_signed(*offset))?,
            Self::Cfa(offset) => cfa.wrapping_add_signed(*offset),
            Self::Register(register) => frame.register(*register)?,
            Self::AtRegister { register, offset } => {
                frame.word(frame.register_plus(*register, *offset)?)?
            }
            Self::AtExpression(expression) => frame.word(expression.run(frame, Some(cfa))?)?,
            Self::Expression(expression) => expression.run(frame, Some(cfa))?,
            Self::Constant(value) => *value,
        }))
    }
}
