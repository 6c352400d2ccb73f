//! Writes the memory of a futex to the ring buffers of a perf event when a wait for it begins. From this memory, the id of the
//! thread that owns the futex is found.
//!
//! A record has the wait that begins. If the owner of its futex waits for a futex of the same process, too, that wait follows,
//! with the memory of its futex at this moment, then the wait of the next owner, up to [`MAX_WAITS_OF_RECORD`] waits.

use rperf_sys::{BpfMapKind, syscall_number};

use crate::Condition::{Above, Equal, NotEqual, SignedLess};
use crate::Operation::{Add, ShiftLeft, ShiftRight};
use crate::Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use crate::Width::{Double, Word};
use crate::loaded::{LoadedPrograms, NamedShape, possible_cpus};
use crate::registers::RegisterLayout;
use crate::tasks::{self, INDEX, TASK, add, current_task, look_up, set_map_and_key, slot};
use crate::{Error, Helper, Label, MapId, ProgramBuilder, TaskSet};

use super::futexes::{self, CallPlace, OPERATION, VALUE, memory};
use super::programs::{self, SCRATCH, WAIT};
use super::wait_capture::{self, follow};
use super::{MAX_WAITS, lock_names};

/// One buffer per CPU, for the record.
const BUFFERS: MapId = MapId(2);
/// Open waits (begun but not ended) for futexes, by thread.
const OPEN: MapId = MapId(4);

/// The maximum number of waits in a record.
pub(super) const MAX_WAITS_OF_RECORD: i16 = 8;

/// The record: offsets in bytes. `rperf_analysis` decodes it.
mod record {
    /// The number of waits.
    pub(super) const COUNT: i16 = 0;
    /// The process of all waits.
    pub(super) const PROCESS: i16 = 4;
    /// The size of the header.
    pub(super) const HEADER: i16 = 8;

    // A wait: offsets from its start.
    /// The waiting thread.
    pub(super) const THREAD: i16 = 0;
    /// The id of the thread as its program sees it.
    pub(super) const OWN_THREAD: i16 = 4;
    /// The address of the futex.
    pub(super) const ADDRESS: i16 = 8;
    pub(super) const OPERATION: i16 = 16;
    pub(super) const VALUE: i16 = 20;
    /// The memory around the futex, from 16 bytes before it on.
    pub(super) const MEMORY: i16 = 24;
    /// The memory from [`super::PTHREAD_TID`] bytes before the futex on: the beginning of `struct pthread`, if the futex is its
    /// `tid`, which pthread_join(3) waits for.
    pub(super) const PTHREAD_START: i16 = 88;
    /// In bytes: up to the end of the second of two pointers to the structure itself (offsets 0 and 16), by which
    /// `rperf_analysis` recognizes it.
    pub(super) const PTHREAD_START_SIZE: i16 = 24;
    /// The size of a wait.
    pub(super) const WAIT_SIZE: i16 = PTHREAD_START + PTHREAD_START_SIZE;

    /// The maximum size of the record.
    pub(super) const SIZE: i16 = HEADER + super::MAX_WAITS_OF_RECORD * WAIT_SIZE;
}

/// The offset of `tid` in glibc's `struct pthread` on x86-64. On other machines, `rperf_analysis` ignores what is there.
const PTHREAD_TID: i32 = 0x2d0;

/// The value of [`OPEN`]: offsets in bytes. The one of the current thread is also on the stack, at [`WAIT`].
mod open {
    pub(super) const ADDRESS: i16 = 0;
    pub(super) const OPERATION: i16 = 8;
    pub(super) const VALUE: i16 = 12;
    pub(super) const PROCESS: i16 = 16;
    pub(super) const OWN_THREAD: i16 = 20;
    pub(super) const SIZE: i16 = 24;
}

/// The binary logarithm of the size of `struct upid` in bytes.
pub(super) const UPID_SHIFT: i32 = 4;
/// The deepest level of PID namespaces (`MAX_PID_NS_LEVEL`).
pub(super) const MAX_LEVEL: i32 = 32;

/// Offsets in bytes (from BTF), to find the id of a thread in its own PID namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PidLayout {
    /// `task_struct::thread_pid`.
    pub thread_pid: u16,
    /// `pid::level`.
    pub level: u16,
    /// `pid::numbers`.
    pub numbers: u16,
}

/// The tasks whose waits are captured, and where the ids of threads are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FutexCaptureOptions {
    /// The waiting tasks.
    pub tasks: TaskSet,
    /// A process whose waits are not captured.
    pub excluded_process: Option<u32>,
    /// Where the ids of threads are.
    pub layout: PidLayout,
}

