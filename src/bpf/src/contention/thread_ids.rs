//! Ids of threads in PID namespaces. A futex contains the id of its owner in the owner's PID namespace, which is not known: it is
//! assumed to be that of the waiting thread. To translate the id, a map has both ids of each thread outside of the initial
//! namespace: a BPF program adds them when a thread is created;
//! [`ContentionSummary::add_thread_ids`](super::ContentionSummary::add_thread_ids) adds those of earlier threads.

use crate::Condition::{Above, Equal, NotEqual};
use crate::Operation::{Add, And, Or, ShiftLeft};
use crate::Register::{R0, R1, R2, R3, R4, R6, R10};
use crate::Width::{Double, Word};
use crate::tasks::{look_up, set_map_and_key};
use crate::{Helper, Label, MapId, ProgramBuilder};

use super::captured_futexes::{MAX_LEVEL, PidLayout, UPID_SHIFT, read_word};
use super::futexes::PRIVATE;
use super::{FOREIGN_OWNER, SHARED_OWNER, lock_names};

/// (Inode number of the namespace, id in it) to id in the initial namespace.
pub(super) const THREAD_IDS: MapId = MapId(11);
/// The maximum number of threads in the map. If it is full, the least recently used ones are removed.
pub(super) const MAX_THREADS: u32 = 32768;

/// Offsets in bytes (from BTF) by which the PID namespace of a task is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamespaceLayout {
    /// How the ids of a thread are found.
    pub pids: PidLayout,
    /// `task_struct::pid`.
    pub task_pid: u16,
    /// `upid::ns`.
    pub upid_namespace: u16,
    /// `pid_namespace::ns.inum`, the inode number.
    pub number: u16,
}

/// A thread outside of the initial PID namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamespacedThread {
    /// The inode number of its namespace.
    pub namespace: u32,
    /// Its id in that namespace.
    pub own_tid: u32,
    /// Its id in the initial namespace.
    pub tid: u32,
}

/// Offsets on the stack: the key of [`THREAD_IDS`], its value, and the address of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) key: i16,
    pub(super) value: i16,
    pub(super) address: i16,
}

impl Places {
    /// The size in bytes.
    pub(super) const SIZE: i16 = 24;

    /// The places from an offset on.
    pub(super) const fn at(offset: i16) -> Self {
        Self {
            key: offset,
            value: offset + 8,
            address: offset + 16,
        }
    }
}

/// At `sched_process_fork(parent, child)`: adds the child to [`THREAD_IDS`] if it is outside of the initial PID namespace.
pub(super) fn fork(layout: NamespaceLayout) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let out = b.label();
    // Below the word that `read_pointer` and `read_word` use.
    let places = Places::at(super::programs::SCRATCH - Places::SIZE);
    // The child, the second argument.
    b.load(Double, R6, R1, 8);
    b.set(R3, R6);
    namespace(&mut b, layout, places, [out, out]);
    b.store(Word, R10, places.key, R1);
    b.load(Double, R3, R10, places.address);
    read_word(&mut b, out);
    b.store(Word, R10, places.key + 4, R1);
    b.address(R3, R6, i32::from(layout.task_pid));
    read_word(&mut b, out);
    b.store(Word, R10, places.value, R1);
    set_map_and_key(&mut b, THREAD_IDS, places.key);
    b.address(R3, R10, i32::from(places.value));
    // `BPF_ANY`: adds or replaces.
    b.set(R4, 0);
    b.call(Helper::MapUpdateElem);
    b.place(out);
    b.exit();
    b
}

/// Sets `R1` to the inode number of the PID namespace of the task at `R3`, and `places.address` to the address of the task's id
/// in that namespace. Goes to `initial` if the namespace is the initial one, to `failed` if it cannot be read.
fn namespace(
    b: &mut ProgramBuilder,
    layout: NamespaceLayout,
    places: Places,
    [initial, failed]: [Label; 2],
) {
    let PidLayout {
        thread_pid,
        level,
        numbers: upids,
    } = layout.pids;
    // `places.address` holds first the address of `struct pid`, then that of the task's `upid` in it.
    lock_names::read_pointer(b, i32::from(thread_pid), failed);
    b.store(Double, R10, places.address, R3);
    b.operate(Add, R3, i32::from(level));
    read_word(b, failed);
    b.jump_if(Equal, R1, 0, initial);
    b.jump_if(Above, R1, MAX_LEVEL, failed);
    b.operate(ShiftLeft, R1, UPID_SHIFT);
    b.load(Double, R3, R10, places.address);
    b.operate(Add, R3, R1);
    b.operate(Add, R3, i32::from(upids));
    // The `upid`'s address is also that of the id: `upid::nr` is the first member.
    b.store(Double, R10, places.address, R3);
    lock_names::read_pointer(b, i32::from(layout.upid_namespace), failed);
    b.operate(Add, R3, i32::from(layout.number));
    read_word(b, failed);
}

/// Replaces the owner in `R0`, an id that is assumed to be of the current task's namespace, by the id of the same thread in the
/// initial namespace. If the namespace cannot be read or the map lacks the thread, the id remains, with [`FOREIGN_OWNER`]. An
/// unknown owner (-1) remains as it is.
pub(super) fn translate(b: &mut ProgramBuilder, layout: NamespaceLayout, places: Places) {
    let (initial, unknown, done) = (b.label(), b.label(), b.label());
    b.jump_if(Equal, R0, -1, done);
    b.store(Word, R10, places.key + 4, R0);
    b.call(Helper::GetCurrentTask);
    b.set(R3, R0);
    namespace(b, layout, places, [initial, unknown]);
    b.store(Word, R10, places.key, R1);
    look_up(b, THREAD_IDS, places.key);
    b.jump_if(Equal, R0, 0, unknown);
    b.load(Word, R0, R0, 0);
    b.jump(done);
    b.place(initial);
    b.load(Word, R0, R10, places.key + 4);
    b.jump(done);
    b.place(unknown);
    b.load(Word, R0, R10, places.key + 4);
    b.set_wide(R1, FOREIGN_OWNER);
    b.operate(Or, R0, R1);
    b.place(done);
}

/// Adds [`SHARED_OWNER`] to the owner in `R0`, which may be a thread of another process, and so of another namespace; not if the
/// owner is unknown (-1), or the operation of the call is private to its process. `operation` is the offset of the operation on
/// the stack.
pub(super) fn mark_shared(b: &mut ProgramBuilder, operation: i16) {
    let done = b.label();
    b.jump_if(Equal, R0, -1, done);
    b.load(Word, R1, R10, operation);
    b.operate(And, R1, PRIVATE);
    b.jump_if(NotEqual, R1, 0, done);
    b.set_wide(R2, SHARED_OWNER);
    b.operate(Or, R0, R2);
    b.place(done);
}
