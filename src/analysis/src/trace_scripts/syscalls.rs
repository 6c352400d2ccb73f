//! Counts of system calls, and of those that failed. The index in `sample.number(index)` is the position of a field in
//! [`EventFields::numbers`]: 0 is the call number, 1 the result.

use super::{EventFields, FirstSeen, ScriptSample};

/// Tasks whose system calls are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TaskSelection {
    /// All.
    #[default]
    All,
    /// Threads with this name.
    Comm(String),
    /// The thread with this id.
    Tid(i64),
}

impl TaskSelection {
    /// Parses an argument of a script: a thread id, or otherwise a name.
    #[must_use]
    pub fn parse(argument: &str) -> Self {
        match argument.parse() {
            Ok(tid) => Self::Tid(tid),
            Err(_) => Self::Comm(argument.to_owned()),
        }
    }

    /// Returns the name, if tasks are selected by it.
    #[must_use]
    pub fn comm(&self) -> Option<&str> {
        match self {
            Self::Comm(comm) => Some(comm),
            _ => None,
        }
    }

    fn selects(&self, sample: &ScriptSample<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Comm(comm) => sample.comm == comm,
            Self::Tid(tid) => sample.tid == *tid,
        }
    }
}

/// Values by name and id of a thread, then by number of the system call; each level in the order in which its keys were first
/// used.
pub type ByTask<V> = FirstSeen<String, FirstSeen<i64, FirstSeen<i64, V>>>;

/// Calls by number.
#[derive(Debug, Default)]
pub struct SyscallCounts {
    /// The tasks whose calls are counted.
    pub tasks: TaskSelection,
    /// The number of calls by call number.
    pub counts: FirstSeen<i64, u64>,
}

impl SyscallCounts {
    /// The tracepoints whose samples are needed.
    pub const EVENTS: &'static [EventFields] = &[EventFields {
        tracepoint: "raw_syscalls:sys_enter",
        numbers: &["id"],
        text: None,
    }];

    /// Counts a call.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        if self.tasks.selects(sample) {
            *self.counts.entry(&sample.number(0)) += 1;
        }
    }
}

/// Calls by number, for each name and thread.
#[derive(Debug, Default)]
pub struct SyscallsByTask {
    /// The tasks whose calls are counted.
    pub tasks: TaskSelection,
    /// The number of calls.
    pub counts: ByTask<u64>,
}

impl SyscallsByTask {
    /// Counts a call: a sample of the tracepoint in [`SyscallCounts::EVENTS`].
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        if self.tasks.selects(sample) {
            let task = self.counts.entry(sample.comm).entry(&sample.tid);
            *task.entry(&sample.number(0)) += 1;
        }
    }
}

/// Failed calls by name of the task.
#[derive(Debug, Default)]
pub struct FailedByComm {
    /// The tasks whose calls are counted.
    pub tasks: TaskSelection,
    /// The number of failed calls by name.
    pub counts: FirstSeen<String, u64>,
}

/// The tracepoint of returns.
const RETURN: &[EventFields] = &[EventFields {
    tracepoint: "raw_syscalls:sys_exit",
    numbers: &["id", "ret"],
    text: None,
}];

impl FailedByComm {
    /// The tracepoints whose samples are needed.
    pub const EVENTS: &'static [EventFields] = RETURN;

    /// Counts a call if it failed.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        if sample.number(1) < 0 && self.tasks.selects(sample) {
            *self.counts.entry(sample.comm) += 1;
        }
    }

    /// Returns names and counts, the largest count first, equal counts by name.
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

/// Failed calls by number and result, for each name and thread.
#[derive(Debug, Default)]
pub struct FailedByTask {
    /// The tasks whose calls are counted.
    pub tasks: TaskSelection,
    /// The number of failed calls by result, a negated errno, for each call number.
    pub counts: ByTask<FirstSeen<i64, u64>>,
}

impl FailedByTask {
    /// The tracepoints whose samples are needed.
    pub const EVENTS: &'static [EventFields] = RETURN;

    /// Counts a call if it failed.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        let result = sample.number(1);
        if result < 0 && self.tasks.selects(sample) {
            let task = self.counts.entry(sample.comm).entry(&sample.tid);
            *task.entry(&sample.number(0)).entry(&result) += 1;
        }
    }
}
