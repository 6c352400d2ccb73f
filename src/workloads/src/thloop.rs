//! `thloop`: threads that loop in the same function.

use std::hint::black_box;
use std::thread;

use crate::{Arguments, StackFrame, Workload, WorkloadError, duration, failed, join};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "thloop",
    arguments: "[<seconds> [<threads>]]",
    summary: "threads that loop in the function test_loop (default: 1 second, 2 threads)",
    body,
};

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let seconds = arguments.seconds(1.0)?;
    let threads = arguments.number("<threads>", 2, &(1..=4096))?;
    arguments.end()?;
    duration::start(seconds)?;
    let mut workers = Vec::new();
    // This thread is one of the threads, so one fewer is started.
    for _ in 1..threads {
        let worker = thread::Builder::new().spawn(|| thfunc());
        workers.push(worker.map_err(failed("cannot start a thread"))?);
    }
    test_loop();
    join(workers, arguments.workload())
}

/// The function of the threads other than the main thread.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn thfunc() {
    // Gives the function a frame pointer, for callchains.
    let frame = StackFrame::new();
    test_loop();
    frame.end();
}

/// Counts until the time is over.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn test_loop() {
    let frame = StackFrame::new();
    let mut count = 0_u64;
    while !duration::is_over() {
        count = black_box(count.wrapping_add(1));
    }
    frame.end();
}
