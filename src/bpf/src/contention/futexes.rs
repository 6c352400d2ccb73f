//! The programs at calls of futex(2) and their returns: waits for locks of user programs.

use crate::Condition::{Above, Equal, NotEqual, SignedLess};
use crate::Operation::{And, Or, ShiftLeft, ShiftRight};
use crate::Register::{R0, R1, R2, R3, R6, R7, R8, R9, R10};
use crate::Width::{Double, Word};
use crate::registers::RegisterLayout;
use crate::tasks::{TASK, current_task, key, look_up};
use crate::{Error, Helper, Label, ProgramBuilder};

use super::programs::{self, ENDED, WAIT, WAIT_KEY, WAITS};
use super::{ContentionKey, ContentionOptions, FUTEX, FUTEX_PI};

// Offsets on the stack, below those of the programs for locks of the kernel.
/// Operation and expected value of the call.
const OPERATION: i16 = ENDED - 16;
const VALUE: i16 = ENDED - 12;
/// The first 24 bytes of the futex and what follows it.
const MEMORY: i16 = ENDED - 40;
/// The saved registers, at most 288 bytes.
const REGISTERS: i16 = ENDED - 328;

/// `FUTEX_WAITERS`, as it is sign-extended.
const WAITERS: i32 = i32::MIN;
/// `FUTEX_TID_MASK`.
const TID: i32 = 0x3fff_ffff;
/// Bits of a contended mutex's `__kind` other than type, sharing and elision.
const OTHER_KINDS: i32 = !(3 | 0x80 | 0x100 | 0x200);
/// `EAGAIN`: the futex had another value, so the call did not wait.
const AGAIN: i32 = -11;
/// `BPF_F_USER_STACK`.
const USER_STACK: i32 = 1 << 8;

/// At `sys_enter(registers, number)`.
pub(super) fn enter(options: &ContentionOptions, number: u32) -> Result<ProgramBuilder, Error> {
    let registers = RegisterLayout::native()?;
    let mut b = ProgramBuilder::new();
    let out = b.label();
    b.set(R6, R1);
    b.load(Double, R1, R6, 8);
    b.jump_if(NotEqual, R1, number.cast_signed(), out);
    arguments(&mut b, registers, out);
    programs::select_task(&mut b, options, out);
    programs::filter(&mut b, options, out);
    sum_key(&mut b, options.key);
    stack(&mut b, options, out);
    wait_key(&mut b);
    programs::add_wait(&mut b);
    b.place(out);
    b.exit();
    Ok(b)
}

/// At `sys_exit(registers, result)`: ends the wait of the thread, if it has one.
pub(super) fn exit() -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let (waited, out) = (b.label(), b.label());
    b.set(R6, R1);
    current_task(&mut b);
    wait_key(&mut b);
    look_up(&mut b, WAITS, WAIT_KEY);
    b.jump_if(Equal, R0, 0, out);
    b.load(Double, R1, R6, 8);
    b.jump_if(NotEqual, R1, AGAIN, waited);
    key(&mut b, WAITS, WAIT_KEY);
    b.call(Helper::MapDeleteElem);
    b.jump(out);
    b.place(waited);
    programs::finish_wait(&mut b, out);
    b.place(out);
    b.exit();
    b
}

/// Leaves the address of the futex in `R7`, the kind of wait in `R8`, operation and value on the stack. Jumps to `out` if the call does not
/// wait, and for 32-bit programs.
fn arguments(b: &mut ProgramBuilder, registers: RegisterLayout, out: Label) {
    b.address(R1, R10, i32::from(REGISTERS));
    b.set(R2, i32::from(registers.size));
    b.load(Double, R3, R6, 0);
    b.call(Helper::ProbeReadKernel);
    b.jump_if(SignedLess, R0, 0, out);
    b.load(Double, R1, R10, REGISTERS + registers.compat.offset);
    b.operate(And, R1, registers.compat.mask);
    b.jump_if(Equal, R1, registers.compat.value, out);
    let [address, operation, value, ..] = registers.arguments;
    b.load(Double, R7, R10, REGISTERS + address);
    b.load(Word, R1, R10, REGISTERS + operation);
    b.store(Word, R10, OPERATION, R1);
    b.load(Word, R2, R10, REGISTERS + value);
    b.store(Word, R10, VALUE, R2);
    let known = b.label();
    b.operate(And, R1, 0x7f);
    // WAIT, WAIT_BITSET; LOCK_PI, WAIT_REQUEUE_PI, LOCK_PI2.
    for (flag, operations) in [(FUTEX, &[0, 9][..]), (FUTEX_PI, &[6, 11, 13])] {
        b.set(R8, flag.cast_signed());
        for operation in operations {
            b.jump_if(Equal, R1, *operation, known);
        }
    }
    b.jump(out);
    b.place(known);
}

