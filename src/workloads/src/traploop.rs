//! `traploop`: instructions that trap.

use crate::{Arguments, StackFrame, Workload, WorkloadError};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "traploop",
    arguments: "[<rounds>]",
    summary: "instructions in the function trap_bench that trap: reads of the processor's identification (default: 10 rounds)",
    body,
};

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let rounds = arguments.number("<rounds>", 10, &(1..=u32::MAX))?;
    arguments.end()?;
    traploop(rounds);
    Ok(())
}

/// Calls [`trap_bench`] in each round.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn traploop(rounds: u32) {
    let frame = StackFrame::new();
    for _ in 0..rounds {
        trap_bench();
    }
    frame.end();
}

/// One instruction that traps: on arm64 into the kernel, on x86-64 into the hypervisor if the program runs in a guest. Does
/// nothing on other processors. [`StackFrame`] gives the function a frame pointer.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn trap_bench() {
    let frame = StackFrame::new();
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the kernel emulates this register for programs (Documentation/arch/arm64/cpu-feature-registers.rst).
    unsafe {
        let value: u64;
        std::arch::asm!("mrs {value}, ID_AA64ISAR0_EL1", value = out(reg) value, options(nomem, nostack));
        std::hint::black_box(value);
    }
    #[cfg(target_arch = "x86_64")]
    std::hint::black_box(std::arch::x86_64::__cpuid(0));
    frame.end();
}
