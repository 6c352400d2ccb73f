//! The rows of `sched timehist`, in the layout of perf 6.1.

mod summary;

use std::io::{self, Write};

use rperf_analysis::sched::SchedTask;
use rperf_analysis::sched::timehist::{TimeEvent, TimeRow};

use super::{MICROSECOND, Seconds, push_seconds};
use crate::digits;

/// The initial width of the column of tasks.
const TASK_WIDTH: usize = 30;
/// The maximum length of a task's text, as in perf.
const MAX_TASK: usize = 31;
/// The maximum length of the next task's text, including `next: `, as in perf.
const MAX_NEXT: usize = 29;

/// Blanks in place of the three times that the row of every switch has, and one more blank, as in perf.
const NO_TIMES: &[u8; 34] = &[b' '; 34];

/// The optional columns and rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeColumns {
    /// A column with one character per CPU, which marks the CPU of the row (`-V`).
    pub cpus: bool,
    /// Priorities.
    pub priority: bool,
    /// The time from each wakeup to the task's first migration after it.
    pub before_migration: bool,
    /// States of the tasks that are switched out. The summary then has wait times by state, unless `idle_only` is set.
    pub state: bool,
    /// The next task.
    pub next: bool,
    /// Whether wakeups are shown.
    pub wakeups: bool,
    /// Stacks.
    pub stacks: bool,
    /// Whether the summary has idle times instead of run times (`--idle-hist`).
    pub idle_only: bool,
}

/// Writes the rows. The column of tasks grows to the longest text of a task so far, as in perf.
#[derive(Debug)]
pub struct TimeTable {
    columns: TimeColumns,
    /// The width of the column of tasks.
    width: usize,
    /// How many CPUs there are, or the highest CPU id seen if that is higher.
    cpus: u32,
}

impl TimeTable {
    /// Creates the table for a machine with this number of CPUs.
    #[must_use]
    pub fn new(columns: TimeColumns, cpus: u32) -> Self {
        Self {
            columns,
            width: TASK_WIDTH,
            cpus,
        }
    }

    /// The width of the column with one character per CPU: one more than `cpus`, as in perf.
    fn cpu_column_width(&self) -> usize {
        self.cpus as usize + 1
    }

