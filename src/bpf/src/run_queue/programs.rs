//! The programs at wakeups and context switches.

use crate::Condition::{AtLeast, AtMost, Below, Equal, NotEqual};
use crate::Operation::{Add, And, ShiftLeft, ShiftRight, Sub};
use crate::Register::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use crate::Width::{Double, Word};
use crate::buckets::bucket_number;
use crate::tasks::{
    INDEX, LOST_TASKS, TASK, add, add_copy, current_task, jump_if_preempted, look_up,
    set_map_and_key,
};
use crate::{Helper, Label, MapId, ProgramBuilder, Register};

use super::TaskOffsets;

/// From the thread id to its [`state`]. It has the number of [`crate::tasks::TASKS`], which these programs do not use.
pub(super) const STATES: MapId = MapId(0);
/// From (thread id, [`state::BIRTH`]) to the sums laid out in [`row`].
pub(super) const ROWS: MapId = MapId(2);
/// One empty value of `ROWS`, which is too large for the stack: its minimum is `u64::MAX`, all else is 0.
pub(super) const TEMPLATE: MapId = MapId(3);
/// The keys of rows whose tasks ended.
pub(super) const ENDED: MapId = MapId(4);

/// The binary logarithm of the number of buckets, 64, into which [`bucket_number`] divides each power of two.
const SUB_BITS: u32 = 6;
/// The end of the last bucket, in ns (137 s). Longer waits are counted in the last bucket, too.
const LAST_BUCKET_END: u64 = (1 << 37) - 1;
/// The number of buckets up to that of `LAST_BUCKET_END`.
pub(super) const BUCKETS: usize = 2048;
/// The index in [`crate::tasks::LOSSES`] of the number of waits without a row. The index before it, [`LOST_TASKS`], is that of
/// tasks without a state.
pub(super) const LOST_WAITS: i32 = 1;
/// `TASK_DEAD`.
const DEAD: i32 = 0x80;

/// The value of `STATES`: times in ns of `CLOCK_MONOTONIC`.
pub(super) mod state {
    /// The time at which the task became runnable; 0 unless it waits for a CPU.
    pub(in super::super) const WAITING_SINCE: i16 = 0;
    /// The time at which it was switched in; 0 unless it runs.
    pub(in super::super) const RUNNING_SINCE: i16 = 8;
    /// The time at which it was first seen, which distinguishes tasks of one thread id.
    pub(in super::super) const BIRTH: i16 = 16;
    /// The time for which it ran until it was last switched out.
    pub(in super::super) const RUNTIME: i16 = 24;
    /// Its name when it was last switched out; empty before that.
    pub(in super::super) const COMM: i16 = 32;
    pub(in super::super) const SIZE: u32 = 48;
}

/// The value of `ROWS`: the waits of a task. Times are in ns.
pub(super) mod row {
    pub(in super::super) const COUNT: i16 = 0;
    pub(in super::super) const TOTAL: i16 = 8;
    pub(in super::super) const MIN: i16 = 16;
    pub(in super::super) const MAX: i16 = 24;
    /// The time at which the longest wait ended.
    pub(in super::super) const MAX_END: i16 = 32;
    /// The value of [`super::state::RUNTIME`] when the task ended; 0 before.
    pub(in super::super) const RUNTIME: i16 = 40;
    /// The name of the task at its first wait; when the task ends, its last name replaces it.
    pub(in super::super) const COMM: i16 = 48;
    pub(in super::super) const BUCKETS: i16 = 64;
    pub(in super::super) const SIZE: usize = 64 + 4 * super::BUCKETS;
}

// Offsets on the stack, below those of [`crate::tasks`].
/// The key of `ROWS`.
const ROW_KEY: i16 = -64;
/// A new state.
const STATE: i16 = -112;
/// The time at which a wait began.
const BEGIN: i16 = -120;

