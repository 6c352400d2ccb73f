//! The tasks that programs observe: each has a slot in a map.

use crate::Condition::{Equal, NotEqual, SignedLess};
use crate::Operation::{Add, And};
use crate::Register::{R0, R1, R2, R3, R4, R6, R10};
use crate::Width::{Double, Word};
use crate::loaded::LoadedPrograms;
use crate::{Error, Helper, Label, MapId, ProgramBuilder};

/// Tasks that programs observe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskSet {
    /// All tasks of the machine.
    All,
    /// These threads.
    Threads {
        /// Thread ids.
        threads: Vec<u32>,
        /// The offset of `task_struct::pid` in bytes (from BTF), to include tasks that the threads create; `None` excludes them.
        follow: Option<u16>,
        /// Whether each thread is observed only from its next successful exec on.
        from_exec: bool,
    },
}

impl TaskSet {
    /// Whether only tasks with a slot are observed.
    pub(crate) fn is_limited(&self) -> bool {
        *self != Self::All
    }

    /// Returns the offset of `task_struct::pid` if tasks that the threads create are observed, too.
    ///
    /// # Errors
    /// [`Error::NoBtf`] if the offset is too large for an instruction.
    pub(crate) fn follow_offset(&self) -> Result<Option<i16>, Error> {
        let follow = match self {
            Self::All => None,
            Self::Threads { follow, .. } => *follow,
        };
        let task_pid = follow.map(i16::try_from).transpose();
        task_pid.map_err(|_| Error::NoBtf)
    }
}

/// From thread id to [`slot`].
pub(crate) const TASKS: MapId = MapId(0);
/// Per CPU, the counts of what was lost, such as entries for which a map had no room.
pub(crate) const LOSSES: MapId = MapId(1);
/// The index in [`LOSSES`] of tasks without a slot.
pub(crate) const LOST_TASKS: i32 = 0;
/// The maximum number of tasks at one time.
pub(crate) const MAX_TASKS: u32 = 32768;

/// The offset on the stack of a thread id, such as that of the current task.
pub(crate) const TASK: i16 = -4;
/// The offset on the stack of an index in a map, or of another thread id.
pub(crate) const INDEX: i16 = -8;
/// The offset on the stack of a slot.
const SLOT: i16 = -40;

/// `BPF_NOEXIST`: an update of a map fails if the key exists.
pub(crate) const ONLY_NEW: i32 = 1;

/// The value of a task in the map `TASKS`: the offsets of its fields in bytes.
pub(crate) mod slot {
    /// Time at which the open call (a system call that has not returned yet) began, ns of `CLOCK_MONOTONIC`. The programs that
    /// count events observe no calls, and store a mark here instead: 1 if the task has ended, but is counted until it is
    /// switched out.
    pub(crate) const START: i16 = 0;
    /// Time when a program created the slot, ns of `CLOCK_MONOTONIC`, which distinguishes tasks of one id; 0 for threads that
    /// this process added.
    pub(crate) const BIRTH: i16 = 8;
    /// The number of the open call, or `NONE`.
    pub(crate) const CALL: i16 = 16;
    /// Not 0 while the task waits for its next successful exec, from which on it is observed.
    pub(crate) const AWAITS_EXEC: i16 = 20;
    pub(crate) const SIZE: usize = 24;
    /// The value of `CALL` without an open call.
    pub(crate) const NONE: i32 = -1;
}

/// Attaches the programs that keep the slots up to date: at the end of a task, at a fork if the offset of `task_struct::pid` is
/// given, and at an exec if `with_execs` is set.
pub(crate) fn attach(
    loaded: &mut LoadedPrograms,
    task_pid: Option<i16>,
    with_execs: bool,
) -> Result<(), Error> {
    loaded.attach("task_exit", "sched_process_exit", &task_exit())?;
    if let Some(offset) = task_pid {
        loaded.attach("fork", "sched_process_fork", &fork(offset))?;
    }
    if with_execs {
        loaded.attach("exec", "sched_process_exec", &exec())?;
    }
    Ok(())
}

/// Sets `R1` and `R2` to a map and the address of a key on the stack, as helpers for maps take them.
pub(crate) fn set_map_and_key(b: &mut ProgramBuilder, map: MapId, offset: i16) {
    b.map(R1, map);
    b.address(R2, R10, i32::from(offset));
}

/// Leaves the address of the value for the key at `offset` on the stack in `R0`, 0 if there is none.
pub(crate) fn look_up(b: &mut ProgramBuilder, map: MapId, offset: i16) {
    set_map_and_key(b, map, offset);
    b.call(Helper::MapLookupElem);
}

/// Leaves the address of the slot of the task at [`TASK`] in `R0`; goes to `out` if the task has none, or waits for its exec.
/// Changes `R1` to `R5`.
pub(crate) fn find_slot(b: &mut ProgramBuilder, out: Label) {
    look_up(b, TASKS, TASK);
    b.jump_if(Equal, R0, 0, out);
    b.load(Word, R1, R0, slot::AWAITS_EXEC);
    b.jump_if(NotEqual, R1, 0, out);
}

/// Stores the current thread id on the stack, and leaves process id (upper half) and thread id in `R0`.
pub(crate) fn current_task(b: &mut ProgramBuilder) {
    b.call(Helper::GetCurrentPidTgid);
    b.store(Word, R10, TASK, R0);
}

