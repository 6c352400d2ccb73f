//! `context_switch_loop`: two processes that run in turns.

use std::hint::black_box;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _, pipe};

use crate::process::{ChildProcess, set_comm};
use crate::{Arguments, StackFrame, Workload, WorkloadError, failed};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "context_switch_loop",
    arguments: "[<rounds>]",
    summary: "processes proc1 and proc2 that run the functions context_switch_loop_proc1 and _proc2 in turns (default: 100 rounds)",
    body,
};

/// Additions of one turn.
const ADDITIONS: u32 = 1000;

/// The ends of both pipes that a process uses.
struct PipeEnds {
    wait: PipeReader,
    pass: PipeWriter,
}

impl PipeEnds {
    fn wait(&mut self) -> io::Result<()> {
        self.wait.read_exact(&mut [0])
    }

    fn pass(&mut self) -> io::Result<()> {
        self.pass.write_all(&[0])
    }
}

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let rounds = arguments.number("<rounds>", 100, &(1..=u32::MAX))?;
    arguments.end()?;
    let action = "cannot create a pipe";
    let (from_first, to_second) = pipe().map_err(failed(action))?;
    let (from_second, to_first) = pipe().map_err(failed(action))?;
    let mut first = PipeEnds {
        wait: from_second,
        pass: to_second,
    };
    let mut second = PipeEnds {
        wait: from_first,
        pass: to_first,
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
    // The child has its copy. With this copy closed, reading fails if the child ends early.
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

/// One turn of the second process. It differs from that of the first process, so that the linker cannot merge the functions.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn context_switch_loop_proc2(additions: u32) {
    let frame = StackFrame::new();
    for number in 0..additions {
        black_box(number + 1);
    }
    frame.end();
}
