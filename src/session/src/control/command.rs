//! A control command.

/// Details of listed events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListedDetail {
    /// Names of events.
    Names,
    /// Names, and the frequency in Hz or the period.
    Frequency,
    /// Names, and every non-zero field of the attr.
    Attr,
    /// Groups with their members.
    Groups,
}

/// A parsed command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlCommand<'a> {
    /// Enable or disable an event by name, or all.
    Switch { on: bool, event: Option<&'a str> },
    /// List events.
    List(ListedDetail),
    /// Write a snapshot.
    Snapshot,
    /// End recording or counting.
    Stop,
    /// Acknowledge only.
    Ping,
}

impl<'a> ControlCommand<'a> {
    /// Parses a command in perf's syntax (perf-record(1), `--control`); `None` for any other text.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (word, argument) = text.split_once(' ').unwrap_or((text, ""));
        let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
        Some(match (word, argument) {
            ("enable", event) => Self::Switch { on: true, event },
            ("disable", event) => Self::Switch { on: false, event },
            ("evlist", None) => Self::List(ListedDetail::Names),
            ("evlist", Some("-F")) => Self::List(ListedDetail::Frequency),
            ("evlist", Some("-v")) => Self::List(ListedDetail::Attr),
            ("evlist", Some("-g")) => Self::List(ListedDetail::Groups),
            ("snapshot", None) => Self::Snapshot,
            ("stop", None) => Self::Stop,
            ("ping", None) => Self::Ping,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_perfs_names() {
        let switch = |on, event| Some(ControlCommand::Switch { on, event });
        assert_eq!(ControlCommand::parse("enable"), switch(true, None));
        assert_eq!(
            ControlCommand::parse("disable  sched:x"),
            switch(false, Some("sched:x"))
        );
        assert_eq!(
            ControlCommand::parse("evlist -g"),
            Some(ControlCommand::List(ListedDetail::Groups))
        );
        assert_eq!(ControlCommand::parse("ping"), Some(ControlCommand::Ping));
        for text in ["", "evlist -x", "stop now", "enabled", "ack"] {
            assert_eq!(ControlCommand::parse(text), None, "{text}");
        }
    }
}
