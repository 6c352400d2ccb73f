//! Warnings about lost records and truncated samples, for analyses that pair events.

use clap::ArgMatches;
use rperf_analysis::DeliveredCounts;
use rperf_analysis::sched::LostStretches;
use rperf_names::{counted, was_or_were};
use rperf_view::sched::Seconds;
use rperf_view::sched::latency::RecordLosses;

use super::analysis::Analysis;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};

/// The maximum number of stretches that are listed without `-v`.
const MAX_LISTED: usize = 5;

/// Warns, after all passes over the recording, about skipped samples and stretches of time with lost records, then calls
/// [`Analysis::conclude`]. `doubtful` names the numbers that may be wrong in these stretches.
///
/// # Errors
///
/// Status 255: reading stopped before the end of the recording. Status 1: records could not be decoded.
pub(crate) fn conclude(
    analysis: &Analysis<'_>,
    delivered: DeliveredCounts,
    lost: &LostStretches,
    doubtful: &str,
    matches: &ArgMatches,
) -> Result<ExitStatus, CliError> {
    let context = analysis.context;
    if delivered.truncated > 0 {
        context.warn(format_args!(
            "{} {} skipped: the raw data are truncated",
            counted(delivered.truncated, "sample"),
            was_or_were(delivered.truncated)
        ));
    }
    warn_of_stretches(lost, doubtful, matches, context);
    analysis.conclude()?;
    Ok(ExitStatus::Ok)
}

fn warn_of_stretches(
    lost: &LostStretches,
    doubtful: &str,
    matches: &ArgMatches,
    context: &Context,
) {
    let stretches = lost.stretches();
    if stretches.is_empty() {
        return;
    }
    let listed = match context.verbosity(matches) {
        0 => MAX_LISTED,
        _ => stretches.len(),
    };
    for stretch in stretches.iter().take(listed) {
        let cpu = match stretch.cpu {
            Some(cpu) => format!("CPU {cpu}"),
            None => "unknown CPU".to_owned(),
        };
        let (from, to) = (Seconds(stretch.from), Seconds(stretch.to));
        let records = stretch.records;
        context.warn(format_args!(
            "{cpu}: {} {} lost between {from} and {to} s; {doubtful} are doubtful there",
            counted(records, "record"),
            was_or_were(records)
        ));
    }
    let hidden = stretches.len().saturating_sub(listed);
    if hidden > 0 {
        context.note(format_args!(
            "hint: -v lists {}",
            counted(hidden as u64, "more stretch")
        ));
    }
    // Even `-v` does not list these: the analysis stores only a limited number of stretches.
    if lost.is_incomplete() {
        context.warn("there are more stretches with lost records than are listed");
    }
}

/// Returns the losses of a recording, for the lines below a table.
pub(crate) fn losses(analysis: &Analysis<'_>) -> RecordLosses {
    let diagnostics = analysis.replay.diagnostics();
    RecordLosses {
        records: diagnostics.records,
        lost: diagnostics.lost_records,
        // LOST records, each for one or more lost records: perf's "chunks".
        chunks: diagnostics.lost_chunks,
    }
}
