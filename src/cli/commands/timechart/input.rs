//! Checks a recording before it is drawn, and warns about doubtful parts.

use rperf_analysis::timechart::{ChartRange, Timechart};
use rperf_analysis::{DeliveredCounts, EventLayouts};
use rperf_names::{counted, is_or_are, was_or_were};
use rperf_wire::SampleType;

use super::args::{ChartParts, TimechartRequest};
use super::picture::draws_calls;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::shared::analysis::Analysis;

const SWITCH: &str = "sched:sched_switch";
const POWER: [&str; 2] = ["power:cpu_idle", "power:cpu_frequency"];
/// The prefix of the events of system calls.
const CALLS: &str = "syscalls:sys_";

/// The events of a recording, checked by [`TimechartRecording::new`].
pub(super) struct TimechartRecording {
    pub(super) layouts: EventLayouts,
    /// Whether context switches have callchains.
    pub(super) has_stacks: bool,
    /// Whether idle states or frequencies of CPUs can be read.
    has_power: bool,
}

impl TimechartRecording {
    /// Checks that the recording has events for the requested parts, with time, thread, CPU and raw data.
    ///
    /// # Errors
    ///
    /// Status 255: the recording has none of these events, or samples lack a field. Errors of [`EventLayouts::of_recording`].
    pub(super) fn new(
        analysis: &Analysis<'_>,
        request: &TimechartRequest,
    ) -> Result<Self, CliError> {
        let path = analysis.input.path.display();
        let recording = analysis.metadata();
        let layouts = EventLayouts::of_recording(recording)?;
        let event = |index: usize| recording.events.get(index);
        for unreadable in layouts.unreadable() {
            let name = event(unreadable.event.0 as usize).map_or("", |event| &event.name);
            let error = &unreadable.error;
            let context = analysis.context;
            context.warn(format_args!("{path}: {name} is skipped: {error}"));
        }
        let mut checked = Self {
            // Set after the checks.
            has_stacks: false,
            has_power: POWER.iter().any(|name| layouts.has(name)),
            layouts,
        };
        let mut events = recording.events.iter();
        let has_calls = events.any(|event| event.name.starts_with(CALLS));
        let has_any = match request.parts {
            ChartParts::All => checked.layouts.has(SWITCH) || checked.has_power || has_calls,
            ChartParts::Power => checked.has_power,
            ChartParts::Tasks => checked.layouts.has(SWITCH) || has_calls,
        };
        if !has_any {
            return Err(no_events(analysis, request.parts));
        }
        checked.check_fields(analysis)?;
        let mut events = recording.events.iter();
        checked.has_stacks = events.any(|event| {
            event.name == SWITCH && event.attr.sample_type.contains(SampleType::CALLCHAIN)
        });
        Ok(checked)
    }

    /// Checks that the samples of all events that are drawn have the needed fields.
    fn check_fields(&self, analysis: &Analysis<'_>) -> Result<(), CliError> {
        // The options are those of `record`: its `-T` records times, that of `timechart` draws tasks.
        let needed = [
            (SampleType::TIME, "time", "-T"),
            (SampleType::TID, "thread", "-a"),
            (SampleType::CPU, "CPU", "--sample-cpu"),
            (SampleType::RAW, "raw data", "-R"),
        ];
        for (index, event) in (0..).zip(analysis.metadata().events) {
            if self.layouts.of(rperf_replay::EventIndex(index)).is_none() {
                // The event is not drawn.
                continue;
            }
            let mut needed = needed.iter();
            let missing = needed.find(|(field, ..)| !event.attr.sample_type.contains(*field));
            if let Some((_, field, option)) = missing {
                let path = analysis.input.path.display();
                let message = format!("{path}: samples of {} have no {field}", event.name);
                return Err(CliError::message(255, message).hint(format!(
                    "record with 'timechart record', or with 'record {option}'"
                )));
            }
        }
        Ok(())
    }

    /// Warns about missing and doubtful parts of the picture.
    pub(super) fn warn(
        &self,
        chart: &Timechart,
        delivered: DeliveredCounts,
        request: &TimechartRequest,
        context: &Context,
    ) {
        if delivered.truncated > 0 {
            context.warn(format_args!(
                "{} {} skipped: the raw data are truncated",
                counted(delivered.truncated, "sample"),
                was_or_were(delivered.truncated)
            ));
        }
        let stretches = chart.losses.stretches().len();
        if stretches > 0 {
            context.warn(format_args!(
                "records were lost in {} of time, marked in the picture",
                counted(stretches as u64, "stretch")
            ));
        }
        if request.parts == ChartParts::Power && chart.counts.power_events == 0 {
            context.note("the recording has no changes of idle states or frequencies: this machine may not report them");
        }
        let draws_calls = draws_calls(chart, request.parts);
        if draws_calls && chart.counts.switches > 0 {
            context.note("the recording has system calls and context switches; system calls are drawn (-T draws context switches)");
        }
        // Calls without a return.
        let open = chart.call_counts.open;
        if draws_calls && open > 0 {
            context.note(format_args!(
                "{} did not return before the end of the recording, and {} drawn up to it",
                counted(open, "system call"),
                is_or_are(open)
            ));
        }
    }
}

/// Returns the error for a recording without the events of the requested parts.
fn no_events(analysis: &Analysis<'_>, parts: ChartParts) -> CliError {
    let error = nothing_to_draw(analysis);
    match parts {
        ChartParts::All => error,
        ChartParts::Power => error.hint("-P needs power:cpu_idle or power:cpu_frequency"),
        ChartParts::Tasks => {
            error.hint("-T needs sched:sched_switch, or the events of system calls")
        }
    }
}

/// Returns the error for a recording whose events have no samples within the range of `--time`.
pub(super) fn no_samples(analysis: &Analysis<'_>, range: ChartRange) -> CliError {
    let error = nothing_to_draw(analysis);
    match range == ChartRange::ALL {
        true => error,
        false => error.hint("--time may exclude all samples: give a range within the recording"),
    }
}

/// The error for a recording without samples to draw.
fn nothing_to_draw(analysis: &Analysis<'_>) -> CliError {
    let program = analysis.context.program;
    let path = analysis.input.path.display();
    let message =
        format!("{path}: No trace sample to read. Did you call '{program} timechart record'?");
    CliError::message(255, message)
}