/// At `sched_waking` and `sched_wakeup`: a task that neither runs nor waits begins to wait. `sched_waking` is earlier, but then
/// the task may still run on its way to sleep: in this case `sched_wakeup` counts.
pub(super) fn wake(offsets: TaskOffsets) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let (known, out) = (b.label(), b.label());
    b.load(Double, R6, R1, 0);
    thread_id(&mut b, offsets, out);
    look_up(&mut b, STATES, TASK);
    b.jump_if(NotEqual, R0, 0, known);
    add_waiting(&mut b);
    b.jump(out);
    b.place(known);
    b.set(R7, R0);
    for time in [state::WAITING_SINCE, state::RUNNING_SINCE] {
        b.load(Double, R1, R7, time);
        b.jump_if(NotEqual, R1, 0, out);
    }
    b.call(Helper::KtimeGetNs);
    b.store(Double, R7, state::WAITING_SINCE, R0);
    b.place(out);
    b.exit();
    b
}

/// At `sched_wakeup_new`: a new task begins to wait. Its state replaces that of a former task with this thread id, if any.
pub(super) fn wake_new(offsets: TaskOffsets) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let out = b.label();
    b.load(Double, R6, R1, 0);
    thread_id(&mut b, offsets, out);
    add_waiting(&mut b);
    b.place(out);
    b.exit();
    b
}

/// Adds a state for the task whose id is on the stack and which begins to wait now.
fn add_waiting(b: &mut ProgramBuilder) {
    b.call(Helper::KtimeGetNs);
    b.set(R9, R0);
    b.store(Double, R10, STATE + state::WAITING_SINCE, R9);
    b.store(Double, R10, STATE + state::RUNNING_SINCE, 0);
    add_state(b);
}

/// At `sched_switch(preempt, prev, next, prev_state)`: adds the run time of the previous task and the wait of the next one. With
/// `cpu`, times on other CPUs are not summed.
pub(super) fn switch(offsets: TaskOffsets, cpu: Option<u32>) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let (next, out) = (b.label(), b.label());
    b.set(R6, R1);
    b.call(Helper::KtimeGetNs);
    b.set(R9, R0);
    switch_out(&mut b, cpu, next);
    b.place(next);
    b.load(Double, R6, R6, 16);
    thread_id(&mut b, offsets, out);
    switch_in(&mut b, offsets, cpu, out);
    b.place(out);
    b.exit();
    b
}

/// Adds the time for which the current task ran, and stores whether it waits for a CPU from now on. The arguments of
/// `sched_switch` are at `R6`, the time is in `R9`. Jumps to `next` or falls through: both lead to the same place, since the
/// caller places this label directly after this code.
fn switch_out(b: &mut ProgramBuilder, cpu: Option<u32>, next: Label) {
    let (known, summed, waits) = (b.label(), b.label(), b.label());
    current_task(b);
    b.load(Word, R1, R10, TASK);
    // The idle task.
    b.jump_if(Equal, R1, 0, next);
    look_up(b, STATES, TASK);
    b.jump_if(NotEqual, R0, 0, known);
    b.store(Double, R10, STATE + state::WAITING_SINCE, 0);
    b.store(Double, R10, STATE + state::RUNNING_SINCE, 0);
    add_state(b);
    look_up(b, STATES, TASK);
    b.jump_if(Equal, R0, 0, next);
    b.place(known);
    b.set(R7, R0);
    b.load(Double, R1, R7, state::RUNNING_SINCE);
    b.jump_if(Equal, R1, 0, summed);
    b.set(R8, R9);
    b.operate(Sub, R8, R1);
    only_on(b, cpu, summed);
    b.load(Double, R1, R7, state::RUNTIME);
    b.operate(Add, R1, R8);
    b.store(Double, R7, state::RUNTIME, R1);
    b.place(summed);
    store_current_comm(b, R7, state::COMM);
    b.store(Double, R7, state::RUNNING_SINCE, 0);
    b.store(Double, R7, state::WAITING_SINCE, 0);
    jump_if_preempted(b, waits);
    b.load(Double, R1, R6, 24);
    // prev_state has 32 bits; the upper half of its word is not defined. 0 is `TASK_RUNNING`.
    b.operate(ShiftLeft, R1, 32);
    b.operate(ShiftRight, R1, 32);
    b.jump_if(Equal, R1, 0, waits);
    b.operate(And, R1, DEAD);
    b.jump_if(Equal, R1, 0, next);
    end_task(b);
    b.jump(next);
    b.place(waits);
    b.store(Double, R7, state::WAITING_SINCE, R9);
}

