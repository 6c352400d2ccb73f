//! `sqrtloop`: a child process that computes.

use std::hint::black_box;

use crate::process::ChildProcess;
use crate::{Arguments, StackFrame, Workload, WorkloadError, duration};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "sqrtloop",
    arguments: "[<seconds>]",
    summary: "a child process that computes in the function sqrtloop (default: 1 second)",
    body,
};

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let seconds = arguments.seconds(1.0)?;
    arguments.end()?;
    let child = ChildProcess::fork(|| {
        let started = duration::start(seconds).is_ok();
        // Without the timer, the loop would not end. The result is whether the child succeeded, for its exit status.
        if started {
            sqrtloop();
        }
        started
    })?;
    // The workload's name is for error messages.
    child.wait(arguments.workload())
}

/// Computes square roots until the time is over. Not mangled, so that profiles show this name.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn sqrtloop() {
    // Makes the function set the frame pointer before the loop.
    let frame = StackFrame::new();
    let mut number = 1.0_f64;
    while !duration::is_over() {
        number = black_box(number + 1.0);
        black_box(number.sqrt());
    }
    frame.end();
}