/// Counts a loss with this index in [`LOSSES`]. Overwrites the stack at [`INDEX`].
pub(crate) fn count_loss(b: &mut ProgramBuilder, index: i32) {
    let end = b.label();
    b.store(Word, R10, INDEX, index);
    look_up(b, LOSSES, INDEX);
    b.jump_if(Equal, R0, 0, end);
    b.load(Double, R1, R0, 0);
    b.operate(Add, R1, 1);
    b.store(Double, R0, 0, R1);
    b.place(end);
}

/// At `sched_switch(preempt, previous, next, state)`, whose arguments `R6` points to: jumps to `preempted` if the task that is
/// switched out was preempted, so that it is runnable in any state. Changes `R1`.
pub(crate) fn jump_if_preempted(b: &mut ProgramBuilder, preempted: Label) {
    b.load(Double, R1, R6, 0);
    // A bool; the other bytes of its word are not defined.
    b.operate(And, R1, 0xff);
    b.jump_if(NotEqual, R1, 0, preempted);
}

/// Stores a new slot on the stack: without an open call, born now.
pub(crate) fn new_slot(b: &mut ProgramBuilder) {
    b.call(Helper::KtimeGetNs);
    b.store(Double, R10, SLOT + slot::START, 0);
    b.store(Double, R10, SLOT + slot::BIRTH, R0);
    b.store(Word, R10, SLOT + slot::CALL, slot::NONE);
    b.store(Word, R10, SLOT + slot::AWAITS_EXEC, 0);
}

/// Adds the slot on the stack for the task at [`TASK`]; counts a failure.
pub(crate) fn add_slot(b: &mut ProgramBuilder) {
    add(b, TASKS, [TASK, SLOT], LOST_TASKS);
}

/// Sets the value of a key; both are on the stack, at these offsets. Counts a failure as the loss with index `loss`.
pub(crate) fn add(b: &mut ProgramBuilder, map: MapId, [key_at, value_at]: [i16; 2], loss: i32) {
    let end = b.label();
    set_map_and_key(b, map, key_at);
    b.address(R3, R10, i32::from(value_at));
    b.set(R4, 0);
    b.call(Helper::MapUpdateElem);
    b.jump_if(Equal, R0, 0, end);
    count_loss(b, loss);
    b.place(end);
}

/// Adds a copy of the one value of `template` for the key at `key_at` on the stack, and leaves its address in `R0`: that of the
/// existing value if another CPU has added one in the meantime. If the map is full, counts the loss and goes to `full`.
/// Overwrites the stack at [`INDEX`].
pub(crate) fn add_copy(
    b: &mut ProgramBuilder,
    [map, template]: [MapId; 2],
    key_at: i16,
    loss: i32,
    full: Label,
) {
    let done = b.label();
    b.store(Word, R10, INDEX, 0);
    look_up(b, template, INDEX);
    // The template is never missing, but the verifier needs this check.
    b.jump_if(Equal, R0, 0, full);
    b.set(R3, R0);
    set_map_and_key(b, map, key_at);
    b.set(R4, ONLY_NEW);
    b.call(Helper::MapUpdateElem);
    look_up(b, map, key_at);
    b.jump_if(NotEqual, R0, 0, done);
    count_loss(b, loss);
    b.jump(full);
    b.place(done);
}

/// At `sched_process_fork(parent, child)`: the child of a task with a slot gets one, too, unless the parent waits for its exec.
pub(crate) fn fork(task_pid: i16) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let out = b.label();
    b.load(Double, R6, R1, 8);
    current_task(&mut b);
    find_slot(&mut b, out);
    b.address(R1, R10, i32::from(TASK));
    b.set(R2, 4);
    b.address(R3, R6, i32::from(task_pid));
    b.call(Helper::ProbeReadKernel);
    b.jump_if(SignedLess, R0, 0, out);
    new_slot(&mut b);
    add_slot(&mut b);
    b.place(out);
    b.exit();
    b
}

/// At `sched_process_exec(task, old_pid, binary)`: a task that waits for its exec is observed from now on. A thread other than
/// the leader of its process takes over the leader's id: if the thread had a slot under its old id, that slot is removed, and the
/// thread gets a new one under its new id.
pub(crate) fn exec() -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let (found, out) = (b.label(), b.label());
    b.load(Double, R6, R1, 8);
    current_task(&mut b);
    look_up(&mut b, TASKS, TASK);
    b.jump_if(NotEqual, R0, 0, found);
    // Not observed, or observed under its old id: the leader's slot was removed when the leader exited, before this exec.
    b.store(Word, R10, INDEX, R6);
    look_up(&mut b, TASKS, INDEX);
    b.jump_if(Equal, R0, 0, out);
    // The old id may be used again. Its slot would not be removed when the task exits, since the task then has the new id.
    set_map_and_key(&mut b, TASKS, INDEX);
    b.call(Helper::MapDeleteElem);
    new_slot(&mut b);
    add_slot(&mut b);
    b.jump(out);
    b.place(found);
    b.store(Word, R0, slot::AWAITS_EXEC, 0);
    b.place(out);
    b.exit();
    b
}

/// At `sched_process_exit`: removes the task's slot, since its id may be used again.
pub(crate) fn task_exit() -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    current_task(&mut b);
    set_map_and_key(&mut b, TASKS, TASK);
    b.call(Helper::MapDeleteElem);
    b.exit();
    b
}
