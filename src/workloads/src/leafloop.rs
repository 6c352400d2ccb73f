//! `leafloop`: a known callchain that ends in a function without calls.

use std::hint::black_box;

use crate::{Arguments, StackFrame, Workload, WorkloadError, duration};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "leafloop",
    arguments: "[<seconds>]",
    summary: "the callchain leafloop, parent, leaf (default: 1 second)",
    body,
};

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let seconds = arguments.seconds(1.0)?;
    arguments.end()?;
    duration::start(seconds)?;
    leafloop();
    Ok(())
}

/// Calls [`parent`].
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn leafloop() {
    let frame = StackFrame::new();
    parent(black_box(1));
    frame.end();
}

/// Calls [`leaf`].
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn parent(step: u64) {
    let frame = StackFrame::new();
    leaf(black_box(step));
    frame.end();
}

/// Counts until the time is over. The function has a frame of its own on x86-64, where frame-pointer unwinding would otherwise
/// skip its caller. It has none on arm64, where the sampled link register gives the caller.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn leaf(step: u64) {
    #[cfg(target_arch = "x86_64")]
    let frame = StackFrame::new();
    let mut count = 0_u64;
    while !duration::is_over() {
        count = black_box(count.wrapping_add(step));
    }
    #[cfg(target_arch = "x86_64")]
    frame.end();
}
