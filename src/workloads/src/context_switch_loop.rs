//! `context_switch_loop`: two processes that take turns.

use std::hint::black_box;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _, pipe};

use crate::process::{ChildProcess, set_comm};
use crate::{Arguments, StackFrame, Workload, WorkloadError, failed};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "context_switch_loop",
    arguments: "[<rounds>]",
    summary: "processes proc1 and proc2 that take turns in context_switch_loop_proc1 and _proc2 (default: 100 rounds)",
    body,
};

/// Number of steps of the loop in a turn; each adds 1 to a counter.
const ADDITIONS: u32 = 1000;

/// The pipe ends of a process: the turn is passed from one process to the other as a byte.
struct PipeEnds {
    from_other: PipeReader,
    to_other: PipeWriter,
}

impl PipeEnds {
    /// Waits for this process's turn.
    fn wait(&mut self) -> io::Result<()> {
        self.from_other.read_exact(&mut [0])
    }

    /// Passes the turn to the other process.
    fn pass(&mut self) -> io::Result<()> {
        self.to_other.write_all(&[0])
    }
}

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let rounds = arguments.number("<rounds>", 100, &(1..=u32::MAX))?;
    arguments.end()?;
    let failure = "cannot create a pipe";
    // Two pipes, one for each direction. What is written to the end `to_second` is read from the end `from_first`.
    let (from_first, to_second) = pipe().map_err(failed(failure))?;
    let (from_second, to_first) = pipe().map_err(failed(failure))?;
    let mut first = PipeEnds {
        from_other: from_second,
        to_other: to_second,
    };
    let mut second = PipeEnds {
        from_other: from_first,
        to_other: to_first,
    };
    let child = ChildProcess::fork(|| {
        set_comm(c"proc1");
        let mut turn = || {
            context_switch_loop_proc1(ADDITIONS);
            first.pass()?;
            first.wait()
        };
        (0..rounds).try_for_each(|_| turn()).is_ok()
    })?;
    // The child has its own copy of these ends. With this copy closed, reading from the child fails if the child ends early.
    drop(first);
    set_comm(c"proc2");
    let mut turn = || {
        second.wait()?;
        context_switch_loop_proc2(ADDITIONS);
        second.pass()
    };
    let result = (0..rounds).try_for_each(|_| turn());
    child.wait(arguments.workload())?;
    result.map_err(failed("cannot use a pipe"))
}

/// One turn of the first process.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn context_switch_loop_proc1(additions: u32) {
    let frame = StackFrame::new();
    for number in 0..additions {
        black_box(number);
    }
    frame.end();
}

/// One turn of the second process. Its code differs from [`context_switch_loop_proc1`], so that compiler and linker cannot
/// merge the two functions.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn context_switch_loop_proc2(additions: u32) {
    let frame = StackFrame::new();
    for number in 0..additions {
        black_box(number + 1);
    }
    frame.end();
}
