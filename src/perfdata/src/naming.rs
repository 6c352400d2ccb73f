//! Names of tracepoints that the recording's event descriptions don't name.

use rperf_wire::{Attr, EventType, event_name};

use crate::{EventDesc, Features};

/// Names the tracepoints that still have the default name of their attr. The names are taken from their formats, as in perf, or
/// else from simpleperf's list of events.
pub(crate) fn name_tracepoints(events: &mut [EventDesc], features: &Features<'_>) {
    let is_nameless = |event: &EventDesc| {
        event.attr.kind == EventType::TRACEPOINT && event.name == event_name(&event.attr)
    };
    if !events.iter().any(is_nameless) {
        return;
    }
    let formats = features.formats().unwrap_or_default();
    let meta_info = features.meta_info().unwrap_or_default();
    for event in events.iter_mut().filter(|event| is_nameless(event)) {
        let format_name = formats.name(event.attr.config);
        if let Some(name) = format_name.or_else(|| listed_name(&meta_info, &event.attr)) {
            event.name = name;
        }
    }
}

/// Looks up a name in simpleperf's list of events, which has a line `name,type,config` for each.
fn listed_name(meta_info: &[(String, String)], attr: &Attr) -> Option<String> {
    let (_, lines) = meta_info.iter().find(|(key, _)| key == "event_type_info")?;
    let numbers = format!(",{},{}", attr.kind, attr.config);
    let mut names = lines.lines().filter_map(|line| line.strip_suffix(&numbers));
    names.next().map(str::to_owned)
}
