//! Analyses of the scheduler's tracepoints, for `sched`.

mod common_flags;
pub mod latency;
mod lost_stretches;
pub mod map;
mod names;
pub mod off_cpu;
pub mod replay;
pub mod stats;
mod tasks;
mod tid_table;
pub mod timehist;

pub use common_flags::CommonFlags;
pub use lost_stretches::{LostStretch, LostStretches};
use names::{NameNumber, NameTable};
pub use tasks::{SchedTask, SchedTasks, TaskIndex};

/// The most CPUs that Linux supports (`CONFIG_NR_CPUS` of x86-64). CPU numbers are lower, except in damaged recordings.
pub const MAX_CPUS: u32 = 8192;

/// Reports that a task is being woken, always on the CPU of the waker.
const WAKING: &str = "sched:sched_waking";
/// Reports that the woken task is runnable: later than [`WAKING`], and maybe on another CPU.
const WAKEUP: &str = "sched:sched_wakeup";

/// The process id of a task that an event names only by its thread id, for [`SchedTasks::find_or_add`].
pub(crate) const UNKNOWN_PID: i32 = -1;

/// Returns the tracepoint that is ignored because the recording has an earlier one for the same wakeup: `sched_wakeup` if there
/// is `sched_waking`.
#[must_use]
pub fn ignored_wakeup(layouts: &crate::EventLayouts) -> Option<&'static str> {
    layouts.has(WAKING).then_some(WAKEUP)
}
