//! `--json` and `--csv`: the rows in formats that programs read.

use std::io::{self, Write};

use clap::ArgMatches;
use clap::parser::ValueSource;
use rperf_view::report::ReportData;

use super::args::COLOR;
use super::{CountParameters, ReportCounts, is_empty};
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// Options that change only text or call graphs, or print something else.
const TEXT_OPTIONS: &[&str] = &[
    "stats",
    "tasks",
    "mmaps",
    "header-only",
    "dump-raw-trace",
    "disable-order",
    "header",
    "show-info",
    "threads",
    "pretty",
    "hints",
    "tui",
    COLOR,
    "column-widths",
    "field-separator",
    "hierarchy",
    "total-cycles",
    "inverted",
    "branch-history",
    "show-ref-call-graph",
];

/// A format that programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataFormat {
    Json,
    Csv,
}

impl DataFormat {
    const ALL: [Self; 2] = [Self::Json, Self::Csv];

    /// The option that selects the format.
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }

    /// The requested format.
    ///
    /// # Errors
    ///
    /// Status 129: both formats, or one of [`TEXT_OPTIONS`].
    pub(super) fn requested(matches: &ArgMatches) -> Result<Option<Self>, CliError> {
        let mut requested = Self::ALL
            .into_iter()
            .filter(|format| flag(matches, format.option()) == Some(true));
        let Some(format) = requested.next() else {
            return Ok(None);
        };
        let is_given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        let other_format = requested.next().map(Self::option);
        let text_option = TEXT_OPTIONS.iter().copied().find(is_given);
        match other_format.or(text_option) {
            Some(other) => Err(CliError::usage(format!(
                "--{} and --{other} exclude each other",
                format.option()
            ))),
            None => Ok(Some(format)),
        }
    }

    /// Returns the error for a request of call graphs, which rows do not have.
    pub(super) fn call_graph_error(self) -> CliError {
        let message = format!("--{} has rows without call graphs", self.option());
        CliError::usage(message).hint(
            "omit -g, or use -g none; 'script --json' and 'data convert --to-folded' have callchains",
        )
    }

    /// Writes the report.
    pub(super) fn write(
        self,
        out: &mut dyn Write,
        parameters: &CountParameters<'_>,
        counts: &ReportCounts,
        report: &ReportInput<'_>,
    ) -> io::Result<()> {
        let tables = counts.histograms.iter();
        let tables: Vec<_> = tables
            .filter(|table| !(report.skips_empty && is_empty(table)))
            .collect();
        // Columns that a filter restricts to one value: rows may lack them.
        let constant_columns = parameters.plan.constant_columns.iter();
        let constant_columns: Vec<(&str, &str)> = constant_columns
            .map(|(key, value)| (*key, &**value))
            .collect();
        let data = ReportData {
            events: report.events,
            tables: &tables,
            min_percent: parameters.plan.layout.min_percent,
            constant_columns: &constant_columns,
            lost: report.lost,
            branches: &counts.branches,
        };
        match self {
            Self::Json => data.write_json(out)?,
            Self::Csv => data.write_csv(out)?,
        }
        out.flush()
    }
}

/// What [`DataFormat::write`] needs besides the tables and the parameters of the counting.
pub(super) struct ReportInput<'a> {
    /// The names of the recording's events.
    pub(super) events: &'a [&'a str],
    /// Number of lost samples.
    pub(super) lost: u64,
    /// Whether tables without samples are omitted. A table is of an event or of a group of events.
    pub(super) skips_empty: bool,
}
