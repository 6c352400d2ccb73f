//! Checks that a recording has the events of work (interrupts, softirqs, work items or tasks) before it is analysed.

use rperf_analysis::EventLayouts;
use rperf_analysis::kwork::KworkClass;
use rperf_wire::SampleType;

use crate::cli::error::CliError;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::recorded_fields::{event_layouts, require_fields, without_event};

/// The events of each class that a subcommand needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NeededEvents {
    /// Entry and exit; of tasks, context switches.
    Runs,
    /// Raise and entry.
    Delays,
}

impl NeededEvents {
    /// Returns the events that the analysis of `class` needs; none for delays of a class without a raise event.
    fn of(self, class: KworkClass) -> Vec<&'static str> {
        let begin_and_end = class.begin_and_end_events();
        match (self, class.raise_event()) {
            (Self::Runs, _) => begin_and_end.to_vec(),
            (Self::Delays, Some(raise)) => {
                let begin = begin_and_end.iter().copied().take(1);
                begin.chain([raise]).collect()
            }
            (Self::Delays, None) => Vec::new(),
        }
    }
}

/// The layouts of a recording's events, and the classes to analyse.
pub(super) struct KworkRecording {
    pub(super) layouts: EventLayouts,
    pub(super) classes: Vec<KworkClass>,
}

impl KworkRecording {
    /// Checks that the recording has the needed events of all `requested` classes, and that their samples have time, CPU and raw
    /// data. If no classes are requested, those `default` classes are analysed whose needed events the recording has; there must
    /// be at least one.
    ///
    /// # Errors
    ///
    /// Status 255: the recording lacks events or a field, or the description of its events cannot be read.
    pub(super) fn new(
        analysis: &Analysis<'_>,
        needed: NeededEvents,
        requested: Option<Vec<KworkClass>>,
        default: &[KworkClass],
    ) -> Result<Self, CliError> {
        let layouts = event_layouts(analysis)?;
        let missing_event = |class: KworkClass| {
            let mut events = needed.of(class).into_iter();
            events.find(|event| !layouts.has(event))
        };
        let is_requested = requested.is_some();
        let mut classes = requested.unwrap_or_else(|| default.to_vec());
        if is_requested {
            if let Some(event) = classes.iter().find_map(|class| missing_event(*class)) {
                return Err(no_event(analysis, event));
            }
        } else {
            classes
                .retain(|class| !needed.of(*class).is_empty() && missing_event(*class).is_none());
        }
        if classes.is_empty() {
            return Err(no_work(analysis, needed, default));
        }
        let events: Vec<&str> = classes.iter().flat_map(|class| needed.of(*class)).collect();
        require_fields(analysis, |name| events.contains(&name), "kwork record")?;
        Ok(Self { layouts, classes })
    }
}

/// Returns the error for a recording without a needed event.
pub(super) fn no_event(analysis: &Analysis<'_>, event: &str) -> CliError {
    let path = analysis.input.path.display();
    let error = CliError::message(255, format!("{path}: the recording has no {event} events"));
    // Only `kwork top` needs events of the scheduler.
    let with_switches = event.starts_with("sched:");
    let hint = record_hint(analysis, with_switches);
    without_event(analysis, error.hint(hint))
}

/// Returns the error for a recording that lacks needed events of every default class.
fn no_work(analysis: &Analysis<'_>, needed: NeededEvents, default: &[KworkClass]) -> CliError {
    let program = analysis.context.program;
    let mut events = analysis.metadata().events.iter();
    let has_raw_data = events.any(|event| event.attr.sample_type.contains(SampleType::RAW));
    let path = analysis.input.path.display();
    let message = match has_raw_data {
        true => {
            let classes = default
                .iter()
                .filter(|class| !needed.of(**class).is_empty());
            let names: Vec<&str> = classes.map(|class| class.name()).collect();
            format!(
                "{path}: the recording lacks the events of {}",
                names.join(", ")
            )
        }
        false => format!("{path}: No trace sample to read. Did you call '{program} record -R'?"),
    };
    // Only `kwork top` has this class among its default ones.
    let with_switches = default.contains(&KworkClass::Sched);
    let hint = record_hint(analysis, with_switches);
    without_event(analysis, CliError::message(255, message).hint(hint))
}

/// Returns the hint on how to record interrupts, softirqs and work items; `with_switches` is for `kwork top`, which needs context
/// switches and no work items.
fn record_hint(analysis: &Analysis<'_>, with_switches: bool) -> String {
    let classes = if with_switches {
        " -k sched,irq,softirq"
    } else {
        ""
    };
    format!(
        "record with '{} kwork{classes} record'",
        analysis.context.program
    )
}
