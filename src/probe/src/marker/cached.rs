//! The marked places of an object as a build-id cache lists them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::{markers, probe};
use crate::event::{Event, Target, group_of_provider};
use crate::object::Object;

/// The text of a cache's `probes` for the program at `path`: for each marker a line `%sdt_PROVIDER:NAME=NAME`, and below it those
/// that create the events of its places, each once. Empty where nothing is marked.
#[must_use]
pub fn cached_list(object: &Object<'_>, path: &Path) -> String {
    let mut listed: Vec<(String, BTreeSet<String>)> = Vec::new();
    for marker in markers(object) {
        // What is asked for beside a marker can be wrong, its own values cannot.
        let Ok(Some(probe)) = probe(object, &marker, &[]) else {
            continue;
        };
        let event = Event {
            group: group_of_provider(&marker.provider),
            name: marker.name,
            target: Target::Program {
                object: path.to_string_lossy().into_owned(),
                file_offset: probe.file_offset,
                semaphore: probe.semaphore,
            },
            is_return: false,
            fields: probe.fields,
        };
        let heading = format!("%{}:{}={}", event.group, event.name, event.name);
        let known = listed.iter_mut().find(|(known, _)| *known == heading);
        match known {
            Some((_, events)) => {
                events.insert(event.to_string());
            }
            None => listed.push((heading, BTreeSet::from([event.to_string()]))),
        }
    }
    let mut text = String::new();
    for (heading, events) in listed {
        let _ = writeln!(text, "{heading}");
        for event in events {
            let _ = writeln!(text, "{event}");
        }
    }
    text
}
