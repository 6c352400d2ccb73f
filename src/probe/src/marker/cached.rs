//! The list of an object's USDT markers in a build-id cache.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::{markers, probe};
use crate::event::{ProbeEvent, ProbeTarget, group_of_provider};
use crate::object::ProbeObject;

/// Returns the text of the file `probes` in the build-id cache for the program at `path`: for each marker name a line
/// `%sdt_PROVIDER:NAME=NAME`, followed by the lines that create its events, one for each of its addresses, without
/// duplicates. The text is empty if there are no markers.
#[must_use]
pub fn marker_cache_text(object: &ProbeObject<'_>, path: &Path) -> String {
    let mut listed: Vec<(String, BTreeSet<String>)> = Vec::new();
    for marker in markers(object) {
        // Without requested arguments, the probe has all arguments that can be recorded, and there are no errors. `None` means
        // that the marker's address is not in the file.
        let no_requested_arguments = &[];
        let Ok(Some(probe)) = probe(object, &marker, no_requested_arguments) else {
            continue;
        };
        let event = ProbeEvent {
            group: group_of_provider(&marker.provider),
            name: marker.name,
            target: ProbeTarget::Program {
                object: path.to_string_lossy().into_owned(),
                file_offset: probe.file_offset,
                semaphore: probe.semaphore,
            },
            is_return: false,
            fields: probe.fields,
        };
        let heading = format!("%{}:{}={}", event.group, event.name, event.name);
        let same = listed.iter_mut().find(|(other, _)| *other == heading);
        match same {
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
