//! `code_with_type`: accesses to the fields of a structure on the stack.

use std::hint::black_box;

use crate::{Arguments, StackFrame, Workload, WorkloadError, duration};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "code_with_type",
    arguments: "[<seconds> [<loops>]]",
    summary: "accesses to fields of a structure Buf, in calls of <loops> rounds each (default: 1 second, 100 loops)",
    body,
};

/// The structure whose fields are accessed; perf's test scripts expect its name.
#[derive(Debug)]
pub(crate) struct Buf {
    count: u64,
    name: String,
    sum: u64,
}

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let seconds = arguments.seconds(1.0)?;
    let loops = arguments.number("<loops>", 100, &(1..=u32::MAX))?;
    arguments.end()?;
    duration::start(seconds)?;
    let mut buf = Buf {
        count: 0,
        name: WORKLOAD.name.to_owned(),
        sum: 0,
    };
    while !duration::is_over() {
        code_with_type(&mut buf, loops);
    }
    // The only read of this field: otherwise the compiler would warn that it is never read.
    black_box(&buf.name);
    Ok(())
}

/// Reads and writes two of the fields, `loops` times.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) fn code_with_type(buf: &mut Buf, loops: u32) {
    // Sets the frame pointer before the loop.
    let frame = StackFrame::new();
    for _ in 0..loops {
        // After `black_box`, the compiler can't know the fields' values, so each iteration loads and stores them.
        let buf = black_box(&mut *buf);
        buf.count = buf.count.wrapping_add(1);
        buf.sum = buf.sum.wrapping_add(buf.count);
    }
    frame.end();
}
