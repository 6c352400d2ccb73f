//! The table of `kwork top`, in the layout of perf 7.2.

use std::io::{self, Write};

use rperf_analysis::kwork::TopTable;

use super::{milliseconds, percent};

/// The length of a full bar in characters.
const BAR: usize = 30;

/// Writes the shares of time over all CPUs, a bar for each CPU, and a row per task.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, table: &TopTable) -> io::Result<()> {
    let all = &table.all;
    let (total, cpus) = (milliseconds(all.total), table.cpus.len());
    writeln!(out, "\nTotal  : {total:10.3} ms, {cpus} cpus")?;
    let shares = [all.idle, all.irq, all.softirq].map(|part| percent(part, all.total));
    let [idle, irq, softirq] = shares;
    writeln!(
        out,
        "%Cpu(s): {idle:6.2}% id, {irq:6.2}% hi, {softirq:6.2}% si"
    )?;
    for (cpu, times) in &table.cpus {
        let load = percent(times.task_time(), times.total);
        let scaled = u128::from(times.task_time()) * BAR as u128;
        let length = scaled
            .checked_div(u128::from(times.total))
            .unwrap_or_default();
        let bar = "|".repeat(usize::try_from(length).unwrap_or_default());
        writeln!(out, "%Cpu{cpu:<4}[{bar:<BAR$} {load:6.2}%]")?;
    }
    writeln!(
        out,
        "\n{:>9}  {:>6}  {:>16}  {:<16}",
        "PID", "%CPU", "RUNTIME", "COMMAND"
    )?;
    writeln!(out, "  {}", "-".repeat(52))?;
    let mut line = Vec::new();
    for task in &table.tasks {
        line.clear();
        // The share is in hundredths of a percent.
        let (whole, rest) = (task.share / 100, task.share % 100);
        write!(line, "{:9}  {whole:3}.{rest:02}", task.tid)?;
        write!(line, "  {:13.3} ms  ", milliseconds(task.runtime))?;
        line.extend(&task.comm);
        line.resize(line.len() + 16_usize.saturating_sub(task.comm.len()), b' ');
        line.push(b'\n');
        out.write_all(&line)?;
    }
    writeln!(out)
}
