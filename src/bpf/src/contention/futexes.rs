//! The programs at calls of futex(2) and their returns: waits for locks of user programs.

use crate::Condition::{Above, Equal, NotEqual, SignedLess};
use crate::Operation::{And, Or, ShiftLeft, ShiftRight, Xor};
use crate::Register::{R0, R1, R2, R3, R6, R7, R8, R9, R10};
use crate::Width::{Double, Word};
use crate::registers::RegisterLayout;
use crate::stacks::USER_STACK;
use crate::tasks::{TASK, current_task, look_up, set_map_and_key};
use crate::{Error, Helper, Label, ProgramBuilder, Register};

use super::programs::{self, NO_STACK, SCRATCH, WAIT, WAIT_KEY, WAITS, wait};
use super::{ContentionKey, ContentionOptions, FUTEX, FUTEX_PI};
use super::{lock_names, thread_ids};

// Offsets on the stack, below those of [`programs`], of which [`SCRATCH`] is the lowest.
/// The operation of the call.
pub(super) const OPERATION: i16 = SCRATCH - 8;
/// The value of the call, which its futex is expected to have.
pub(super) const VALUE: i16 = SCRATCH - 4;
/// The memory around the futex.
const MEMORY: i16 = OPERATION - memory::SIZE;
/// The saved registers, at most 288 bytes.
const REGISTERS: i16 = MEMORY - 288;

/// [`owner_of_mutex`] compares these two bits with one mask.
const _: () = assert!(SHARED_KIND == PRIVATE);

/// The memory around a futex, from which its owner is found: offsets and sizes in bytes.
pub(super) mod memory {
    /// The offset of the futex; not the flag [`super::FUTEX`].
    pub(in super::super) const FUTEX: i16 = 16;
    pub(in super::super) const SIZE: i16 = 64;
    /// The size of the part that starts at the futex and is enough to find the owner of a mutex of glibc.
    pub(in super::super) const MUTEX_SIZE: i16 = 24;
}

/// Where operation and value of a call and the memory around its futex are stored: offsets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallPlace {
    /// The register with the address to which the offsets are relative; none of `R0` to `R5`.
    pub(super) base: Register,
    pub(super) operation: i16,
    pub(super) value: i16,
    pub(super) memory: i16,
}

/// The place on this program's stack.
const ON_STACK: CallPlace = CallPlace {
    base: R10,
    operation: OPERATION,
    value: VALUE,
    memory: MEMORY,
};

/// `FUTEX_WAITERS`. As an operand it is sign-extended to 64 bits, but the numbers that it masks have 32 bits.
const WAITERS: i32 = i32::MIN;
/// The value that the futex of a read-write lock of glibc has while threads wait for it: `1 | PTHREAD_RWLOCK_FUTEX_USED`.
const WAITED_FOR: i32 = 3;
/// `FUTEX_TID_MASK`.
const TID: i32 = 0x3fff_ffff;
/// Bits that are 0 in glibc's `__kind` of a mutex whose futex has the value 2: all but type, sharing and elision.
const OTHER_KINDS: i32 = !(3 | SHARED_KIND | 0x100 | 0x200);
/// The bit of mutexes that processes share, in glibc's `__kind` and in musl's `_m_type`.
const SHARED_KIND: i32 = 0x80;
/// The bit of robust mutexes in glibc's `__kind`.
const ROBUST: i32 = 0x10;
/// Bits that are 0 in the `__kind` of a robust mutex without priority inheritance.
const NOT_ROBUST: i32 = !(ROBUST | SHARED_KIND | 3);
/// Type, robust and priority inheritance in musl's `_m_type`.
const MUSL_KINDS: i32 = 3 | 4 | 8;
/// `FUTEX_PRIVATE_FLAG`.
pub(super) const PRIVATE: i32 = 0x80;

/// What calls of futex(2) do (linux/futex.h): the operation without flags.
mod command {
    pub(super) const WAIT: i32 = 0;
    pub(super) const LOCK_PI: i32 = 6;
    pub(super) const WAIT_BITSET: i32 = 9;
    pub(super) const WAIT_REQUEUE_PI: i32 = 11;
    pub(super) const LOCK_PI2: i32 = 13;
    /// The bits of the operation below those of flags.
    pub(super) const MASK: i32 = 0x7f;
}

/// `EAGAIN`: the futex had another value, so the call did not wait.
const AGAIN: i32 = -11;

