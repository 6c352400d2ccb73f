//! How long threads that wait for locks wait for a CPU meanwhile: the programs at wakeups and context switches. "A wait" and "the
//! wait" are waits for a lock.

use crate::Condition::{Below, Equal, NotEqual, SignedLess};
use crate::Operation::{Add, Sub};
use crate::Register::{R0, R1, R2, R3, R6, R7, R8, R9, R10};
use crate::Width::{Double, Word};
use crate::tasks::{INDEX, LOST_TASKS, TASK, add, jump_if_preempted, look_up};
use crate::{Helper, Label, MapId, ProgramBuilder};

use super::programs::{SUM_KEY, WAIT};

/// A map from thread id to [`thread`]. Has only threads that have waited for locks, and not all of these: it evicts the values
/// that were used least recently.
pub(super) const RUN_QUEUE_TIMES: MapId = MapId(10);

/// The value of [`RUN_QUEUE_TIMES`]: offsets in bytes.
mod thread {
    /// When it became runnable, in ns; 0 unless it waits for a CPU.
    pub(super) const WAITING_SINCE: i16 = 0;
    /// For how long it has waited for CPUs, in ns.
    pub(super) const TOTAL: i16 = 8;
    /// 1 while it is switched out, otherwise 0.
    pub(super) const IS_OFF_CPU: i16 = 16;
}
/// The size of the value in bytes.
pub(super) const SIZE: i16 = 24;

/// Stores for how long the current task has waited for CPUs so far, at the offset `at` of the stack. A task without a value of
/// [`RUN_QUEUE_TIMES`] gets one.
pub(super) fn note_begin(b: &mut ProgramBuilder, at: i16) {
    let (known, done) = (b.label(), b.label());
    look_up(b, RUN_QUEUE_TIMES, TASK);
    b.jump_if(NotEqual, R0, 0, known);
    for offset in [thread::WAITING_SINCE, thread::TOTAL, thread::IS_OFF_CPU] {
        b.store(Double, R10, NEW + offset, 0);
    }
    // The offsets of the key and the value on the stack; a failure is counted in `LOST_TASKS`.
    add(b, RUN_QUEUE_TIMES, [TASK, NEW], LOST_TASKS);
    b.store(Double, R10, at, 0);
    b.jump(done);
    b.place(known);
    b.load(Double, R1, R0, thread::TOTAL);
    b.store(Double, R10, at, R1);
    b.place(done);
}

/// A new value of [`RUN_QUEUE_TIMES`] on the stack, at the beginning of a wait. It overlaps the key of the sum, which is needed
/// only at the end of a wait, and the address of a lock (the second half of `ENDED` in `programs`), which is needed at the end
/// of a wait and by filters of locks. The filters run before [`note_begin`].
const NEW: i16 = SUM_KEY - 8;
const _: () = assert!(NEW + SIZE <= WAIT);

/// Leaves in `R1` for how long the current task has waited for CPUs since the wait began; 0 if the task has no value of
/// [`RUN_QUEUE_TIMES`], or one whose total is smaller than `R8`, the number that [`note_begin`] stored.
pub(super) fn since_begin(b: &mut ProgramBuilder) {
    let (unknown, done) = (b.label(), b.label());
    look_up(b, RUN_QUEUE_TIMES, TASK);
    b.jump_if(Equal, R0, 0, unknown);
    difference(b, unknown);
    b.jump(done);
    b.place(unknown);
    b.set(R1, 0);
    b.place(done);
}

/// Leaves in `R1` the total of the value at `R0` minus `R8`, which was the total when the wait began. Goes to `unknown` if the
/// total was larger then: during the wait, the value was evicted from the map, and created again for a wait within this one.
fn difference(b: &mut ProgramBuilder, unknown: Label) {
    b.load(Double, R1, R0, thread::TOTAL);
    b.jump_if(Below, R1, R8, unknown);
    b.operate(Sub, R1, R8);
}

