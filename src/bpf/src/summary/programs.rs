//! The programs of the summary.

use crate::Condition::{Above, AtLeast, AtMost, Below, Equal, NotEqual};
use crate::Operation::{Add, And, Mul, Or, ShiftLeft, ShiftRight, Sub};
use crate::Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use crate::Width::{Double, Word};
use crate::buckets::bucket_number;
use crate::registers::CompatMark;
use crate::tasks::{
    INDEX, TASK, TASKS, add, add_copy, add_slot, current_task, look_up, new_slot, slot,
};
use crate::{Helper, MapId, Operand, ProgramBuilder};

use super::values::{self, call};

/// From (thread id, call number, cgroup id or birth of the task) to the sums laid out in [`call`].
pub(super) const CALLS: MapId = MapId(2);
/// From (key of `CALLS`, errno) to a count.
pub(super) const ERRNOS: MapId = MapId(3);
/// One empty value of `CALLS`, which is too large for the stack.
pub(super) const TEMPLATE: MapId = MapId(4);
/// For each call number whether it is summarized.
pub(super) const SELECTED: MapId = MapId(5);

/// The bit that marks call numbers of 32-bit programs; all numbers without it are smaller.
pub(super) const COMPAT: i32 = 512;

/// Options that change the instructions of the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProgramOptions {
    /// Whether only calls of tasks that have a slot (a value in `TASKS`) are counted; otherwise other tasks get one.
    pub(super) known_tasks_only: bool,
    /// A process whose calls are not counted.
    pub(super) excluded_process: Option<u32>,
    /// The offset of `task_struct::pid` in bytes, to follow tasks that known tasks create; `None` if they are not followed.
    pub(super) task_pid: Option<i16>,
    /// The saved register by which calls of 32-bit programs are recognized.
    pub(super) compat: CompatMark,
    /// Whether keys have the id of the task's cgroup instead of the task's birth ([`slot::BIRTH`]).
    pub(super) by_cgroup: bool,
}

// Offsets on the stack, below those of [`crate::tasks`].
/// The key of `CALLS` (16 bytes) or of `ERRNOS` (24 bytes).
const KEY: i16 = -64;
/// A value of 8 bytes: the time at which a call returned, or the first count of an error.
const VALUE: i16 = -72;
/// A value of 8 bytes: the saved register by which calls of 32-bit programs are recognized.
const COMPAT_REGISTER: i16 = -80;

/// Leaves the number of the call in `R9`: with the bit [`COMPAT`] for 32-bit programs, and `COMPAT - 1` for numbers that are not
/// below `COMPAT`. The arguments of the tracepoint, to which `R6` points, are the saved registers and the number.
fn call_number(b: &mut ProgramBuilder, compat: CompatMark) {
    let end = b.label();
    b.load(Double, R9, R6, 8);
    let in_range = b.label();
    b.jump_if(Below, R9, COMPAT, in_range);
    b.set(R9, COMPAT - 1);
    b.place(in_range);
    b.load(Double, R3, R6, 0);
    b.operate(Add, R3, i32::from(compat.offset));
    b.store(Double, R10, COMPAT_REGISTER, 0);
    b.address(R1, R10, i32::from(COMPAT_REGISTER));
    b.set(R2, 8);
    b.call(Helper::ProbeReadKernel);
    b.load(Double, R1, R10, COMPAT_REGISTER);
    b.operate(And, R1, compat.mask);
    b.jump_if(NotEqual, R1, compat.value, end);
    b.operate(Or, R9, COMPAT);
    b.place(end);
}

