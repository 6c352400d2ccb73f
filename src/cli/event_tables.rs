//! The tables of a report, and the events that share one.

use rperf_perfdata::{EventDesc, Metadata};
use rperf_view::EventGroups;

/// Events that share one table.
pub(crate) struct TableEvents {
    /// The indices of the events, the leader first.
    pub(crate) events: Vec<usize>,
    /// The events in the table's heading: their names; for a recorded group, in braces after the name of the group.
    pub(crate) name: String,
    /// Whether the heading says "events". As in perf, it does for every leader of a group, even if its table has no other event
    /// (`--no-group`).
    pub(crate) plural: bool,
}

/// Returns the tables of a recording: one for each group, and one for each event without a group. `grouping` is `None` without
/// `--group` and `--no-group`; `Some(true)` for `--group`, which makes all events one group if the recording has no groups;
/// `Some(false)` for `--no-group`, which makes one table for each event.
pub(crate) fn tables(recording: Metadata<'_>, grouping: Option<bool>) -> Vec<TableEvents> {
    let events = recording.events;
    let grouped = grouping != Some(false);
    let group_descs = recording.features.group_desc().unwrap_or_default();
    // With --group or --no-group, perf treats the first of several events as a leader if no groups were recorded.
    let has_implied_leader = grouping.is_some() && group_descs.is_empty() && events.len() > 1;
    if has_implied_leader && grouped {
        return vec![TableEvents {
            events: (0..events.len()).collect(),
            name: names(events),
            plural: true,
        }];
    }
    let groups = EventGroups::new(group_descs, events.len());
    // Unless --no-group is given, the members of a group other than the leader are in the leader's table.
    let table_indices = (0..events.len()).filter(|index| !(grouped && groups.is_sibling(*index)));
    let table = |index: usize| {
        let group = groups.led_by(index);
        let (indices, name) = match group {
            Some(group) if grouped => {
                let name = if group.name.is_empty() {
                    "anon group"
                } else {
                    &group.name
                };
                let members = events.get(group.events()).unwrap_or_default();
                (
                    group.events().collect(),
                    format!("{name} {{ {} }}", names(members)),
                )
            }
            _ => {
                let name = events.get(index).map(|event| event.name.clone());
                (vec![index], name.unwrap_or_default())
            }
        };
        TableEvents {
            events: indices,
            name,
            plural: group.is_some() || (has_implied_leader && index == 0),
        }
    };
    table_indices.map(table).collect()
}

fn names(events: &[EventDesc]) -> String {
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    names.join(", ")
}
