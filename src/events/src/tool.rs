//! Times that a counting command takes itself, under names among those of events.

use rperf_wire::Attr;

use crate::names::TOOL_NAMES;

/// A time that is no event of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// From the start to the end.
    Duration,
    /// What the workload spent in user space.
    User,
    /// What it spent in the kernel.
    System,
}

impl Tool {
    /// The one of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let tools = [Self::Duration, Self::User, Self::System];
        let mut known = TOOL_NAMES.iter().zip(tools);
        known.find_map(|(known, tool)| (*known == name).then_some(tool))
    }

    /// The one that a file of counts has under this name and attr, which is that of an event that counts nothing.
    #[must_use]
    pub fn kept_as(name: &str, attr: &Attr) -> Option<Self> {
        Self::named(name).filter(|_| attr.is_dummy())
    }
}