/// At `sys_enter`: stores call and time in the task's slot if the call is counted.
pub(super) fn enter(options: ProgramOptions) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let (found, out) = (b.label(), b.label());
    b.set(R6, R1);
    current_task(&mut b);
    if let Some(process) = options.excluded_process {
        // The upper half of `R0`: the process id.
        b.operate(ShiftRight, R0, 32);
        b.jump_if(Equal, R0, process.cast_signed(), out);
    }
    call_number(&mut b, options.compat);
    b.store(Word, R10, INDEX, R9);
    look_up(&mut b, SELECTED, INDEX);
    b.jump_if(Equal, R0, 0, out);
    b.load(Word, R1, R0, 0);
    b.jump_if(Equal, R1, 0, out);
    look_up(&mut b, TASKS, TASK);
    b.jump_if(NotEqual, R0, 0, found);
    if options.known_tasks_only {
        b.jump(out);
    } else {
        new_slot(&mut b);
        add_slot(&mut b);
        look_up(&mut b, TASKS, TASK);
        b.jump_if(Equal, R0, 0, out);
    }
    // Either look-up has left the address of the slot in `R0`.
    b.place(found);
    b.set(R8, R0);
    b.store(Word, R8, slot::CALL, R9);
    b.call(Helper::KtimeGetNs);
    b.store(Double, R8, slot::START, R0);
    b.place(out);
    b.exit();
    b
}

/// At `sys_exit`: adds the call to the sums of its key in [`CALLS`]. Registers: `R6` has the process id (upper half) and the
/// thread id, `R7` the duration, `R8` points to the task's slot, later to the value in `CALLS`, and `R9` has the result of the
/// call (in [`enter`], its number).
pub(super) fn exit(options: ProgramOptions) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let (found, out) = (b.label(), b.label());
    b.load(Double, R9, R1, 8);
    current_task(&mut b);
    b.set(R6, R0);
    look_up(&mut b, TASKS, TASK);
    b.jump_if(Equal, R0, 0, out);
    b.set(R8, R0);
    b.load(Word, R1, R8, slot::CALL);
    // A loaded word is zero-extended, so the upper half of `NONE` is cleared for the comparison.
    b.set(R2, slot::NONE);
    b.operate(ShiftLeft, R2, 32);
    b.operate(ShiftRight, R2, 32);
    b.jump_if(Equal, R1, R2, out);
    b.store(Word, R10, KEY + 4, R1);
    // The lower half: the thread id.
    b.store(Word, R10, KEY, R6);
    match options.by_cgroup {
        true => b.call(Helper::GetCurrentCgroupId),
        false => b.load(Double, R0, R8, slot::BIRTH),
    }
    b.store(Double, R10, KEY + 8, R0);
    b.call(Helper::KtimeGetNs);
    b.set(R7, R0);
    b.load(Double, R1, R8, slot::START);
    b.operate(Sub, R7, R1);
    b.store(Word, R8, slot::CALL, slot::NONE);
    // Calls of a task that waits for its exec are not counted. The exec itself is counted: the wait ends before it returns.
    b.load(Word, R1, R8, slot::AWAITS_EXEC);
    b.jump_if(NotEqual, R1, 0, out);
    // `R0` still has the time of the return.
    b.store(Double, R10, VALUE, R0);
    look_up(&mut b, CALLS, KEY);
    b.jump_if(NotEqual, R0, 0, found);
    // Like `look_up`, leaves the address of the value in `R0`.
    add_copy(&mut b, [CALLS, TEMPLATE], KEY, values::LOST_CALLS, out);
    b.place(found);
    b.set(R8, R0);
    sums(&mut b);
    count_in_bucket(&mut b);
    errno(&mut b);
    b.place(out);
    b.exit();
    b
}

/// Adds an amount to a number of the value at `R8`.
fn add_to(b: &mut ProgramBuilder, offset: i16, amount: impl Into<Operand>) {
    b.load(Double, R1, R8, offset);
    b.operate(Add, R1, amount);
    b.store(Double, R8, offset, R1);
}

/// Adds the duration `R7` to the value at `R8`, and stores the process (from `R6`), the time of the return (from
/// [`VALUE`]) and the thread's name.
fn sums(b: &mut ProgramBuilder) {
    let (not_less, not_more) = (b.label(), b.label());
    add_to(b, call::COUNT, 1);
    add_to(b, call::TOTAL, R7);
    b.load(Double, R1, R8, call::MIN);
    b.jump_if(AtLeast, R7, R1, not_less);
    b.store(Double, R8, call::MIN, R7);
    b.place(not_less);
    b.load(Double, R1, R8, call::MAX);
    b.jump_if(AtMost, R7, R1, not_more);
    b.store(Double, R8, call::MAX, R7);
    b.place(not_more);
    add_square(b);
    b.set(R1, R6);
    b.operate(ShiftRight, R1, 32);
    b.store(Double, R8, call::PROCESS, R1);
    b.load(Double, R1, R10, VALUE);
    b.store(Double, R8, call::LAST_END, R1);
    b.address(R1, R8, i32::from(call::COMM));
    b.set(R2, 16);
    b.call(Helper::GetCurrentComm);
}

