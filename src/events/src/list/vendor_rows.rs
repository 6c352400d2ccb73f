//! Rows of vendor tables.

use super::{EventDescription, EventKind, EventSelection, ListedEvent};
use crate::Catalogue;

/// The selected events of vendor tables for the PMUs of this machine, without those that sysfs has too, sorted by topic and name.
pub(super) fn rows(selection: &EventSelection, catalogue: &Catalogue<'_>) -> Vec<ListedEvent> {
    let mut rows: Vec<ListedEvent> = Vec::new();
    for event in catalogue.machine.vendor().events() {
        let Some(pmu) = catalogue.pmu_of(event) else {
            continue;
        };
        let is_selected = selection.takes_name(&event.name) || selection.takes_name(pmu);
        if !is_selected || catalogue.machine.event(pmu, &event.name).is_some() {
            continue;
        }
        rows.push(ListedEvent {
            terms: Some(event.terms.clone()),
            description: Some(EventDescription {
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
    rows.sort_by(|left, right| topic_and_name(left).cmp(&topic_and_name(right)));
    rows
}

fn topic_and_name(row: &ListedEvent) -> (Option<&str>, &str) {
    let description = row.description.as_ref();
    (
        description.map(|description| description.topic.as_str()),
        &row.name,
    )
}
