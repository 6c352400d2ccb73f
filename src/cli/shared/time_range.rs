//! `--time` of commands that analyse events.

use clap::ArgMatches;
use rperf_resolve::TimeIntervals;

use super::analysis::Analysis;
use crate::cli::error::CliError;

/// Parses `--time`; `None` if it is not given. `printed_by` is the command that prints times of
/// events, for the hint.
///
/// # Errors
///
/// Status 255: the option's value is invalid, or has percentages and the recording lacks the times of its first and last sample.
pub(crate) fn time_intervals(
    matches: &ArgMatches,
    analysis: &Analysis<'_>,
    printed_by: &str,
) -> Result<Option<TimeIntervals>, CliError> {
    let Some(text) = matches.get_one::<String>("time") else {
        return Ok(None);
    };
    let boundaries = analysis.metadata().features.sample_time();
    // Times are those of the recording, not counted from its first sample.
    let relative = false;
    let intervals = TimeIntervals::parse(text, boundaries, relative);
    intervals.map(Some).map_err(|error| {
        CliError::message(255, "Invalid time span")
            .detail(format!("{text}: {error}"))
            .hint(format!(
                "give START,END in seconds, as printed by '{printed_by}'; either may be omitted"
            ))
    })
}
