//! Programs that write a record to the ring buffers of a perf event when a wait begins.

use std::os::fd::BorrowedFd;

use crate::Register::{R1, R2, R3, R6};
use crate::loaded::LoadedPrograms;
use crate::tasks;
use crate::{Error, Helper, MapId, ProgramBuilder, TaskSet};

use super::captured_futexes::{self, FutexCaptureOptions};
use super::captured_locks::{self, LockCaptureOptions};

/// The perf events that receive records, by CPU: the map `events`, which has the same number for futexes and for locks.
pub(super) const EVENTS: MapId = MapId(3);
/// `BPF_F_CURRENT_CPU`.
const CURRENT_CPU: u64 = 0xffff_ffff;

/// The running capture. It ends when this is dropped.
#[derive(Debug)]
pub struct WaitCapture(LoadedPrograms);

impl WaitCapture {
    /// Loads and attaches the programs for futexes. They write nothing before [`WaitCapture::write_to`].
    ///
    /// If this is called before a perf event for the tracepoint of futex(2) is opened, the record of a wait precedes the sample
    /// of its call.
    ///
    /// # Errors
    /// [`Error`]: missing rights or kernel support, a rejected program, an unsupported architecture.
    pub fn of_futexes(options: &FutexCaptureOptions) -> Result<Self, Error> {
        let capture = Self(captured_futexes::load(options)?);
        capture.0.add_tasks(&options.tasks)?;
        Ok(capture)
    }

    /// Loads and attaches the programs for locks of the kernel. They write nothing before [`WaitCapture::write_to`].
    ///
    /// If this is called before a perf event for `contention_begin` is opened, the record of a wait precedes its sample.
    ///
    /// # Errors
    /// [`Error`]: missing rights or kernel support, a rejected program; [`Error::Attach`] before Linux 5.19.
    pub fn of_locks(options: &LockCaptureOptions) -> Result<Self, Error> {
        let capture = Self(captured_locks::load(options)?);
        capture.0.add_tasks(&options.tasks)?;
        Ok(capture)
    }

    /// Adds threads to those whose waits are captured. With `from_exec`, each is captured from its next successful exec on.
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
        self.0.set_descriptor(EVENTS, cpu, event)
    }
}

/// Attaches the programs that keep the set of observed tasks up to date: at ends and execs of tasks, and at forks if new tasks
/// are observed, too. Attaches none if all tasks are observed.
pub(super) fn follow(loaded: &mut LoadedPrograms, tasks: &TaskSet) -> Result<(), Error> {
    // `None` if new tasks are not observed; no program is then attached at forks.
    let pid_offset = tasks.follow_offset()?;
    let with_execs = true;
    match tasks.is_limited() {
        true => tasks::attach(loaded, pid_offset, with_execs),
        false => Ok(()),
    }
}

/// Writes the record at `R4` of the size `R5`. `R6` is the context.
pub(super) fn output(b: &mut ProgramBuilder) {
    b.set(R1, R6);
    b.map(R2, EVENTS);
    b.set_wide(R3, CURRENT_CPU);
    b.call(Helper::PerfEventOutput);
}