/// Loads and attaches the programs.
///
/// # Errors
/// [`Error`]: missing rights or kernel support, a rejected program, an unsupported architecture.
pub(super) fn load(options: &FutexCaptureOptions) -> Result<LoadedPrograms, Error> {
    let number = syscall_number("futex").ok_or(Error::Architecture)?;
    let mut loaded = LoadedPrograms::new(&shapes()?)?;
    follow(&mut loaded, &options.tasks)?;
    loaded.attach("futex_end", "sys_exit", &exit())?;
    loaded.attach("futex_begin", "sys_enter", &enter(options, number)?)?;
    Ok(loaded)
}

/// Returns the maps by their [`MapId`].
fn shapes() -> Result<[NamedShape; 5], Error> {
    use BpfMapKind::{Hash, PerCpuArray, PerfEventArray};
    let cpus = u32::try_from(possible_cpus()?).unwrap_or(u32::MAX);
    let shape = NamedShape::new;
    let [buffer, open] = [record::SIZE, open::SIZE].map(|size| u32::from(size.unsigned_abs()));
    Ok([
        shape("tasks", Hash, [4, slot::SIZE as u32, tasks::MAX_TASKS]),
        shape("losses", PerCpuArray, [4, 8, 1]),
        shape("buffers", PerCpuArray, [4, buffer, 1]),
        shape("events", PerfEventArray, [4, 4, cpus]),
        shape("open waits", Hash, [4, open, MAX_WAITS]),
    ])
}

/// At `sys_enter(registers, number)`: writes the record of a call of futex(2) that waits. `R6` context, `R7` address of the
/// futex, `R8` buffer, `R9` (process, thread).
fn enter(options: &FutexCaptureOptions, number: u32) -> Result<ProgramBuilder, Error> {
    let registers = RegisterLayout::native()?;
    let mut b = ProgramBuilder::new();
    let (write, out) = (b.label(), b.label());
    b.set(R6, R1);
    b.load(Double, R1, R6, 8);
    b.jump_if(NotEqual, R1, number.cast_signed(), out);
    futexes::arguments(&mut b, registers, out);
    programs::select_task(&mut b, &options.tasks, options.excluded_process, out);
    own_thread(&mut b, options.layout, out);
    add_open(&mut b);
    // `INDEX` has first the index of this CPU's only buffer; below, the id of a thread.
    b.store(Word, R10, INDEX, 0);
    look_up(&mut b, BUFFERS, INDEX);
    b.jump_if(Equal, R0, 0, out);
    b.set(R8, R0);
    b.load(Word, R1, R10, WAIT + open::PROCESS);
    b.store(Word, R8, record::PROCESS, R1);
    // Each iteration copies the wait at `R0` of the thread at `INDEX`, beginning with the new wait of the current thread.
    b.load(Word, R1, R10, TASK);
    b.store(Word, R10, INDEX, R1);
    b.address(R0, R10, i32::from(WAIT));
    for index in 0..MAX_WAITS_OF_RECORD {
        let wait = record::HEADER + index * record::WAIT_SIZE;
        copy_wait(&mut b, wait);
        read_futex(&mut b, wait);
        b.store(Word, R8, record::COUNT, i32::from(index) + 1);
        // The size of the record up to the end of this wait.
        b.set(R5, i32::from(wait + record::WAIT_SIZE));
        if index + 1 < MAX_WAITS_OF_RECORD {
            b.store(Double, R10, SCRATCH, R5);
            wait_of_owner(&mut b, wait, write);
        }
    }
    b.store(Double, R10, SCRATCH, R5);
    b.place(write);
    output(&mut b, out);
    b.place(out);
    b.exit();
    Ok(b)
}

/// Writes the record at `R8`, whose size is at [`SCRATCH`].
fn output(b: &mut ProgramBuilder, out: Label) {
    b.load(Double, R5, R10, SCRATCH);
    // Neither is ever true: the verifier requires the limits of the size.
    b.jump_if(Above, R5, i32::from(record::SIZE), out);
    b.jump_if(Equal, R5, 0, out);
    b.set(R4, R8);
    wait_capture::output(b);
}

/// At `sys_exit(registers, result)` of any call: removes the open wait of the thread, if it has one.
fn exit() -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let out = b.label();
    current_task(&mut b);
    look_up(&mut b, OPEN, TASK);
    b.jump_if(Equal, R0, 0, out);
    set_map_and_key(&mut b, OPEN, TASK);
    b.call(Helper::MapDeleteElem);
    b.place(out);
    b.exit();
    b
}

