//! Memory of NUMA nodes: threads of several processes pass over memory of their own and memory that they share. A task is one of
//! these threads.

mod access;
mod tasks;

use std::time::Duration;

pub use access::{MemoryAccess, PassOrder};

use crate::BenchError;

/// The benchmark `numa mem`.
#[derive(Debug, Clone, PartialEq)]
pub struct NumaMem {
    /// Number of processes.
    pub processes: u32,
    /// Number of threads of each process.
    pub threads: u32,
    /// The memory that the tasks pass over.
    pub sizes: MemorySizes,
    /// Maximum number of passes of each task; `None` for no limit but `duration`.
    pub loops: Option<u64>,
    /// The time after which a task starts no further pass. Each task makes at least one, unless `loops` is 0.
    pub duration: Duration,
    /// Time that each task sleeps after a pass.
    pub pause: Duration,
    /// How memory is accessed.
    pub access: MemoryAccess,
    /// How memory is initialized.
    pub initial: InitialMemory,
    /// Whether transparent huge pages are requested (true) or refused (false); `None` for the kernel's default.
    pub huge_pages: Option<bool>,
    /// The CPUs of the first tasks, one for each; other tasks run on any CPU.
    pub cpus: Vec<u32>,
    /// The nodes of the memory that the first tasks allocate, one for each; memory of other tasks is on any node.
    pub nodes: Vec<u32>,
}

/// Sizes of the memory that a task passes over, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemorySizes {
    /// The memory that all processes share.
    pub global: usize,
    /// The memory of each process, which its threads share.
    pub process: usize,
    /// The beginning of the process's memory, which each thread passes over a second time while it holds a lock of the process.
    /// Not larger than `process`.
    pub locked: usize,
    /// The memory of each thread.
    pub thread: usize,
}

/// How memory is initialized, and on which CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InitialMemory {
    /// Whether zeros are written, so that pages exist before the measurement. Ignored if `random`.
    pub zero: bool,
    /// Whether random numbers are written.
    pub random: bool,
    /// Whether CPU 0 initializes all memory.
    pub on_cpu0: bool,
}

/// The work of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskWork {
    /// Bytes that the task passed over.
    pub bytes: u64,
    /// The time from the start until the end of the last pass and its pause.
    pub time: Duration,
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct NumaResult {
    /// Time until all tasks were ready.
    pub startup: Duration,
    /// The tasks' work, process by process.
    pub tasks: Vec<TaskWork>,
}

impl NumaMem {
    /// Returns the number of tasks.
    #[must_use]
    pub fn task_count(&self) -> usize {
        self.processes as usize * self.threads as usize
    }

    /// Runs the tasks.
    ///
    /// # Errors
    /// [`BenchError::System`] if there is not enough memory, or for a CPU or node that the tasks must not use;
    /// [`BenchError::Child`] if a process is killed, or a task panics.
    pub fn run(&self) -> Result<NumaResult, BenchError> {
        tasks::run(self)
    }
}

impl NumaResult {
    /// Returns the longest time of a task, in seconds.
    #[must_use]
    pub fn slowest(&self) -> f64 {
        self.seconds().fold(0.0, f64::max)
    }

    /// Returns the shortest time of a task, in seconds.
    #[must_use]
    pub fn fastest(&self) -> f64 {
        self.seconds().fold(self.slowest(), f64::min)
    }

    /// Returns the mean time of the tasks, in seconds.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.seconds().sum::<f64>() / self.tasks.len().max(1) as f64
    }

    /// Returns the number of bytes that all tasks passed over.
    #[must_use]
    pub fn total_bytes(&self) -> f64 {
        self.tasks.iter().map(|task| task.bytes as f64).sum()
    }

    fn seconds(&self) -> impl Iterator<Item = f64> {
        self.tasks.iter().map(|task| task.time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests;
