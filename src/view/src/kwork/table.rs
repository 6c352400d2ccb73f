//! The tables of `kwork report` and `kwork latency`.

use std::io::{self, Write};

use rperf_analysis::kwork::{KworkRow, KworkTable, KworkTimes, SkippedEvents};

use super::{milliseconds, percent, push_work};
use crate::sched::Seconds;
use crate::sched::latency::{RecordLosses, write_losses};

/// The length of the rule (a line of hyphens) above and below the rows.
const RULE: usize = 128;

/// The type of the times in rows: run times in `kwork report`, delays in `kwork latency`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KworkColumns {
    /// Run times, with their sum.
    Runtime,
    /// Delays, with their mean.
    Delay,
}

impl KworkColumns {
    fn titles(self) -> &'static str {
        match self {
            Self::Runtime => {
                "| Total Runtime | Count     | Max runtime   | Max runtime start   | Max runtime end     |"
            }
            Self::Delay => {
                "| Avg delay     | Count     | Max delay     | Max delay start     | Max delay end       |"
            }
        }
    }

    /// Returns the time in the first column of times, in milliseconds: the sum of run times, or the mean delay.
    fn first(self, times: &KworkTimes) -> f64 {
        match self {
            Self::Runtime => milliseconds(times.total),
            // As in perf, the mean is not rounded to nanoseconds: it is only rounded when it is printed.
            Self::Delay => times.total as f64 / times.count.max(1) as f64 / 1e6,
        }
    }
}

/// Writes the table. `with_summary` adds the sums over all rows, and the time span.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    table: &KworkTable,
    columns: KworkColumns,
    with_summary: bool,
    losses: RecordLosses,
) -> io::Result<()> {
    let titles = columns.titles();
    writeln!(out, "\n  {:<30} | {:<4} {titles}", "Kwork Name", "Cpu")?;
    write_rule(out)?;
    let mut line = Vec::new();
    for row in &table.rows {
        line.clear();
        write_row(&mut line, row, columns)?;
        out.write_all(&line)?;
    }
    write_rule(out)?;
    if with_summary {
        write_summary(out, table)?;
        write_rule(out)?;
    }
    write_losses(out, losses)?;
    write_skipped(out, table.skipped, losses.records)?;
    writeln!(out)
}

fn write_rule(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, " {}", "-".repeat(RULE))
}

fn write_row(line: &mut Vec<u8>, row: &KworkRow, columns: KworkColumns) -> io::Result<()> {
    let times = &row.times;
    line.extend(b"  ");
    push_work(line, &row.work);
    writeln!(
        line,
        " | {:04} | {:10.3} ms | {:9} | {:10.3} ms | {:>17} s | {:>17} s |",
        row.work.cpu,
        columns.first(times),
        times.count,
        milliseconds(times.max),
        Seconds(times.max_start),
        Seconds(times.max_end),
    )
}

/// Writes the sums over all rows. Only `kwork report` has them, so the times are run times. As in perf, their percentage
/// of the time span is called load average.
fn write_summary(out: &mut dyn Write, table: &KworkTable) -> io::Result<()> {
    let all_times = table.rows.iter().map(|row| &row.times);
    let count: u64 = all_times.clone().map(|times| times.count).sum();
    let total = all_times.fold(0, |sum: u64, times| sum.saturating_add(times.total));
    writeln!(out, "  Total count            : {count:9}")?;
    let (runtime, load) = (milliseconds(total), percent(total, table.measured_time));
    writeln!(
        out,
        "  Total runtime   (msec) : {runtime:9.3} ({load:.3}% load average)"
    )?;
    let span = milliseconds(table.measured_time);
    writeln!(out, "  Total time span (msec) : {span:9.3}")
}

/// Writes how many events have no counterpart, and their percentage of all records of the file.
fn write_skipped(out: &mut dyn Write, skipped: SkippedEvents, records: u64) -> io::Result<()> {
    let sum = skipped.sum();
    if sum == 0 || records == 0 {
        return Ok(());
    }
    let percent = percent(sum, records);
    let SkippedEvents { raise, entry, exit } = skipped;
    writeln!(
        out,
        "  INFO: {percent:.3}% skipped events ({sum} including {raise} raise, {entry} entry, {exit} exit)"
    )
}
