//! Tool events: times that `stat` measures itself, without a counter of the kernel.

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
        // Pairs of a name and its event.
        let mut pairs = TOOL_NAMES.iter().zip(tools);
        pairs.find_map(|(known, tool)| (*known == name).then_some(tool))
    }

    /// The tool event of this name (`user_time` or `tool/user_time/`) in a stat recording, where a tool event has the attr of a
    /// dummy event. `None` if `attr` is another one: such an event only has the name of a tool event.
    #[must_use]
    pub fn of_recorded(name: &str, attr: &Attr) -> Option<Self> {
        let plain = name
            .strip_prefix(TOOL_PMU)
            .and_then(|name| name.strip_prefix('/')?.strip_suffix('/'));
        Self::named(plain.unwrap_or(name)).filter(|_| attr.is_dummy())
    }
}
