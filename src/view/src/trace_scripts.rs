//! The tables of perf's trace scripts.

mod packets;
mod tasks;

use std::io::{self, Write};

use rperf_analysis::trace_scripts::{
    CompactionTimes, CompactionTotals, FailedByComm, FailedByTask, FileIo, FutexWaits, IoSums,
    MemoryRow, SyscallCounts, SyscallsByTask, TaskReadWrite, WakeupLatencies, sum,
};
use rperf_syscalls::error_name;

pub use self::packets::{PacketLayout, write_packets};
pub use self::tasks::{
    TASK_COLORS, TaskLayout, TaskUnit, write_task_runs, write_task_runs_csv, write_task_summary,
    write_task_summary_csv,
};

/// A function that returns the name of the system call with the given number.
pub type SyscallName<'n> = &'n dyn Fn(i64) -> String;

/// Writes the regions of physical memory with their shares of `total` samples of an event.
///
/// # Errors
/// Those of `out`.
pub fn write_memory_regions(
    out: &mut dyn Write,
    event: &str,
    rows: &[MemoryRow<'_>],
    total: u64,
) -> io::Result<()> {
    writeln!(out, "Event: {event}")?;
    writeln!(
        out,
        "{:<40}  {:>10}  {:>10}",
        "Memory type", "count", "percentage"
    )?;
    writeln!(
        out,
        "{}  {}  {}",
        "-".repeat(40),
        "-".repeat(10),
        "-".repeat(10)
    )?;
    for MemoryRow { region, count } in rows {
        let (begin, end, label) = (region.begin, region.end, &region.label);
        let name = format!(
            "{:indent$}{begin:x}-{end:x} : {label}",
            "",
            indent = region.indent
        );
        let percent = *count as f64 * 100.0 / total as f64;
        writeln!(out, "{name:<40}  {count:>10}  {percent:>10.1}")?;
    }
    Ok(())
}

/// Writes the number of calls of each system call. `rule` is the number of dashes below the title of the counts; it
/// differs between perf's scripts.
///
/// # Errors
/// Those of `out`.
pub fn write_syscall_counts(
    out: &mut dyn Write,
    counts: &SyscallCounts,
    name: SyscallName<'_>,
    rule: usize,
) -> io::Result<()> {
    match counts.tasks.comm() {
        Some(comm) => writeln!(out, "\nsyscall events for {comm}:\n")?,
        None => writeln!(out, "\nsyscall events:\n")?,
    }
    writeln!(out, "{:<40}  {:>10}", "event", "count")?;
    writeln!(out, "{}  {}", "-".repeat(40), "-".repeat(rule))?;
    for (id, count) in counts.counts.by_count() {
        writeln!(out, "{:<40}  {count:>10}", name(id))?;
    }
    Ok(())
}

/// Writes the number of calls of each system call for each task.
///
/// # Errors
/// Those of `out`.
pub fn write_syscalls_by_task(
    out: &mut dyn Write,
    counts: &SyscallsByTask,
    name: SyscallName<'_>,
) -> io::Result<()> {
    match counts.tasks.comm() {
        Some(comm) => writeln!(out, "\nsyscall events for {comm}:\n")?,
        None => writeln!(out, "\nsyscall events by comm/pid:\n")?,
    }
    writeln!(out, "{:<40}  {:>10}", "comm [pid]/syscalls", "count")?;
    writeln!(out, "{}  {}", "-".repeat(40), "-".repeat(10))?;
    for (comm, pids) in counts.counts.iter() {
        for (pid, calls) in pids.iter() {
            writeln!(out, "\n{comm} [{pid}]")?;
            for (id, count) in calls.by_count() {
                writeln!(out, "  {:<38}  {count:>10}", name(id))?;
            }
        }
    }
    Ok(())
}

/// Writes the number of failed calls by name of the task.
///
/// # Errors
/// Those of `out`.
pub fn write_failed_by_comm(out: &mut dyn Write, failed: &FailedByComm) -> io::Result<()> {
    writeln!(out, "\nfailed syscalls by comm:\n")?;
    writeln!(out, "{:<20}  {:>10}", "comm", "# errors")?;
    // perf's line ends with blanks.
    writeln!(
        out,
        "{}  {}{}",
        "-".repeat(20),
        "-".repeat(10),
        " ".repeat(12)
    )?;
    for (comm, count) in failed.rows() {
        writeln!(out, "{comm:<20}  {count:>10}")?;
    }
    Ok(())
}

/// Writes the number of failed calls by error, for each system call of each task.
///
/// # Errors
/// Those of `out`.
pub fn write_failed_by_task(
    out: &mut dyn Write,
    failed: &FailedByTask,
    name: SyscallName<'_>,
) -> io::Result<()> {
    match failed.tasks.comm() {
        Some(comm) => writeln!(out, "\nsyscall errors for {comm}:\n")?,
        None => writeln!(out, "\nsyscall errors:\n")?,
    }
    writeln!(out, "{:<30}  {:>10}", "comm [pid]", "count")?;
    writeln!(out, "{}  {}", "-".repeat(30), "-".repeat(10))?;
    for (comm, pids) in failed.counts.iter() {
        for (pid, calls) in pids.iter() {
            writeln!(out, "\n{comm} [{pid}]")?;
            for (id, results) in calls.iter() {
                writeln!(out, "  syscall: {:<16}", name(*id))?;
                for (result, count) in results.by_count() {
                    let number = u32::try_from(result.unsigned_abs()).unwrap_or(u32::MAX);
                    let error = error_name(number)
                        .map_or_else(|| format!("Unknown {result} errno"), str::to_owned);
                    writeln!(out, "    err = {error:<20}  {count:>10}")?;
                }
            }
        }
    }
    Ok(())
}

/// Writes the reads and writes of each thread (`pid` in the table), and those that returned 0 or an error, which perf's script
/// counts as failed.
///
/// # Errors
/// Those of `out`.
pub fn write_io_by_task(out: &mut dyn Write, io: &TaskReadWrite) -> io::Result<()> {
    writeln!(out, "read counts by pid:\n")?;
    writeln!(
        out,
        "{:>6}  {:>20}  {:>10}  {:>10}  {:>10}",
        "pid", "comm", "# reads", "bytes_requested", "bytes_read"
    )?;
    rules(out, &[6, 20, 11, 10, 10])?;
    write_reads(out, io)?;
    writeln!(out, "\nfailed reads by pid:\n")?;
    write_failed_io(out, &io.failed_reads())?;
    writeln!(out, "\nwrite counts by pid:\n")?;
    writeln!(
        out,
        "{:>6}  {:>20}  {:>10}  {:>10}",
        "pid", "comm", "# writes", "bytes_written"
    )?;
    rules(out, &[6, 20, 11, 10])?;
    write_writes(out, io)?;
    writeln!(out, "\nfailed writes by pid:\n")?;
    write_failed_io(out, &io.failed_writes())
}

/// Writes the threads (`pid` in the table) that read the most bytes, and those that requested to write the most: at most
/// `lines` each. As in perf, the column `bytes_written` has the requested bytes.
///
/// # Errors
/// Those of `out`.
pub fn write_top_io(out: &mut dyn Write, io: &TaskReadWrite, lines: usize) -> io::Result<()> {
    writeln!(out, "read counts by pid:\n")?;
    writeln!(
        out,
        "{:>6}  {:>20}  {:>10}  {:>10}  {:>10}",
        "pid", "comm", "# reads", "bytes_req", "bytes_read"
    )?;
    rules(out, &[6, 20, 10, 10, 10])?;
    for (pid, totals) in io.reads().into_iter().take(lines) {
        write_read(out, pid, totals)?;
    }
    writeln!(out, "\nwrite counts by pid:\n")?;
    writeln!(
        out,
        "{:>6}  {:>20}  {:>10}  {:>13}",
        "pid", "comm", "# writes", "bytes_written"
    )?;
    rules(out, &[6, 20, 10, 13])?;
    for (pid, totals) in io.writes().into_iter().take(lines) {
        let (comm, calls, bytes) = (&totals.comm, totals.calls, totals.requested);
        writeln!(out, "{pid:>6}  {comm:<20}  {calls:>10}  {bytes:>13}")?;
    }
    Ok(())
}

/// Writes a line for each thread with reads.
fn write_reads(out: &mut dyn Write, io: &TaskReadWrite) -> io::Result<()> {
    let mut rows = io.reads().into_iter();
    rows.try_for_each(|(pid, totals)| write_read(out, pid, totals))
}

fn write_read(out: &mut dyn Write, pid: i64, totals: &IoSums) -> io::Result<()> {
    writeln!(
        out,
        "{pid:>6}  {:<20}  {:>10}  {:>10}  {:>10}",
        totals.comm, totals.calls, totals.requested, totals.transferred
    )
}

/// Writes a line for each thread with writes. As in perf, the column `bytes_written` has the requested bytes.
fn write_writes(out: &mut dyn Write, io: &TaskReadWrite) -> io::Result<()> {
    for (pid, totals) in io.writes() {
        let (comm, calls, bytes) = (&totals.comm, totals.calls, totals.requested);
        writeln!(out, "{pid:>6}  {comm:<20}  {calls:>10}  {bytes:>10}")?;
    }
    Ok(())
}

/// Writes a table of thread ids, names, results and numbers of calls with this result.
fn write_failed_io(out: &mut dyn Write, rows: &[(i64, &str, i64, u64)]) -> io::Result<()> {
    writeln!(
        out,
        "{:>6}  {:>20}  {:>6}  {:>10}",
        "pid", "comm", "error #", "# errors"
    )?;
    rules(out, &[6, 20, 6, 10])?;
    for (pid, comm, result, count) in rows {
        writeln!(out, "{pid:>6}  {comm:<20}  {result:>6}  {count:>10}")?;
    }
    Ok(())
}

/// Writes reads and writes of the tasks of one name, by file descriptor. As in perf, the column `bytes_written` has the requested
/// bytes.
///
/// # Errors
/// Those of `out`.
pub fn write_io_by_file(out: &mut dyn Write, io: &FileIo) -> io::Result<()> {
    for (verb, titles, rows) in [
        ("read", ["# reads", "bytes_requested"], io.reads()),
        ("write", ["# writes", "bytes_written"], io.writes()),
    ] {
        let blank = if verb == "read" { "" } else { "\n" };
        writeln!(out, "{blank}file {verb} counts for {}:\n", io.comm)?;
        let [calls, bytes] = titles;
        writeln!(out, "{:>6}  {calls:>10}  {bytes:>10}", "fd")?;
        rules(out, &[6, 10, 11])?;
        for (fd, totals) in rows {
            writeln!(
                out,
                "{fd:>6}  {:>10}  {:>10}",
                totals.calls, totals.requested
            )?;
        }
    }
    Ok(())
}

/// Writes number, average, minimum and maximum of wakeup latencies.
///
/// # Errors
/// Those of `out`.
pub fn write_wakeups(out: &mut dyn Write, wakeups: &WakeupLatencies) -> io::Result<()> {
    writeln!(out, "wakeup_latency stats:\n")?;
    writeln!(out, "total_wakeups: {}", wakeups.count)?;
    match wakeups.count {
        0 => writeln!(out, "avg_wakeup_latency (ns): N/A")?,
        count => writeln!(
            out,
            "avg_wakeup_latency (ns): {}",
            wakeups.total.div_euclid(count)
        )?,
    }
    writeln!(out, "min_wakeup_latency (ns): {}", wakeups.min)?;
    writeln!(out, "max_wakeup_latency (ns): {}", wakeups.max)
}

/// Writes the waits of each thread for each futex.
///
/// # Errors
/// Those of `out`.
pub fn write_futexes(out: &mut dyn Write, futexes: &FutexWaits) -> io::Result<()> {
    for (comm, tid, futex, waits) in futexes.rows() {
        writeln!(
            out,
            "{comm}[{tid}] lock {futex:x} contended {} times, {} avg ns [max: {} ns, min {} ns]",
            waits.count,
            waits.average.trunc(),
            waits.max,
            waits.min
        )?;
    }
    Ok(())
}

/// The details of compactions that are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionLayout {
    /// Whether each thread (perf's script says process) has a line.
    pub by_thread: bool,
    /// Whether each compaction has a line, too; only with `by_thread`.
    pub each_compaction: bool,
    /// Whether times are in microseconds instead of nanoseconds.
    pub microseconds: bool,
    /// Whether the numbers of pages that were moved, and that could not be moved, are shown.
    pub moved: bool,
    /// Whether the numbers of pages of the free scanner are shown.
    pub free_scanner: bool,
    /// Whether the numbers of pages of the migration scanner are shown.
    pub migration_scanner: bool,
}

