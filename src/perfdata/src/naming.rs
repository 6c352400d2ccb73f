//! Names of tracepoints whose event descriptions have none.

use rperf_wire::{Attr, EventType, event_name};

use crate::{EventDesc, Features};

/// Names tracepoints by their formats, like perf, or by simpleperf's list of events.
pub(crate) fn name_tracepoints(events: &mut [EventDesc], features: &Features<'_>) {
    let nameless = |event: &EventDesc| {
        event.attr.kind == EventType::TRACEPOINT && event.name == event_name(&event.attr)
    };
    if !events.iter().any(nameless) {
        return;
    }
    let formats = features.formats().unwrap_or_default();
    let meta_info = features.meta_info().unwrap_or_default();
    for event in events.iter_mut().filter(|event| nameless(event)) {
        let named = formats.name(event.attr.config);
        if let Some(name) = named.or_else(|| listed_name(&meta_info, &event.attr)) {
            event.name = name;
        }
    }
}

/// Looks up a name in simpleperf's list of `name,type,config`.
fn listed_name(meta_info: &[(String, String)], attr: &Attr) -> Option<String> {
    let (_, lines) = meta_info.iter().find(|(key, _)| key == "event_type_info")?;
    let numbers = format!(",{},{}", attr.kind, attr.config);
    let mut names = lines.lines().filter_map(|line| line.strip_suffix(&numbers));
    names.next().map(str::to_owned)
}
