//! The event that a picture is of.

use std::path::Path;

use rperf_replay::Replay;

use super::error::CliError;

/// The number of the event of that name, or of the first that has samples in the recording in `path`.
///
/// # Errors
///
/// Status 255: there is none; the text names those that there are.
pub(crate) fn find_event(
    replay: &Replay<'_>,
    path: &Path,
    wanted: Option<&str>,
) -> Result<usize, CliError> {
    let events = replay.data().events();
    let mut counted = events.iter().zip(replay.sample_counts()).enumerate();
    let shown = path.display();
    let Some(wanted) = wanted else {
        let found = counted.find(|(_, (_, samples))| **samples > 0);
        let none = || CliError::message(255, format!("The {shown} data has no samples!"));
        return found.map(|(index, _)| index).ok_or_else(none);
    };
    // An event is known with its modifiers and without.
    let named = |name: &str| {
        name == wanted
            || name
                .rsplit_once(':')
                .is_some_and(|(name, _)| name == wanted)
    };
    let found = counted.find(|(_, (event, _))| named(&event.name));
    found.map(|(index, _)| index).ok_or_else(|| {
        let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        CliError::message(255, format!("{shown} has no event '{wanted}'"))
            .hint(format!("its events: {}", names.join(", ")))
    })
}
