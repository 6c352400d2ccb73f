//! `brstack`: calls, returns and jumps in known functions.

use std::hint::black_box;

use crate::{Arguments, StackFrame, Workload, WorkloadError};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "brstack",
    arguments: "[<rounds>]",
    summary: "calls, returns and jumps in brstack, brstack_bench, brstack_foo and brstack_bar (default: 999999 rounds)",
    body,
};

/// Calls a function directly. On x86-64 the compiler would call an exported function indirectly, through the global offset table.
/// Only for functions without arguments: [`brstack_bench`] is called as the compiler chooses.
macro_rules! call {
    ($function:ident) => {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the function has no arguments, and all registers that the ABI lets it change are declared as clobbered.
        unsafe {
            std::arch::asm!("call {}", sym $function, clobber_abi("C"));
        }
        #[cfg(not(target_arch = "x86_64"))]
        $function();
    };
}

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let rounds = arguments.number("<rounds>", 999_999, &(1..=u32::MAX))?;
    arguments.end()?;
    brstack(rounds);
    Ok(())
}

/// Runs the rounds, each with an unconditional jump at its end. As in all exported functions here, a [`StackFrame`] gives the
/// function a frame pointer, and its `end` keeps the last call from becoming a jump.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn brstack(rounds: u32) {
    let frame = StackFrame::new();
    for round in 0..rounds {
        brstack_bench(black_box(round));
        jump();
    }
    frame.end();
}

/// One round: a conditional jump, two direct calls and an indirect call.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn brstack_bench(round: u32) {
    let frame = StackFrame::new();
    if round.is_multiple_of(3) {
        // Keeps the compiler from removing the conditional jump.
        black_box(round);
    }
    call!(brstack_bar);
    call!(brstack_foo);
    let indirect: extern "C" fn() = black_box(brstack_foo);
    indirect();
    frame.end();
}

/// Calls [`brstack_bar`].
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn brstack_foo() {
    let frame = StackFrame::new();
    call!(brstack_bar);
    frame.end();
}

/// Returns at once.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn brstack_bar() {
    StackFrame::new().end();
}

/// Jumps to the next instruction; does nothing on processors other than x86-64 and arm64.
#[inline(always)]
fn jump() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the jump changes no register and no memory.
    unsafe {
        std::arch::asm!("jmp 2f", "2:", options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the jump changes no register and no memory.
    unsafe {
        std::arch::asm!("b 2f", "2:", options(nomem, nostack, preserves_flags));
    }
}