/// Stores the key of the thread's wait: unlike those for locks of the kernel it has no address, and a thread has one at a time.
fn wait_key(b: &mut ProgramBuilder) {
    b.store(Double, R10, WAIT_KEY, 0);
    b.load(Word, R1, R10, TASK);
    b.store(Word, R10, WAIT_KEY + 8, R1);
    b.store(Word, R10, WAIT_KEY + 12, 0);
}

/// Stores what the wait is summed by: `R7` is the futex, `R9` (process, thread).
fn sum_key(b: &mut ProgramBuilder, by: ContentionKey) {
    match by {
        ContentionKey::Owner(_) => {
            let (unknown, done) = (b.label(), b.label());
            b.address(R1, R10, i32::from(MEMORY));
            b.set(R2, 24);
            b.set(R3, R7);
            b.call(Helper::ProbeReadUser);
            b.jump_if(SignedLess, R0, 0, unknown);
            owner(b);
            b.jump(done);
            b.place(unknown);
            b.set(R0, -1);
            b.place(done);
        }
        ContentionKey::Stack => b.set(R0, 0),
        ContentionKey::Thread => programs::thread(b),
        ContentionKey::Lock => b.set(R0, R7),
        ContentionKey::Cgroup => b.call(Helper::GetCurrentCgroupId),
    }
    b.store(Double, R10, WAIT + 8, R0);
}

/// Leaves the thread that holds the futex in `R0`, as the program sees its id; all bits are set if it is unknown. The memory of the futex, the
/// operation and the value are on the stack.
///
/// A mutex of glibc consists of `__lock`, `__count`, `__owner`, `__nusers` and `__kind`. Its owner is set after the lock is taken and cleared
/// before it is released.
pub(super) fn owner(b: &mut ProgramBuilder) {
    let (waits, has_id, mutex, counted, unknown, done) = (
        b.label(),
        b.label(),
        b.label(),
        b.label(),
        b.label(),
        b.label(),
    );
    b.load(Word, R3, R10, MEMORY);
    b.load(Word, R1, R10, OPERATION);
    b.operate(And, R1, 0x7f);
    for operation in [6, 13] {
        b.jump_if(Equal, R1, operation, has_id);
    }
    for operation in [0, 9] {
        b.jump_if(Equal, R1, operation, waits);
    }
    b.jump(unknown);
    b.place(waits);
    b.load(Word, R2, R10, VALUE);
    b.jump_if(Equal, R2, 2, mutex);
    b.operate(And, R2, R3);
    b.operate(And, R2, WAITERS);
    b.jump_if(Equal, R2, 0, unknown);
    b.place(has_id);
    b.set(R0, R3);
    b.operate(And, R0, TID);
    b.jump_if(NotEqual, R0, 0, done);
    b.jump(unknown);
    b.place(mutex);
    b.jump_if(NotEqual, R3, 2, unknown);
    b.load(Word, R1, R10, MEMORY + 16);
    b.set(R2, R1);
    b.operate(And, R2, OTHER_KINDS);
    b.jump_if(NotEqual, R2, 0, unknown);
    b.load(Word, R2, R10, MEMORY + 4);
    b.jump_if(Equal, R2, 0, counted);
    b.operate(And, R1, 3);
    b.jump_if(NotEqual, R1, 1, unknown);
    b.place(counted);
    b.load(Word, R2, R10, MEMORY + 12);
    b.jump_if(Equal, R2, 0, unknown);
    b.jump_if(Above, R2, 0xffff, unknown);
    b.load(Word, R0, R10, MEMORY + 8);
    b.jump_if(NotEqual, R0, 0, done);
    b.place(unknown);
    b.set(R0, -1);
    b.place(done);
}

/// Stores the number of the user stack and the process. Jumps to `out` if the stack cannot be stored.
fn stack(b: &mut ProgramBuilder, options: &ContentionOptions, out: Label) {
    programs::stack_number(b, options, USER_STACK, out);
    b.set(R2, R9);
    b.operate(ShiftRight, R2, 32);
    b.operate(ShiftLeft, R2, 32);
    b.operate(Or, R1, R2);
    b.store(Double, R10, WAIT + 16, R1);
}

/// Stores the parts of a call for [`owner`]; for tests.
#[cfg(test)]
pub(super) fn store_call(b: &mut ProgramBuilder, from: crate::Register) {
    for (place, at) in [(OPERATION, 0), (VALUE, 4)]
        .into_iter()
        .chain((0..6).map(|word| (MEMORY + 4 * word, 8 + 4 * word)))
    {
        b.load(Word, R2, from, at);
        b.store(Word, R10, place, R2);
    }
}
