//! The lines above and below the table.

use std::io::{self, Write};
use std::time::Duration;

use rperf_count::Spread;

use crate::header::calendar::ctime;

/// The width in characters of a printed time, which is in seconds.
const TIME: usize = 17;
/// The maximum length of the bar of a run.
const BAR: usize = 60;

/// Times shown below the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// Mean of the durations of all runs and its standard error, in nanoseconds.
    pub elapsed: Spread,
    /// CPU time of the workload in user space and in the kernel, if known; shown for a single run only.
    pub cpu_times: Option<(Duration, Duration)>,
}

/// The lines below the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Footer<'a> {
    /// The times.
    pub times: Times,
    /// Whether the table has rows.
    pub below_rows: bool,
    /// The durations of the runs, if a table of them is shown; not shown for a single run.
    pub listed_runs: Option<&'a [Duration]>,
}

/// Writes the first line of an output file, with the current date and time, and an empty line. `local_time` is in seconds since
/// 1970 plus the offset of the time zone.
///
/// # Errors
/// Those of `out`.
pub fn write_started(out: &mut dyn Write, local_time: i64) -> io::Result<()> {
    writeln!(out, "# started on {}\n", ctime(local_time))
}

/// Writes the title of a table between empty lines; `target` is like `'sleep 1'`.
///
/// # Errors
/// Those of `out`.
pub fn write_title(out: &mut dyn Write, target: &str, runs: u32) -> io::Result<()> {
    let suffix = match runs {
        0 | 1 => String::new(),
        runs => format!(" ({runs} runs)"),
    };
    writeln!(out, "\n Performance counter stats for {target}{suffix}:\n")
}

/// Writes the lines below the table, with an empty line after them (two after CPU times) and, if the table has rows, one before
/// them.
///
/// # Errors
/// Those of `out`.
pub fn write_footer(out: &mut dyn Write, footer: &Footer<'_>) -> io::Result<()> {
    let elapsed = footer.times.elapsed;
    let mean = elapsed.mean() / 1e9;
    if footer.below_rows {
        writeln!(out)?;
    }
    if elapsed.number() <= 1 {
        write!(out, " {mean:TIME$.9} seconds time elapsed")?;
        if let Some((user, system)) = footer.times.cpu_times {
            let (user, system) = (user.as_secs_f64(), system.as_secs_f64());
            writeln!(out, "\n\n {user:TIME$.9} seconds user")?;
            writeln!(out, " {system:TIME$.9} seconds sys")?;
        }
    } else {
        let standard_error = elapsed.standard_error() / 1e9;
        let decimals = decimals(standard_error);
        if let Some(runs) = footer.listed_runs {
            write_runs(out, runs, mean, decimals)?;
        }
        write!(
            out,
            " {mean:TIME$.decimals$} +- {standard_error:.decimals$} seconds time elapsed"
        )?;
        if elapsed.error_percent() != 0.0 {
            write!(out, "  ( +-{:6.2}% )", elapsed.error_percent())?;
        }
    }
    write!(out, "\n\n")
}

/// Returns the number of decimals that shows two digits after the first nonzero digit of a standard error in seconds; 2 if it is
/// 0 or above 1.
fn decimals(standard_error: f64) -> usize {
    if standard_error > 1.0 || standard_error <= 0.0 {
        return 2;
    }
    // The place of the first nonzero digit after the point: 1 for tenths.
    let first_nonzero_digit = (-standard_error.log10()).ceil();
    first_nonzero_digit as usize + 2
}

/// Writes the duration of each run in seconds, its difference from the mean, and a bar that shows the difference in percent of
/// the duration: one `#`, and one more for each 5 %.
fn write_runs(
    out: &mut dyn Write,
    runs: &[Duration],
    mean: f64,
    decimals: usize,
) -> io::Result<()> {
    let mean_text = format!(" {mean:TIME$.decimals$}");
    let indent = mean_text.len() - mean_text.trim_start().len();
    writeln!(out, "{:indent$}# Table of individual measurements:", "")?;
    for run in runs {
        let run = run.as_secs_f64();
        let difference = run - mean;
        let percent = if run > 0.0 {
            100.0 * difference / run
        } else {
            0.0
        };
        let bar = (1 + (percent.abs() / 5.0) as usize).min(BAR);
        writeln!(
            out,
            " {run:TIME$.decimals$} ({difference:+.decimals$}) {}",
            "#".repeat(bar)
        )?;
    }
    writeln!(out, "\n{:indent$}# Final result:", "")
}
