//! Counts of system calls, and of those that failed.

use super::{EventFields, FirstSeen, ScriptSample};

/// Tasks whose system calls are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TaskSelection {
    /// All.
    #[default]
    All,
    /// Those of this name.
    Comm(String),
    /// The one with this id.
    Pid(i64),
}

impl TaskSelection {
    /// Parses an argument of a script: a number is a process.
    #[must_use]
    pub fn parse(argument: &str) -> Self {
        match argument.parse() {
            Ok(pid) => Self::Pid(pid),
            Err(_) => Self::Comm(argument.to_owned()),
        }
    }

    /// The name, if tasks are selected by it.
    #[must_use]
    pub fn comm(&self) -> Option<&str> {
        match self {
            Self::Comm(comm) => Some(comm),
            _ => None,
        }
    }

    fn has(&self, sample: &ScriptSample<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Comm(comm) => sample.comm == comm,
            Self::Pid(pid) => sample.pid == *pid,
        }
    }
}

/// Values by name and id of a task, and by number of a system call.
pub type ByTask<V> = FirstSeen<String, FirstSeen<i64, FirstSeen<i64, V>>>;

/// Calls by number.
#[derive(Debug, Default)]
pub struct SyscallCounts {
    /// The tasks.
    pub tasks: TaskSelection,
    /// The counts.
    pub counts: FirstSeen<i64, u64>,
}

impl SyscallCounts {
    /// The tracepoints that it reads.
    pub const EVENTS: &'static [EventFields] = &[EventFields {
        tracepoint: "raw_syscalls:sys_enter",
        numbers: &["id"],
        text: None,
    }];

    /// Counts a call.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        if self.tasks.has(sample) {
            *self.counts.entry(&sample.number(0)) += 1;
        }
    }
}

/// Calls by number, for each name and process.
#[derive(Debug, Default)]
pub struct SyscallsByTask {
    /// The tasks.
    pub tasks: TaskSelection,
    /// The counts.
    pub counts: ByTask<u64>,
}

impl SyscallsByTask {
    /// Counts a call.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        if self.tasks.has(sample) {
            let task = self.counts.entry(sample.comm).entry(&sample.pid);
            *task.entry(&sample.number(0)) += 1;
        }
    }
}

/// Failed calls by name of the task.
#[derive(Debug, Default)]
pub struct FailedByComm {
    /// The tasks.
    pub tasks: TaskSelection,
    /// The counts.
    pub counts: FirstSeen<String, u64>,
}

/// The return of a call.
const RETURN: &[EventFields] = &[EventFields {
    tracepoint: "raw_syscalls:sys_exit",
    numbers: &["id", "ret"],
    text: None,
}];

impl FailedByComm {
    /// The tracepoints that it reads.
    pub const EVENTS: &'static [EventFields] = RETURN;

    /// Counts a call.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        if sample.number(1) < 0 && self.tasks.has(sample) {
            *self.counts.entry(sample.comm) += 1;
        }
    }

    /// The counts, largest first.
    #[must_use]
    pub fn rows(&self) -> Vec<(&str, u64)> {
        let counts = self.counts.iter();
        let mut rows: Vec<(&str, u64)> = counts
            .map(|(comm, count)| (comm.as_str(), *count))
            .collect();
        rows.sort_by_key(|&(comm, count)| (std::cmp::Reverse(count), comm));
        rows
    }
}

/// Failed calls by number and error, for each name and process.
#[derive(Debug, Default)]
pub struct FailedByTask {
    /// The tasks.
    pub tasks: TaskSelection,
    /// The counts by result, for each number.
    pub counts: ByTask<FirstSeen<i64, u64>>,
}

impl FailedByTask {
    /// The tracepoints that it reads.
    pub const EVENTS: &'static [EventFields] = RETURN;

    /// Counts a call.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        let result = sample.number(1);
        if result < 0 && self.tasks.has(sample) {
            let task = self.counts.entry(sample.comm).entry(&sample.pid);
            *task.entry(&sample.number(0)).entry(&result) += 1;
        }
    }
}
