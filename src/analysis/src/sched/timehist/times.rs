//! The times of one task.

use crate::sched::SchedTask;

/// Mean, variance, minimum and maximum of the values added so far (Welford's method).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunStatistics {
    /// The number of values.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// The sum of the squared differences from the mean.
    squares: f64,
    /// The minimum; `u64::MAX` without values.
    pub min: u64,
    /// The maximum; 0 without values.
    pub max: u64,
}

impl Default for RunStatistics {
    fn default() -> Self {
        Self {
            count: 0,
            mean: 0.0,
            squares: 0.0,
            min: u64::MAX,
            max: 0,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "as in perf: statistics need no more than 53 bits of precision, the error no more than 24"
)]
impl RunStatistics {
    fn add(&mut self, value: u64) {
        self.count += 1;
        let delta = value as f64 - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (value as f64 - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Returns the standard error of the mean, in percent of the mean and with single precision; 0 for fewer than two values or
    /// a mean of 0.
    #[must_use]
    pub fn relative_error(&self) -> f64 {
        if self.count < 2 || self.mean == 0.0 {
            return 0.0;
        }
        let variance = self.squares / (self.count - 1) as f64;
        let error = 100.0 * (variance / self.count as f64).sqrt() / self.mean;
        // perf calculates it in single precision before it prints two decimals: 81.265 becomes 81.26.
        f64::from(error as f32)
    }
}

/// The state of a task after it was switched out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum AwayState {
    /// Still runnable.
    #[default]
    Runnable,
    /// Sleeping in state `D`.
    Uninterruptible,
    /// Sleeping in another state, or exited.
    Sleeping,
}

/// Times of a task's last stretch on a CPU, and of the wait before it, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StretchTimes {
    /// From the previous switch-out to the switch-in, by state.
    pub wait: WaitTimes,
    /// From wakeup to switch-in.
    pub delay: u64,
    /// On the CPU.
    pub run: u64,
    /// From wakeup to the first migration after the previous switch-out; 0 unless that migration is between wakeup and switch-in.
    pub before_migration: u64,
}

/// Nanoseconds not on a CPU, by the state in which the task was switched out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitTimes {
    /// Asleep in a state other than `D`.
    pub sleep: u64,
    /// Asleep in state `D`: usually waiting for a device.
    pub iowait: u64,
    /// Runnable: preempted.
    pub preempt: u64,
}

impl WaitTimes {
    /// Returns the sum.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sleep
            .saturating_add(self.iowait)
            .saturating_add(self.preempt)
    }
}

/// The times of a task.
#[derive(Debug, Clone, Default)]
pub struct TaskTimes {
    /// Statistics of the time of each stretch on a CPU; as in perf, a stretch with an unknown beginning is included as 0.
    pub runs: RunStatistics,
    /// The last stretch.
    pub last: StretchTimes,
    /// Nanoseconds on a CPU, in all stretches, like the two sums below.
    pub run: u64,
    /// Nanoseconds from wakeup to switch-in.
    pub delay: u64,
    /// Nanoseconds not on a CPU.
    pub wait: WaitTimes,
    /// The number of migrations to another CPU, if they are counted.
    pub migrations: u64,
    /// When it was last switched out, in nanoseconds; 0 if never.
    pub(super) switched_out_at: u64,
    /// Its state at that switch-out.
    pub(super) away: AwayState,
    /// When it was first woken after that switch-out; 0 if it was not.
    pub(super) woken_at: u64,
    /// When it was first moved to another CPU after that switch-out; 0 if it was not, or if migrations are ignored.
    pub(super) migrated_at: u64,
    /// Its latest priority, from a switch or a wakeup.
    pub(super) priority: Option<i32>,
}

impl TaskTimes {
    /// Adds a stretch on a CPU from `from` to `to`, and the wait before it, since `switched_out_at`; `from` is 0 if unknown.
    pub(super) fn add_stretch(&mut self, from: u64, to: u64) {
        let mut last = StretchTimes::default();
        if from > 0 {
            last.run = to.saturating_sub(from);
            if self.woken_at > 0 {
                last.delay = from.saturating_sub(self.woken_at);
                if self.migrated_at > self.woken_at && self.migrated_at < from {
                    last.before_migration = self.migrated_at - self.woken_at;
                }
            }
            if self.switched_out_at > 0 {
                let wait = from.saturating_sub(self.switched_out_at);
                match self.away {
                    AwayState::Runnable => last.wait.preempt = wait,
                    AwayState::Uninterruptible => last.wait.iowait = wait,
                    AwayState::Sleeping => last.wait.sleep = wait,
                }
            }
        }
        self.last = last;
        self.runs.add(last.run);
        // Stretches of a damaged recording may overlap.
        self.run = self.run.saturating_add(last.run);
        self.delay = self.delay.saturating_add(last.delay);
        self.wait.sleep = self.wait.sleep.saturating_add(last.wait.sleep);
        self.wait.iowait = self.wait.iowait.saturating_add(last.wait.iowait);
        self.wait.preempt = self.wait.preempt.saturating_add(last.wait.preempt);
    }
}

/// A task with its times.
#[derive(Debug, Clone)]
pub struct TimedTask {
    /// The task, with its last name.
    pub task: SchedTask,
    /// Its times.
    pub times: TaskTimes,
}
