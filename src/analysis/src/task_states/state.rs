//! The states of a task.

use std::fmt::{self, Write as _};

use rperf_tracepoint::typed::TaskState;

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RunState {
    /// Created and not woken yet.
    New,
    /// Runnable, waiting for a CPU.
    Runnable(WaitReason),
    /// Running.
    Running,
    /// Sleeping.
    Sleeping(Sleep),
}

/// Why a runnable task is waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitReason {
    /// The task was woken.
    Woken,
    /// Another task preempted the task in the kernel (state `R+`). SWITCH records do not distinguish this from
    /// [`WaitReason::Yielded`]: if the state is from a SWITCH record, `Preempted` means either of them.
    Preempted,
    /// The task yielded its CPU, or was preempted at the return to user space: the kernel reports `R` for both. Very old kernels
    /// report `R` for every preemption.
    Yielded,
}

/// The kind of sleep, by the letter of ps(1) and of the kernel's tracepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sleep {
    /// `S`: interruptible by signals.
    Interruptible,
    /// `D`: usually waiting for a device.
    Uninterruptible,
    /// `T`: stopped by a signal.
    Stopped,
    /// `t`: stopped by a debugger.
    Traced,
    /// `P`: a parked kernel thread.
    Parked,
    /// `I`: an idle kernel thread.
    Idle,
    /// Another letter, or unknown, as in SWITCH records.
    Other,
}

/// The state of a task when it is switched out: the decoded `prev_state` of `sched_switch`, or from a SWITCH record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchedOut {
    /// Still runnable.
    Runnable(WaitReason),
    /// Sleeping.
    Sleeping(Sleep),
    /// Dead: this was the task's last switch.
    Dead,
}

impl RunState {
    /// Whether the task is running.
    #[must_use]
    pub fn is_running(self) -> bool {
        self == Self::Running
    }

    /// Whether the task waits for a CPU.
    #[must_use]
    pub fn is_runnable(self) -> bool {
        matches!(self, Self::Runnable(_))
    }
}

impl From<TaskState<'_>> for SwitchedOut {
    fn from(state: TaskState<'_>) -> Self {
        if state.is_runnable() {
            return Self::Runnable(match state.is_preempted() {
                true => WaitReason::Preempted,
                false => WaitReason::Yielded,
            });
        }
        let mut letter = FirstCharacter(None);
        // Keeps the first letter: killable sleeps were once `D|K`.
        let _stopped = write!(letter, "{state}");
        Self::Sleeping(match letter.0 {
            Some('S') => Sleep::Interruptible,
            Some('D') => Sleep::Uninterruptible,
            Some('T') => Sleep::Stopped,
            Some('t') => Sleep::Traced,
            Some('P') => Sleep::Parked,
            Some('I') => Sleep::Idle,
            Some('X' | 'x' | 'Z') => return Self::Dead,
            // For other letters or none, use the two bits that mean the same in all kernels: TASK_INTERRUPTIBLE (1) and
            // TASK_UNINTERRUPTIBLE (2).
            _ if state.bits() & 3 == 1 => Sleep::Interruptible,
            _ if state.bits() & 3 == 2 => Sleep::Uninterruptible,
            _ => Sleep::Other,
        })
    }
}

/// Keeps the first character written, and then stops the formatting with an error.
struct FirstCharacter(Option<char>);

impl fmt::Write for FirstCharacter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.or(text.chars().next());
        if self.0.is_some() {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}
