//! Functions that a profile shows as they are written, whatever the compiler's flags.

use std::hint::black_box;
use std::mem::MaybeUninit;

/// A local variable that gives its function a frame pointer.
///
/// It is aligned more strictly than the stack. Its address can then only be computed from a register that holds the frame, which on
/// every supported processor is the frame pointer. [`StackFrame::end`] as the last statement also prevents that the call before
/// becomes a jump.
#[repr(align(64))]
pub(crate) struct StackFrame(MaybeUninit<[u8; 64]>);

impl StackFrame {
    /// Reserves the variable.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self(MaybeUninit::uninit())
    }

    /// Uses the variable's address.
    #[inline(always)]
    pub(crate) fn end(&self) {
        black_box(&self.0);
    }
}

/// An instruction that does nothing, on the line of the call, with a comment that differs from all others: the compiler merges
/// functions with the same instructions.
#[collapse_debuginfo(yes)]
macro_rules! distinct_instruction {
    ($name:expr) => {
        // SAFETY: the instruction changes nothing.
        unsafe {
            std::arch::asm!(
                concat!("nop /* ", $name, " */"),
                options(nomem, nostack, preserves_flags)
            );
        }
    };
}

pub(crate) use distinct_instruction;
