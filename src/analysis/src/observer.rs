//! The trait that an analysis implements.

use rperf_replay::FoldControl;
use rperf_tracepoint::typed::TypedEvent;

use crate::{EventContext, TaskId};

/// Receives records in time order. `Detail` is computed from each sample by [`PrepareSamples`](crate::PrepareSamples).
///
/// All methods are optional. They run on one thread: expensive work per sample (filters, symbols) belongs in `PrepareSamples`,
/// which runs on several threads for a recording (on one for live ring buffers).
pub trait Observer<Detail = ()> {
    /// Handles a sample of a tracepoint that has a typed event.
    fn event(&mut self, _at: &EventContext, _event: TypedEvent<'_>, _detail: Detail) {}

    /// Handles a sample of any other event.
    fn sample(&mut self, _at: &EventContext, _detail: Detail) {}

    /// Handles the creation, exit or renaming of a task. Needs [`ObserverPass::with_tasks`](crate::ObserverPass::with_tasks).
    fn task(&mut self, _at: &EventContext, _change: TaskChange<'_>) {}

    /// Handles a switch of a task in or out. Needs [`ObserverPass::with_switches`](crate::ObserverPass::with_switches).
    fn switch(&mut self, _at: &EventContext, _switch: ContextSwitch) {}

    /// Handles a record that reports a loss: records were lost some time before it on the CPU of `at`, so spans (the times
    /// between two events) across the loss may be wrong. If `at` has no CPU, the loss can be on any. The totals at the end of a
    /// recording ([`Loss`]) have no CPU, and their losses can be at any time.
    fn lost(&mut self, _at: &EventContext, _loss: Loss) {}

    /// Whether to continue. Checked occasionally: some events may still arrive after [`FoldControl::Stop`].
    fn flow(&self) -> FoldControl {
        FoldControl::Continue
    }
}

/// `PERF_RECORD_FORK`, `PERF_RECORD_EXIT` or `PERF_RECORD_COMM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskChange<'r> {
    /// A task was created.
    Fork {
        /// The creator.
        parent: TaskId,
        /// The new task.
        child: TaskId,
    },
    /// A task exits.
    Exit(TaskId),
    /// A task was renamed.
    Comm {
        /// The task.
        task: TaskId,
        /// Its name, not necessarily UTF-8.
        name: &'r [u8],
        /// Whether it was renamed by execve(2).
        by_exec: bool,
    },
}

impl<'r> TaskChange<'r> {
    /// Sets the name of a COMM; other changes have none.
    pub(crate) fn with_name(mut self, new: &'r [u8]) -> Self {
        if let Self::Comm { name, .. } = &mut self {
            *name = new;
        }
        self
    }
}

/// `PERF_RECORD_SWITCH` or `PERF_RECORD_SWITCH_CPU_WIDE`; the task is that of the [`EventContext`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextSwitch {
    /// The task is switched in.
    In,
    /// The task is switched out and is not runnable.
    Out,
    /// The task is switched out although it is runnable.
    Preempted,
}

/// `PERF_RECORD_LOST` or `PERF_RECORD_LOST_SAMPLES`. At the end of a recording, recorders write a LOST_SAMPLES record for each
/// counter that lost samples, with their total. If the recording has LOST records, these totals are skipped: LOST records already
/// report the same losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// The number of lost records or samples.
    pub records: u64,
}
