//! `inlineloop`: inlined functions on known lines.
//!
//! This is Rust. Scripts look for lines of a file of this name: the inlined functions are on lines 20 to 29, the one around them on
//! lines 30 to 39.

use std::hint::black_box;

use crate::{Arguments, StackFrame, Workload, WorkloadError, duration};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "inlineloop",
    arguments: "[<seconds>]",
    summary: "the functions leaf and middle, inlined into parent (default: 1 second)",
    body,
};

/// Counts until the time is over.
#[inline(always)]
fn leaf(step: u64) {
    let mut count = 0_u64;
    while !duration::is_over() {
        count = black_box(count.wrapping_add(step));
    }
}
#[inline(always)]
fn middle(step: u64) {
    leaf(step);
}

/// The function that both are inlined into.
#[inline(never)]
fn parent(step: u64) {
    let frame = StackFrame::new();
    middle(step);
    frame.end();
}

/// Calls [`parent`].
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn inlineloop() {
    let frame = StackFrame::new();
    parent(black_box(1));
    frame.end();
}

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let seconds = arguments.seconds(1.0)?;
    arguments.end()?;
    duration::start(seconds)?;
    inlineloop();
    Ok(())
}
