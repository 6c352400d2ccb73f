//! `--baseline`: results compared with those of an earlier run.

use std::fmt::Write as _;
use std::path::Path;

use rperf_bench::{Comparison, Entry, Report, Verdict};

use super::runner::label;
use crate::cli::error::CliError;

/// Maximum size of a report in bytes.
const MAX_REPORT: u64 = 64 << 20;

/// Results of an earlier run.
pub(super) struct Baseline {
    report: Report,
    path: String,
}

impl Baseline {
    /// Reads a file written by `--json`.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let display_path = path.display().to_string();
        let text = rperf_safefs::read(path, MAX_REPORT).map_err(|error| {
            CliError::failure(
                255,
                anyhow::Error::new(error).context(format!("failed to open {display_path}")),
            )
        })?;
        let report = Report::parse(&text).map_err(|error| {
            CliError::failure(255, anyhow::Error::new(error).context(display_path.clone()))
                .hint("write one with 'bench --json -r 10 <collection> <benchmark> > FILE'")
        })?;
        Ok(Self {
            report,
            path: display_path,
        })
    }

    /// Returns the text of the comparison, and whether it is a failure: a result is worse, a benchmark failed that succeeded in
    /// the earlier run, or there are benchmarks but none of their results could be compared.
    pub(super) fn compare(&self, report: &Report) -> (String, bool) {
        let mut text = format!("\n# Compared with {}:\n", self.path);
        let current = (&report.kernel, &report.machine, report.cpus);
        let earlier = (&self.report.kernel, &self.report.machine, self.report.cpus);
        if current != earlier {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "# measured on another system: Linux {}, {}, {} CPUs",
                earlier.0, earlier.1, earlier.2
            );
        }
        let (mut compared, mut is_failure) = (0, false);
        for entry in &report.benchmarks {
            is_failure |= self.compare_entry(entry, &mut text, &mut compared);
        }
        if compared == 0 && !report.benchmarks.is_empty() {
            text.push_str("  nothing was compared\n");
            is_failure = true;
        }
        (text, is_failure)
    }

    /// Appends the lines of a benchmark to `text`, and adds the number of its compared results to `compared`. Returns whether a
    /// result is worse, or the benchmark failed but succeeded in the earlier run.
    fn compare_entry(&self, entry: &Entry, text: &mut String, compared: &mut u64) -> bool {
        let same_name: Vec<&Entry> = self
            .report
            .benchmarks
            .iter()
            .filter(|other| other.name == entry.name)
            .collect();
        let earlier = same_name
            .iter()
            .find(|other| other.options == entry.options);
        let Some(earlier) = earlier else {
            let why = match same_name.is_empty() {
                true => "it is not in the earlier results",
                false => "its options differ from the earlier run",
            };
            let _ = writeln!(text, "  {}: not compared: {why}", entry.name);
            return false;
        };
        if let Some(error) = &entry.error {
            let _ = writeln!(text, "  {}: not compared: {error}", entry.name);
            return earlier.error.is_none();
        }
        let mut is_worse = false;
        for result in &entry.results {
            let label = label(&entry.name, &result.variant);
            let previous = earlier
                .results
                .iter()
                .find(|other| (&other.variant, &other.unit) == (&result.variant, &result.unit));
            let Some(previous) = previous else {
                let _ = writeln!(
                    text,
                    "  {label}: not compared: it is not in the earlier results"
                );
                continue;
            };
            *compared += 1;
            let comparison = Comparison::new(previous, result);
            is_worse |= comparison.verdict == Verdict::Worse;
            let interval = match comparison.margin_percent {
                Some(percent) => format!(" (+- {percent:.2}%)"),
                None => String::new(),
            };
            let verdict = match comparison.verdict {
                Verdict::Better => "better",
                Verdict::Worse => "worse",
                Verdict::Same => "no difference",
                Verdict::Unknown => "unknown: one run each, use -r",
            };
            let _ = writeln!(
                text,
                "  {label}: {:.6} -> {:.6} {}, {:+.2}%{interval}: {verdict}",
                previous.mean, result.mean, result.unit, comparison.change_percent
            );
        }
        is_worse
    }
}
