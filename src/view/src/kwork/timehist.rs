//! The rows of `kwork timehist`.

use std::io::{self, Write};

use rperf_analysis::kwork::{Kwork, KworkSpan};

use super::{NAME_WIDTH, milliseconds, push_work};
use crate::sched::Seconds;

/// Writes the titles.
///
/// # Errors
///
/// Those of `out`.
pub fn write_header(out: &mut dyn Write) -> io::Result<()> {
    let row = |out: &mut dyn Write, [start, end, cpu, name, run, delay]: [&str; 6]| {
        writeln!(
            out,
            " {start:<17}  {end:<17}  {cpu:<6}  {name:<NAME_WIDTH$}  {run:<10}  {delay:<10}"
        )
    };
    row(
        out,
        [
            "Runtime start",
            "Runtime end",
            "Cpu",
            "Kwork name",
            "Runtime",
            "Delaytime",
        ],
    )?;
    row(out, ["", "", "", "(TYPE)NAME:NUM", "(msec)", "(msec)"])?;
    let rules = [17, 17, 6, NAME_WIDTH, 10, 10].map(|width| "-".repeat(width));
    writeln!(out, " {}", rules.join("  "))
}

/// Writes a row: a run, its delay if known, and the stack of its entry event if known.
///
/// # Errors
///
/// Those of writing to `line`.
pub fn write_row(line: &mut Vec<u8>, work: &Kwork, run: &KworkSpan) -> io::Result<()> {
    let (start, end) = (Seconds(run.begin), Seconds(run.end));
    write!(line, " {start:>17}  {end:>17}  [{:04}]  ", work.cpu)?;
    push_work(line, work);
    write!(line, "  {:10.3}  ", milliseconds(run.duration()))?;
    match run.raised {
        Some(raised) => {
            let delay = run.begin.saturating_sub(raised);
            write!(line, "{:10.3} ", milliseconds(delay))?;
        }
        // As wide as a delay with the space after it.
        None => write!(line, "{:11}", "")?,
    }
    line.extend(run.stack.as_deref().unwrap_or_default().bytes());
    line.push(b'\n');
    Ok(())
}
