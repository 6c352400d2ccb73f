//! Checks that a recording has the tracepoints and fields that an analysis needs.

use rperf_analysis::EventLayouts;
use rperf_perfdata::FileFinding;
use rperf_tracepoint::Error;
use rperf_wire::SampleType;

use super::analysis::Analysis;
use crate::cli::error::CliError;

/// A field of samples that analyses of tracepoints need, and how to record it.
struct NeededField {
    field: SampleType,
    name: &'static str,
    option: &'static str,
}

const NEEDED: [NeededField; 3] = [
    NeededField {
        field: SampleType::TIME,
        name: "time",
        option: "-T",
    },
    NeededField {
        field: SampleType::CPU,
        name: "CPU",
        option: "--sample-cpu",
    },
    NeededField {
        field: SampleType::RAW,
        name: "raw data",
        option: "-R",
    },
];

/// Returns the layouts of the recorded tracepoints. Warns about those whose description cannot be read.
///
/// # Errors
///
/// The section with the descriptions of tracepoints cannot be read.
pub(crate) fn event_layouts(analysis: &Analysis<'_>) -> Result<EventLayouts, CliError> {
    let recording = analysis.metadata();
    let layouts = EventLayouts::of_recording(recording)?;
    let path = analysis.input.path.display();
    for unreadable in layouts.unreadable() {
        let event = recording.events.get(unreadable.event.0 as usize);
        let event = event.map_or("", |event| event.name.as_str());
        let error = &unreadable.error;
        analysis
            .context
            .warn(format_args!("{path}: {event} is skipped: {error}"));
    }
    Ok(layouts)
}

/// Whether the recording has tracepoints without description: it is unknown which events they are.
///
/// # Errors
///
/// The section with the descriptions of tracepoints cannot be read.
pub(crate) fn lacks_descriptions(analysis: &Analysis<'_>) -> Result<bool, CliError> {
    let recording = analysis.metadata();
    let formats = recording.formats()?;
    let mut events = recording.events.iter();
    Ok(events.any(|event| matches!(formats.of_event(&event.attr), Err(Error::Undescribed))))
}

/// Returns the error for a recording without a needed event: `otherwise`, unless tracepoints have no description.
pub(crate) fn without_event(analysis: &Analysis<'_>, otherwise: CliError) -> CliError {
    match lacks_descriptions(analysis) {
        Ok(false) => return otherwise,
        Ok(true) => {}
        Err(error) => return error,
    }
    let path = analysis.input.path.display();
    let message = format!(
        "{path}: the descriptions of its tracepoints are missing, without which its events are unknown"
    );
    CliError::message(255, message).hint(hint_for(analysis.data().findings()))
}

/// Returns what to do about missing descriptions in a file with these findings.
fn hint_for(findings: &[FileFinding]) -> &'static str {
    if findings.contains(&FileFinding::Unfinished) {
        "they follow the records, which the recorder did not complete: record again, and end the recording with Ctrl-C"
    } else if findings.iter().any(FileFinding::is_truncation) {
        "they follow the records, and the file is truncated: copy it again, or record again"
    } else {
        "record again; 'data check' lists what else is missing"
    }
}

/// Checks that samples have time, CPU and raw data. Only events that the analysis reads are checked: those whose names `is_read`
/// accepts. `recorder` is the subcommand that records these samples.
///
/// # Errors
///
/// Status 255: a field is missing.
pub(crate) fn require_fields(
    analysis: &Analysis<'_>,
    is_read: impl Fn(&str) -> bool,
    recorder: &str,
) -> Result<(), CliError> {
    let path = analysis.input.path.display();
    let events = analysis.metadata().events.iter();
    for event in events.filter(|event| is_read(&event.name)) {
        let mut needed = NEEDED.iter();
        let missing = needed.find(|needed| !event.attr.sample_type.contains(needed.field));
        if let Some(NeededField { name, option, .. }) = missing {
            let message = format!("{path}: samples of {} have no {name}", event.name);
            return Err(CliError::message(255, message).hint(format!(
                "record with '{recorder}', or with 'record {option}'"
            )));
        }
    }
    Ok(())
}

/// Checks that the samples of `events` have cgroups. `recorder` is the subcommand that records them.
///
/// # Errors
///
/// Status 255: the samples of an event have none.
pub(crate) fn require_cgroups(
    analysis: &Analysis<'_>,
    events: &[&str],
    recorder: &str,
) -> Result<(), CliError> {
    let path = analysis.input.path.display();
    let recorded = analysis.metadata().events.iter();
    let mut checked = recorded.filter(|event| events.contains(&event.name.as_str()));
    match checked.find(|event| !event.attr.sample_type.contains(SampleType::CGROUP)) {
        Some(event) => {
            let message = format!("{path}: samples of {} have no cgroup", event.name);
            let hint = format!("record with '{recorder} --all-cgroups'");
            Err(CliError::message(255, message).hint(hint))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_truncated_files_are_called_truncated() {
        let truncated = FileFinding::FeatureTableTruncated { offset: 8, lost: 1 };
        let larger = FileFinding::AttrLarger {
            size: 200,
            known: 144,
        };
        assert!(hint_for(&[larger.clone(), truncated]).contains("is truncated"));
        for findings in [vec![], vec![larger]] {
            assert!(hint_for(&findings).starts_with("record again;"));
        }
    }
}