    /// Writes the three lines above the rows.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_header(&self, out: &mut dyn Write) -> io::Result<()> {
        let (columns, width) = (self.columns, self.width);
        write!(out, "{:>15} {:>6} ", "time", "cpu")?;
        if columns.cpus {
            let last_digits = (0..self.cpu_column_width()).map(|cpu| format!("{:x}", cpu % 16));
            write!(out, " {} ", last_digits.collect::<String>())?;
        }
        write!(out, " {:<width$}", "task name")?;
        if columns.priority {
            write!(out, "  {:<8}", "prio")?;
        }
        write!(
            out,
            "  {:>9}  {:>9}  {:>9}",
            "wait time", "sch delay", "run time"
        )?;
        if columns.before_migration {
            write!(out, "  pre-mig time")?;
        }
        if columns.state {
            write!(out, "  state")?;
        }
        write!(out, "\n{:>15} {:<6} ", "", "")?;
        if columns.cpus {
            write!(out, " {:1$} ", "", self.cpu_column_width())?;
        }
        write!(out, " {:<width$}", "[tid/pid]")?;
        if columns.priority {
            write!(out, "  {:<8}", "")?;
        }
        write!(out, "  {:>9}  {:>9}  {:>9}", "(msec)", "(msec)", "(msec)")?;
        if columns.before_migration {
            write!(out, "  {:>9}", "(msec)")?;
        }
        if columns.state {
            write!(out, "  {:>5}", "")?;
        }
        let rule = |length| "-".repeat(length);
        write!(out, "\n{} {} ", rule(15), rule(6))?;
        if columns.cpus {
            write!(out, " {} ", rule(self.cpu_column_width()))?;
        }
        write!(out, " {}", rule(width))?;
        if columns.priority {
            write!(out, "  {}", rule(8))?;
        }
        write!(out, "  {0}  {0}  {0}", rule(9))?;
        if columns.before_migration {
            write!(out, "  {}", rule(9))?;
        }
        if columns.state {
            write!(out, "  {}", rule(5))?;
        }
        writeln!(out)
    }

    /// Writes a row.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_row(&mut self, out: &mut Vec<u8>, row: &TimeRow<'_>) -> io::Result<()> {
        self.cpus = self.cpus.max(row.cpu);
        push_seconds(out, row.time, 15);
        out.extend(b" [");
        digits::decimal_zeros(out, u64::from(row.cpu), 4);
        out.extend(b"] ");
        if self.columns.cpus {
            self.write_cpu_column(out, row)?;
        }
        out.push(b' ');
        self.write_task(out, row.task);
        out.push(b' ');
        match &row.event {
            TimeEvent::SwitchedOut { .. } => self.write_switch(out, row)?,
            TimeEvent::Woke(task) => {
                out.extend(NO_TIMES);
                out.extend(b"awakened: ");
                self.push_task(out, task);
            }
            TimeEvent::Migrated { task, from, to } => {
                out.extend(NO_TIMES);
                out.extend(b"migrated: ");
                self.push_task(out, task);
                write!(out, " cpu {from} => {to}")?;
            }
        }
        out.push(b'\n');
        Ok(())
    }

    /// Writes a line about lost records; an unknown CPU is printed as -1.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_lost(
        &self,
        out: &mut Vec<u8>,
        time: u64,
        cpu: Option<u32>,
        records: u64,
    ) -> io::Result<()> {
        let cpu = cpu.map_or(-1, i64::from);
        let time = Seconds(time);
        writeln!(out, "{time:>15} lost {records} events on cpu {cpu}")
    }

    fn write_cpu_column(&self, out: &mut Vec<u8>, row: &TimeRow<'_>) -> io::Result<()> {
        // perf writes the column with two blanks on each side in the rows of migrations, with one in the others.
        let (mark, space) = match row.event {
            TimeEvent::SwitchedOut { .. } if row.task.tid == 0 => ('i', " "),
            TimeEvent::SwitchedOut { .. } => ('s', " "),
            TimeEvent::Woke(_) => (' ', " "),
            TimeEvent::Migrated { .. } => ('m', "  "),
        };
        let before = row.cpu as usize;
        let after = self.cpu_column_width().saturating_sub(before + 1);
        write!(out, "{space}{:before$}{mark}{:after$}{space}", "", "")
    }

    /// Writes the rest of a row of a switch; nothing for other events.
    fn write_switch(&self, out: &mut Vec<u8>, row: &TimeRow<'_>) -> io::Result<()> {
        let TimeEvent::SwitchedOut {
            times,
            state,
            priority,
            next_comm,
            next_tid,
            stack,
        } = row.event
        else {
            return Ok(());
        };
        if self.columns.priority {
            write!(out, " {priority:<8} ")?;
        }
        for time in [times.wait.sum(), times.delay, times.run] {
            push_milliseconds(out, time);
        }
        if self.columns.before_migration {
            push_milliseconds(out, times.before_migration);
        }
        if self.columns.state {
            write!(out, " {state:>5} ")?;
        }
        let width = self.width;
        if self.columns.next {
            let mut next = b"next: ".to_vec();
            next.extend(next_comm);
            push_id(&mut next, b'[', next_tid);
            next.push(b']');
            next.truncate(MAX_NEXT);
            out.push(b' ');
            digits::left(out, &next, width);
        } else if self.columns.wakeups {
            // As in perf: if wakeups are shown without next tasks, rows of switches have blanks in place of the next task.
            digits::blanks(out, width + 2);
        }
        if row.task.tid != 0 && self.columns.stacks {
            out.extend(b"  ");
            out.extend(stack.as_bytes());
        }
        Ok(())
    }

    /// Writes a task, padded to the width of its column.
    fn write_task(&mut self, out: &mut Vec<u8>, task: &SchedTask) {
        let start = out.len();
        self.push_task(out, task);
        let length = out.len() - start;
        digits::blanks(out, self.width - length);
    }

    /// Appends a task as `comm[tid/pid]`, without `/pid` for a main thread, and without ids if the process id is 0. Widens the
    /// column of tasks if the text is longer.
    fn push_task(&mut self, out: &mut Vec<u8>, task: &SchedTask) {
        let SchedTask { tid, pid, comm, .. } = task;
        let start = out.len();
        out.extend_from_slice(comm);
        if *pid != 0 {
            push_id(out, b'[', *tid);
            if tid != pid {
                push_id(out, b'/', *pid);
            }
            out.push(b']');
        }
        out.truncate(start + MAX_TASK);
        self.width = self.width.max(out.len() - start);
    }
}

/// Appends `mark` and an id.
fn push_id(out: &mut Vec<u8>, mark: u8, id: i32) {
    out.push(mark);
    digits::signed(out, id.cast_unsigned(), 0);
}

/// Appends nanoseconds as milliseconds with three decimals, rounded down, and a blank.
fn push_milliseconds(out: &mut Vec<u8>, nanos: u64) {
    let micros = nanos / MICROSECOND;
    digits::decimal(out, micros / 1000, 6);
    out.push(b'.');
    digits::decimal_zeros(out, micros % 1000, 3);
    out.push(b' ');
}

/// A time in nanoseconds, shown in milliseconds with three decimals, rounded down. The second field is the width of the integer
/// part.
struct Milliseconds(u64, usize);

impl std::fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(nanos, width) = *self;
        let micros = nanos / MICROSECOND;
        write!(f, "{:width$}.{:03}", micros / 1000, micros % 1000)
    }
}
