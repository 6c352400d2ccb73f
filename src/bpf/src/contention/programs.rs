//! The programs at the begin and at the end of a wait for a lock of the kernel, and parts of them that the programs for futexes
//! share.

use crate::Condition::{Above, AtLeast, AtMost, Below, Equal, NotEqual, SignedLess};
use crate::Operation::{Add, And, ShiftLeft, ShiftRight, Sub};
use crate::Register::{R0, R1, R2, R3, R6, R7, R8, R9, R10};
use crate::Width::{Double, Word};
use crate::stacks::{FAST_COMPARISON, StackMaps};
use crate::tasks::{
    INDEX, LOST_TASKS, TASK, add, add_copy, count_loss, current_task, find_slot, look_up,
    set_map_and_key,
};
use crate::{Error, Helper, Label, MapId, ProgramBuilder, TaskSet};

use super::lock_names::{self, LockLayout};
use super::queued;
use super::{ContentionKey, ContentionOptions, OwnerLayout};

/// Open waits, by lock and thread.
pub(super) const WAITS: MapId = MapId(2);
/// The sums of ended waits, laid out as [`value`], by the key that is at [`SUM_KEY`].
pub(super) const SUMS: MapId = MapId(3);
/// One value of `SUMS` for no waits: only its minimum is not 0. It is too large for the stack.
pub(super) const TEMPLATE: MapId = MapId(4);
/// Call stacks of waits.
pub(super) const STACKS: StackMaps = StackMaps {
    first: MapId(5),
    second: MapId(12),
};
// Maps 8, 10 and 11 are [`lock_names::RUN_QUEUES`], [`queued::RUN_QUEUE_TIMES`] and [`super::thread_ids::THREAD_IDS`].
/// The selected CPUs; empty if all are selected.
pub(super) const CPUS: MapId = MapId(6);
/// The selected flags; empty if all are selected.
pub(super) const FLAGS: MapId = MapId(7);
/// The ids of the selected cgroups; empty if all are selected.
pub(super) const CGROUPS: MapId = MapId(9);

/// The number of buckets of a sum's histogram of durations, one for each power of two.
pub(super) const BUCKETS: i16 = 64;

/// The value of `WAITS`: offsets in bytes.
pub(super) mod wait {
    /// When the wait began, in ns.
    pub(in super::super) const BEGIN: i16 = 0;
    /// The key of the sum, two 64-bit numbers. The first is what waits are summed by.
    pub(in super::super) const KEY: i16 = 8;
    /// The second number of the key: the process of a futex (upper half) and the stack (lower half).
    pub(in super::super) const PROCESS_AND_STACK: i16 = 16;
    pub(in super::super) const FLAGS: i16 = 24;
    /// The address of the lock.
    pub(in super::super) const LOCK: i16 = 32;
    /// For how long the thread had waited for CPUs when the wait began, in ns.
    pub(in super::super) const RUN_QUEUE_TIME: i16 = 40;
    pub(in super::super) const SIZE: u32 = 48;
}

/// The value of `SUMS`: offsets in bytes. Durations are in ns.
pub(super) mod value {
    pub(in super::super) const COUNT: i16 = 0;
    pub(in super::super) const TOTAL: i16 = 8;
    pub(in super::super) const MIN: i16 = 16;
    pub(in super::super) const MAX: i16 = 24;
    pub(in super::super) const FLAGS: i16 = 32;
    pub(in super::super) const LOCK: i16 = 40;
    /// The name of the lock.
    pub(in super::super) const NAME: i16 = 48;
    /// For how long the threads waited for CPUs, if that is summed separately: then the other durations exclude it.
    pub(in super::super) const RUN_QUEUE_TIME: i16 = NAME + super::super::lock_names::SIZE;
    /// The first of [`super::BUCKETS`] buckets of 8 bytes.
    pub(in super::super) const BUCKETS: i16 = RUN_QUEUE_TIME + 8;
    pub(in super::super) const SIZE: usize = BUCKETS as usize + 8 * super::BUCKETS as usize;
}

