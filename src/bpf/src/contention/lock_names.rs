//! Names of locks of the kernel: a lock can belong to the waiting task or to a run queue, or be in an object of a slab cache.
//! Filters compare the names and addresses of locks.

use crate::Condition::{Below, Equal, NotEqual, SignedLess};
use crate::Operation::Add;
use crate::Register::{R0, R1, R2, R3, R4, R7, R8, R10};
use crate::Width::{Double, Word};
use crate::bytes::{from_offset, number, word};
use crate::tasks::look_up;
use crate::{Helper, Label, MapId, ProgramBuilder};

use super::programs::{ENDED, SCRATCH};

/// The map with the addresses of the locks of run queues as keys, in the programs that sum waits.
pub(super) const RUN_QUEUES: MapId = MapId(8);

/// Offsets in bytes (from BTF) by which locks are recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockLayout {
    /// `task_struct::mm`, `mm_struct::mmap_lock`.
    pub mmap_lock: [u16; 2],
    /// `task_struct::sighand`, `sighand_struct::siglock`.
    pub siglock: [u16; 2],
    /// From the task to the lock of its CPU's run queue: `se.cfs_rq` in `task_struct`, `cfs_rq::rq`, `rq::__lock`; `None` without
    /// `CONFIG_FAIR_GROUP_SCHED`.
    pub run_queue: Option<[u16; 3]>,
    /// `None` before Linux 6.13.
    pub slab: Option<SlabLayout>,
}

/// How the slab cache of an object is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabLayout {
    /// The type id (BTF) of the kernel function `bpf_get_kmem_cache`.
    pub function: u32,
    /// `kmem_cache::name`.
    pub name: u16,
}

/// What a lock is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockName {
    /// `mm_struct::mmap_lock` of the waiting task.
    MmapLock,
    /// `sighand_struct::siglock` of the waiting task.
    SigLock,
    /// `rq::__lock` of a CPU.
    RunQueue,
    /// A lock in an object of the slab cache with this name, of which only the first 31 bytes are read and compared; not
    /// necessarily UTF-8.
    Slab(Vec<u8>),
}

/// Accepts locks by address or by name: those that are in a range or have one of the names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockFilter {
    /// Ranges of addresses: start, and end (exclusive).
    pub addresses: Vec<(u64, u64)>,
    /// Names, which need a [`LockLayout`].
    pub names: Vec<LockName>,
}

// Offsets on the stack.
/// The number of the name (such as [`MMAP_LOCK`]), 0 if unknown.
pub(super) const NAME: i16 = SCRATCH - 8;
/// The name of the slab cache, if the lock is in an object of one; [`NAME`] follows it.
pub(super) const CACHE: i16 = NAME - CACHE_SIZE;
/// The number of bytes of a name of a slab cache that are read, with the NUL.
pub(super) const CACHE_SIZE: i16 = 32;

// The numbers of names. `rperf_analysis` decodes them, too.
const MMAP_LOCK: i32 = 1;
const SIG_LOCK: i32 = 2;
const RUN_QUEUE: i32 = 3;
pub(super) const SLAB: i32 = 4;

/// The size in bytes of a name as [`copy_to_value`] writes it: the cache at [`CACHE`], then the number at [`NAME`].
pub(super) const SIZE: i16 = 8 + CACHE_SIZE;

/// The flags of a wait for a spin lock: `LCB_F_SPIN`.
const SPIN: i32 = 1;
/// The flags of waits for an `rw_semaphore`, by a reader and by a writer: `LCB_F_READ`, `LCB_F_WRITE`.
const SEMAPHORE: [i32; 2] = [2, 4];

/// Stores at [`NAME`] and [`CACHE`] the name of the lock of a wait. At [`ENDED`] are the flags of the wait, then the address of
/// the lock. `run_queues` has the addresses of the locks of run queues.
pub(super) fn find(b: &mut ProgramBuilder, layout: &LockLayout, run_queues: MapId) {
    let (semaphore, spin, in_slab, done) = (b.label(), b.label(), b.label(), b.label());
    for offset in (0..SIZE).step_by(8) {
        b.store(Double, R10, CACHE + offset, 0);
    }
    b.load(Double, R1, R10, ENDED);
    b.jump_if(Equal, R1, SPIN, spin);
    for flag in SEMAPHORE {
        b.jump_if(Equal, R1, flag, semaphore);
    }
    b.jump(in_slab);
    b.place(semaphore);
    of_task(b, layout.mmap_lock, MMAP_LOCK, done);
    b.jump(in_slab);
    b.place(spin);
    of_task(b, layout.siglock, SIG_LOCK, done);
    b.store(Word, R10, NAME, RUN_QUEUE);
    look_up(b, run_queues, ENDED + 8);
    b.jump_if(NotEqual, R0, 0, done);
    b.store(Word, R10, NAME, 0);
    b.place(in_slab);
    if let Some(slab) = layout.slab {
        of_slab(b, slab, done);
    }
    b.place(done);
}

/// Names locks in a structure of the waiting task: at the offset `pointer` the task has a pointer to the structure, which has the
/// lock at the offset `lock`. Goes to `done` with this name if that is the lock of the wait, otherwise continues without a name.
fn of_task(b: &mut ProgramBuilder, [pointer, lock]: [u16; 2], name: i32, done: Label) {
    let other = b.label();
    b.call(Helper::GetCurrentTask);
    b.set(R3, R0);
    read_pointer(b, i32::from(pointer), other);
    b.operate(Add, R3, i32::from(lock));
    b.load(Double, R1, R10, ENDED + 8);
    b.store(Word, R10, NAME, name);
    b.jump_if(Equal, R1, R3, done);
    b.place(other);
    b.store(Word, R10, NAME, 0);
}

