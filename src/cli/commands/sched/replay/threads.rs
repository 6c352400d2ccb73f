//! Threads that replay the steps of recorded tasks.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, Scope, ScopedJoinHandle, Thread};
use std::time::{Duration, Instant};

use rperf_analysis::sched::replay::{ReplayPlan, ReplayStep};
use rperf_sys::clock_time;
use rperf_view::sched::replay::TimerPrecision;

/// Stack of a thread, in bytes.
const STACK: usize = 128 << 10;
/// Number of measurements of each overhead, of which the shortest is used.
const TRIALS: usize = 10;
const MILLISECOND: Duration = Duration::from_millis(1);

/// The time that a repetition (one replay of the whole plan) took.
pub(super) struct ReplayedTimes {
    pub(super) elapsed: Duration,
    /// The CPU time of all threads.
    pub(super) cpu_time: Duration,
}

/// Whether the threads may begin.
enum Start {
    Waiting,
    /// The threads may begin; contains the thread of each task, `None` for a task without steps.
    Begin(Arc<[Option<Thread>]>),
    /// Not all threads could be started.
    Cancelled,
}

/// The state that the threads of a repetition share.
struct SharedState<'p> {
    plan: &'p ReplayPlan,
    /// Whether a wakeup has happened, by its number.
    woken: Vec<AtomicBool>,
    start: Mutex<Start>,
    /// Notified when `start` is no longer [`Start::Waiting`].
    started: Condvar,
    /// The time that a run of 0 ns takes. A run is a loop that uses CPU time, for [`ReplayStep::Run`].
    run_overhead: Duration,
}

/// Takes all steps of the plan once, with a thread for each task that has steps.
///
/// # Errors
///
/// A thread cannot be started. In this case no step is taken.
pub(super) fn replay_once(
    plan: &ReplayPlan,
    precision: &TimerPrecision,
) -> io::Result<ReplayedTimes> {
    let shared = SharedState {
        plan,
        woken: (0..plan.wakeups).map(|_| AtomicBool::new(false)).collect(),
        start: Mutex::new(Start::Waiting),
        started: Condvar::new(),
        run_overhead: precision.run_overhead,
    };
    thread::scope(|scope| {
        let mut handles = Vec::new();
        let spawned = shared.spawn_all(scope, &mut handles);
        let begun = Instant::now();
        let failure = shared.begin(spawned);
        let mut cpu_time = Duration::ZERO;
        for handle in handles {
            cpu_time += handle.join().unwrap_or_default();
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(ReplayedTimes {
                elapsed: begun.elapsed(),
                cpu_time,
            }),
        }
    })
}

impl SharedState<'_> {
    /// Starts a thread for each task that has steps. Returns the threads by task, `None` for a task without steps. `handles` gets
    /// the handles, also of threads that were started before an error.
    fn spawn_all<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        handles: &mut Vec<ScopedJoinHandle<'s, Duration>>,
    ) -> io::Result<Vec<Option<Thread>>> {
        let tasks = self.plan.tasks.iter();
        let threads = tasks.map(|task| {
            if task.steps.is_empty() {
                return Ok(None);
            }
            let builder = Builder::new().stack_size(STACK);
            let handle = builder.spawn_scoped(scope, || self.take_steps(&task.steps))?;
            let thread = handle.thread().clone();
            handles.push(handle);
            Ok(Some(thread))
        });
        threads.collect()
    }

    /// Lets the threads begin, or exit if one of them could not be started; returns the error in that case.
    fn begin(&self, spawned: io::Result<Vec<Option<Thread>>>) -> Option<io::Error> {
        let (start, failure) = match spawned {
            Ok(threads) => (Start::Begin(threads.into()), None),
            Err(error) => (Start::Cancelled, Some(error)),
        };
        *self.lock() = start;
        self.started.notify_all();
        failure
    }

    fn lock(&self) -> MutexGuard<'_, Start> {
        self.start.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the start, takes the steps, and returns the CPU time of this thread.
    fn take_steps(&self, steps: &[ReplayStep]) -> Duration {
        let mut start = self.lock();
        let threads = loop {
            match &*start {
                Start::Waiting => {
                    let waited = self.started.wait(start);
                    start = waited.unwrap_or_else(PoisonError::into_inner);
                }
                Start::Begin(threads) => break Arc::clone(threads),
                Start::Cancelled => return Duration::ZERO,
            }
        };
        drop(start);
        let begun = own_cpu_time();
        for step in steps {
            self.take(step, &threads);
        }
        own_cpu_time().saturating_sub(begun)
    }

    fn take(&self, step: &ReplayStep, threads: &[Option<Thread>]) {
        let flag = |number: u32| self.woken.get(number as usize);
        match *step {
            ReplayStep::Run(nanos) => run(Duration::from_nanos(nanos), self.run_overhead),
            ReplayStep::Sleep(nanos) => thread::sleep(Duration::from_nanos(nanos)),
            ReplayStep::Await(number) => {
                while flag(number).is_some_and(|woken| !woken.load(Ordering::Acquire)) {
                    thread::park();
                }
            }
            ReplayStep::Wake { number, task } => {
                if let Some(woken) = flag(number) {
                    woken.store(true, Ordering::Release);
                }
                if let Some(Some(thread)) = threads.get(task) {
                    thread.unpark();
                }
            }
        }
    }
}