/// Indices in the map of losses. Index 0 is [`LOST_TASKS`], which also counts waits without room in [`WAITS`].
pub(super) mod losses {
    /// Waits whose stack could not be stored.
    pub(in super::super) const STACKS: i32 = 1;
    /// Waits that ended before they began.
    pub(in super::super) const TIMES: i32 = 2;
    /// Waits without room for a new sum.
    pub(in super::super) const SUMS: i32 = 3;
    /// The number of indices.
    pub(in super::super) const COUNT: u32 = 4;
}

/// The number of a call stack if call stacks are not kept apart.
pub(super) const NO_STACK: u32 = u32::MAX;

// Offsets on the stack of the program (512 bytes, its end is in `R10`), below those of [`crate::tasks`].
/// The key of `WAITS`: address of the lock, thread, and CPU of idle tasks.
pub(super) const WAIT_KEY: i16 = -64;
/// A value of `WAITS`, laid out as [`wait`].
pub(super) const WAIT: i16 = -112;
/// The key of `SUMS`: two 64-bit numbers, as at [`wait::KEY`].
pub(super) const SUM_KEY: i16 = -128;
/// The flags of a wait, then the address of its lock: the input of [`lock_names::find`]. When a wait ends, they are also copied
/// to its sum if that is new. Programs that look up the lock's name when a wait begins store them here, too.
pub(super) const ENDED: i16 = -144;
/// Scratch space of 8 bytes.
pub(super) const SCRATCH: i16 = -152;

/// `LCB_F_MUTEX` of the kernel's trace/events/lock.h.
const MUTEX: i32 = 32;
/// Flags that no `rw_semaphore` has: spin lock, RT lock, per-CPU semaphore, mutex.
const NO_RWSEM: i32 = 1 | 8 | 16 | 32;
/// Flags of a waiting reader and of a waiting writer.
const ACCESS: i32 = 2 | 4;

/// At `contention_begin(lock, flags)`.
pub(super) fn begin(options: &ContentionOptions) -> Result<ProgramBuilder, Error> {
    let mut b = ProgramBuilder::new();
    let out = b.label();
    b.set(R6, R1);
    // `R7` is the lock and `R8` the flags, an unsigned int.
    b.load(Double, R7, R6, 0);
    b.load(Double, R8, R6, 8);
    b.operate(ShiftLeft, R8, 32);
    b.operate(ShiftRight, R8, 32);
    select_task(&mut b, &options.tasks, options.excluded_process, out);
    filter(&mut b, options, out);
    if let Some(locks) = &options.locks {
        lock_names::select(&mut b, locks, options.lock_layout.as_ref(), out);
    }
    wait_key(&mut b);
    // A mutex reports spinning and then sleeping as two begins of one wait.
    look_up(&mut b, WAITS, WAIT_KEY);
    b.jump_if(NotEqual, R0, 0, out);
    sum_key(&mut b, options.key)?;
    // The lowest bits of the flags of `bpf_get_stackid` (not of the lock) are the number of frames to skip.
    let flags = i32::from(options.stack_skip);
    stack_number(&mut b, options, flags, out);
    b.store(Double, R10, WAIT + wait::PROCESS_AND_STACK, R1);
    add_wait(&mut b, options.separates_run_queue_time());
    b.place(out);
    b.exit();
    Ok(b)
}

/// Leaves (process, thread) of the current task in `R9`. Jumps to `out` unless it is observed.
pub(super) fn select_task(
    b: &mut ProgramBuilder,
    tasks: &TaskSet,
    excluded_process: Option<u32>,
    out: Label,
) {
    current_task(b);
    b.set(R9, R0);
    if let Some(process) = excluded_process {
        b.operate(ShiftRight, R0, 32);
        b.jump_if(Equal, R0, process.cast_signed(), out);
    }
    if tasks.is_limited() {
        find_slot(b, out);
    }
}