/// At `sys_enter(registers, number)`: begins the wait of a call of futex(2).
pub(super) fn enter(options: &ContentionOptions, number: u32) -> Result<ProgramBuilder, Error> {
    let registers = RegisterLayout::native()?;
    let mut b = ProgramBuilder::new();
    let out = b.label();
    b.set(R6, R1);
    b.load(Double, R1, R6, 8);
    b.jump_if(NotEqual, R1, number.cast_signed(), out);
    arguments(&mut b, registers, out);
    programs::select_task(&mut b, &options.tasks, options.excluded_process, out);
    programs::filter(&mut b, options, out);
    if let Some(locks) = &options.locks {
        // Only locks of the kernel have names.
        let no_names = None;
        lock_names::select(&mut b, locks, no_names, out);
    }
    sum_key(&mut b, options);
    process(&mut b);
    wait_key(&mut b);
    let with_run_queue = options.separates_run_queue_time();
    programs::add_wait(&mut b, with_run_queue);
    b.place(out);
    b.exit();
    Ok(b)
}

/// At `sys_exit(registers, result)`: ends the wait of the thread, if it has one. The user stack, the same as when the call
/// began, is read here and not in [`enter`], since not every call waits.
pub(super) fn exit(options: &ContentionOptions) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let (waited, remove, out) = (b.label(), b.label(), b.label());
    b.set(R6, R1);
    current_task(&mut b);
    wait_key(&mut b);
    look_up(&mut b, WAITS, WAIT_KEY);
    b.jump_if(Equal, R0, 0, out);
    b.load(Double, R1, R6, 8);
    b.jump_if(NotEqual, R1, AGAIN, waited);
    b.place(remove);
    set_map_and_key(&mut b, WAITS, WAIT_KEY);
    b.call(Helper::MapDeleteElem);
    b.jump(out);
    b.place(waited);
    if options.with_stacks {
        b.set(R7, R0);
        programs::stack_number(&mut b, options, USER_STACK, remove);
        // `R1` is the stack now. It becomes the lower half of a word whose upper half is the process.
        b.load(Double, R2, R7, wait::PROCESS_AND_STACK);
        b.operate(ShiftRight, R2, 32);
        b.operate(ShiftLeft, R2, 32);
        b.operate(Or, R2, R1);
        b.store(Double, R7, wait::PROCESS_AND_STACK, R2);
    }
    // Only locks of the kernel have names.
    let no_names = None;
    programs::finish_wait(&mut b, options, no_names, out);
    b.place(out);
    b.exit();
    b
}

/// Leaves the address of the futex in `R7`, the flag [`FUTEX`] or [`FUTEX_PI`] in `R8`, and operation and value on the stack.
/// `R6` must point to the arguments of the tracepoint `sys_enter`. Jumps to `out` if the operation does not wait, and for 32-bit
/// programs.
pub(super) fn arguments(b: &mut ProgramBuilder, registers: RegisterLayout, out: Label) {
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
    b.operate(And, R1, command::MASK);
    let without_pi: &[i32] = &[command::WAIT, command::WAIT_BITSET];
    let with_pi: &[i32] = &[
        command::LOCK_PI,
        command::WAIT_REQUEUE_PI,
        command::LOCK_PI2,
    ];
    for (flag, commands) in [(FUTEX, without_pi), (FUTEX_PI, with_pi)] {
        b.set(R8, flag.cast_signed());
        for command in commands {
            b.jump_if(Equal, R1, *command, known);
        }
    }
    b.jump(out);
    b.place(known);
}

/// Stores the key of the thread's wait: the thread without an address, unlike the keys of waits for locks of the kernel. A thread
/// waits for one futex at a time.
fn wait_key(b: &mut ProgramBuilder) {
    b.store(Double, R10, WAIT_KEY, 0);
    b.load(Word, R1, R10, TASK);
    b.store(Word, R10, WAIT_KEY + 8, R1);
    b.store(Word, R10, WAIT_KEY + 12, 0);
}

/// Stores what the wait is summed by: `R7` is the futex, `R9` (process, thread).
fn sum_key(b: &mut ProgramBuilder, options: &ContentionOptions) {
    match options.key {
        ContentionKey::Owner(_) => {
            read_memory(b, ON_STACK);
            owner(b, ON_STACK);
            if let Some(layout) = options.thread_id_layout() {
                // The registers of the call are not needed any more.
                thread_ids::translate(b, layout, thread_ids::Places::at(REGISTERS));
            }
            thread_ids::mark_shared(b, OPERATION);
        }
        ContentionKey::Stack => b.set(R0, 0),
        ContentionKey::Thread => programs::thread(b),
        ContentionKey::Lock => b.set(R0, R7),
        ContentionKey::Cgroup => b.call(Helper::GetCurrentCgroupId),
    }
    b.store(Double, R10, WAIT + wait::KEY, R0);
}

