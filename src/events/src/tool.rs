//! Tool events: times measured by counting commands.

use rperf_wire::Attr;

use crate::names::{TOOL_NAMES, TOOL_PMU};

/// A tool event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Elapsed time.
    Duration,
    /// User time of the workload.
    User,
    /// System time of the workload.
    System,
}

impl Tool {
    /// The tool event of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        // In the order of `TOOL_NAMES`.
        let tools = [Self::Duration, Self::User, Self::System];
        let mut known = TOOL_NAMES.iter().zip(tools);
        known.find_map(|(known, tool)| (*known == name).then_some(tool))
    }

    /// The tool event of this name (`user_time` or `tool/user_time/`) in a stat recording, if its attr is that of a dummy event,
    /// which counts nothing.
    #[must_use]
    pub fn of_recorded(name: &str, attr: &Attr) -> Option<Self> {
        let plain = name
            .strip_prefix(TOOL_PMU)
            .and_then(|name| name.strip_prefix('/')?.strip_suffix('/'));
        Self::named(plain.unwrap_or(name)).filter(|_| attr.is_dummy())
    }
}
