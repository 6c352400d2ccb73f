//! The program, and the layout of its maps.

use crate::Condition::{Below, Equal, NotEqual, SignedLess};
use crate::Operation::{Add, And, ShiftRight, Sub};
use crate::Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use crate::Width::{Double, Word};
use crate::stacks::{FAST_COMPARISON, StackMaps, USER_STACK};
use crate::tasks::{
    INDEX, ONLY_NEW, TASK, count_loss, current_task, find_slot, jump_if_preempted, look_up,
    set_map_and_key,
};
use crate::{Helper, Label, MapId, ProgramBuilder};

// The maps 0 and 1 are those of `crate::tasks`: the observed tasks and the losses.
/// From a CPU to the perf event whose ring buffer gets the records of long waits that end on this CPU.
pub(super) const EVENTS: MapId = MapId(2);
/// From the thread id to the open wait, laid out as [`wait`].
pub(super) const WAITS: MapId = MapId(3);
/// From a task and its stacks, laid out as [`sum_key`], to nanoseconds.
pub(super) const SUMS: MapId = MapId(4);
/// Stacks: those whose bucket in the first map is taken are in the second.
pub(super) const STACKS: StackMaps = StackMaps {
    first: MapId(5),
    second: MapId(6),
};

/// Indices in [`crate::tasks::LOSSES`]; index 0 is [`crate::tasks::LOST_TASKS`]. `SUMS` and `STACKS` are also names of maps in
/// this file.
pub(super) mod losses {
    /// Waits whose start was not stored.
    pub(in crate::off_cpu) const BEGINS: i32 = 1;
    /// Waits that were not added to a sum.
    pub(in crate::off_cpu) const SUMS: i32 = 2;
    /// The nanoseconds of these waits.
    pub(in crate::off_cpu) const NANOS: i32 = 3;
    /// Stacks that could not be stored.
    pub(in crate::off_cpu) const STACKS: i32 = 4;
    pub(in crate::off_cpu) const COUNT: u32 = 5;
}

/// The value of [`WAITS`]: a task that waits.
pub(super) mod wait {
    /// ns of `CLOCK_MONOTONIC`.
    pub(in crate::off_cpu) const START: i16 = 0;
    pub(in crate::off_cpu) const PROCESS: i16 = 8;
    /// The numbers of the kernel stack and of the user stack, as in [`super::sum_key`].
    pub(in crate::off_cpu) const KERNEL: i16 = 12;
    pub(in crate::off_cpu) const USER: i16 = 16;
    pub(in crate::off_cpu) const SIZE: u32 = 24;
}

/// The key of [`SUMS`]: the task, and the numbers of its stacks. For a missing stack, it has a negative error number instead.
pub(super) mod sum_key {
    pub(in crate::off_cpu) const THREAD: usize = 0;
    pub(in crate::off_cpu) const PROCESS: usize = 4;
    pub(in crate::off_cpu) const KERNEL: usize = 8;
    pub(in crate::off_cpu) const USER: usize = 12;
    pub(in crate::off_cpu) const SIZE: u32 = 16;
}

// Offsets on the stack, below those of [`crate::tasks`].
/// The thread id of the task that is switched in.
const NEXT: i16 = -44;
/// The record of a long wait: nanoseconds, and the key of its sum.
const RECORD: i16 = -80;
const KEY: i16 = RECORD + 8;
/// The size of a record.
pub(super) const RECORD_SIZE: i32 = 24;
/// A new wait.
const WAIT: i16 = -104;
/// Nanoseconds of a new sum.
const NANOS: i16 = -112;

/// `EFAULT`: the task has no user stack.
const NO_USER: i32 = -14;
/// States of a task that waits: interruptibly, uninterruptibly, stopped, traced (`TASK_INTERRUPTIBLE` to `__TASK_TRACED`).
const WAITING: i32 = 0xf;

/// Options that change the instructions of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProgramOptions {
    /// The offset of `task_struct::pid`.
    pub(super) task_pid: i16,
    /// Whether only tasks in the map of tasks are observed.
    pub(super) known_tasks_only: bool,
    /// The shortest wait, in ns, that is written as a record.
    pub(super) threshold: u64,
}

/// At `sched_switch(preempt, prev, next, prev_state)`: ends the wait of the next task, and begins that of the previous one if it
/// waits.
pub(super) fn switch(options: ProgramOptions) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let (previous, out) = (b.label(), b.label());
    b.set(R6, R1);
    b.call(Helper::KtimeGetNs);
    b.set(R9, R0);
    end_wait(&mut b, options, previous);
    b.place(previous);
    jump_unless_waiting(&mut b, out);
    begin_wait(&mut b, options, out);
    b.place(out);
    b.exit();
    b
}

/// Ends the wait of the task that is switched in, if it has one. Jumps to `done` or runs to its end, where the caller must place
/// `done`.
fn end_wait(b: &mut ProgramBuilder, options: ProgramOptions, done: Label) {
    let short = b.label();
    // R6 points to the four arguments of 8 bytes: `next` is at 16, `prev_state` at 24.
    b.load(Double, R3, R6, 16);
    b.operate(Add, R3, i32::from(options.task_pid));
    b.address(R1, R10, i32::from(NEXT));
    b.set(R2, 4);
    b.call(Helper::ProbeReadKernel);
    b.jump_if(SignedLess, R0, 0, done);
    look_up(b, WAITS, NEXT);
    b.jump_if(Equal, R0, 0, done);
    record(b);
    set_map_and_key(b, WAITS, NEXT);
    b.call(Helper::MapDeleteElem);
    b.set_wide(R1, options.threshold);
    // A wait shorter than the threshold is only summed.
    b.jump_if(Below, R7, R1, short);
    b.set(R1, R6);
    b.map(R2, EVENTS);
    // BPF_F_CURRENT_CPU.
    b.set_wide(R3, 0xffff_ffff);
    b.address(R4, R10, i32::from(RECORD));
    b.set(R5, RECORD_SIZE);
    b.call(Helper::PerfEventOutput);
    b.jump_if(Equal, R0, 0, done);
    // The record was not written, for example because this CPU has no event or its ring buffer is full: the wait is summed.
    b.place(short);
    add_up(b);
}

