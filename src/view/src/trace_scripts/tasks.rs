//! Runs of threads and their sums, as perf's script `task-analyzer` shows them.

use std::io::{self, Write};

use rperf_analysis::trace_scripts::{TaskGaps, TaskRun, TaskRuns, TaskSummary};

use crate::terminal::{Csi, Sgr};

/// Names of the colours of highlighted threads, with their codes for terminals.
pub const TASK_COLORS: [(&str, &str); 6] = [
    ("red", "91"),
    ("green", "92"),
    ("yellow", "93"),
    ("blue", "94"),
    ("violet", "95"),
    ("grey", GREY),
];
const GREY: &str = "90";
/// Widths of the columns of runs. The last three columns are shown with [`TaskLayout::extended`] only.
const WIDTHS: [usize; 11] = [17, 17, 3, 8, 8, 16, 10, 15, 15, 15, 15];
/// Index of the column TID of runs.
const TID_COLUMN: usize = 4;
/// Titles of the columns of runs.
const TITLES: [&str; 11] = [
    "Switched-In",
    "Switched-Out",
    "CPU",
    "PID",
    "TID",
    "Comm",
    "Runtime",
    "Time Out-In",
    "Time Out-Out",
    "Time In-In",
    "Time In-Out",
];
/// Number of columns of runs without [`TaskLayout::extended`].
const DEFAULT_COLUMNS: usize = 8;
/// Titles of the columns of the summary.
const SUMMARY_TITLES: [&str; 15] = [
    "PID",
    "TID",
    "Comm",
    "Runs",
    "Accumulated",
    "Mean",
    "Median",
    "Min",
    "Max",
    "Max At",
    "Out-In",
    "Max At",
    "Out-Out",
    "In-In",
    "In-Out",
];
/// Title and number of columns of each part of the summary. The last part is shown with [`TaskLayout::extended_summary`] only.
const SUMMARY_PARTS: [(&str, usize); 3] = [
    ("Task Information", 3),
    ("Runtime Information", 7),
    ("Max Inter Task Times", 5),
];

/// The unit of durations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskUnit {
    /// Nanoseconds; the times of events then have nine decimals instead of six.
    Nanoseconds,
    /// Microseconds.
    #[default]
    Microseconds,
    /// Milliseconds.
    Milliseconds,
}

/// How runs are shown.
#[derive(Debug, Default)]
pub struct TaskLayout {
    /// The unit of durations.
    pub unit: TaskUnit,
    /// Whether all times between runs are shown, instead of Out-In only.
    pub extended: bool,
    /// Whether the summary has the largest times between runs.
    pub extended_summary: bool,
    /// Highlighted threads, by process id, thread id or name, with the code of their colour.
    pub highlighted: Vec<(String, &'static str)>,
    /// The introducer of control sequences; `None` without colours.
    pub colors: Option<Csi>,
}

impl TaskLayout {
    fn columns(&self) -> usize {
        if self.extended {
            TITLES.len()
        } else {
            DEFAULT_COLUMNS
        }
    }

    fn summary_columns(&self) -> usize {
        let [_, _, (_, extended_columns)] = SUMMARY_PARTS;
        match self.extended_summary {
            true => SUMMARY_TITLES.len(),
            false => SUMMARY_TITLES.len() - extended_columns,
        }
    }

    /// The time of an event in nanoseconds, as text in seconds.
    fn event_time(&self, time: u64) -> String {
        let digits = if self.unit == TaskUnit::Nanoseconds {
            9
        } else {
            6
        };
        rounded(time.into(), 1_000_000_000, digits)
    }

    /// A duration in nanoseconds divided by `count`, as text in the layout's unit.
    fn duration(&self, time: u128, count: u128) -> String {
        match self.unit {
            TaskUnit::Nanoseconds => rounded(time, count, 0),
            TaskUnit::Microseconds => rounded(time, 1000 * count, 3),
            TaskUnit::Milliseconds => rounded(time, 1_000_000 * count, 3),
        }
    }

    /// The text for a time between runs that is unknown.
    fn unknown_gap(&self) -> String {
        let is_whole = self.unit == TaskUnit::Nanoseconds;
        if is_whole { "-1" } else { "-1.000" }.to_owned()
    }

