//! `datasym`: accesses to known fields of a global variable.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::{Arguments, StackFrame, Workload, WorkloadError, duration};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "datasym",
    arguments: "[<seconds>]",
    summary: "accesses to two fields of the variable workload_datasym_buf1 (default: 1 second)",
    body,
};

/// The type of the variable, one cache line. Only the first byte and the byte at offset 0x38 are accessed.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct DataBuffer {
    data1: AtomicU8,
    unused: [u8; 55],
    data2: AtomicU8,
}

/// The accessed variable. With initial values other than 0, it is in `.data`; with zeros only, it would be in `.bss`.
#[unsafe(no_mangle)]
pub(crate) static workload_datasym_buf1: DataBuffer = DataBuffer {
    data1: AtomicU8::new(1),
    unused: [3; 55],
    data2: AtomicU8::new(1),
};

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let seconds = arguments.seconds(1.0)?;
    arguments.end()?;
    duration::start(seconds)?;
    datasym();
    Ok(())
}

/// Accesses the fields until the time is over.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn datasym() {
    let frame = StackFrame::new();
    let buffer = &workload_datasym_buf1;
    while !duration::is_over() {
        let first = buffer.data1.load(Ordering::Relaxed).wrapping_add(1);
        buffer.data1.store(first, Ordering::Relaxed);
        if first == 123 {
            // An additional store in some iterations: if all iterations were alike, the loop could run in step with the sampling
            // period.
            buffer.data1.store(first.wrapping_add(1), Ordering::Relaxed);
        }
        let second = buffer.data2.load(Ordering::Relaxed).wrapping_add(first);
        buffer.data2.store(second, Ordering::Relaxed);
    }
    frame.end();
}
