//! Checks that a recording has context switches before it is analysed, and warns about losses afterwards.

use clap::ArgMatches;
use rperf_analysis::sched::LostStretches;
use rperf_analysis::{DeliveredCounts, EventLayouts};
use rperf_wire::SampleType;

use crate::cli::error::{CliError, ExitStatus};
use crate::cli::record_dump;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::conclude as conclude_analysis;
pub(super) use crate::cli::shared::losses::losses;
use crate::cli::shared::recorded_fields::{event_layouts, require_fields, without_event};

/// The event that every analysis needs.
const SWITCH: &str = "sched:sched_switch";

/// The numbers that may be wrong where records were lost. The warning names a CPU first: `its` is this CPU.
const DOUBTFUL: &str = "run times and delays of its tasks";

/// The layouts of the scheduler's events in a recording.
pub(super) struct SchedRecording {
    pub(super) layouts: EventLayouts,
}

impl SchedRecording {
    /// Checks that the recording has context switches with time, CPU and raw data.
    ///
    /// # Errors
    ///
    /// Status 255: the recording has no context switches or lacks a field, or the description of its events cannot be read.
    pub(super) fn new(analysis: &Analysis<'_>) -> Result<Self, CliError> {
        let layouts = event_layouts(analysis)?;
        if !layouts.has(SWITCH) {
            return Err(no_switches(analysis));
        }
        // The error's hint names 'sched record', which records these fields.
        require_fields(analysis, |name| name == SWITCH, "sched record")?;
        Ok(Self { layouts })
    }
}

/// Checks the recording as [`SchedRecording::new`] does, and prints its records if `-D` was given.
///
/// # Errors
///
/// Those of [`SchedRecording::new`], and of the output.
pub(super) fn check_and_dump(
    analysis: &Analysis<'_>,
    matches: &ArgMatches,
) -> Result<SchedRecording, CliError> {
    let recording = SchedRecording::new(analysis)?;
    record_dump::print(analysis, matches, "sched")?;
    Ok(recording)
}

fn no_switches(analysis: &Analysis<'_>) -> CliError {
    let program = analysis.context.program;
    let mut events = analysis.metadata().events.iter();
    let has_raw_data = events.any(|event| event.attr.sample_type.contains(SampleType::RAW));
    let path = analysis.input.path.display();
    let message = match has_raw_data {
        true => {
            format!("{path}: No sched_switch events found. Have you run '{program} sched record'?")
        }
        false => format!("{path}: No trace sample to read. Did you call '{program} record -R'?"),
    };
    let error = CliError::message(255, message);
    // A tracepoint without a description may be sched_switch: then the error reports missing descriptions instead.
    without_event(
        analysis,
        error.hint(format!("record with '{program} sched record'")),
    )
}

/// Warns about skipped samples and about stretches with lost records, after all passes over the recording.
///
/// # Errors
///
/// Status 255: reading stopped before the end of the recording. Status 1: records could not be decoded.
pub(super) fn conclude(
    analysis: &Analysis<'_>,
    delivered: DeliveredCounts,
    losses: &LostStretches,
    matches: &ArgMatches,
) -> Result<ExitStatus, CliError> {
    conclude_analysis(analysis, delivered, losses, DOUBTFUL, matches)
}
