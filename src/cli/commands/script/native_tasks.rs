//! The script `task-analyzer`: its options, and where its tables go.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rperf_analysis::trace_scripts::{TaskRuns, TaskWords, TimeWindow};
use rperf_view::trace_scripts::{
    TASK_COLORS, TaskLayout, TaskUnit, write_task_runs, write_task_runs_csv, write_task_summary,
    write_task_summary_csv,
};

use crate::cli::color::color_csi;
use crate::cli::context::Context;
use crate::cli::error::CliError;

const OPTIONS: &str = "\
[--time-limit FROM:TO] [--ns|--ms] [--extended-times] [--summary] [--summary-only] [--summary-extended] [--filter-tasks LIST] \
[--limit-to-tasks LIST] [--highlight-tasks LIST] [--rename-comms-by-tids LIST] [--stdio-color WHEN] [--csv FILE] [--csv-summary FILE]";
/// The number of decimals of a time in seconds, down to nanoseconds.
const DIGITS: usize = 9;

/// Runs of threads (a run is the time from a switch to a thread until the next switch), and how they are shown.
#[derive(Debug, Default)]
pub(super) struct TaskAnalyzer {
    pub(super) runs: TaskRuns,
    layout: TaskLayout,
    summary: bool,
    /// The value of `--stdio-color`.
    color: Option<String>,
    csv: Option<PathBuf>,
    csv_summary: Option<PathBuf>,
}

impl TaskAnalyzer {
    /// Parses the options, which are those of perf's script.
    ///
    /// # Errors
    ///
    /// Status 129: an unknown option, an invalid value, or options that exclude each other.
    pub(super) fn parse(words: &[String]) -> Result<Self, CliError> {
        let mut analyzer = Self::default();
        // Lists of process ids, thread ids and thread names.
        let (mut only, mut except) = (None, None);
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if analyzer.set_flag(word) {
                continue;
            }
            let (name, attached) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            if !VALUED.contains(&name) {
                return Err(usage_error(format!("unknown option '{word}'")));
            }
            let value = attached.or_else(|| rest.next().cloned());
            let value =
                value.ok_or_else(|| usage_error(format!("option '{name}' needs a value")))?;
            match name {
                "--filter-tasks" => except = Some(list(&value)),
                "--limit-to-tasks" => only = Some(list(&value)),
                name => analyzer.set(name, value)?,
            }
        }
        analyzer.runs.shown = match (only, except) {
            (None, None) => TaskWords::All,
            (Some(words), None) => TaskWords::Only(words),
            (None, Some(words)) => TaskWords::Except(words),
            (Some(_), Some(_)) => {
                let excluded = "--filter-tasks and --limit-to-tasks exclude each other";
                return Err(usage_error(excluded.to_owned()));
            }
        };
        analyzer.check()?;
        Ok(analyzer)
    }

    /// Sets the option `word` if it takes no value; returns whether it is such an option.
    fn set_flag(&mut self, word: &str) -> bool {
        match word {
            "--ns" => self.layout.unit = TaskUnit::Nanoseconds,
            // As in perf, --ns takes precedence over --ms.
            "--ms" if self.layout.unit == TaskUnit::Nanoseconds => {}
            "--ms" => self.layout.unit = TaskUnit::Milliseconds,
            "--extended-times" => self.layout.extended = true,
            "--summary" => self.summary = true,
            "--summary-only" => (self.summary, self.runs.only_summary) = (true, true),
            "--summary-extended" => (self.summary, self.layout.extended_summary) = (true, true),
            _ => return false,
        }
        true
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), CliError> {
        match name {
            "--time-limit" => self.runs.window = window(&value)?,
            "--highlight-tasks" => {
                for word in list(&value) {
                    self.layout.highlighted.push(highlighted(&word)?);
                }
            }
            "--rename-comms-by-tids" => {
                for pair in list(&value) {
                    let named = pair.split_once(':');
                    let named = named.and_then(|(tid, name)| Some((tid.parse().ok()?, name)));
                    let (tid, name): (u32, &str) = named.ok_or_else(|| {
                        usage_error(format!("--rename-comms-by-tids {value}: expected TID:NAME"))
                    })?;
                    self.runs.names.insert(tid, name.to_owned());
                }
            }
            "--stdio-color" => {
                if !["always", "never", "auto"].contains(&value.as_str()) {
                    let expected = "expected always, never or auto";
                    return Err(usage_error(format!("--stdio-color {value}: {expected}")));
                }
                self.color = Some(value);
            }
            "--csv" => self.csv = Some(value.into()),
            // `--csv-summary`, the only other option that [`Self::parse`] passes.
            _ => self.csv_summary = Some(value.into()),
        }
        Ok(())
    }

    /// Refuses CSV files that do not fit the requested tables.
    fn check(&self) -> Result<(), CliError> {
        let only_summary = self.runs.only_summary;
        let conflict = match (&self.csv, &self.csv_summary) {
            (Some(_), _) if only_summary => "--csv: there are no runs with --summary-only",
            (Some(_), None) if self.summary => "--csv: no file for the summary, see --csv-summary",
            _ => return Ok(()),
        };
        Err(usage_error(conflict.to_owned()))
    }

    /// Sets the colours: none if `--stdio-color`, the configuration or the terminal do not permit them.
    ///
    /// # Errors
    ///
    /// None, because [`Self::parse`] has checked the value of `--stdio-color`.
    pub(super) fn set_colors(&mut self, context: &Context) -> Result<(), CliError> {
        self.layout.colors = color_csi(context, "stdio-color", self.color.as_deref())?;
        Ok(())
    }

    /// Writes a line for each CSV file that will be written.
    pub(super) fn begin(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(path) = &self.csv {
            writeln!(out, "generating csv at {}", path.display())?;
        }
        if let Some(path) = &self.csv_summary {
            writeln!(out, "generating csv summary at {}", path.display())?;
        }
        Ok(())
    }

    /// Writes the CSV files if any is requested, otherwise the tables to `out`.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (runs, layout) = (&self.runs, &self.layout);
        if let Some(path) = &self.csv {
            write_file(path, |out| write_task_runs_csv(out, runs, layout))?;
        }
        if let Some(path) = &self.csv_summary {
            write_file(path, |out| write_task_summary_csv(out, runs, layout))?;
        }
        if self.csv.is_some() || self.csv_summary.is_some() {
            return Ok(());
        }
        if !runs.only_summary {
            write_task_runs(out, runs, layout)?;
        }
        match self.summary {
            true => write_task_summary(out, runs, layout),
            false => Ok(()),
        }
    }
}