/// Stores on the stack the record of the wait at `R0`, which ends at the time `R9`. Leaves the wait's nanoseconds in `R7`.
pub(super) fn record(b: &mut ProgramBuilder) {
    b.load(Double, R1, R0, wait::START);
    b.set(R7, R9);
    b.operate(Sub, R7, R1);
    b.store(Double, R10, RECORD, R7);
    b.load(Word, R1, R10, NEXT);
    b.store(Word, R10, KEY, R1);
    for (from, to) in [
        (wait::PROCESS, sum_key::PROCESS),
        (wait::KERNEL, sum_key::KERNEL),
        (wait::USER, sum_key::USER),
    ] {
        b.load(Word, R1, R0, from);
        b.store(Word, R10, KEY + to as i16, R1);
    }
}

/// Adds `R7` nanoseconds to the sum of the key on the stack. Counts the wait as lost if there is no room.
fn add_up(b: &mut ProgramBuilder) {
    let (found, done) = (b.label(), b.label());
    look_up(b, SUMS, KEY);
    b.jump_if(NotEqual, R0, 0, found);
    b.store(Double, R10, NANOS, R7);
    set_map_and_key(b, SUMS, KEY);
    b.address(R3, R10, i32::from(NANOS));
    b.set(R4, ONLY_NEW);
    b.call(Helper::MapUpdateElem);
    b.jump_if(Equal, R0, 0, done);
    // Another CPU may have added the sum in between.
    look_up(b, SUMS, KEY);
    b.jump_if(NotEqual, R0, 0, found);
    count_loss(b, losses::SUMS);
    // The nanoseconds are then added to the counter of lost ones.
    b.store(Word, R10, INDEX, losses::NANOS);
    look_up(b, crate::tasks::LOSSES, INDEX);
    b.jump_if(NotEqual, R0, 0, found);
    b.jump(done);
    b.place(found);
    b.atomic_add(R0, 0, R7);
    b.place(done);
}

/// Jumps to `out` unless the task that is switched out waits; preempted and ended tasks do not wait.
pub(super) fn jump_unless_waiting(b: &mut ProgramBuilder, out: Label) {
    jump_if_preempted(b, out);
    b.load(Double, R1, R6, 24);
    b.operate(And, R1, WAITING);
    b.jump_if(Equal, R1, 0, out);
}

/// Stores the start of the current task's wait if the task is observed. Kernel threads are skipped, as they are idle most of the
/// time.
fn begin_wait(b: &mut ProgramBuilder, options: ProgramOptions, out: Label) {
    // `current_task` leaves the process id in the upper half of R0, and stores the thread id at `TASK`.
    current_task(b);
    b.set(R8, R0);
    b.operate(ShiftRight, R8, 32);
    if options.known_tasks_only {
        find_slot(b, out);
    }
    b.store(Double, R10, WAIT + wait::START, R9);
    b.store(Word, R10, WAIT + wait::PROCESS, R8);
    // The verifier wants the padding at the end of the value to be initialized, too.
    b.store(Word, R10, WAIT + wait::SIZE as i16 - 4, 0);
    STACKS.store(b, FAST_COMPARISON | USER_STACK);
    b.set(R7, R0);
    // A kernel thread.
    b.jump_if(Equal, R7, NO_USER, out);
    b.store(Word, R10, WAIT + wait::USER, R7);
    count_missing(b);
    STACKS.store(b, FAST_COMPARISON);
    b.set(R7, R0);
    b.store(Word, R10, WAIT + wait::KERNEL, R7);
    count_missing(b);
    set_map_and_key(b, WAITS, TASK);
    b.address(R3, R10, i32::from(WAIT));
    // `BPF_ANY`: a wait of this thread whose end was not seen is replaced.
    b.set(R4, 0);
    b.call(Helper::MapUpdateElem);
    b.jump_if(Equal, R0, 0, out);
    count_loss(b, losses::BEGINS);
}

/// Counts a loss unless `R7` is the number of a stack.
fn count_missing(b: &mut ProgramBuilder) {
    let stored = b.label();
    b.jump_if(Below, R7, i32::MAX, stored);
    count_loss(b, losses::STACKS);
    b.place(stored);
}

/// Whether `number` is that of a stack, not an error. [`count_missing`] makes the same check.
pub(super) fn is_stack(number: u32) -> bool {
    number < i32::MAX.cast_unsigned()
}

/// Replaces the wait at `R1` by its record, for tests. The wait is that of `thread`, which is switched in at `now`.
#[cfg(test)]
pub(super) fn switched_in(b: &mut ProgramBuilder, thread: i32, now: u64) {
    b.store(Word, R10, NEXT, thread);
    b.set_wide(R9, now);
    b.set(R0, R1);
    record(b);
    // 24: a wait and a record have the same size.
    for at in (0..24).step_by(8) {
        b.load(Double, R1, R10, RECORD + at);
        b.store(Double, R0, at, R1);
    }
}

/// Stores 1 behind the four arguments of `sched_switch` at `R1` if the task that is switched out waits, for tests.
#[cfg(test)]
pub(super) fn is_waiting(b: &mut ProgramBuilder) {
    let out = b.label();
    b.set(R6, R1);
    jump_unless_waiting(b, out);
    b.store(Double, R6, 32, 1);
    b.place(out);
}
