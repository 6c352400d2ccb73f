//! `--switch-on`, `--switch-off`: samples of one event enable the output of samples, samples of another event disable it.

use clap::ArgMatches;
use rperf_lines::EventSwitch;
use rperf_perfdata::Metadata;

use super::error::CliError;
use super::options::flag;

/// The values of `--switch-on`, `--switch-off` and `--show-on-off-events`.
pub(crate) struct SwitchOptions {
    /// Name of the event that enables output.
    on: Option<String>,
    /// Name of the event that disables output.
    off: Option<String>,
    shows_switch_events: bool,
}

impl SwitchOptions {
    /// Parses the options.
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        Self {
            on: matches.get_one::<String>("switch-on").cloned(),
            off: matches.get_one::<String>("switch-off").cloned(),
            shows_switch_events: flag(matches, "show-on-off-events") == Some(true),
        }
    }

    /// Looks up the event names in `recording`.
    ///
    /// # Errors
    ///
    /// Status 255: the recording has no event of a given name.
    pub(crate) fn find(&self, recording: Metadata<'_>) -> Result<EventSwitch, CliError> {
        let index = |option, name: &Option<String>| {
            let Some(name) = name else {
                return Ok(None);
            };
            let mut events = recording.events.iter();
            match events.position(|event| event.name == *name) {
                Some(index) => Ok(Some(index)),
                None => Err(CliError::message(
                    255,
                    format!("switch-{option} event not found ({name})"),
                )
                .hint("'evlist' lists the events of a recording")),
            }
        };
        let (on, off) = (index("on", &self.on)?, index("off", &self.off)?);
        Ok(EventSwitch::new(on, off, self.shows_switch_events))
    }
}