/// Reads the memory around the futex `R7`; if not all of it can be read, only the part for mutexes. What is not read is 0.
pub(super) fn read_memory(b: &mut ProgramBuilder, place: CallPlace) {
    let done = b.label();
    for (offset, before, size) in [
        (0, memory::FUTEX, memory::SIZE),
        (memory::FUTEX, 0, memory::MUTEX_SIZE),
    ] {
        b.address(R1, place.base, i32::from(place.memory + offset));
        b.set(R2, i32::from(size));
        b.address(R3, R7, -i32::from(before));
        b.call(Helper::ProbeReadUser);
        b.jump_if(Equal, R0, 0, done);
    }
    b.place(done);
}

/// Leaves in `R0` the id, in its own PID namespace, of the thread that holds the futex; all bits are set if it is unknown.
///
/// A mutex of glibc consists of `__lock`, `__count`, `__owner`, `__nusers` and `__kind`. Its owner is set after the lock is taken
/// and cleared before it is released.
pub(super) fn owner(b: &mut ProgramBuilder, place: CallPlace) {
    let (no_pi, has_id, mutex, rwlock) = (b.label(), b.label(), b.label(), b.label());
    let (unknown, done) = (b.label(), b.label());
    b.load(Word, R3, place.base, place.memory + memory::FUTEX);
    b.load(Word, R1, place.base, place.operation);
    b.operate(And, R1, command::MASK);
    for with_pi in [command::LOCK_PI, command::LOCK_PI2] {
        b.jump_if(Equal, R1, with_pi, has_id);
    }
    for without_pi in [command::WAIT, command::WAIT_BITSET] {
        b.jump_if(Equal, R1, without_pi, no_pi);
    }
    b.jump(unknown);
    b.place(no_pi);
    b.load(Word, R2, place.base, place.value);
    // The value of a contended mutex of glibc.
    b.jump_if(Equal, R2, 2, mutex);
    b.jump_if(Equal, R2, WAITED_FOR, rwlock);
    b.operate(And, R2, R3);
    b.operate(And, R2, WAITERS);
    b.jump_if(Equal, R2, 0, unknown);
    check_owner_in_word(b, place, has_id, unknown);
    b.place(has_id);
    b.set(R0, R3);
    b.operate(And, R0, TID);
    b.jump_if(NotEqual, R0, 0, done);
    b.jump(unknown);
    b.place(mutex);
    owner_of_mutex(b, place, unknown);
    b.jump_if(NotEqual, R0, 0, done);
    b.jump(unknown);
    b.place(rwlock);
    b.jump_if(NotEqual, R3, WAITED_FOR, unknown);
    for is_writers_futex in [false, true] {
        let no_match = b.label();
        writer(b, place, is_writers_futex, no_match);
        b.jump_if(NotEqual, R0, 0, done);
        b.place(no_match);
    }
    b.place(unknown);
    b.set(R0, -1);
    b.place(done);
}

/// Decides whether a word with [`WAITERS`] has the owner's id. This is assumed if
/// - the call is private: the id is accepted later only if a thread of the process has it;
/// - or the memory looks like a robust mutex of glibc;
/// - or it looks like a musl mutex that processes share, except a normal one (no bit of [`MUSL_KINDS`]).
///
/// If so, goes to `has_id` or continues after the emitted code, where the caller must place `has_id`; otherwise goes to
/// `unknown`.
fn check_owner_in_word(b: &mut ProgramBuilder, place: CallPlace, has_id: Label, unknown: Label) {
    let musl = b.label();
    b.load(Word, R1, place.base, place.operation);
    b.operate(And, R1, PRIVATE);
    b.jump_if(NotEqual, R1, 0, has_id);
    // `__kind` of glibc.
    b.load(Word, R1, place.base, place.memory + memory::FUTEX + 16);
    b.set(R2, R1);
    b.operate(And, R2, NOT_ROBUST);
    b.jump_if(NotEqual, R2, 0, musl);
    b.operate(And, R1, ROBUST);
    b.jump_if(NotEqual, R1, 0, has_id);
    b.place(musl);
    // `_m_type` of musl. If all bits of `MUSL_KINDS` are 0, the mutex is a normal one, whose word does not have the id.
    b.load(Word, R1, place.base, place.memory + memory::FUTEX - 4);
    b.set(R2, R1);
    b.operate(And, R2, !MUSL_KINDS);
    b.jump_if(NotEqual, R2, SHARED_KIND, unknown);
    b.operate(And, R1, MUSL_KINDS);
    b.jump_if(Equal, R1, 0, unknown);
}

