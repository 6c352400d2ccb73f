//! The table of `sched latency`, in the layout of perf 6.1.

use std::io::{self, Write};

use rperf_analysis::sched::latency::{LatencyChecks, LatencyRow, LatencyTable};

use super::Seconds;

/// The width of the column of tasks.
const TASK_WIDTH: usize = 24;

/// Counts of lost records, for the lines below the table.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordLosses {
    /// The number of records of the file; 0 in a live summary, which has no file.
    pub records: u64,
    /// The number of records lost while recording; in a live summary, the number of waits for which its BPF map had no room.
    pub lost: u64,
    /// The number of `PERF_RECORD_LOST` records.
    pub chunks: u64,
}

/// Writes the table.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, table: &LatencyTable, losses: RecordLosses) -> io::Result<()> {
    let rule = |out: &mut dyn Write, length| writeln!(out, " {}", "-".repeat(length));
    writeln!(out)?;
    rule(out, 139)?;
    out.write_all(
        b"  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Max delay start           \
| Max delay end          |\n",
    )?;
    rule(out, 139)?;
    for row in &table.rows {
        write_row(out, row)?;
    }
    rule(out, 113)?;
    let total = table.sums();
    let (runtime, switches) = (milliseconds(total.runtime), total.switches);
    writeln!(
        out,
        "  TOTAL:                |{runtime:11.3} ms |{switches:9} |"
    )?;
    rule(out, 51)?;
    write_checks(out, &table.checks, losses)?;
    writeln!(out)
}

fn write_row(out: &mut dyn Write, row: &LatencyRow) -> io::Result<()> {
    let suffix = match row.tasks {
        1 => row.tid.to_string(),
        tasks => format!("({tasks})"),
    };
    out.write_all(b"  ")?;
    out.write_all(&row.comm)?;
    write!(out, ":{suffix} ")?;
    // Two blanks before the name, the colon, and the blank after the suffix.
    let used = row.comm.len() + suffix.len() + 4;
    let padding = TASK_WIDTH.saturating_sub(used);
    let sums = &row.sums;
    writeln!(
        out,
        "{:padding$}|{:11.3} ms |{:9} | avg:{:8.3} ms | max:{:8.3} ms | max start: {:>12} s | max end: {:>12} s",
        "",
        milliseconds(sums.runtime),
        sums.switches,
        milliseconds(sums.average()),
        milliseconds(sums.max_delay),
        Seconds(sums.max_start),
        Seconds(sums.max_end),
    )
}

fn write_checks(
    out: &mut dyn Write,
    checks: &LatencyChecks,
    losses: RecordLosses,
) -> io::Result<()> {
    let LatencyChecks {
        wakeups,
        unordered_wakeups,
        mismatched_switches,
    } = *checks;
    if unordered_wakeups > 0 {
        let percent = percent(unordered_wakeups, wakeups);
        writeln!(
            out,
            "  INFO: {percent:.3}% unordered timestamps ({unordered_wakeups} out of {wakeups})"
        )?;
    }
    write_losses(out, losses)?;
    if mismatched_switches > 0 && wakeups > 0 {
        let percent = percent(mismatched_switches, wakeups);
        let cause = match losses.lost {
            0 => "",
            _ => " (due to lost events?)",
        };
        writeln!(
            out,
            "  INFO: {percent:.3}% context switch bugs ({mismatched_switches} out of {wakeups}){cause}"
        )?;
    }
    Ok(())
}

/// Writes the line about lost records; nothing if no record was lost or the number of records is 0.
///
/// # Errors
///
/// Those of `out`.
pub fn write_losses(out: &mut dyn Write, losses: RecordLosses) -> io::Result<()> {
    let RecordLosses {
        records,
        lost,
        chunks,
    } = losses;
    if lost == 0 || records == 0 {
        return Ok(());
    }
    let percent = percent(lost, records);
    writeln!(
        out,
        "  INFO: {percent:.3}% lost events ({lost} out of {records}, in {chunks} chunks)"
    )
}

#[expect(
    clippy::cast_precision_loss,
    reason = "as perf: 53 bits are enough for three decimals"
)]
fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[expect(
    clippy::cast_precision_loss,
    reason = "as perf: 53 bits are enough for three decimals"
)]
fn percent(part: u64, all: u64) -> f64 {
    part as f64 / all as f64 * 100.0
}