/// Ends the current task, whose state is at `R7`: stores its run time and its name in its row, adds the key of the row to
/// `ENDED`, and removes the state. A task without waits has no row.
fn end_task(b: &mut ProgramBuilder) {
    let no_row = b.label();
    row_key(b);
    look_up(b, ROWS, ROW_KEY);
    b.jump_if(Equal, R0, 0, no_row);
    b.set(R8, R0);
    b.load(Double, R1, R7, state::RUNTIME);
    b.store(Double, R8, row::RUNTIME, R1);
    store_current_comm(b, R8, row::COMM);
    // The values of `ENDED` have no meaning.
    b.store(Word, R10, INDEX, 0);
    set_map_and_key(b, ENDED, ROW_KEY);
    b.address(R3, R10, i32::from(INDEX));
    b.set(R4, 0);
    b.call(Helper::MapUpdateElem);
    b.place(no_row);
    set_map_and_key(b, STATES, TASK);
    b.call(Helper::MapDeleteElem);
}

/// Stores the name of the current task at `offset` from the address in `to`.
fn store_current_comm(b: &mut ProgramBuilder, to: Register, offset: i16) {
    b.address(R1, to, i32::from(offset));
    b.set(R2, 16);
    b.call(Helper::GetCurrentComm);
}

/// Adds the wait of the task at `R6`, whose id is on the stack and which runs from the time `R9` on. Jumps to `out` or falls
/// through; the caller places this label directly after this code, too.
fn switch_in(b: &mut ProgramBuilder, offsets: TaskOffsets, cpu: Option<u32>, out: Label) {
    let (known, in_order) = (b.label(), b.label());
    look_up(b, STATES, TASK);
    b.jump_if(NotEqual, R0, 0, known);
    b.store(Double, R10, STATE + state::WAITING_SINCE, 0);
    b.store(Double, R10, STATE + state::RUNNING_SINCE, R9);
    add_state(b);
    b.jump(out);
    b.place(known);
    b.set(R7, R0);
    b.store(Double, R7, state::RUNNING_SINCE, R9);
    b.load(Double, R1, R7, state::WAITING_SINCE);
    b.jump_if(Equal, R1, 0, out);
    b.store(Double, R7, state::WAITING_SINCE, 0);
    // Another CPU may have stored a wakeup after the time of this switch, `R9`, was read.
    b.jump_if(AtLeast, R9, R1, in_order);
    b.jump(out);
    b.place(in_order);
    b.store(Double, R10, BEGIN, R1);
    row_key(b);
    only_on(b, cpu, out);
    find_row(b, offsets, out);
    b.set(R7, R9);
    b.load(Double, R1, R10, BEGIN);
    b.operate(Sub, R7, R1);
    add_wait(b, out);
}

/// Stores the thread id of the task at `R6` on the stack; jumps to `out` for an idle task, or if the id cannot be read.
fn thread_id(b: &mut ProgramBuilder, offsets: TaskOffsets, out: Label) {
    b.store(Word, R10, TASK, 0);
    b.address(R1, R10, i32::from(TASK));
    b.set(R2, 4);
    b.address(R3, R6, i32::from(offsets.pid));
    b.call(Helper::ProbeReadKernel);
    b.load(Word, R1, R10, TASK);
    b.jump_if(Equal, R1, 0, out);
}

