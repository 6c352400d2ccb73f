//! Groups of events, as described in the header of a recording.

use std::ops::Range;

use rperf_perfdata::feature::GroupDesc;

/// The groups of a recording, whose events are given by index.
#[derive(Debug, Default)]
pub struct EventGroups(Vec<EventGroup>);

/// A group of more than one event, with the leader first.
#[derive(Debug)]
pub struct EventGroup {
    /// The name, which is written before the braces; often empty.
    pub name: String,
    leader: usize,
    event_count: usize,
}

impl EventGroup {
    /// Indices of the events, the leader first.
    #[must_use]
    pub fn events(&self) -> Range<usize> {
        self.leader..self.leader + self.event_count
    }
}

impl EventGroups {
    /// Returns the groups of a recording with this number of events. Groups that extend beyond the last event are truncated;
    /// groups of one event are ignored.
    #[must_use]
    pub fn new(descriptions: Vec<GroupDesc>, events: usize) -> Self {
        let group = |description: GroupDesc| {
            let name = match description.name.as_str() {
                GroupDesc::ANONYMOUS => String::new(),
                _ => description.name,
            };
            let leader = usize::try_from(description.leader).ok()?;
            let event_count = usize::try_from(description.members).ok()?;
            let event_count = event_count.min(events.saturating_sub(leader));
            (event_count > 1).then_some(EventGroup {
                name,
                leader,
                event_count,
            })
        };
        Self(descriptions.into_iter().filter_map(group).collect())
    }

    /// The group led by the event at `index`.
    #[must_use]
    pub fn led_by(&self, index: usize) -> Option<&EventGroup> {
        self.0.iter().find(|group| group.leader == index)
    }

    /// Whether the event at `index` is in a group and is not a leader.
    #[must_use]
    pub fn is_sibling(&self, index: usize) -> bool {
        let mut groups = self.0.iter();
        self.led_by(index).is_none() && groups.any(|group| group.events().contains(&index))
    }
}
