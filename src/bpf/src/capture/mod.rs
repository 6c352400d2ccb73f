//! Captures the memory of system calls: when a call begins and when it returns, copies what its arguments point to, and writes
//! the copy to the ring buffers of a perf event.

mod layout;
mod messages;
mod programs;
#[cfg(test)]
mod tests;

use std::os::fd::BorrowedFd;

use rperf_sys::BpfMapKind;
use rperf_syscalls::{Capture, CaptureLength, CaptureLimit, CapturePlan, CaptureSource};

use crate::loaded::{LoadedPrograms, NamedShape, possible_cpus};
use crate::registers::RegisterLayout;
use crate::tasks::{self, slot};
use crate::{Error, TaskSet};
use layout::{CALL_LIMIT, MAX_ENTRIES, buffer, entry};
use programs::CaptureContext;

/// The calls whose memory is captured, and their tasks.
#[derive(Debug)]
pub struct CaptureOptions<'a> {
    /// The tasks whose calls are captured.
    pub tasks: TaskSet,
    /// A process that is not captured.
    pub excluded_process: Option<u32>,
    /// Ids of threads that are not captured.
    pub excluded_threads: &'a [u32],
    /// Open cgroup directories (version 2): only tasks in them or in their descendants are captured. Empty for all
    /// tasks.
    pub cgroups: &'a [BorrowedFd<'a>],
    /// Numbers of system calls and the plan of each. Numbers from 512 on are ignored.
    pub plans: &'a [(u32, CapturePlan)],
    /// The maximum number of bytes that are copied of the buffer or the text that an argument points to. Paths and
    /// structures have limits of their own.
    pub string_size: u32,
}

/// The running capture. It ends when this is dropped.
#[derive(Debug)]
pub struct ArgumentCapture(LoadedPrograms);

/// The maximum number of calls in progress that are noted because their memory could not be read when they began. It is read
/// again when such a call returns.
const MAX_RETRIES: u32 = 4096;

impl ArgumentCapture {
    /// Loads and attaches the programs. They write nothing before [`ArgumentCapture::write_to`].
    ///
    /// If the programs are attached before the tracepoints of system calls are opened, each record precedes the sample of its
    /// call.
    ///
    /// # Errors
    /// [`Error`], such as for missing rights or kernel support, a rejected program, or an unsupported architecture.
    pub fn start(options: &CaptureOptions<'_>) -> Result<Self, Error> {
        // The offset of `task_struct::pid`, if new tasks are followed.
        let task_pid = options.tasks.follow_offset()?;
        // If set, only tasks in the map `tasks` are captured. The map also gets the new tasks that are followed.
        let known_tasks_only = options.tasks.is_limited();
        let context = CaptureContext {
            known_tasks_only,
            excluded_process: options.excluded_process,
            excluded_threads: options.excluded_threads,
            cgroup_count: i32::try_from(options.cgroups.len()).unwrap_or(i32::MAX),
            registers: RegisterLayout::native()?,
        };
        let mut loaded = LoadedPrograms::new(&shapes(options.cgroups.len())?)?;
        for (cgroup, index) in options.cgroups.iter().zip(0_u32..) {
            loaded.set_descriptor(programs::CGROUPS, index, *cgroup)?;
        }
        for (number, plan) in options
            .plans
            .iter()
            .filter(|(number, _)| is_capturable(*number))
        {
            let return_key = number + CALL_LIMIT.unsigned_abs();
            for (key, captures) in [(*number, &plan.at_entry), (return_key, &plan.at_return)] {
                let value = encode(captures, options.string_size);
                loaded.set(programs::PLANS, &key.to_ne_bytes(), &value)?;
            }
        }
        // The programs that follow tasks are attached before `add_tasks`: otherwise tasks created in between would be missing.
        if known_tasks_only {
            let with_execs = true;
            tasks::attach(&mut loaded, task_pid, with_execs)?;
        }
        loaded.attach("capture_exit", "sys_exit", &programs::exit(context))?;
        loaded.attach("capture_enter", "sys_enter", &programs::enter(context))?;
        let capture = Self(loaded);
        capture.0.add_tasks(&options.tasks)?;
        Ok(capture)
    }

    /// Adds threads. With `from_exec`, their calls are captured only from their next successful exec on.
    ///
    /// # Errors
    /// [`Error::Map`] if there are too many.
    pub fn add_threads(&self, threads: &[u32], from_exec: bool) -> Result<(), Error> {
        self.0.add_threads(threads, from_exec)
    }

    /// Directs the records of a CPU to `event`, an open `bpf-output` event of all tasks on that CPU.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn write_to(&self, cpu: u32, event: BorrowedFd<'_>) -> Result<(), Error> {
        self.0.set_descriptor(programs::EVENTS, cpu, event)
    }

    /// Returns the number of tasks that were not captured because the map of tasks was full.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn lost_tasks(&self) -> Result<u64, Error> {
        Ok(self.0.losses()?.of(tasks::LOST_TASKS))
    }
}

