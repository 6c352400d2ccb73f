//! One order.

/// What is told of events that are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Listing {
    /// Their names.
    Names,
    /// The frequency in Hz or the period, too.
    Frequency,
    /// Every field of the attr that is not 0, too.
    Attr,
    /// The members of a group in one.
    Groups,
}

/// What can be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order<'a> {
    /// To start or stop an event by its name, or all.
    Switch { on: bool, event: Option<&'a str> },
    /// To tell which events there are.
    List(Listing),
    /// To keep what the rings hold now.
    Snapshot,
    /// To end.
    Stop,
    /// To answer.
    Ping,
}

impl<'a> Order<'a> {
    /// An order in perf's words (perf-stat(1), `--control`); `None` for any other text.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
        Some(match (word, rest) {
            ("enable", event) => Self::Switch { on: true, event },
            ("disable", event) => Self::Switch { on: false, event },
            ("evlist", None) => Self::List(Listing::Names),
            ("evlist", Some("-F")) => Self::List(Listing::Frequency),
            ("evlist", Some("-v")) => Self::List(Listing::Attr),
            ("evlist", Some("-g")) => Self::List(Listing::Groups),
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
    fn orders_are_perfs_words() {
        let switch = |on, event| Some(Order::Switch { on, event });
        assert_eq!(Order::parse("enable"), switch(true, None));
        assert_eq!(
            Order::parse("disable  sched:x"),
            switch(false, Some("sched:x"))
        );
        assert_eq!(
            Order::parse("evlist -g"),
            Some(Order::List(Listing::Groups))
        );
        assert_eq!(Order::parse("ping"), Some(Order::Ping));
        for none in ["", "evlist -x", "stop now", "enabled", "ack"] {
            assert_eq!(Order::parse(none), None, "{none}");
        }
    }
}
