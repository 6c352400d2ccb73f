//! The context of one occurrence of an event (a sample or another record): time, CPU and task.

use rperf_replay::{EventIndex, NonSampleRecord, Order, Sample};

/// A thread and its process; `u32::MAX` if not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
}

/// Time, CPU and task of a sample or another record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventContext {
    /// Position in the order of all records; a record without a time has a position, too (see [`Order`]).
    pub order: Order,
    /// The event of the recording (such as `cycles`) that the record belongs to; `None` if a record other than a sample has an id
    /// that belongs to no event.
    pub event: Option<EventIndex>,
    /// The CPU, if recorded.
    pub cpu: Option<u32>,
    /// The task that was running.
    pub task: TaskId,
}

impl TaskId {
    /// A task that is not recorded.
    pub const UNKNOWN: Self = Self {
        pid: u32::MAX,
        tid: u32::MAX,
    };
}

impl EventContext {
    /// Returns the time in nanoseconds of the recording's clock; for a record without a time, the flush limit (see [`Order`]).
    #[must_use]
    pub fn time(&self) -> u64 {
        self.order.time
    }

    pub(crate) fn of_sample(sample: &Sample<'_>) -> Self {
        Self {
            order: sample.order,
            event: Some(sample.event),
            cpu: sample.wire.cpu,
            task: TaskId {
                pid: sample.pid,
                tid: sample.tid,
            },
        }
    }

    pub(crate) fn of_record(record: &NonSampleRecord<'_>) -> Self {
        let task = record.id.pid_tid;
        Self {
            order: record.order,
            event: record.event,
            cpu: record.id.cpu,
            task: task.map_or(TaskId::UNKNOWN, |(pid, tid)| TaskId { pid, tid }),
        }
    }
}