/// Options with a value.
const VALUED: [&str; 8] = [
    "--time-limit",
    "--filter-tasks",
    "--limit-to-tasks",
    "--highlight-tasks",
    "--rename-comms-by-tids",
    "--stdio-color",
    "--csv",
    "--csv-summary",
];

fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let written = rperf_safefs::write_atomic(path, |out| write(out));
    written.map_err(|error| {
        let message = format!("{}: {error}", path.display());
        io::Error::new(error.kind(), message)
    })
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::to_owned).collect()
}

/// Parses `TASK` or `TASK:COLOUR` (default: red); returns the task and the colour's SGR code.
fn highlighted(word: &str) -> Result<(String, &'static str), CliError> {
    let (task, color) = word.split_once(':').unwrap_or((word, "red"));
    let mut colors = TASK_COLORS.iter();
    let Some((_, code)) = colors.find(|(name, _)| *name == color) else {
        let names = TASK_COLORS.map(|(name, _)| name).join(", ");
        let message = format!("--highlight-tasks: unknown colour '{color}': expected {names}");
        return Err(usage_error(message));
    };
    Ok((task.to_owned(), code))
}

/// Parses times in seconds: `FROM:TO`, `FROM:` or `:TO`.
fn window(value: &str) -> Result<TimeWindow, CliError> {
    let bad = |why: &str| usage_error(format!("--time-limit {value}: {why}"));
    let (first, last) = value
        .split_once(':')
        .ok_or_else(|| bad("expected FROM:TO"))?;
    let time = |text: &str| nanoseconds(text).ok_or_else(|| bad("not a number of seconds"));
    let first = if first.is_empty() { 0 } else { time(first)? };
    let last = if last.is_empty() {
        u64::MAX
    } else {
        time(last)?
    };
    match first <= last {
        true => Ok(TimeWindow { first, last }),
        false => Err(bad("the end is before the beginning")),
    }
}

/// The nanoseconds of a decimal number of seconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > DIGITS || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<DIGITS$}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(fraction)
}

fn usage_error(why: String) -> CliError {
    let usage = format!("usage: script report task-analyzer {OPTIONS}");
    CliError::usage(format!("script task-analyzer: {why}")).detail(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        assert_eq!(nanoseconds("10.5"), Some(10_500_000_000));
        assert_eq!(nanoseconds("0.000000001"), Some(1));
        for bad in ["", "x", "1.0000000001", "1.-1", "99999999999999"] {
            assert_eq!(nanoseconds(bad), None, "{bad}");
        }
        assert_eq!(window(":2").unwrap().last, 2_000_000_000);
        assert!(window("2:1").is_err());
    }
}
