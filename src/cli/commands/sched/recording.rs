//! A recording of scheduler events: checked before it is analysed.

use clap::ArgMatches;
use rperf_analysis::sched::LostStretches;
use rperf_analysis::{DeliveredCounts, EventLayouts};
use rperf_perfdata::PerfData;
use rperf_view::sched::latency::RecordLosses;
use rperf_wire::SampleType;

use super::losses::warn_of_losses;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::progress::Progress;
use crate::cli::shared::analysis::Analysis;

/// The event that every analysis needs.
const SWITCH: &str = "sched:sched_switch";

/// The layouts of the scheduler's events in a recording.
pub(super) struct SchedRecording {
    pub(super) layouts: EventLayouts,
}

impl SchedRecording {
    /// Checks that the recording has context switches with time, CPU and raw data.
    ///
    /// # Errors
    ///
    /// Status 255: there are none, or their description cannot be read.
    pub(super) fn new(analysis: &Analysis<'_>) -> Result<Self, CliError> {
        let context = analysis.context;
        let path = analysis.input.path.display();
        let recording = analysis.metadata();
        let layouts = EventLayouts::of_recording(recording)?;
        let name = |index: usize| {
            let event = recording.events.get(index);
            event.map_or("", |event| event.name.as_str())
        };
        for unreadable in layouts.unresolved() {
            let event = name(unreadable.event.0 as usize);
            let error = &unreadable.error;
            context.warn(format_args!("{path}: {event} is skipped: {error}"));
        }
        if !layouts.has(SWITCH) {
            return Err(no_switches(analysis));
        }
        let needed = [
            (SampleType::TIME, "time", "-T"),
            (SampleType::CPU, "CPU", "-a or --sample-cpu"),
            (SampleType::RAW, "raw data", "-R"),
        ];
        for event in recording.events.iter().filter(|event| event.name == SWITCH) {
            let mut missing = needed.iter();
            let missing = missing.find(|(field, ..)| !event.attr.sample_type.contains(*field));
            if let Some((_, field, option)) = missing {
                let message = format!("{path}: samples of {SWITCH} have no {field}");
                return Err(CliError::message(255, message).hint(format!(
                    "record with 'sched record', or with 'record {option}'"
                )));
            }
        }
        Ok(Self { layouts })
    }
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
    CliError::message(255, message).hint(format!("record with '{program} sched record'"))
}

/// Opens a recording for a subcommand that prints rows while it reads.
///
/// # Errors
///
/// Those of [`Analysis::open`], and an invalid number of threads.
pub(super) fn open_for_rows<'a>(
    input: &'a Input,
    data: &'a PerfData<'a>,
    matches: &ArgMatches,
    context: &'a Context,
) -> Result<Analysis<'a>, CliError> {
    let progress = Progress::for_text_output(context, data.data().len());
    let jobs = jobs(matches, context)?;
    Analysis::with_progress(input, data, jobs, progress, context)
}

/// Warns about skipped samples and about stretches with lost records, after all passes.
///
/// # Errors
///
/// Status 255: reading stopped before the end of the recording.
pub(super) fn conclude(
    analysis: &Analysis<'_>,
    delivered: DeliveredCounts,
    losses: &LostStretches,
    matches: &ArgMatches,
) -> Result<ExitStatus, CliError> {
    let context = analysis.context;
    if delivered.truncated > 0 {
        context.warn(format_args!(
            "{} samples were skipped: their raw data are truncated",
            delivered.truncated
        ));
    }
    warn_of_losses(losses, matches, context);
    analysis.conclude()?;
    Ok(ExitStatus::Ok)
}

/// Returns the losses of a recording, for the lines below a table.
pub(super) fn losses(analysis: &Analysis<'_>) -> RecordLosses {
    let found = analysis.replay.diagnostics();
    RecordLosses {
        records: found.records,
        lost: found.lost_records,
        chunks: found.lost_chunks,
    }
}