/// At `sched_wakeup(task)`: the task waits for a CPU from now on, unless it still runs. `pid` is the offset of
/// `task_struct::pid`.
pub(super) fn wake(pid: i16) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let out = b.label();
    // The task: the first of the arguments, which `R1` points to.
    b.load(Double, R3, R1, 0);
    find(&mut b, pid, out);
    b.set(R6, R0);
    b.load(Double, R1, R6, thread::IS_OFF_CPU);
    b.jump_if(Equal, R1, 0, out);
    b.load(Double, R1, R6, thread::WAITING_SINCE);
    b.jump_if(NotEqual, R1, 0, out);
    b.call(Helper::KtimeGetNs);
    b.store(Double, R6, thread::WAITING_SINCE, R0);
    b.place(out);
    b.exit();
    b
}

/// At `sched_switch(preempt, previous, next, state)`: the previous task waits for a CPU from now on if it is still runnable, and
/// the next one waits no longer.
pub(super) fn switch(pid: i16) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let (runnable, next, out) = (b.label(), b.label(), b.label());
    b.set(R6, R1);
    b.call(Helper::KtimeGetNs);
    b.set(R9, R0);
    b.load(Double, R3, R6, 8);
    find(&mut b, pid, next);
    b.store(Double, R0, thread::IS_OFF_CPU, 1);
    // Reads `preempt` from the context at `R6`, and keeps `R0`.
    jump_if_preempted(&mut b, runnable);
    // The state is an unsigned int; 0 is TASK_RUNNING.
    b.load(Word, R1, R6, 24);
    b.jump_if(NotEqual, R1, 0, next);
    b.place(runnable);
    b.store(Double, R0, thread::WAITING_SINCE, R9);
    b.place(next);
    b.load(Double, R3, R6, 16);
    find(&mut b, pid, out);
    b.set(R7, R0);
    b.store(Double, R7, thread::IS_OFF_CPU, 0);
    b.load(Double, R1, R7, thread::WAITING_SINCE);
    b.jump_if(Equal, R1, 0, out);
    b.store(Double, R7, thread::WAITING_SINCE, 0);
    b.set(R2, R9);
    b.operate(Sub, R2, R1);
    b.load(Double, R1, R7, thread::TOTAL);
    b.operate(Add, R1, R2);
    b.store(Double, R7, thread::TOTAL, R1);
    b.place(out);
    b.exit();
    b
}

/// Leaves in `R0` the address of the task's value in [`RUN_QUEUE_TIMES`]; `R3` is the address of its `task_struct`. Goes to
/// `other` for tasks without a value, for idle tasks, and if the id cannot be read.
fn find(b: &mut ProgramBuilder, pid: i16, other: Label) {
    b.operate(Add, R3, i32::from(pid));
    // The thread id is read into the stack at `INDEX`.
    b.store(Word, R10, INDEX, 0);
    b.address(R1, R10, i32::from(INDEX));
    b.set(R2, 4);
    b.call(Helper::ProbeReadKernel);
    b.jump_if(SignedLess, R0, 0, other);
    b.load(Word, R1, R10, INDEX);
    b.jump_if(Equal, R1, 0, other);
    look_up(b, RUN_QUEUE_TIMES, INDEX);
    b.jump_if(Equal, R0, 0, other);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpreter;

    /// Returns what [`difference`] leaves if the total was `begin` when the wait began; `None` if it goes to `unknown`.
    fn since(begin: i32, total: u64) -> Option<u64> {
        // A value with this total, laid out as [`thread`]. The program then stores its results over the first two numbers: 1, and
        // the difference.
        let mut memory = [0_u64, total, 0].map(u64::to_ne_bytes).concat();
        let program = |b: &mut ProgramBuilder| {
            let unknown = b.label();
            b.set(R0, R1);
            b.set(R6, R1);
            b.set(R8, begin);
            difference(b, unknown);
            b.store(Double, R6, 0, 1);
            b.store(Double, R6, 8, R1);
            b.place(unknown);
        };
        interpreter::run(program, &mut memory);
        let number = |at: usize| u64::from_ne_bytes(memory[at..at + 8].try_into().unwrap());
        (number(0) == 1).then(|| number(8))
    }

    #[test]
    fn a_total_that_begins_again_during_a_wait_does_not_wrap() {
        assert_eq!(since(5, 12), Some(7));
        assert_eq!(since(5, 5), Some(0));
        assert_eq!(since(5, 4), None);
        assert_eq!(since(5, 0), None);
    }
}
