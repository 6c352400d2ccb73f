//! `noploop`: one function that does nothing.

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
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn noploop() {
    let frame = StackFrame::new();
    while !duration::is_over() {}
    frame.end();
}
