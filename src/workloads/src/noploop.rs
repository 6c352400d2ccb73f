//! `noploop`: a loop in one function.

use std::sync::atomic::Ordering;

use crate::{Arguments, StackFrame, Workload, WorkloadError, duration};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "noploop",
    arguments: "[<seconds>]",
    summary: "loop in the function noploop (default: 1 second)",
    body,
};

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let seconds = arguments.seconds(1.0)?;
    arguments.end()?;
    duration::start(seconds)?;
    noploop();
    Ok(())
}

/// Loops until the time is over.
///
/// The loop is assembly on x86-64 and arm64: the load of an atomic is an inlined function, which a profile would show as a frame
/// of its own.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn noploop() {
    // Gives the function a frame pointer, so that callchains by frame pointers are complete.
    let frame = StackFrame::new();
    let over = duration::over_flag();
    // SAFETY: the flag is one readable byte for as long as the process runs, and its type allows changes by a signal handler.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("2: cmp byte ptr [{over}], 0", "je 2b", over = in(reg) over.as_ptr(), options(nostack, readonly));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "2: ldrb {value:w}, [{over}]",
            "cbz {value:w}, 2b",
            over = in(reg) over.as_ptr(),
            value = out(reg) _,
            options(nostack, readonly),
        );
    }
    // The loop on other processors; on x86-64 and arm64 the flag is already set here.
    while !over.load(Ordering::Relaxed) {}
    frame.end();
}
