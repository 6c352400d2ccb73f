//! The rows of vendors' tables.

use super::{Described, Kind, Row, Wanted};
use crate::Catalogue;

/// The events of tables that PMUs of this machine have, by topic and then by name. What sysfs names is not repeated.
pub(super) fn rows(wanted: &Wanted, catalogue: &Catalogue<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for event in catalogue.machine.vendor().events() {
        let Some(pmu) = catalogue.pmu_of(event) else {
            continue;
        };
        let is_wanted = wanted.takes_name(&event.name) || wanted.takes_name(pmu);
        if !is_wanted || catalogue.machine.event(pmu, &event.name).is_some() {
            continue;
        }
        rows.push(Row {
            terms: Some(event.terms.clone()),
            described: Some(Described {
                topic: event.topic.clone(),
                pmu: pmu.to_owned(),
                brief: event.brief.clone(),
                long: event.long.clone(),
                scale: event.scale.clone(),
                deprecated: event.deprecated,
            }),
            ..Row::new(Kind::Pmu, &event.name)
        });
    }
    rows.sort_by(|left, right| key(left).cmp(&key(right)));
    rows
}

fn key(row: &Row) -> (Option<&str>, &str) {
    let topic = row.described.as_ref();
    (topic.map(|described| described.topic.as_str()), &row.name)
}