/// Writes the time of compactions and the numbers of their pages.
///
/// # Errors
/// Those of `out`.
pub fn write_compactions(
    out: &mut dyn Write,
    times: &CompactionTimes,
    layout: CompactionLayout,
) -> io::Result<()> {
    let all = times.tasks().flat_map(|(_, task)| &task.each);
    writeln!(out, "total: {}", compaction_text(&sum(all), layout))?;
    if !layout.by_thread {
        return Ok(());
    }
    for (pid, task) in times.tasks() {
        let comm = &task.comm;
        let text = compaction_text(&task.total(), layout);
        writeln!(out, "{pid}[{comm}]: {text}")?;
        if !layout.each_compaction {
            continue;
        }
        for (number, totals) in (1..).zip(&task.each) {
            let text = compaction_text(totals, layout);
            writeln!(out, "{pid}[{comm}].{number}: {text}")?;
        }
    }
    Ok(())
}

fn compaction_text(totals: &CompactionTotals, layout: CompactionLayout) -> String {
    let time = match layout.microseconds {
        true => format!("{}us", totals.time.saturating_add(500) / 1000),
        false => format!("{}ns", totals.time),
    };
    let scanner = |name: &str, [scanned, isolated]: [u64; 2]| {
        format!("{name}: scanned={scanned} isolated={isolated}")
    };
    let parts = [
        layout.moved.then(|| {
            let (moved, failed) = (totals.moved, totals.failed);
            format!("migration: moved={moved} failed={failed}")
        }),
        layout
            .free_scanner
            .then(|| scanner("free_scanner", totals.free_scanner)),
        layout
            .migration_scanner
            .then(|| scanner("migration_scanner", totals.migration_scanner)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    // perf's line with the time alone ends with a blank.
    format!("{time} {}", parts.join(" "))
}

/// Writes the number of packets dropped at each place. A row has the function, the offset in it in bytes, and the number.
///
/// # Errors
/// Those of `out`.
pub fn write_drops(out: &mut dyn Write, rows: &[(String, u64, u64)]) -> io::Result<()> {
    writeln!(out, "{:>25} {:>25} {:>25}", "LOCATION", "OFFSET", "COUNT")?;
    for (function, offset, count) in rows {
        writeln!(out, "{function:>25} {offset:>25} {count:>25}")?;
    }
    Ok(())
}

/// Writes the number of samples of each event that a script does not use; nothing if `counts` is empty.
///
/// # Errors
/// Those of `out`.
pub fn write_other_events(out: &mut dyn Write, counts: &[(String, u64)]) -> io::Result<()> {
    if counts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nunhandled events:\n")?;
    writeln!(out, "{:<40}  {:>10}", "event", "count")?;
    rules(out, &[40, 11])?;
    for (event, count) in counts {
        writeln!(out, "{event:<40}  {count:>10}")?;
    }
    Ok(())
}

/// Writes a line with dashes below the title of each column. As in perf, some widths are not those of the columns.
fn rules(out: &mut dyn Write, widths: &[usize]) -> io::Result<()> {
    let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    writeln!(out, "{}", dashes.join("  "))
}