/// Adds the wait with the key on the stack: `R7` is the lock, `R8` the flags. Counts it as lost if there is no room. With
/// `with_run_queue`, the time for which threads wait for CPUs is summed separately.
pub(super) fn add_wait(b: &mut ProgramBuilder, with_run_queue: bool) {
    match with_run_queue {
        true => queued::note_begin(b, WAIT + wait::RUN_QUEUE_TIME),
        false => b.store(Double, R10, WAIT + wait::RUN_QUEUE_TIME, 0),
    }
    b.store(Double, R10, WAIT + wait::FLAGS, R8);
    b.store(Double, R10, WAIT + wait::LOCK, R7);
    b.call(Helper::KtimeGetNs);
    b.store(Double, R10, WAIT + wait::BEGIN, R0);
    add(b, WAITS, [WAIT_KEY, WAIT], LOST_TASKS);
}

/// Jumps to `out` unless the wait is selected by CPU, flags (`R8`) and cgroup.
pub(super) fn filter(b: &mut ProgramBuilder, options: &ContentionOptions, out: Label) {
    if options.cpus.is_some() {
        b.call(Helper::GetSmpProcessorId);
        b.store(Word, R10, INDEX, R0);
        look_up(b, CPUS, INDEX);
        b.jump_if(Equal, R0, 0, out);
    }
    if options.flags.is_some() {
        b.store(Word, R10, INDEX, R8);
        look_up(b, FLAGS, INDEX);
        b.jump_if(Equal, R0, 0, out);
    }
    if options.cgroups.is_some() {
        b.call(Helper::GetCurrentCgroupId);
        b.store(Double, R10, SCRATCH, R0);
        look_up(b, CGROUPS, SCRATCH);
        b.jump_if(Equal, R0, 0, out);
    }
}

/// Stores the key of the wait of the task at [`TASK`] for the lock `R7`. For an idle task, the key has the CPU, too: idle tasks
/// have the id 0 on all CPUs, and never migrate.
fn wait_key(b: &mut ProgramBuilder) {
    let has_id = b.label();
    b.store(Double, R10, WAIT_KEY, R7);
    b.store(Word, R10, WAIT_KEY + 12, 0);
    b.load(Word, R1, R10, TASK);
    b.store(Word, R10, WAIT_KEY + 8, R1);
    b.jump_if(NotEqual, R1, 0, has_id);
    b.call(Helper::GetSmpProcessorId);
    b.store(Word, R10, WAIT_KEY + 12, R0);
    b.place(has_id);
}

/// Stores what the wait is summed by: `R7` is the lock, `R8` the flags, `R9` (process, thread).
fn sum_key(b: &mut ProgramBuilder, by: ContentionKey) -> Result<(), Error> {
    match by {
        ContentionKey::Stack => b.set(R0, 0),
        ContentionKey::Thread => thread(b),
        ContentionKey::Lock => b.set(R0, R7),
        ContentionKey::Cgroup => b.call(Helper::GetCurrentCgroupId),
        ContentionKey::Owner(layout) => owner(b, layout)?,
    }
    b.store(Double, R10, WAIT + wait::KEY, R0);
    Ok(())
}

/// Leaves the id of the current thread in `R0`; `R9` is (process, thread).
pub(super) fn thread(b: &mut ProgramBuilder) {
    b.set(R0, R9);
    b.operate(ShiftLeft, R0, 32);
    b.operate(ShiftRight, R0, 32);
}

