//! The results of several benchmarks, as JSON.

use serde::{Deserialize, Serialize};

use crate::Series;

/// The version of the JSON layout.
const FORMAT: u32 = 1;

/// The results of several benchmarks on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of the JSON layout.
    format: u32,
    /// Name and version of this program.
    pub program: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Architecture of the machine.
    pub machine: String,
    /// Number of CPUs that the program may run on.
    pub cpus: usize,
    /// The benchmarks in the order of their runs.
    pub benchmarks: Vec<Entry>,
}

/// The results of one benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The name, such as `sched/pipe`.
    pub name: String,
    /// The options that were given, in their long form and in a fixed order.
    pub options: Vec<String>,
    /// The measured values.
    pub results: Vec<Series>,
    /// Why the benchmark did not run or failed; `None` if it succeeded. A failed benchmark can have results: those
    /// measured before the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The reason for which a report cannot be parsed or serialized.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The text is not JSON of this layout, or the report cannot be serialized.
    #[error("not a report of 'bench --json'")]
    Json(#[from] serde_json::Error),
    /// The report has another version of the layout.
    #[error("version {0} of the report is unknown, version 1 is known")]
    Format(u32),
}

impl Report {
    /// Returns a report without benchmarks.
    #[must_use]
    pub fn new(program: String, kernel: String, machine: String, cpus: usize) -> Self {
        Self {
            format: FORMAT,
            program,
            kernel,
            machine,
            cpus,
            benchmarks: Vec::new(),
        }
    }

    /// Parses a report.
    ///
    /// # Errors
    /// The text is not JSON of this layout, or has another version.
    pub fn parse(text: &[u8]) -> Result<Self, ReportError> {
        let report: Self = serde_json::from_slice(text)?;
        match report.format {
            FORMAT => Ok(report),
            other => Err(ReportError::Format(other)),
        }
    }

    /// Returns the report as indented JSON.
    ///
    /// # Errors
    /// [`ReportError::Json`] if the report cannot be serialized.
    pub fn to_json(&self) -> Result<String, ReportError> {
        Ok(serde_json::to_string_pretty(self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    #[test]
    fn a_report_survives_json() {
        let mut report = Report::new("rperf 1".into(), "6.1".into(), "x86_64".into(), 2);
        // Only the unit, the direction and the variant are used, not the number.
        let value = Value::higher_is_better("GB/sec", 0.0).with_variant("default");
        let mut series = Series::empty_like(&value);
        series.add(3.5);
        report.benchmarks.push(Entry {
            name: "mem/memcpy".into(),
            options: vec!["--nr_loops=2".into()],
            results: vec![series],
            error: None,
        });
        let text = report.to_json().unwrap();
        assert!(text.contains("\"better\": \"higher\""), "{text}");
        assert_eq!(Report::parse(text.as_bytes()).unwrap(), report);
    }

    #[test]
    fn other_text_is_refused() {
        assert!(matches!(Report::parse(b"{}"), Err(ReportError::Json(_))));
        let newer =
            br#"{"format":2,"program":"","kernel":"","machine":"","cpus":1,"benchmarks":[]}"#;
        assert!(matches!(Report::parse(newer), Err(ReportError::Format(2))));
    }
}