/// The CPU time of the calling thread; 0 if unknown.
fn own_cpu_time() -> Duration {
    Duration::from_nanos(clock_time(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default())
}

/// Uses the CPU for `time` minus `overhead`, the time that even an empty run takes.
fn run(time: Duration, overhead: Duration) {
    let begun = own_cpu_time();
    loop {
        let used = own_cpu_time().saturating_sub(begun);
        if used + overhead >= time {
            return;
        }
    }
}

/// Measures the precision of runs and sleeps.
pub(super) fn measure_precision() -> TimerPrecision {
    let shortest = |measure: &dyn Fn() -> Duration| {
        let trials = (0..TRIALS).map(|_| measure());
        trials.min().unwrap_or_default()
    };
    let run_overhead = shortest(&|| {
        let begun = Instant::now();
        // An empty run.
        let (time, overhead) = (Duration::ZERO, Duration::ZERO);
        run(time, overhead);
        begun.elapsed()
    });
    let sleep_overhead = shortest(&|| {
        let begun = Instant::now();
        thread::sleep(MILLISECOND);
        begun.elapsed().saturating_sub(MILLISECOND)
    });
    let begun = Instant::now();
    run(MILLISECOND, run_overhead);
    let run = begun.elapsed();
    let begun = Instant::now();
    thread::sleep(MILLISECOND);
    TimerPrecision {
        run_overhead,
        sleep_overhead,
        run,
        sleep: begun.elapsed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_analysis::sched::replay::ReplayTask;

    fn task(tid: i32, steps: Vec<ReplayStep>) -> ReplayTask {
        ReplayTask {
            tid,
            comm: Vec::new(),
            events: 0,
            steps,
        }
    }

    fn precision() -> TimerPrecision {
        TimerPrecision {
            run_overhead: Duration::ZERO,
            sleep_overhead: Duration::ZERO,
            run: Duration::ZERO,
            sleep: Duration::ZERO,
        }
    }

    #[test]
    fn a_task_runs_after_the_one_that_wakes_it() {
        const NANOS: u64 = 20_000_000;
        // The index 2 is that of the task with the thread id 6.
        let wake = ReplayStep::Wake { number: 0, task: 2 };
        let plan = ReplayPlan {
            tasks: vec![
                task(0, Vec::new()),
                task(
                    5,
                    vec![ReplayStep::Sleep(NANOS), ReplayStep::Run(NANOS), wake],
                ),
                task(6, vec![ReplayStep::Await(0), ReplayStep::Run(NANOS)]),
            ],
            wakeups: 1,
            ..ReplayPlan::default()
        };
        let times = replay_once(&plan, &precision()).unwrap();
        // One after the other: a sleep and two runs.
        assert!(times.elapsed >= Duration::from_nanos(3 * NANOS));
        assert!(times.cpu_time >= Duration::from_nanos(2 * NANOS));
    }
}