/// Leaves the owner of a mutex of glibc in `R0`; `R3` has the value of its futex, `__lock`. Goes to `unknown` if the memory is
/// not a contended mutex.
fn owner_of_mutex(b: &mut ProgramBuilder, place: CallPlace, unknown: Label) {
    let is_count_valid = b.label();
    let at = |offset: i16| place.memory + memory::FUTEX + offset;
    b.jump_if(NotEqual, R3, 2, unknown);
    // `__kind`.
    b.load(Word, R1, place.base, at(16));
    b.set(R2, R1);
    b.operate(And, R2, OTHER_KINDS);
    b.jump_if(NotEqual, R2, 0, unknown);
    // Exactly one must be set: the mutex's bit for sharing by processes, or the call's private bit.
    b.set(R2, R1);
    b.load(Word, R0, place.base, place.operation);
    b.operate(Xor, R2, R0);
    b.operate(And, R2, PRIVATE);
    b.jump_if(Equal, R2, 0, unknown);
    // `__count`, which only a recursive mutex (type 1) has.
    b.load(Word, R2, place.base, at(4));
    b.jump_if(Equal, R2, 0, is_count_valid);
    b.operate(And, R1, 3);
    b.jump_if(NotEqual, R1, 1, unknown);
    b.place(is_count_valid);
    // `__nusers`: a larger number may be part of a pointer in another object.
    b.load(Word, R2, place.base, at(12));
    b.jump_if(Equal, R2, 0, unknown);
    b.jump_if(Above, R2, 0xffff, unknown);
    // `__owner`.
    b.load(Word, R0, place.base, at(8));
}

/// Leaves the writer that holds a `pthread_rwlock_t` of glibc in `R0`, 0 if there is none. The futex is the lock's
/// `__writers_futex` if `is_writers_futex`, otherwise its `__wrphase_futex`. Goes to `no_match` if the memory is not such a lock,
/// or it is not in a write phase.
fn writer(b: &mut ProgramBuilder, place: CallPlace, is_writers_futex: bool, no_match: Label) {
    // `__wrphase_futex` is at the offset 8, `__writers_futex` at 12. The call waits for `own_futex`.
    let (own_futex, other_futex) = if is_writers_futex { (12, 8) } else { (8, 12) };
    let lock = place.memory + memory::FUTEX - own_futex;
    // The other futex is 1, or 3 if threads wait for it, too.
    b.load(Word, R1, place.base, lock + other_futex);
    b.operate(And, R1, !2);
    b.jump_if(NotEqual, R1, 1, no_match);
    // `__pad3`, `__pad4`, `__rwelision`, `__pad1`, `__pad2`: all are 0.
    b.set(R1, 0);
    for offset in [16, 20, 32, 36, 40, 44] {
        b.load(Word, R2, place.base, lock + offset);
        b.operate(Or, R1, R2);
    }
    b.jump_if(NotEqual, R1, 0, no_match);
    // `__readers`, whose lowest bit is set in a write phase.
    b.load(Word, R1, place.base, lock);
    b.operate(And, R1, 1);
    b.jump_if(Equal, R1, 0, no_match);
    // `__flags`.
    b.load(Word, R1, place.base, lock + 48);
    b.jump_if(Above, R1, 2, no_match);
    // `__shared`: 0 if the call is private, otherwise 1.
    b.load(Word, R1, place.base, lock + 28);
    b.load(Word, R2, place.base, place.operation);
    b.operate(ShiftRight, R2, 7);
    b.operate(And, R2, 1);
    b.operate(Xor, R2, 1);
    b.jump_if(NotEqual, R1, R2, no_match);
    // `__cur_writer`.
    b.load(Word, R0, place.base, lock + 24);
}

/// Stores the process in the key of the sum, without a stack; `R9` is (process, thread).
fn process(b: &mut ProgramBuilder) {
    b.set_wide(R1, u64::from(NO_STACK));
    b.set(R2, R9);
    b.operate(ShiftRight, R2, 32);
    b.operate(ShiftLeft, R2, 32);
    b.operate(Or, R1, R2);
    b.store(Double, R10, WAIT + wait::PROCESS_AND_STACK, R1);
}

/// For tests: leaves the owner of a futex in `R0`, like [`owner`]. At the address in `from` are the call's operation and value,
/// then the memory around the futex.
#[cfg(test)]
pub(super) fn owner_of_call(b: &mut ProgramBuilder, from: crate::Register) {
    let words = (0..memory::SIZE / 4).map(|word| (MEMORY + 4 * word, 8 + 4 * word));
    for (stack_offset, offset) in [(OPERATION, 0), (VALUE, 4)].into_iter().chain(words) {
        b.load(Word, R2, from, offset);
        b.store(Word, R10, stack_offset, R2);
    }
    owner(b, ON_STACK);
}