    fn gaps(&self, gaps: Option<TaskGaps>) -> [String; 4] {
        match gaps {
            None => [(); 4].map(|()| self.unknown_gap()),
            Some(gaps) => [gaps.out_in, gaps.out_out, gaps.in_in, gaps.in_out]
                .map(|time| self.duration(time.into(), 1)),
        }
    }

    fn cells(&self, run: &TaskRun) -> [String; TITLES.len()] {
        let [out_in, out_out, in_in, in_out] = self.gaps(run.gaps);
        [
            self.event_time(run.start),
            self.event_time(run.end),
            // -1 if not recorded, like the process id below.
            run.cpu.cast_signed().to_string(),
            run.pid.cast_signed().to_string(),
            run.tid.to_string(),
            run.comm.clone(),
            self.duration(run.end.saturating_sub(run.start).into(), 1),
            out_in,
            out_out,
            in_in,
            in_out,
        ]
    }

    fn summary_cells(&self, tid: u32, task: &TaskSummary) -> [String; SUMMARY_TITLES.len()] {
        let mut lengths = task.runs.clone();
        lengths.sort_unstable();
        let count = lengths.len();
        // The median is the mean of these two; with an odd number of runs, both are the middle one.
        let [low, high] = [count.saturating_sub(1) / 2, count / 2]
            .map(|index| u128::from(lengths.get(index).copied().unwrap_or_default()));
        let total = u128::from(task.total());
        let run_length =
            |time: Option<&u64>| self.duration(time.copied().unwrap_or_default().into(), 1);
        let [out_in, out_out, in_in, in_out] = self.gaps(task.gaps);
        [
            task.pid.cast_signed().to_string(),
            tid.to_string(),
            task.comm.clone(),
            count.to_string(),
            self.duration(total, 1),
            self.duration(total, count.max(1) as u128),
            self.duration(low + high, 2),
            run_length(lengths.first()),
            run_length(lengths.last()),
            self.event_time(task.longest_at),
            out_in,
            match task.gaps {
                Some(_) => self.event_time(task.longest_gap_end),
                // -1 as in `unknown_gap`, but in seconds.
                None => format!("-{}", self.event_time(1_000_000_000)),
            },
            out_out,
            in_in,
            in_out,
        ]
    }
}

/// Writes the runs, with colours if the layout has them.
///
/// # Errors
/// Those of `out`.
pub fn write_task_runs(
    out: &mut dyn Write,
    runs: &TaskRuns,
    layout: &TaskLayout,
) -> io::Result<()> {
    let columns = layout.columns();
    let padded = |cells: &[String]| {
        let shown = cells.iter().zip(WIDTHS).take(columns);
        shown
            .map(|(cell, width)| format!("{cell:>width$}"))
            .collect::<Vec<_>>()
    };
    writeln!(out, "{}", padded(&TITLES.map(str::to_owned)).join(" "))?;
    for run in runs.runs() {
        let mut cells = padded(&layout.cells(run));
        let highlighted = layout
            .highlighted
            .iter()
            .find(|(word, _)| run.has_word(word));
        let color = highlighted.map_or(Sgr::NONE, |(_, code)| Sgr::new(layout.colors, code));
        let sgr = |code| Sgr::new(layout.colors, code);
        // The TID of a main thread, which equals its PID, is grey.
        if run.pid == run.tid
            && let Some(cell) = cells.get_mut(TID_COLUMN)
        {
            *cell = format!("{}{cell}{}{color}", sgr(GREY), sgr(Sgr::RESET));
        }
        let end = if highlighted.is_some() {
            sgr(Sgr::RESET)
        } else {
            Sgr::NONE
        };
        writeln!(out, "{color}{}{end}", cells.join(" "))?;
    }
    Ok(())
}

/// Writes the summary of each thread.
///
/// # Errors
/// Those of `out`.
pub fn write_task_summary(
    out: &mut dyn Write,
    runs: &TaskRuns,
    layout: &TaskLayout,
) -> io::Result<()> {
    let columns = layout.summary_columns();
    let rows: Vec<_> = runs
        .tasks()
        .map(|(tid, task)| layout.summary_cells(tid, task))
        .collect();
    let mut widths = SUMMARY_TITLES.map(str::len);
    for (width, column) in widths.iter_mut().zip(0..) {
        let cells = rows.iter().filter_map(|row| row.get::<usize>(column));
        *width = cells
            .map(|cell| cell.chars().count())
            .fold(*width, usize::max);
    }
    writeln!(out, "\nSummary")?;
    let mut first_column = 0;
    let mut parts = Vec::new();
    for (name, count) in SUMMARY_PARTS {
        let part_widths = widths
            .get(first_column..first_column + count)
            .unwrap_or_default();
        let width = part_widths.iter().sum::<usize>() + count - 1;
        if first_column < columns {
            parts.push(format!("{name:^width$}"));
        }
        first_column += count;
    }
    writeln!(out, "{}", parts.join(" "))?;
    let grey = Sgr::new(layout.colors, GREY);
    let reset = Sgr::new(layout.colors, Sgr::RESET);
    let mut write = |cells: &[String]| {
        let shown = cells.iter().zip(widths).zip(SUMMARY_TITLES).take(columns);
        let padded = shown.map(|((cell, width), title)| match title {
            "Max At" => format!("{grey}{cell:>width$}{reset}"),
            _ => format!("{cell:>width$}"),
        });
        writeln!(out, "{}", padded.collect::<Vec<_>>().join(" "))
    };
    write(&SUMMARY_TITLES.map(str::to_owned))?;
    rows.iter().try_for_each(|row| write(row))
}

/// Writes the runs with semicolons between the columns.
///
/// # Errors
/// Those of `out`.
pub fn write_task_runs_csv(
    out: &mut dyn Write,
    runs: &TaskRuns,
    layout: &TaskLayout,
) -> io::Result<()> {
    let columns = layout.columns();
    writeln!(
        out,
        "{}",
        TITLES.get(..columns).unwrap_or(&TITLES).join(";")
    )?;
    for run in runs.runs() {
        let cells = layout.cells(run);
        writeln!(out, "{}", cells.get(..columns).unwrap_or(&cells).join(";"))?;
    }
    Ok(())
}

/// Writes the summary of each thread with semicolons between the columns.
///
/// # Errors
/// Those of `out`.
pub fn write_task_summary_csv(
    out: &mut dyn Write,
    runs: &TaskRuns,
    layout: &TaskLayout,
) -> io::Result<()> {
    let columns = layout.summary_columns();
    writeln!(
        out,
        "{}",
        SUMMARY_TITLES
            .get(..columns)
            .unwrap_or(&SUMMARY_TITLES)
            .join(";")
    )?;
    for (tid, task) in runs.tasks() {
        let cells = layout.summary_cells(tid, task);
        writeln!(out, "{}", cells.get(..columns).unwrap_or(&cells).join(";"))?;
    }
    Ok(())
}

/// `number` divided by `divisor`, with this many digits after the point. Halves are rounded to the even digit.
fn rounded(number: u128, divisor: u128, digits: u32) -> String {
    let scale = 10_u128.pow(digits);
    let (scaled, divisor) = (number * scale, divisor.max(1));
    let (quotient, remainder) = (scaled / divisor, scaled % divisor);
    let is_up = match (remainder * 2).cmp(&divisor) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => quotient % 2 == 1,
        std::cmp::Ordering::Greater => true,
    };
    // In units of the last digit.
    let result = quotient + u128::from(is_up);
    match digits as usize {
        0 => result.to_string(),
        digits => format!("{}.{:0digits$}", result / scale, result % scale),
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn quotients_are_rounded_and_halves_to_even_digits() {
        // Halves.
        assert_eq!(rounded(10_001_000_500, 1_000_000_000, 6), "10.001000");
        assert_eq!(rounded(10_001_001_500, 1_000_000_000, 6), "10.001002");
        // Not halves: both are rounded up.
        assert_eq!(rounded(3_000_500, 3, 0), "1000167");
        assert_eq!(rounded(29_850, 1_000_000, 3), "0.030");
    }
}
