//! `named_threads`: threads with comms and functions of their own.

use std::ffi::CString;
use std::hint::black_box;
use std::thread;

use crate::process::set_comm;
use crate::{Arguments, StackFrame, Workload, WorkloadError, distinct_instruction, failed, join};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "named_threads",
    arguments: "[<threads> [<rounds>]]",
    summary: "threads named thread1 and so on, each in the function named_threads_thread1 and so on (default: 1 thread, 1 round)",
    body,
};

/// Number of additions in a round.
const ADDITIONS: u32 = 1000;

/// Declares the threads' functions and their table.
macro_rules! thread_functions {
    ($($name:ident)*) => {
        $(
            /// The function of the thread with this number. It has a frame pointer ([`StackFrame`]), and an instruction of its
            /// own (`distinct_instruction`): otherwise the compiler could merge the functions.
            #[unsafe(no_mangle)]
            #[inline(never)]
            pub(crate) extern "C" fn $name(rounds: u64) -> u64 {
                let frame = StackFrame::new();
                distinct_instruction!(stringify!($name));
                let sum = add(rounds);
                frame.end();
                sum
            }
        )*
        const FUNCTIONS: &[extern "C" fn(u64) -> u64] = &[$($name),*];
    };
}

thread_functions! {
    named_threads_thread1 named_threads_thread2 named_threads_thread3 named_threads_thread4 named_threads_thread5
    named_threads_thread6 named_threads_thread7 named_threads_thread8 named_threads_thread9 named_threads_thread10
    named_threads_thread11 named_threads_thread12 named_threads_thread13 named_threads_thread14 named_threads_thread15
    named_threads_thread16 named_threads_thread17 named_threads_thread18 named_threads_thread19 named_threads_thread20
    named_threads_thread21 named_threads_thread22 named_threads_thread23 named_threads_thread24 named_threads_thread25
}

/// Does the additions of all rounds; inlined into each thread's function.
#[inline(always)]
fn add(rounds: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..rounds {
        for number in 0..ADDITIONS {
            sum = black_box(sum + u64::from(number & 1));
        }
    }
    sum
}

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    let threads = arguments.number("<threads>", 1, &(1..=FUNCTIONS.len()))?;
    let rounds = arguments.number("<rounds>", 1, &(1..=u64::from(u32::MAX)))?;
    arguments.end()?;
    let mut workers = Vec::new();
    for (number, function) in (1..).zip(FUNCTIONS).take(threads) {
        let worker = thread::Builder::new().spawn(move || {
            set_comm(&CString::new(format!("thread{number}")).unwrap_or_default());
            function(rounds)
        });
        workers.push(worker.map_err(failed("cannot start a thread"))?);
    }
    join(workers, arguments.workload())
}