/// Leaves the id of the thread that holds the lock `R7` in `R0`; all bits are set if it is unknown. `R8` has the flags of the
/// wait.
pub(super) fn owner(b: &mut ProgramBuilder, layout: OwnerLayout) -> Result<(), Error> {
    let offset = |offset: u16| i16::try_from(offset).map_err(|_| Error::NoBtf);
    let (mutex, rwsem) = (offset(layout.mutex)?, offset(layout.rwsem)?);
    let (is_mutex, read, unknown, done) = (b.label(), b.label(), b.label(), b.label());
    b.set(R1, R8);
    b.operate(And, R1, MUTEX);
    b.jump_if(NotEqual, R1, 0, is_mutex);
    b.set(R1, R8);
    b.operate(And, R1, NO_RWSEM);
    b.jump_if(NotEqual, R1, 0, unknown);
    b.set(R1, R8);
    b.operate(And, R1, ACCESS);
    b.jump_if(Equal, R1, 0, unknown);
    b.address(R3, R7, i32::from(rwsem));
    b.jump(read);
    b.place(is_mutex);
    b.address(R3, R7, i32::from(mutex));
    b.place(read);
    b.store(Double, R10, SCRATCH, 0);
    b.address(R1, R10, i32::from(SCRATCH));
    b.set(R2, 8);
    b.call(Helper::ProbeReadKernel);
    b.jump_if(SignedLess, R0, 0, unknown);
    b.load(Double, R3, R10, SCRATCH);
    // The three lowest bits are flags. In a semaphore, bit 0 says that readers hold it: only the last of them is known. A mutex
    // has no such flag.
    let has_one_owner = b.label();
    b.set(R1, R8);
    b.operate(And, R1, MUTEX);
    b.jump_if(NotEqual, R1, 0, has_one_owner);
    b.set(R1, R3);
    b.operate(And, R1, 1);
    b.jump_if(NotEqual, R1, 0, unknown);
    b.place(has_one_owner);
    b.operate(And, R3, -8);
    b.jump_if(Equal, R3, 0, unknown);
    b.operate(Add, R3, i32::from(offset(layout.task_pid)?));
    b.store(Double, R10, SCRATCH, 0);
    b.address(R1, R10, i32::from(SCRATCH));
    b.set(R2, 4);
    b.call(Helper::ProbeReadKernel);
    b.jump_if(SignedLess, R0, 0, unknown);
    b.load(Word, R0, R10, SCRATCH);
    b.jump(done);
    b.place(unknown);
    b.set(R0, -1);
    b.place(done);
    Ok(())
}

/// Leaves the number of the stack in `R1`, [`NO_STACK`] if stacks are not kept apart. If the stack cannot be stored, counts the
/// wait as lost and jumps to `out`. `flags` are those of `bpf_get_stackid`.
pub(super) fn stack_number(
    b: &mut ProgramBuilder,
    options: &ContentionOptions,
    flags: i32,
    out: Label,
) {
    if !options.with_stacks {
        b.set_wide(R1, u64::from(NO_STACK));
        return;
    }
    let stored = b.label();
    STACKS.store(b, FAST_COMPARISON | flags);
    b.set(R1, R0);
    b.operate(ShiftLeft, R1, 32);
    b.operate(ShiftRight, R1, 32);
    // An error is a negative int: as an unsigned number, it is above the maximum of an `i32`.
    let limit = i32::MAX;
    b.jump_if(AtMost, R1, limit, stored);
    count_loss(b, losses::STACKS);
    b.jump(out);
    b.place(stored);
}

/// At `contention_end(lock, result)`.
pub(super) fn end(options: &ContentionOptions) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let out = b.label();
    b.load(Double, R7, R1, 0);
    current_task(&mut b);
    wait_key(&mut b);
    finish_wait(&mut b, options, options.lock_layout.as_ref(), out);
    b.place(out);
    b.exit();
    b
}

