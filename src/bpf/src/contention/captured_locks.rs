//! Writes the owner and the name of a lock of the kernel to the ring buffers of a perf event when a wait for it begins.

use rperf_sys::BpfMapKind;

use crate::Condition::{Equal, NotEqual};
use crate::Operation::{ShiftLeft, ShiftRight};
use crate::Register::{R0, R1, R2, R4, R5, R6, R7, R8, R10};
use crate::Width::{Double, Word};
use crate::loaded::{LoadedPrograms, NamedShape, possible_cpus};
use crate::tasks::{self, slot};
use crate::{Error, MapId, ProgramBuilder, TaskSet};

use super::lock_names::{self, CACHE, CACHE_SIZE, LockLayout, NAME, SLAB};
use super::programs::{self, ENDED};
use super::wait_capture::{self, follow};
use super::{MAX_CPUS, OwnerLayout};

/// The map with the addresses of the locks of run queues as keys.
const RUN_QUEUES: MapId = MapId(2);

/// The record on the stack, which ends with the name of a slab cache at [`CACHE`]: offsets in bytes. `rperf_analysis`
/// decodes it.
mod record {
    /// The address of the lock.
    pub(super) const ADDRESS: i16 = super::CACHE - 16;
    /// The thread that holds the lock, 0 if unknown.
    pub(super) const OWNER: i16 = ADDRESS + 8;
    /// The number of the name (as in [`super::lock_names`]), 0 if unknown.
    pub(super) const NAME: i16 = ADDRESS + 12;

    /// The size in bytes without the name of a slab cache.
    pub(super) const SIZE_WITHOUT_CACHE: i16 = 16;
    /// The size in bytes with the name of a slab cache.
    pub(super) const SIZE_WITH_CACHE: i16 = SIZE_WITHOUT_CACHE + super::CACHE_SIZE;
}

/// The tasks whose waits are captured, and what is recorded of the locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockCaptureOptions {
    /// The waiting tasks.
    pub tasks: TaskSet,
    /// A process whose waits are not captured.
    pub excluded_process: Option<u32>,
    /// How owners are found; `None` if they are not recorded.
    pub owners: Option<OwnerLayout>,
    /// How locks are recognized; `None` if their names are not recorded.
    pub names: Option<LockLayout>,
}

/// Loads and attaches the programs.
///
/// # Errors
/// [`Error`]: missing rights or kernel support, a rejected program.
pub(super) fn load(options: &LockCaptureOptions) -> Result<LoadedPrograms, Error> {
    let mut loaded = LoadedPrograms::new(&shapes()?)?;
    follow(&mut loaded, &options.tasks)?;
    if let Some(layout) = options.names.and_then(|names| names.run_queue) {
        let note = lock_names::note_run_queue(layout, RUN_QUEUES);
        loaded.run_on_all_cpus("run_queues", &note)?;
    }
    // If a tracepoint has several probes (that of a perf event, and this program), the kernel calls them from one more function,
    // which is a frame of the stack that the event records. Linux perf skips as many frames at the end of a wait as at its
    // beginning, so the end gets a program, too.
    loaded.attach("lock_end", "contention_end", &end())?;
    loaded.attach("lock_begin", "contention_begin", &begin(options)?)?;
    Ok(loaded)
}

/// At `contention_end(lock, result)`: does nothing.
fn end() -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    b.exit();
    b
}

/// Returns the maps by their [`MapId`], each with the sizes of a key and a value, and the maximum number of entries.
fn shapes() -> Result<[NamedShape; 4], Error> {
    use BpfMapKind::{Hash, PerCpuArray, PerfEventArray};
    let cpus = u32::try_from(possible_cpus()?).unwrap_or(u32::MAX);
    let shape = NamedShape::new;
    Ok([
        shape("tasks", Hash, [4, slot::SIZE as u32, tasks::MAX_TASKS]),
        shape("losses", PerCpuArray, [4, 8, 1]),
        shape("run queues", Hash, [8, 4, MAX_CPUS]),
        shape("events", PerfEventArray, [4, 4, cpus]),
    ])
}

/// At `contention_begin(lock, flags)`: writes the record if the owner or the name of the lock is known. `R6` context, `R7` lock,
/// `R8` flags (32 bits).
fn begin(options: &LockCaptureOptions) -> Result<ProgramBuilder, Error> {
    let mut b = ProgramBuilder::new();
    let (write, out) = (b.label(), b.label());
    b.set(R6, R1);
    b.load(Double, R7, R6, 0);
    b.load(Double, R8, R6, 8);
    b.operate(ShiftLeft, R8, 32);
    b.operate(ShiftRight, R8, 32);
    programs::select_task(&mut b, &options.tasks, options.excluded_process, out);
    b.store(Double, R10, record::ADDRESS, R7);
    store_owner(&mut b, options.owners)?;
    // `find` reads the flags and the lock at `ENDED`, where other programs have those of a wait that ends, and stores the number
    // of the name at `NAME`.
    b.store(Double, R10, ENDED, R8);
    b.store(Double, R10, ENDED + 8, R7);
    b.store(Word, R10, NAME, 0);
    if let Some(names) = &options.names {
        lock_names::find(&mut b, names, RUN_QUEUES);
    }
    b.load(Word, R1, R10, NAME);
    b.store(Word, R10, record::NAME, R1);
    b.jump_if(NotEqual, R1, 0, write);
    b.load(Word, R2, R10, record::OWNER);
    b.jump_if(Equal, R2, 0, out);
    b.place(write);
    output(&mut b, options);
    b.place(out);
    b.exit();
    Ok(b)
}

/// Stores the thread that holds the lock `R7` in the record, 0 if it is unknown; `R8` has the flags of the wait.
fn store_owner(b: &mut ProgramBuilder, layout: Option<OwnerLayout>) -> Result<(), Error> {
    b.store(Word, R10, record::OWNER, 0);
    let Some(layout) = layout else {
        return Ok(());
    };
    let unknown = b.label();
    programs::owner(b, layout)?;
    // All bits are set if the owner is unknown.
    b.jump_if(Equal, R0, -1, unknown);
    b.store(Word, R10, record::OWNER, R0);
    b.place(unknown);
    Ok(())
}

/// Writes the record, with the name of the slab cache if the number of the name, `R1`, is [`SLAB`].
fn output(b: &mut ProgramBuilder, options: &LockCaptureOptions) {
    let sized = b.label();
    b.set(R5, i32::from(record::SIZE_WITHOUT_CACHE));
    if options.names.is_some() {
        b.jump_if(NotEqual, R1, SLAB, sized);
        b.set(R5, i32::from(record::SIZE_WITH_CACHE));
    }
    b.place(sized);
    b.address(R4, R10, i32::from(record::ADDRESS));
    wait_capture::output(b);
}
