//! The summary below the rows of `sched timehist`.

use std::io::{self, Write};

use rperf_analysis::sched::timehist::{CpuIdle, TimeSummary, TimedTask};

use super::{Milliseconds, TimeTable};
use crate::digits;

impl TimeTable {
    /// Writes the sums of each task, then the idle times and totals. The idle times and totals are omitted if the options
    /// excluded tasks and `idle_only` is not set.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_summary(&mut self, out: &mut Vec<u8>, summary: &TimeSummary) -> io::Result<()> {
        self.write_titles(out)?;
        for task in &summary.running {
            self.write_sums(out, task)?;
        }
        if summary.running.is_empty() {
            writeln!(out, "<no still running tasks>")?;
        }
        writeln!(out, "\nTerminated tasks:")?;
        for task in &summary.terminated {
            self.write_sums(out, task)?;
        }
        if summary.terminated.is_empty() {
            writeln!(out, "<no terminated tasks>")?;
        }
        // The idle times and totals are incomplete if the options excluded tasks. With `idle_only` they are shown all the same,
        // as in perf.
        if summary.skipped > 0 && !self.columns.idle_only {
            return Ok(());
        }
        self.write_idle(out, summary)?;
        write_totals(out, summary)
    }

    /// Writes the title and the headings of the columns.
    fn write_titles(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let width = self.width;
        let (title, count_title, times) = if self.columns.idle_only {
            (
                "Idle-time summary",
                "sched-out",
                "  idle-time   min-idle    avg-idle    max-idle  stddev  migrations",
            )
        } else if self.columns.state {
            (
                "Wait-time summary",
                " sched-in",
                "   run-time      sleep      iowait     preempt       delay",
            )
        } else {
            (
                "Runtime summary",
                " sched-in",
                "   run-time    min-run     avg-run     max-run  stddev  migrations",
            )
        };
        // The unit of the column `stddev`, or of `delay` with states. As in perf, it does not depend on `idle_only`.
        let unit = match self.columns.state {
            true => "(msec)",
            false => "%",
        };
        writeln!(out, "\n{title}")?;
        writeln!(out, "{:>width$}  parent  {count_title}  {times}", "comm")?;
        write!(out, "{:>width$}            (count)  ", "")?;
        writeln!(
            out,
            "     (msec)     (msec)      (msec)      (msec)       {unit}"
        )?;
        writeln!(out, "{}", "-".repeat(117))
    }

    /// Writes the sums of a task. `times.run` is its total run time, and `times.runs` has the statistics of single runs. With
    /// `idle_only`, both are about the idle times after it was switched out. The column `stddev` is the relative standard error
    /// of the mean, as in perf.
    fn write_sums(&mut self, out: &mut Vec<u8>, timed: &TimedTask) -> io::Result<()> {
        let mut text = Vec::new();
        self.push_task(&mut text, &timed.task);
        digits::right(out, &text, self.width);
        let (times, parent) = (&timed.times, timed.task.parent);
        let runs = &times.runs;
        write!(
            out,
            "   {parent:5}  {:9} {} ",
            runs.count,
            // 8: the width before the decimal point.
            Milliseconds(times.run, 8)
        )?;
        let short = |nanos| Milliseconds(nanos, 6);
        if self.columns.state && !self.columns.idle_only {
            let wait = &times.wait;
            return writeln!(
                out,
                "{}  {}  {}  {} ",
                short(wait.sleep),
                short(wait.iowait),
                short(wait.preempt),
                short(times.delay)
            );
        }
        writeln!(
            out,
            "{}  {}  {}   {:5.2}   {:5}",
            short(runs.min),
            short(rounded_down(runs.mean)),
            short(runs.max),
            runs.relative_error(),
            times.migrations
        )
    }

    fn write_idle(&self, out: &mut Vec<u8>, summary: &TimeSummary) -> io::Result<()> {
        writeln!(out, "\nIdle stats:")?;
        for (cpu, idle) in &summary.idle {
            write_idle_cpu(out, *cpu, idle, summary.duration)?;
        }
        if !self.columns.idle_only || !self.columns.stacks {
            return Ok(());
        }
        writeln!(out, "\nIdle stats by callchain:")?;
        for (cpu, idle) in &summary.idle {
            writeln!(
                out,
                "  CPU {cpu:2}:{}  msec",
                Milliseconds(idle.times.run, 6)
            )?;
            writeln!(
                out,
                "  {:>16}  {:>8}  Callchains",
                "Idle time (msec)", "Count"
            )?;
            let rule = |length| "-".repeat(length);
            writeln!(out, "  {}  {}  {}", rule(16), rule(8), rule(50))?;
            for stack in &idle.stacks {
                let time = Milliseconds(stack.nanos, 12);
                writeln!(out, "  {time}  {:8}  {}", stack.count, stack.stack)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "as perf: 53 bits are enough for two decimals"
)]
fn write_idle_cpu(out: &mut Vec<u8>, cpu: u32, idle: &CpuIdle, duration: u64) -> io::Result<()> {
    let run = idle.times.run;
    if idle.times.runs.count > 0 {
        let percent = 100.0 * run as f64 / duration as f64;
        let time = Milliseconds(run, 6);
        return writeln!(
            out,
            "    CPU {cpu:2} idle for {time}  msec  ({percent:6.2}%)"
        );
    }
    match idle.has_run_tasks {
        true => writeln!(
            out,
            "    CPU {cpu:2} idle time unknown: no switch from the idle task was recorded"
        ),
        false => writeln!(out, "    CPU {cpu:2} idle entire time window"),
    }
}

fn write_totals(out: &mut Vec<u8>, summary: &TimeSummary) -> io::Result<()> {
    let tasks = summary.running.iter().chain(&summary.terminated);
    let (mut count, mut switches, mut run) = (0_u64, 0, 0);
    for task in tasks {
        count += 1;
        switches += task.times.runs.count;
        run = u64::saturating_add(run, task.times.run);
    }
    let idle = summary.idle.values();
    switches += idle.map(|idle| idle.times.runs.count).sum::<u64>();
    writeln!(out, "\n    Total number of unique tasks: {count}")?;
    writeln!(out, "Total number of context switches: {switches}")?;
    writeln!(
        out,
        "           Total run time (msec): {} ",
        Milliseconds(run, 2)
    )?;
    let duration = Milliseconds(summary.duration, 2);
    writeln!(
        out,
        "    Total scheduling time (msec): {duration}  (x {})",
        summary.cpu_count
    )
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean of numbers of 64 bits, rounded down as in perf"
)]
fn rounded_down(mean: f64) -> u64 {
    mean as u64
}
