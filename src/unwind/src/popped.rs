//! Registers that the end of a function has popped already.
//!
//! For those, compilers say that the stack pointer has moved, and leave standing where each was saved: at a place that
//! lies below the stack pointer by now. They hold their caller's values again, and a copy of the stack has no such places.

use gimli::{
    BaseAddresses, CfaRule, FrameDescriptionEntry, Register, UnwindContext, UnwindSection,
};

use crate::compile::Bytes;
use crate::step::{Cfa, Place, Step};

/// Where a step comes from.
pub(crate) struct Origin<'o, 'a, S: UnwindSection<Bytes<'a>>> {
    pub(crate) section: &'o S,
    pub(crate) bases: &'o BaseAddresses,
    pub(crate) entry: &'o FrameDescriptionEntry<Bytes<'a>>,
    pub(crate) address: u64,
    /// Number of the stack pointer.
    pub(crate) stack_pointer: u8,
}

impl<'a, S: UnwindSection<Bytes<'a>>> Origin<'_, 'a, S> {
    /// Takes what was popped out of what `step` says to be saved.
    pub(crate) fn correct(&self, step: &mut Step, context: &mut UnwindContext<usize>) {
        let Cfa::Register { register, offset } = step.cfa else {
            return;
        };
        let is_below =
            |place: &Place| matches!(place, Place::AtCfa(at) if at.saturating_add(offset) < 0);
        if register != self.stack_pointer || !step.saved.iter().any(|(_, place)| is_below(place)) {
            return;
        }
        // What was never part of the frame was moved below the stack pointer, and may be in use.
        let largest = self.largest_frame(context).unwrap_or(0);
        let is_popped = |place: &Place| {
            is_below(place) && matches!(place, Place::AtCfa(at) if at.saturating_add(largest) >= 0)
        };
        let saved = std::mem::take(&mut step.saved).into_iter();
        step.saved = saved.filter(|(_, place)| !is_popped(place)).collect();
    }

    /// How many bytes there have been between the stack pointer and the canonical frame address, from the function's start
    /// to here.
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
                // Counted from elsewhere, it can be of any size.
                _ => return Ok(i64::MAX),
            };
        }
        Ok(largest)
    }
}