fn is_capturable(number: u32) -> bool {
    number < CALL_LIMIT.unsigned_abs()
}

/// Returns the shapes of the maps, in the order of their [`crate::MapId`].
fn shapes(cgroups: usize) -> Result<Vec<NamedShape>, Error> {
    use BpfMapKind::{Array, CgroupArray, Hash, LruHash, PerCpuArray, PerfEventArray};
    let cpus = u32::try_from(possible_cpus()?).unwrap_or(u32::MAX);
    let shape = NamedShape::new;
    let plan_size = (MAX_ENTRIES * entry::SIZE).unsigned_abs().into();
    // The numbers are the size of a key, the size of a value and the maximum number of entries.
    let mut shapes = vec![
        shape("tasks", Hash, [4, slot::SIZE as u32, tasks::MAX_TASKS]),
        shape("losses", PerCpuArray, [4, 8, 1]),
        shape(
            "plans",
            Array,
            [4, plan_size, 2 * CALL_LIMIT.unsigned_abs()],
        ),
        shape(
            "buffers",
            PerCpuArray,
            [4, buffer::BUFFER_SIZE.unsigned_abs(), 1],
        ),
        shape("events", PerfEventArray, [4, 4, cpus]),
        shape("retries", LruHash, [4, 4, MAX_RETRIES]),
    ];
    if cgroups > 0 {
        let cgroups = u32::try_from(cgroups).unwrap_or(u32::MAX);
        shapes.push(shape("cgroups", CgroupArray, [4, 4, cgroups]));
    }
    Ok(shapes)
}

/// Encodes the captures of a plan for the start (`at_entry`) or for the return of a call as the programs read them: each in the
/// layout of `layout::entry`, and zeros up to the size of a full plan.
fn encode(captures: &[Capture], string_size: u32) -> Vec<u8> {
    let longest = buffer::MAX_SEGMENT_DATA.unsigned_abs();
    // Room for the text, its NUL and one more byte: if all of it is used, the text is longer than `size`.
    let text_limit = |size: u32| size.saturating_add(2).min(longest);
    let plan_size = usize::try_from(MAX_ENTRIES * entry::SIZE).unwrap_or_default();
    // The programs ignore the length of texts and of a message.
    let ignored = CaptureLength::Fixed(0);
    let mut plan = Vec::with_capacity(plan_size);
    for capture in captures {
        let (source, length) = match capture.source {
            CaptureSource::Bytes(length) => (layout::SOURCE_BYTES, length),
            CaptureSource::Text => (layout::SOURCE_TEXT, ignored),
            CaptureSource::Texts => (layout::SOURCE_TEXTS, ignored),
            CaptureSource::Message => (layout::SOURCE_MESSAGE, ignored),
            // The argument is the number of elements.
            CaptureSource::Vectors(argument) => (
                layout::SOURCE_VECTORS,
                CaptureLength::Argument { argument, unit: 1 },
            ),
            CaptureSource::Messages(argument) => (
                layout::SOURCE_MESSAGES,
                CaptureLength::Argument { argument, unit: 1 },
            ),
        };
        let is_text = matches!(capture.source, CaptureSource::Text | CaptureSource::Texts);
        let limit = match (capture.limit, is_text) {
            (CaptureLimit::Path, _) => text_limit(PATH_MAX),
            (CaptureLimit::StringSize, true) => text_limit(string_size),
            (CaptureLimit::StringSize, false) => string_size.min(longest),
            (CaptureLimit::Bytes(bytes), _) => bytes.min(longest),
        };
        let (kind, argument, unit) = match length {
            // The unit is the length itself.
            CaptureLength::Fixed(bytes) => (layout::LENGTH_FIXED, 0, bytes),
            CaptureLength::Argument { argument, unit } => {
                (layout::LENGTH_OF_ARGUMENT, argument, unit)
            }
            CaptureLength::Result { unit } => (layout::LENGTH_OF_RESULT, 0, unit),
            CaptureLength::Pointed { argument } => (layout::LENGTH_POINTED, argument, 1),
        };
        // The fields of `entry`, in their order.
        let byte = |number: i32| number.to_le_bytes().into_iter().take(1);
        plan.extend(byte(source));
        plan.push(capture.argument);
        plan.extend(byte(kind));
        // The argument that is the length, or points to it; the one above is the address.
        plan.push(argument);
        plan.extend(unit.to_ne_bytes());
        plan.extend(limit.to_ne_bytes());
        // Unused.
        plan.extend([0; 4]);
    }
    plan.resize(plan_size, 0);
    plan
}

/// The maximum size of a path in bytes (linux/limits.h).
const PATH_MAX: u32 = 4096;
