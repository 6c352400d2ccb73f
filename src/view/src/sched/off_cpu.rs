//! The time that tasks do not run, as a table with stacks and as JSON, for `sched off-cpu`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rperf_analysis::Sleep;
use rperf_analysis::sched::off_cpu::{
    NamedSwitchStacks, OffCpuRow, OffCpuState, OffCpuTable, OffCpuTime, OffCpuWaker,
};
use rperf_names::counted;
use serde_json::{Value, json};

use super::delays::milliseconds;
use crate::percent::Percent;
use crate::table::{Cell, Column, Table, TextStyle};

/// The version of the JSON object; it changes if a key is removed or gets another meaning.
pub const OFF_CPU_JSON_VERSION: u32 = 1;

/// The times to print, with the names of the stacks' functions, and the limits of the text output.
#[derive(Debug, Clone, Copy)]
pub struct OffCpuView<'t> {
    /// The times by task, state and stacks.
    pub table: &'t OffCpuTable,
    /// The stacks of `table`, with the names of their functions.
    pub stacks: &'t NamedSwitchStacks,
    /// The number of rows that are listed with their stacks in text; 0 for all.
    pub max_rows: usize,
    /// The maximum number of frames of a stack in text.
    pub frames: usize,
}

/// Returns the description of a state: `interruptible sleep`, `run queue (preempted)`.
#[must_use]
pub fn state_name(state: OffCpuState) -> &'static str {
    match state {
        OffCpuState::Sleeping(Sleep::Interruptible) => "interruptible sleep",
        OffCpuState::Sleeping(Sleep::Uninterruptible) => "uninterruptible sleep",
        OffCpuState::Sleeping(Sleep::Stopped) => "stopped",
        OffCpuState::Sleeping(Sleep::Traced) => "stopped by a debugger",
        OffCpuState::Sleeping(Sleep::Parked) => "parked",
        OffCpuState::Sleeping(Sleep::Idle) => "idle kernel thread",
        OffCpuState::Sleeping(Sleep::Other) => "other sleep",
        OffCpuState::Woken => "run queue (woken)",
        OffCpuState::Preempted => "run queue (preempted)",
    }
}

impl OffCpuView<'_> {
    /// Writes the sums by task name and state, then the rows with most time, with their stacks. Times are in milliseconds.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.sums_by_task_and_state()
            .write_text(out, TextStyle::PLAIN)?;
        let all_rows = &self.table.rows;
        let listed_count = match self.max_rows {
            0 => all_rows.len(),
            limit => limit.min(all_rows.len()),
        };
        let (listed, hidden) = all_rows.split_at(listed_count);
        let total = total_nanos(all_rows);
        for row in listed {
            self.write_row(out, row, total)?;
        }
        if !hidden.is_empty() {
            let (rows, time) = (hidden.len(), milliseconds(total_nanos(hidden)));
            writeln!(out, "\n{time} ms in {rows} more rows; --rows 0 lists all")?;
        }
        Ok(())
    }

    /// Returns the sums by task name and state, the largest first.
    fn sums_by_task_and_state(&self) -> Table {
        let mut sums: BTreeMap<(&[u8], OffCpuState), OffCpuTime> = BTreeMap::new();
        for row in &self.table.rows {
            let sum = sums.entry((&row.comm, row.state)).or_default();
            sum.count += row.time.count;
            sum.nanos = sum.nanos.saturating_add(row.time.nanos);
            sum.max = sum.max.max(row.time.max);
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.nanos));
        let total = total_nanos(&self.table.rows);
        let numbers = ["Waits", "Time ms", "Mean ms", "Max ms", "Share"];
        let columns = ["Task", "State"].into_iter().map(Column::left);
        let columns = columns.chain(numbers.map(Column::right));
        let mut table = Table::new(columns.collect::<Vec<_>>());
        for ((comm, state), sum) in sums {
            let mean = sum.nanos.checked_div(sum.count).unwrap_or_default();
            table.push([
                text(comm).into(),
                state_name(state).into(),
                sum.count.into(),
                milliseconds(sum.nanos).into(),
                milliseconds(mean).into(),
                milliseconds(sum.max).into(),
                Cell::share(sum.nanos, total),
            ]);
        }
        table
    }

    /// Writes a row with its stacks. `total` is the time of all rows in nanoseconds.
    fn write_row(&self, out: &mut dyn Write, row: &OffCpuRow, total: u64) -> io::Result<()> {
        let OffCpuTime { count, nanos, max } = row.time;
        let share = Percent::of(nanos, total).to_string();
        writeln!(
            out,
            "\n{} ms ({}) in {}, longest {} ms: {}, {}",
            milliseconds(nanos),
            share.trim_start(),
            counted(count, "wait"),
            milliseconds(max),
            text(&row.comm),
            state_name(row.state),
        )?;
        self.write_stack(out, row.stack)?;
        for OffCpuWaker { comm, stack } in &row.wakers {
            match comm {
                Some(comm) => writeln!(out, "  woken by {}", text(comm))?,
                // Or by an idle task: its wakeups count as those of an interrupt.
                None => writeln!(out, "  woken by an interrupt")?,
            }
            self.write_stack(out, *stack)?;
        }
        Ok(())
    }

    /// Writes the functions of a stack, innermost first, up to the limit of frames; nothing for an empty stack. `stack` is its
    /// index in `stacks`, and `self.frames` the limit.
    fn write_stack(&self, out: &mut dyn Write, stack: usize) -> io::Result<()> {
        let frames = self.stacks.frames(stack).take(self.frames);
        let names: Vec<&str> = frames.map(|frame| frame.name.as_str()).collect();
        match names.is_empty() {
            true => Ok(()),
            false => writeln!(out, "    {}", names.join(" <- ")),
        }
    }

    /// Writes an object with all rows. Times are in nanoseconds, stacks have the innermost function first, and the name of a
    /// waker is `null` for an interrupt or an idle task. `lost` is the number of records lost while recording.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn Write, lost: u64) -> io::Result<()> {
        write!(
            out,
            "{{\"version\":{OFF_CPU_JSON_VERSION},\"lost_records\":{lost},\"rows\":["
        )?;
        for (number, row) in self.table.rows.iter().enumerate() {
            out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
            serde_json::to_writer(&mut *out, &self.json_row(row))?;
        }
        out.write_all(b"]}\n")
    }

    fn json_row(&self, row: &OffCpuRow) -> Value {
        let wakers = row.wakers.iter().map(|waker| {
            json!({
                "comm": waker.comm.as_deref().map(text),
                "stack": self.names(waker.stack),
            })
        });
        json!({
            "comm": text(&row.comm),
            "state": state_name(row.state),
            "waits": row.time.count,
            "time_ns": row.time.nanos,
            "max_ns": row.time.max,
            "stack": self.names(row.stack),
            "wakers": wakers.collect::<Vec<_>>(),
        })
    }

    /// Returns the names of all functions of a stack, innermost first. `stack` is its index in `stacks`.
    fn names(&self, stack: usize) -> Vec<&str> {
        let frames = self.stacks.frames(stack);
        frames.map(|frame| frame.name.as_str()).collect()
    }
}

/// Returns the total time of some rows in nanoseconds.
fn total_nanos(rows: &[OffCpuRow]) -> u64 {
    let times = rows.iter().map(|row| row.time.nanos);
    times.fold(0, u64::saturating_add)
}

fn text(comm: &[u8]) -> String {
    String::from_utf8_lossy(comm).into_owned()
}