/// Completes the state on the stack, for a task first seen at the time `R9`, and adds it for the thread id on the stack; counts a
/// failure.
fn add_state(b: &mut ProgramBuilder) {
    b.store(Double, R10, STATE + state::BIRTH, R9);
    for zero in [state::RUNTIME, state::COMM, state::COMM + 8] {
        b.store(Double, R10, STATE + zero, 0);
    }
    add(b, STATES, [TASK, STATE], LOST_TASKS);
}

/// Stores on the stack the key of a task's row. The thread id is on the stack, the task's state at `R7`.
fn row_key(b: &mut ProgramBuilder) {
    b.load(Word, R1, R10, TASK);
    b.store(Double, R10, ROW_KEY, R1);
    b.load(Double, R1, R7, state::BIRTH);
    b.store(Double, R10, ROW_KEY + 8, R1);
}

/// Goes to `other` on a CPU that is not selected.
fn only_on(b: &mut ProgramBuilder, cpu: Option<u32>, other: Label) {
    if let Some(cpu) = cpu {
        b.call(Helper::GetSmpProcessorId);
        b.jump_if(NotEqual, R0, cpu.cast_signed(), other);
    }
}

/// Leaves in `R8` the address of the row whose key is on the stack. If there is none, adds it, with the name of the task at
/// `R6`. Without room, counts a loss and goes to `full`.
fn find_row(b: &mut ProgramBuilder, offsets: TaskOffsets, full: Label) {
    let (found, done) = (b.label(), b.label());
    look_up(b, ROWS, ROW_KEY);
    b.jump_if(NotEqual, R0, 0, found);
    add_copy(b, [ROWS, TEMPLATE], ROW_KEY, LOST_WAITS, full);
    b.set(R8, R0);
    b.address(R1, R8, i32::from(row::COMM));
    b.set(R2, 16);
    b.address(R3, R6, i32::from(offsets.comm));
    b.call(Helper::ProbeReadKernel);
    b.jump(done);
    b.place(found);
    b.set(R8, R0);
    b.place(done);
}

/// Adds the wait of `R7` ns that ended at `R9` to the row at `R8`. A task waits for one CPU at a time, so no other CPU
/// changes the row at the same time. Goes to `out` if the wait has no bucket, which only the verifier considers possible.
pub(super) fn add_wait(b: &mut ProgramBuilder, out: Label) {
    let (not_less, not_more, fits) = (b.label(), b.label(), b.label());
    b.load(Double, R1, R8, row::COUNT);
    b.operate(Add, R1, 1);
    b.store(Double, R8, row::COUNT, R1);
    b.load(Double, R1, R8, row::TOTAL);
    b.operate(Add, R1, R7);
    b.store(Double, R8, row::TOTAL, R1);
    b.load(Double, R1, R8, row::MIN);
    b.jump_if(AtLeast, R7, R1, not_less);
    b.store(Double, R8, row::MIN, R7);
    b.place(not_less);
    b.load(Double, R1, R8, row::MAX);
    b.jump_if(AtMost, R7, R1, not_more);
    b.store(Double, R8, row::MAX, R7);
    b.store(Double, R8, row::MAX_END, R9);
    b.place(not_more);
    b.set_wide(R2, LAST_BUCKET_END);
    b.set(R1, R7);
    b.jump_if(AtMost, R1, R2, fits);
    b.set(R1, R2);
    b.place(fits);
    bucket_number(b, SUB_BITS);
    // The verifier needs the limit.
    let inside = b.label();
    b.jump_if(Below, R1, BUCKETS as i32, inside);
    b.jump(out);
    b.place(inside);
    b.operate(ShiftLeft, R1, 2);
    b.set(R2, R8);
    b.operate(Add, R2, R1);
    b.load(Word, R1, R2, row::BUCKETS);
    b.operate(Add, R1, 1);
    b.store(Word, R2, row::BUCKETS, R1);
}