/// Adds the square of `R7` to the sum of squares. The square has 128 bits: if h and l are the upper and lower half of `R7`, it is
/// h²·2⁶⁴ + 2·h·l·2³² + l².
pub(super) fn add_square(b: &mut ProgramBuilder) {
    let (no_middle_carry, no_carry) = (b.label(), b.label());
    b.set(R1, R7);
    b.operate(ShiftRight, R1, 32);
    b.set(R2, R7);
    b.operate(ShiftLeft, R2, 32);
    b.operate(ShiftRight, R2, 32);
    b.set(R3, R1);
    b.operate(Mul, R3, R2);
    b.operate(Mul, R1, R1);
    b.operate(Mul, R2, R2);
    b.set(R4, R3);
    b.operate(ShiftRight, R4, 31);
    b.operate(Add, R1, R4);
    b.operate(ShiftLeft, R3, 33);
    b.operate(Add, R2, R3);
    b.jump_if(AtLeast, R2, R3, no_middle_carry);
    b.operate(Add, R1, 1);
    b.place(no_middle_carry);
    b.load(Double, R5, R8, call::SQUARES);
    b.operate(Add, R5, R2);
    b.store(Double, R8, call::SQUARES, R5);
    b.jump_if(AtLeast, R5, R2, no_carry);
    b.operate(Add, R1, 1);
    b.place(no_carry);
    add_to_high_square(b);
}

/// Adds `R1` to the upper half of the sum of squares.
fn add_to_high_square(b: &mut ProgramBuilder) {
    b.load(Double, R2, R8, call::SQUARES + 8);
    b.operate(Add, R2, R1);
    b.store(Double, R8, call::SQUARES + 8, R2);
}

/// Counts the duration `R7` in its bucket of the value at `R8`. `call::BUCKETS` is the offset of the first bucket.
pub(super) fn count_in_bucket(b: &mut ProgramBuilder) {
    let (fits, out) = (b.label(), b.label());
    b.set_wide(R2, values::LAST_BUCKET_END);
    b.set(R1, R7);
    b.jump_if(AtMost, R1, R2, fits);
    b.set(R1, R2);
    b.place(fits);
    bucket_number(b, values::SUB_BITS);
    // Never jumps, but shows the verifier that the bucket is within the value.
    b.jump_if(Above, R1, values::BUCKET_COUNT - 1, out);
    b.operate(ShiftLeft, R1, 2);
    b.set(R2, R8);
    b.operate(Add, R2, R1);
    b.load(Word, R3, R2, call::BUCKETS);
    b.operate(Add, R3, 1);
    b.store(Word, R2, call::BUCKETS, R3);
    b.place(out);
}

/// Counts the error if there is one: the result `R9` is then from -4095 to -1.
fn errno(b: &mut ProgramBuilder) {
    let (new, out) = (b.label(), b.label());
    // Compared without sign: the errors are the highest numbers.
    b.jump_if(Below, R9, -4095, out);
    add_to(b, call::ERRORS, 1);
    b.set(R1, 0);
    b.operate(Sub, R1, R9);
    b.store(Double, R10, KEY + 16, R1);
    look_up(b, ERRNOS, KEY);
    b.jump_if(Equal, R0, 0, new);
    b.load(Double, R1, R0, 0);
    b.operate(Add, R1, 1);
    b.store(Double, R0, 0, R1);
    b.jump(out);
    b.place(new);
    b.store(Double, R10, VALUE, 1);
    add(b, ERRNOS, [KEY, VALUE], values::LOST_ERRNOS);
    b.place(out);
}
