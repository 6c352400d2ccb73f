//! The text of `sched replay`, in the layout of perf 6.1.

use std::io::{self, Write};
use std::time::Duration;

use rperf_analysis::sched::replay::ReplayPlan;

/// The precision of runs (loops that use CPU time) and sleeps on the machine of the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerPrecision {
    /// The time that an empty run takes.
    pub run_overhead: Duration,
    /// The time by which a sleep exceeds the requested time.
    pub sleep_overhead: Duration,
    /// The elapsed time of a run of one millisecond.
    pub run: Duration,
    /// The elapsed time of a sleep of one millisecond.
    pub sleep: Duration,
}

/// Writes the precision of runs and sleeps.
///
/// # Errors
///
/// Those of `out`.
pub fn write_precision(out: &mut dyn Write, precision: &TimerPrecision) -> io::Result<()> {
    let nanos = |time: Duration| time.as_nanos();
    writeln!(
        out,
        "run measurement overhead: {} nsecs",
        nanos(precision.run_overhead)
    )?;
    writeln!(
        out,
        "sleep measurement overhead: {} nsecs",
        nanos(precision.sleep_overhead)
    )?;
    writeln!(out, "the run test took {} nsecs", nanos(precision.run))?;
    writeln!(out, "the sleep test took {} nsecs", nanos(precision.sleep))
}

/// Writes the counts of events, and a line for each task.
///
/// # Errors
///
/// Those of `out`.
pub fn write_plan(out: &mut dyn Write, plan: &ReplayPlan) -> io::Result<()> {
    let counts = &plan.counts;
    // Heading, count, and whether a count of 0 is shown. What perf calls multi-target wakeups are further wakeups of the same
    // sleep.
    let lines = [
        ("nr_run_events:", counts.runs, true),
        ("nr_sleep_events:", counts.sleeps, true),
        ("nr_wakeup_events:", counts.wakeups, true),
        ("target-less wakeups:", counts.targetless, false),
        ("multi-target wakeups:", counts.repeated, false),
    ];
    for (heading, count, is_shown_at_zero) in lines {
        if is_shown_at_zero || count > 0 {
            writeln!(out, "{heading:22}{count}")?;
        }
    }
    for (number, task) in plan.tasks.iter().enumerate() {
        let comm = String::from_utf8_lossy(&task.comm);
        writeln!(
            out,
            "task {number:6} ({comm:>20}:{:10}), nr_events: {}",
            task.tid, task.events
        )?;
    }
    writeln!(out, "{}", "-".repeat(60))
}

/// The number of repetitions so far, and the running averages of their times.
#[derive(Debug, Default)]
pub struct ReplayTimes {
    repetitions: u64,
    /// The running averages of the elapsed time and of the CPU time in nanoseconds; `None` before the first repetition.
    averages: Option<(f64, f64)>,
}

impl ReplayTimes {
    /// Writes the line of a repetition, which has a share of 1/`weight` in the running averages; the averages start with the
    /// times of the first repetition. As in perf, the weight is the planned number of repetitions; for an endless replay, it is
    /// the default number.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(
        &mut self,
        out: &mut dyn Write,
        elapsed: Duration,
        cpu_time: Duration,
        weight: u32,
    ) -> io::Result<()> {
        const MILLISECOND: f64 = 1e6;
        let nanos = |time: Duration| time.as_secs_f64() * 1e9;
        let (elapsed, cpu_time) = (nanos(elapsed), nanos(cpu_time));
        let weight = f64::from(weight.max(1));
        let average = |before: f64, now: f64| (before * (weight - 1.0) + now) / weight;
        let averages = match self.averages {
            None => (elapsed, cpu_time),
            Some((elapsed_before, cpu_before)) => (
                average(elapsed_before, elapsed),
                average(cpu_before, cpu_time),
            ),
        };
        self.averages = Some(averages);
        self.repetitions += 1;
        writeln!(
            out,
            "#{:<3}: {:.3}, ravg: {:.2}, cpu: {:.2} / {:.2}",
            self.repetitions,
            elapsed / MILLISECOND,
            averages.0 / MILLISECOND,
            cpu_time / MILLISECOND,
            averages.1 / MILLISECOND
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_weighted_by_the_planned_repetitions() {
        let mut times = ReplayTimes::default();
        let mut text = Vec::new();
        let millis = Duration::from_millis;
        let weight = 4;
        times
            .write(&mut text, millis(10), millis(4), weight)
            .unwrap();
        times
            .write(&mut text, millis(20), millis(8), weight)
            .unwrap();
        let expected = "#1  : 10.000, ravg: 10.00, cpu: 4.00 / 4.00\n\
            #2  : 20.000, ravg: 12.50, cpu: 8.00 / 5.00\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
