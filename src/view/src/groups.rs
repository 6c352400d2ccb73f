//! Which events were opened as a group.

use std::ops::Range;

use rperf_perfdata::feature::GroupDesc;

/// The groups of a recording by the indices of their events.
#[derive(Debug, Default)]
pub struct EventGroups(Vec<EventGroup>);

/// A group of more than one event, with the leader first.
#[derive(Debug)]
pub struct EventGroup {
    /// The text before the braces; often empty.
    pub name: String,
    leader: usize,
    members: usize,
}

/// perf's name for a group without a name in the header.
const ANONYMOUS: &str = "{anon_group}";

impl EventGroup {
    /// Indices of the leader and the members.
    #[must_use]
    pub fn places(&self) -> Range<usize> {
        self.leader..self.leader + self.members
    }
}

impl EventGroups {
    /// Finds the groups among this many events.
    #[must_use]
    pub fn new(described: Vec<GroupDesc>, events: usize) -> Self {
        let group = |group: GroupDesc| {
            let name = match group.name.as_str() {
                ANONYMOUS => String::new(),
                _ => group.name,
            };
            let leader = usize::try_from(group.leader).ok()?;
            let members = usize::try_from(group.members).ok()?;
            let members = members.min(events.saturating_sub(leader));
            (members > 1).then_some(EventGroup {
                name,
                leader,
                members,
            })
        };
        Self(described.into_iter().filter_map(group).collect())
    }

    /// The group led by the event at index `place`.
    #[must_use]
    pub fn led_by(&self, place: usize) -> Option<&EventGroup> {
        self.0.iter().find(|group| group.leader == place)
    }

    /// Whether the event at index `place` is shown on its leader's line.
    #[must_use]
    pub fn is_member(&self, place: usize) -> bool {
        let after = |group: &EventGroup| place != group.leader && group.places().contains(&place);
        self.led_by(place).is_none() && self.0.iter().any(after)
    }
}