/// Replaces `R3` by the pointer at `R3 + offset` in the kernel. Goes to `failed` if that is 0 or cannot be read.
pub(super) fn read_pointer(b: &mut ProgramBuilder, offset: i32, failed: Label) {
    b.operate(Add, R3, offset);
    b.store(Double, R10, SCRATCH, 0);
    b.address(R1, R10, i32::from(SCRATCH));
    b.set(R2, 8);
    b.call(Helper::ProbeReadKernel);
    b.load(Double, R3, R10, SCRATCH);
    b.jump_if(Equal, R3, 0, failed);
}

/// Stores the name of the slab cache if the lock is in an object of one. Goes to `done` if it is not, or if the name is empty or
/// cannot be read.
fn of_slab(b: &mut ProgramBuilder, layout: SlabLayout, done: Label) {
    b.load(Double, R1, R10, ENDED + 8);
    b.call_function(layout.function);
    b.jump_if(Equal, R0, 0, done);
    b.set(R3, R0);
    read_pointer(b, i32::from(layout.name), done);
    b.address(R1, R10, i32::from(CACHE));
    b.set(R2, i32::from(CACHE_SIZE));
    b.call(Helper::ProbeReadKernelStr);
    b.jump_if(SignedLess, R0, 2, done);
    b.store(Word, R10, NAME, SLAB);
}

/// Copies the name that [`find`] stored to the offset `at` of the value at `R0`.
pub(super) fn copy_to_value(b: &mut ProgramBuilder, at: i16) {
    for offset in (0..SIZE).step_by(8) {
        b.load(Double, R1, R10, CACHE + offset);
        b.store(Double, R0, at + offset, R1);
    }
}

/// Returns the name that [`copy_to_value`] copied to the offset `at` of the value; `None` if the lock was not recognized.
pub(super) fn decode(value: &[u8], at: i16) -> Option<LockName> {
    match word(from_offset(value, at + CACHE_SIZE), 0).cast_signed() {
        MMAP_LOCK => Some(LockName::MmapLock),
        SIG_LOCK => Some(LockName::SigLock),
        RUN_QUEUE => Some(LockName::RunQueue),
        SLAB => {
            let words = (0..CACHE_SIZE).step_by(8);
            let bytes = words.flat_map(|offset| number(value, at + offset).to_ne_bytes());
            Some(LockName::Slab(
                bytes.take_while(|byte| *byte != 0).collect(),
            ))
        }
        _ => None,
    }
}

/// Jumps to `out` unless the filter accepts the lock `R7` of a wait with the flags `R8`. Without `layout`, no lock has a name.
pub(super) fn select(
    b: &mut ProgramBuilder,
    filter: &LockFilter,
    layout: Option<&LockLayout>,
    out: Label,
) {
    let accepted = b.label();
    for (start, end) in &filter.addresses {
        let other = b.label();
        b.set_wide(R1, *start);
        b.jump_if(Below, R7, R1, other);
        b.set_wide(R1, *end);
        b.jump_if(Below, R7, R1, accepted);
        b.place(other);
    }
    if let Some(layout) = layout.filter(|_| !filter.names.is_empty()) {
        // `find` reads flags and lock from here, even if the wait only begins.
        b.store(Double, R10, ENDED, R8);
        b.store(Double, R10, ENDED + 8, R7);
        find(b, layout, RUN_QUEUES);
        for name in &filter.names {
            let other = b.label();
            compare(b, name, other);
            b.jump(accepted);
            b.place(other);
        }
    }
    b.jump(out);
    b.place(accepted);
}

/// Jumps to `other` unless [`find`] stored this name.
fn compare(b: &mut ProgramBuilder, name: &LockName, other: Label) {
    let (number, cache) = match name {
        LockName::MmapLock => (MMAP_LOCK, None),
        LockName::SigLock => (SIG_LOCK, None),
        LockName::RunQueue => (RUN_QUEUE, None),
        LockName::Slab(cache) => (SLAB, Some(cache)),
    };
    b.load(Word, R1, R10, NAME);
    b.jump_if(NotEqual, R1, number, other);
    let Some(cache) = cache else {
        return;
    };
    let mut bytes = [0; CACHE_SIZE as usize];
    // The last byte remains a NUL: longer names are truncated, as when they are read.
    for (to, from) in bytes.iter_mut().take(CACHE_SIZE as usize - 1).zip(cache) {
        *to = *from;
    }
    let (words, _) = bytes.as_chunks();
    for (offset, word) in (CACHE..).step_by(8).zip(words) {
        b.load(Double, R1, R10, offset);
        b.set_wide(R2, u64::from_ne_bytes(*word));
        b.jump_if(NotEqual, R1, R2, other);
    }
}

/// The program that stores the address of the lock of the CPU's run queue in `run_queues`; to be run once on each CPU. The
/// offsets are those of [`LockLayout::run_queue`].
pub(super) fn note_run_queue([cfs_rq, rq, lock]: [u16; 3], run_queues: MapId) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let out = b.label();
    b.call(Helper::GetCurrentTask);
    b.set(R3, R0);
    read_pointer(&mut b, i32::from(cfs_rq), out);
    read_pointer(&mut b, i32::from(rq), out);
    b.operate(Add, R3, i32::from(lock));
    b.store(Double, R10, SCRATCH, R3);
    // `NAME` is not needed here: its place has the value of the entry, which nothing reads.
    b.store(Word, R10, NAME, 1);
    b.map(R1, run_queues);
    b.address(R2, R10, i32::from(SCRATCH));
    b.address(R3, R10, i32::from(NAME));
    b.set(R4, 0);
    b.call(Helper::MapUpdateElem);
    b.place(out);
    b.exit();
    b
}
