//! Helpers for functions that a profile must show as they are written, whatever the compiler's flags.

use std::hint::black_box;
use std::mem::MaybeUninit;

/// A local variable that gives its function a frame pointer.
///
/// It is aligned more strictly than the stack. The function then needs a register with the address of its frame, which on every
/// supported processor is the frame pointer. [`StackFrame::new`] as the first statement sets the frame pointer before any loop:
/// otherwise the compiler could place a loop that needs no frame before the instructions that set the frame pointer.
/// [`StackFrame::end`] as the last statement also keeps the preceding call from becoming a jump (tail call).
#[repr(align(64))]
pub(crate) struct StackFrame(MaybeUninit<[u8; 64]>);

impl StackFrame {
    /// Reserves the variable, and uses its address.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        let frame = Self(MaybeUninit::uninit());
        black_box(&frame.0);
        frame
    }

    /// Uses the variable's address.
    #[inline(always)]
    pub(crate) fn end(&self) {
        black_box(&self.0);
    }
}

/// An instruction that does nothing, on the line where the macro is used. `$name`, a comment in the assembly, must be unique: the
/// compiler could otherwise merge functions with the same instructions.
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
