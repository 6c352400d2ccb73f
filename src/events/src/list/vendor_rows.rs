//! Rows of vendor tables.

use super::{EventDescription, EventKind, EventSelection, ListedEvent};
use crate::Catalogue;

/// The wanted events of tables for the PMUs of this machine, by topic and name, except events that sysfs has too.
pub(super) fn rows(wanted: &EventSelection, catalogue: &Catalogue<'_>) -> Vec<ListedEvent> {
    let mut rows: Vec<ListedEvent> = Vec::new();
    for event in catalogue.machine.vendor().events() {
        let Some(pmu) = catalogue.pmu_of(event) else {
            continue;
        };
        let is_wanted = wanted.takes_name(&event.name) || wanted.takes_name(pmu);
        if !is_wanted || catalogue.machine.event(pmu, &event.name).is_some() {
            continue;
        }
        rows.push(ListedEvent {
            terms: Some(event.terms.clone()),
            described: Some(EventDescription {
                topic: event.topic.clone(),
                pmu: pmu.to_owned(),
                brief: event.brief.clone(),
                long: event.long.clone(),
                scale: event.scale.clone(),
                deprecated: event.deprecated,
            }),
            ..ListedEvent::new(EventKind::Pmu, &event.name)
        });
    }
    rows.sort_by(|left, right| key(left).cmp(&key(right)));
    rows
}

fn key(row: &ListedEvent) -> (Option<&str>, &str) {
    let topic = row.described.as_ref();
    (topic.map(|described| described.topic.as_str()), &row.name)
}
