//! From one frame to its caller's: what frame information says of one address, in a form that is quick to follow.

use crate::Arch;
use crate::expression::Program;
use crate::machine::Machine;
use crate::outcome::Cause;
use crate::registers::Registers;

/// How to get from the registers of a frame at one address to those of its caller.
#[derive(Debug)]
pub(crate) struct Step {
    /// The canonical frame address, which is the caller's stack pointer unless `saved` says otherwise.
    pub(crate) cfa: Cfa,
    /// Where the caller's registers are; those not named have not changed.
    pub(crate) saved: Box<[(u8, Place)]>,
    /// The register that the return address counts as.
    pub(crate) return_register: u8,
    /// Whether a signal interrupted the caller, so that its address is that of an instruction still to run.
    pub(crate) is_signal: bool,
}

/// How the canonical frame address is computed.
#[derive(Debug)]
pub(crate) enum Cfa {
    /// A register plus an offset.
    Register { register: u8, offset: i64 },
    /// What the program leaves.
    Program(Program),
}

/// Where a register of the caller is.
#[derive(Debug)]
pub(crate) enum Place {
    /// Nowhere. For the return address: there is no caller.
    Lost,
    /// In memory, at an offset from the canonical frame address.
    AtCfa(i64),
    /// It is the canonical frame address plus an offset.
    Cfa(i64),
    /// In another register.
    Register(u8),
    /// In memory, at an offset from a register.
    AtRegister { register: u8, offset: i64 },
    /// In memory, where the program says.
    AtProgram(Program),
    /// It is what the program leaves.
    Program(Program),
    /// It is this number.
    Constant(u64),
}

impl Step {
    /// There is no caller.
    pub(crate) fn outermost(arch: Arch) -> Self {
        Self {
            cfa: Cfa::Register {
                register: arch.stack_pointer(),
                offset: 0,
            },
            saved: Box::new([(arch.return_register(), Place::Lost)]),
            return_register: arch.return_register(),
            is_signal: false,
        }
    }

    /// The caller's registers; `None` where this frame is the outermost.
    ///
    /// Only the return address and the stack pointer must be there: other registers that can't be read are lost, and
    /// few frames ever ask for them.
    pub(crate) fn apply(&self, machine: &Machine<'_>) -> Result<Option<Registers>, Cause> {
        let arch = machine.arch;
        let cfa = match &self.cfa {
            Cfa::Register { register, offset } => machine.offset(*register, *offset)?,
            Cfa::Program(program) => program.run(machine, None)?,
        };
        let mut caller = *machine.registers;
        caller.set(arch.stack_pointer(), arch.truncate(cfa));
        for (register, place) in &self.saved {
            let is_needed = *register == self.return_register || *register == arch.stack_pointer();
            match place.value(machine, cfa) {
                Ok(Some(value)) => caller.set(*register, arch.truncate(value)),
                Ok(None) if *register == self.return_register => return Ok(None),
                Err(cause) if is_needed => return Err(cause),
                Ok(None) | Err(_) => caller.forget(*register),
            }
        }
        let ip = caller
            .get(self.return_register)
            .ok_or(Cause::BadFrameInfo)?;
        caller.ip = arch.code_address(ip);
        if let Some(register) = arch.instruction_pointer() {
            caller.set(register, caller.ip);
        }
        Ok(Some(caller))
    }
}

impl Place {
    fn value(&self, machine: &Machine<'_>, cfa: u64) -> Result<Option<u64>, Cause> {
        Ok(Some(match self {
            Self::Lost => return Ok(None),
            Self::AtCfa(offset) => machine.word(cfa.wrapping_add_signed(*offset))?,
            Self::Cfa(offset) => cfa.wrapping_add_signed(*offset),
            Self::Register(register) => machine.register(*register)?,
            Self::AtRegister { register, offset } => {
                machine.word(machine.offset(*register, *offset)?)?
            }
            Self::AtProgram(program) => machine.word(program.run(machine, Some(cfa))?)?,
            Self::Program(program) => program.run(machine, Some(cfa))?,
            Self::Constant(value) => *value,
        }))
    }
}
