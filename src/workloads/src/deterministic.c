//! `deterministic`: instructions on known lines in a known order.
//! This is Rust; scripts look for lines of a file of this name.

use crate::{Arguments, Workload, WorkloadError, distinct_instruction as instruction};

/// Lines 9 to 11.
#[inline(never)]
fn first_function() {
    instruction!(1);
    instruction!(2);
    instruction!(3);
}

#[inline(never)]
fn second_function() {
    instruction!(4);
    instruction!(5);
    instruction!(6);
}
/// Lines 24 to 26, the first function, lines 30 to 32, the second function.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn deterministic() {
    instruction!(7);
    instruction!(8);
    instruction!(9);

    first_function();

    instruction!(10);
    instruction!(11);
    instruction!(12);

    second_function();

    instruction!(13);
}

pub(crate) const WORKLOAD: Workload = Workload {
    name: "deterministic",
    arguments: "",
    summary: "instructions of known lines of deterministic.c, in a known order",
    body,
};

fn body(arguments: &mut Arguments<'_>) -> Result<(), WorkloadError> {
    arguments.end()?;
    deterministic();
    Ok(())
}
