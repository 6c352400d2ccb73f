//! Which events were opened as a group.

use std::ops::Range;

use rperf_perfdata::feature::GroupDesc;

/// The groups of a recording by the places of their events.
#[derive(Debug, Default)]
pub struct Groups(Vec<Group>);

/// A group of more than one event. Its members stand behind its leader.
#[derive(Debug)]
pub struct Group {
    /// What stands before the braces; often nothing.
    pub name: String,
    leader: usize,
    members: usize,
}

/// How perf calls a group without a name in the header.
const ANONYMOUS: &str = "{anon_group}";

impl Group {
    /// Places of the leader and its members.
    #[must_use]
    pub fn places(&self) -> Range<usize> {
        self.leader..self.leader + self.members
    }
}

impl Groups {
    /// The groups among so many events.
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
            (members > 1).then_some(Group {
                name,
                leader,
                members,
            })
        };
        Self(described.into_iter().filter_map(group).collect())
    }

    /// The group whose leader is the event at `place`.
    #[must_use]
    pub fn led_by(&self, place: usize) -> Option<&Group> {
        self.0.iter().find(|group| group.leader == place)
    }

    /// Whether the event at `place` stands on the line of its leader.
    #[must_use]
    pub fn is_member(&self, place: usize) -> bool {
        let behind = |group: &Group| place != group.leader && group.places().contains(&place);
        self.led_by(place).is_none() && self.0.iter().any(behind)
    }
}