/// Adds the wait with the key on the stack to its sum and removes the wait. A new sum gets the name of the lock if there is a
/// layout. Jumps to `out` if there is no such wait.
pub(super) fn finish_wait(
    b: &mut ProgramBuilder,
    options: &ContentionOptions,
    layout: Option<&LockLayout>,
    out: Label,
) {
    let (known, remove, in_order) = (b.label(), b.label(), b.label());
    b.call(Helper::KtimeGetNs);
    b.set(R9, R0);
    look_up(b, WAITS, WAIT_KEY);
    b.jump_if(Equal, R0, 0, out);
    for (from, to) in [
        (wait::KEY, SUM_KEY),
        (wait::PROCESS_AND_STACK, SUM_KEY + 8),
        (wait::FLAGS, ENDED),
        (wait::LOCK, ENDED + 8),
    ] {
        b.load(Double, R1, R0, from);
        b.store(Double, R10, to, R1);
    }
    // For `queued::since_begin`.
    b.load(Double, R8, R0, wait::RUN_QUEUE_TIME);
    b.load(Double, R1, R0, wait::BEGIN);
    b.jump_if(AtLeast, R9, R1, in_order);
    count_loss(b, losses::TIMES);
    b.jump(remove);
    b.place(in_order);
    b.operate(Sub, R9, R1);
    // From here on, `R7` is the time for which the task waited for CPUs, and `R9` is the rest of the duration.
    b.set(R7, 0);
    if options.separates_run_queue_time() {
        let is_within = b.label();
        queued::since_begin(b);
        b.set(R7, R1);
        b.jump_if(AtMost, R7, R9, is_within);
        b.set(R7, R9);
        b.place(is_within);
        b.operate(Sub, R9, R7);
    }
    look_up(b, SUMS, SUM_KEY);
    b.jump_if(NotEqual, R0, 0, known);
    add_sum(b, layout, remove);
    b.place(known);
    b.set(R8, R0);
    b.atomic_add(R8, value::RUN_QUEUE_TIME, R7);
    sum(b);
    b.place(remove);
    set_map_and_key(b, WAITS, WAIT_KEY);
    b.call(Helper::MapDeleteElem);
}

/// Adds a sum without durations for the key on the stack, with the flags, the lock and the lock's name of this wait, and leaves
/// its address in `R0`. If there is no room, counts the wait as lost and jumps to `out`.
fn add_sum(b: &mut ProgramBuilder, layout: Option<&LockLayout>, out: Label) {
    if let Some(layout) = layout {
        lock_names::find(b, layout, lock_names::RUN_QUEUES);
    }
    add_copy(b, [SUMS, TEMPLATE], SUM_KEY, losses::SUMS, out);
    if layout.is_some() {
        lock_names::copy_to_value(b, value::NAME);
    }
    for (from, to) in [(ENDED, value::FLAGS), (ENDED + 8, value::LOCK)] {
        b.load(Double, R1, R10, from);
        b.store(Double, R0, to, R1);
    }
}

/// Adds the duration `R9`, without the time for which the task waited for CPUs if that is summed separately, to the sum at `R8`.
/// Other CPUs may do so at the same time.
fn sum(b: &mut ProgramBuilder) {
    b.set(R1, 1);
    b.atomic_add(R8, value::COUNT, R1);
    b.atomic_add(R8, value::TOTAL, R9);
    extremes(b);
    let out = b.label();
    binary_logarithm(b);
    // Never true: the verifier requires the limit.
    b.jump_if(Above, R2, i32::from(BUCKETS) - 1, out);
    b.operate(ShiftLeft, R2, 3);
    b.operate(Add, R2, R8);
    b.set(R1, 1);
    b.atomic_add(R2, value::BUCKETS, R1);
    b.place(out);
}

/// Updates minimum and maximum of the sum at `R8` by `R9`. If two CPUs do so at the same time, one value may be missed,
/// as in perf.
pub(super) fn extremes(b: &mut ProgramBuilder) {
    let (not_less, not_more) = (b.label(), b.label());
    b.load(Double, R1, R8, value::MIN);
    b.jump_if(AtLeast, R9, R1, not_less);
    b.store(Double, R8, value::MIN, R9);
    b.place(not_less);
    b.load(Double, R1, R8, value::MAX);
    b.jump_if(AtMost, R9, R1, not_more);
    b.store(Double, R8, value::MAX, R9);
    b.place(not_more);
}

/// Leaves the binary logarithm of `R9`, rounded down, in `R2`; 0 for 0.
pub(super) fn binary_logarithm(b: &mut ProgramBuilder) {
    b.set(R1, R9);
    b.set(R2, 0);
    for step in [32, 16, 8, 4, 2, 1] {
        let skip = b.label();
        b.set(R3, R1);
        b.operate(ShiftRight, R3, step);
        b.jump_if(Below, R3, 1, skip);
        b.set(R1, R3);
        b.operate(Add, R2, step);
        b.place(skip);
    }
}
