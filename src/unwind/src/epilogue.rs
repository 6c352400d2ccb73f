//! Registers that were already popped in a function epilogue.
//!
//! In epilogues, compilers describe the moved stack pointer, but leave the save locations of popped
//! registers unchanged, although the locations are then below the stack pointer. Popped registers already
//! have their caller's values again, and a copy of the stack doesn't contain their save locations.

use gimli::{
    BaseAddresses, CfaRule, FrameDescriptionEntry, Register, UnwindContext, UnwindSection,
};

use crate::compile::Bytes;
use crate::step::{Cfa, RegisterLocation, Step};

/// The call frame information that a [`Step`] (the rules that lead from a frame to its caller) was compiled from.
pub(crate) struct StepOrigin<'o, 'a, S: UnwindSection<Bytes<'a>>> {
    pub(crate) section: &'o S,
    pub(crate) bases: &'o BaseAddresses,
    pub(crate) entry: &'o FrameDescriptionEntry<Bytes<'a>>,
    /// The address in the function at which the step is valid.
    pub(crate) address: u64,
    /// DWARF number of the stack pointer.
    pub(crate) stack_pointer: u8,
}

impl<'a, S: UnwindSection<Bytes<'a>>> StepOrigin<'_, 'a, S> {
    /// Removes popped registers from the saved registers of `step`.
    pub(crate) fn correct(&self, step: &mut Step, context: &mut UnwindContext<usize>) {
        let Cfa::Register { register, offset } = step.cfa else {
            return;
        };
        // Only valid if `register` is the stack pointer (checked next): it is `offset` bytes below the canonical frame address.
        let is_below_stack = |place: &RegisterLocation| match place {
            RegisterLocation::AtCfa(at) => at.saturating_add(offset) < 0,
            _ => false,
        };
        if register != self.stack_pointer
            || !step.saved.iter().any(|(_, place)| is_below_stack(place))
        {
            return;
        }
        // Save locations that were never part of the frame (in the red zone) are below the stack pointer intentionally: they stay
        // in `step`.
        let largest = self.largest_frame(context).unwrap_or(0);
        let is_popped = |place: &RegisterLocation| {
            is_below_stack(place)
                && matches!(place, RegisterLocation::AtCfa(at) if at.saturating_add(largest) >= 0)
        };
        let saved = std::mem::take(&mut step.saved).into_iter();
        step.saved = saved.filter(|(_, place)| !is_popped(place)).collect();
    }

    /// The maximum distance between the stack pointer and the canonical frame address, in bytes, from the start of the function
    /// to `address`.
    fn largest_frame(&self, context: &mut UnwindContext<usize>) -> gimli::Result<i64> {
        let mut rows = self.entry.rows(self.section, self.bases, context)?;
        let mut largest = 0;
        while let Some(row) = rows.next_row()? {
            if row.start_address() > self.address {
                break;
            }
            largest = match row.cfa() {
                CfaRule::RegisterAndOffset { register, offset }
                    if *register == Register(self.stack_pointer.into()) =>
                {
                    largest.max(*offset)
                }
                // Relative to another register, the frame may have any size.
                _ => return Ok(i64::MAX),
            };
        }
        Ok(largest)
    }
}