/// Stores the id of the current thread, as in its own PID namespace, at [`open::OWN_THREAD`] of the value at [`WAIT`]. Changes
/// `R8`. Goes to `out` if the id cannot be read.
fn own_thread(b: &mut ProgramBuilder, layout: PidLayout, out: Label) {
    b.call(Helper::GetCurrentTask);
    b.set(R3, R0);
    lock_names::read_pointer(b, i32::from(layout.thread_pid), out);
    b.set(R8, R3);
    b.address(R3, R8, i32::from(layout.level));
    read_word(b, out);
    b.jump_if(Above, R1, MAX_LEVEL, out);
    b.operate(ShiftLeft, R1, UPID_SHIFT);
    b.address(R3, R8, i32::from(layout.numbers));
    b.operate(Add, R3, R1);
    read_word(b, out);
    b.store(Word, R10, WAIT + open::OWN_THREAD, R1);
}

/// Sets `R1` to the 32-bit number at `R3` in the kernel's memory. Goes to `out` if it cannot be read.
pub(super) fn read_word(b: &mut ProgramBuilder, out: Label) {
    b.store(Double, R10, SCRATCH, 0);
    b.address(R1, R10, i32::from(SCRATCH));
    b.set(R2, 4);
    b.call(Helper::ProbeReadKernel);
    b.jump_if(SignedLess, R0, 0, out);
    b.load(Word, R1, R10, SCRATCH);
}

/// Adds the current thread's wait for the futex `R7` to [`OPEN`]. If the map is full, the thread is counted as a lost task.
fn add_open(b: &mut ProgramBuilder) {
    b.store(Double, R10, WAIT + open::ADDRESS, R7);
    for (from, to) in [(OPERATION, open::OPERATION), (VALUE, open::VALUE)] {
        b.load(Word, R1, R10, from);
        b.store(Word, R10, WAIT + to, R1);
    }
    b.set(R1, R9);
    b.operate(ShiftRight, R1, 32);
    b.store(Word, R10, WAIT + open::PROCESS, R1);
    add(b, OPEN, [TASK, WAIT], tasks::LOST_TASKS);
}

/// Copies the wait at `R0`, laid out as [`open`], and the thread at [`INDEX`] to the offset `wait` of the buffer. Sets `R7` to
/// the address of the futex.
fn copy_wait(b: &mut ProgramBuilder, wait: i16) {
    b.load(Double, R7, R0, open::ADDRESS);
    b.store(Double, R8, wait + record::ADDRESS, R7);
    for (from, to) in [
        (open::OPERATION, record::OPERATION),
        (open::VALUE, record::VALUE),
        (open::OWN_THREAD, record::OWN_THREAD),
    ] {
        b.load(Word, R1, R0, from);
        b.store(Word, R8, wait + to, R1);
    }
    b.load(Word, R1, R10, INDEX);
    b.store(Word, R8, wait + record::THREAD, R1);
}

/// Returns where the call and the memory of the wait at this offset of the buffer are.
fn call_place(wait: i16) -> CallPlace {
    CallPlace {
        base: R8,
        operation: wait + record::OPERATION,
        value: wait + record::VALUE,
        memory: wait + record::MEMORY,
    }
}

/// Reads the memory around the futex `R7`, and that of `struct pthread`, to the wait at this offset of the buffer.
fn read_futex(b: &mut ProgramBuilder, wait: i16) {
    futexes::read_memory(b, call_place(wait));
    b.address(R1, R8, i32::from(wait + record::PTHREAD_START));
    b.set(R2, i32::from(record::PTHREAD_START_SIZE));
    b.address(R3, R7, -PTHREAD_TID);
    // What cannot be read is 0.
    b.call(Helper::ProbeReadUser);
}

/// Finds the thread that owns the futex of the wait at this offset of the buffer: stores the thread at [`INDEX`], and leaves the
/// address of its own open wait in `R0`. Goes to `end` if the owner is unknown, is the current thread, or does not wait for a
/// futex in this process. The owner's id is not translated from other PID namespaces, whose threads are therefore not found.
fn wait_of_owner(b: &mut ProgramBuilder, wait: i16, end: Label) {
    futexes::owner(b, call_place(wait));
    b.jump_if(Equal, R0, -1, end);
    b.load(Word, R1, R10, TASK);
    b.jump_if(Equal, R0, R1, end);
    b.store(Word, R10, INDEX, R0);
    look_up(b, OPEN, INDEX);
    b.jump_if(Equal, R0, 0, end);
    b.load(Word, R1, R0, open::PROCESS);
    b.load(Word, R2, R10, WAIT + open::PROCESS);
    b.jump_if(NotEqual, R1, R2, end);
}

/// `rperf_analysis` expects 64 bytes of memory, from 16 bytes before the futex on.
const _: () = assert!(memory::FUTEX == 16 && memory::SIZE == 64);
