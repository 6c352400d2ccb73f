//! Which events share a table.

use rperf_perfdata::{Described, EventDesc};
use rperf_view::Groups;

/// Events beside each other in one table.
pub(crate) struct Table {
    /// Their places, the leader first.
    pub(crate) events: Vec<usize>,
    /// How they are called.
    pub(crate) name: String,
    /// Whether perf speaks of events: it does for a leader alone, too.
    pub(crate) plural: bool,
}

/// The tables of a recording: one for each group, or for each event if groups are not wanted. If they were asked for
/// where the recording has none, all events are one.
pub(crate) fn tables(recording: Described<'_>, wanted: Option<bool>) -> Vec<Table> {
    let events = recording.events;
    let grouped = wanted != Some(false);
    let described = recording.features.group_desc().unwrap_or_default();
    // perf makes the first event a leader even if its group is not wanted then.
    let forced = wanted.is_some() && described.is_empty() && events.len() > 1;
    if forced && grouped {
        return vec![Table {
            events: (0..events.len()).collect(),
            name: names(events),
            plural: true,
        }];
    }
    let groups = Groups::new(described, events.len());
    let shown = (0..events.len()).filter(|place| !(grouped && groups.is_member(*place)));
    let table = |place: usize| {
        let group = groups.led_by(place);
        let (places, name) = match group.filter(|_| grouped) {
            Some(group) => {
                let name = if group.name.is_empty() {
                    "anon group"
                } else {
                    &group.name
                };
                let members = events.get(group.places()).unwrap_or_default();
                (
                    group.places().collect(),
                    format!("{name} {{ {} }}", names(members)),
                )
            }
            None => {
                let name = events.get(place).map(|event| event.name.clone());
                (vec![place], name.unwrap_or_default())
            }
        };
        Table {
            events: places,
            name,
            plural: group.is_some() || (forced && place == 0),
        }
    };
    shown.map(table).collect()
}

fn names(events: &[EventDesc]) -> String {
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    names.join(", ")
}
