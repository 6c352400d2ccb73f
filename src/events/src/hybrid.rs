//! Hybrid x86 machines with two kinds of cores: a generic event becomes one event per kind.
//!
//! Since Linux 5.13 the upper half of `config` selects the PMU of a hardware or cache event
//! (`PERF_PMU_TYPE_SHIFT` in `uapi/linux/perf_event.h`); raw events have the PMU's own type.

use rperf_wire::{Attr, EventType};

use crate::cache_event::CacheEvent;
use crate::names::known_event;
use crate::{Catalogue, EventSpec};

/// Names of the PMUs of the two kinds of cores.
const CORE_PMUS: [&str; 2] = ["cpu_core", "cpu_atom"];
const PMU_TYPE_SHIFT: u32 = 32;

/// The core PMUs of a hybrid x86 machine in sysfs order; empty on other machines.
pub(crate) fn hybrid_core_pmus<'a>(catalogue: &'a Catalogue<'_>) -> Vec<&'a (String, u32)> {
    let pmus = catalogue.pmus.iter();
    let cores: Vec<_> = pmus
        .filter(|(name, _)| CORE_PMUS.contains(&name.as_str()))
        .collect();
    match cores.len() == CORE_PMUS.len() {
        true => cores,
        false => Vec::new(),
    }
}

/// Whether a PMU belongs to the processor cores.
pub(crate) fn is_core_pmu(name: &str, catalogue: &Catalogue<'_>) -> bool {
    catalogue.machine.is_core(name) || CORE_PMUS.contains(&name)
}

/// Returns one event per kind of cores for a hardware, cache or raw event of no particular PMU on a hybrid machine: `cycles:u`
/// becomes `cpu_core/cycles/u` and `cpu_atom/cycles/u`. Returns any other event unchanged.
#[must_use]
pub fn on_each_core_pmu(event: EventSpec, catalogue: &Catalogue<'_>) -> Vec<EventSpec> {
    let is_of_cores = matches!(
        event.attr.kind,
        EventType::HARDWARE | EventType::HW_CACHE | EventType::RAW
    );
    let pmus = hybrid_core_pmus(catalogue);
    if !is_of_cores || event.pmu.is_some() || pmus.is_empty() {
        return vec![event];
    }
    let on = |pmu: &(String, u32)| EventSpec {
        name: name_on(&event.name, &pmu.0),
        attr: attr_on(&event.attr, pmu.1),
        pmu: Some(pmu.0.clone()),
        ..event.clone()
    };
    pmus.into_iter().map(on).collect()
}

/// The attr of a generic event for one core PMU; `None` if `pmu` is no core PMU, or `name` no generic event.
pub(crate) fn generic_event_attr(
    pmu: &str,
    pmu_type: u32,
    name: &str,
    catalogue: &Catalogue<'_>,
) -> Option<Attr> {
    if !is_core_pmu(pmu, catalogue) {
        return None;
    }
    let (event_type, config) = match (known_event(name), CacheEvent::parse(name)) {
        (Some((EventType::HARDWARE, config)), _) => (EventType::HARDWARE, config),
        (_, Some(CacheEvent::Known(config))) => (EventType::HW_CACHE, config),
        _ => return None,
    };
    let attr = Attr {
        kind: event_type,
        config,
        ..Attr::default()
    };
    Some(match hybrid_core_pmus(catalogue).is_empty() {
        true => attr,
        false => attr_on(&attr, pmu_type),
    })
}

fn attr_on(attr: &Attr, pmu_type: u32) -> Attr {
    match attr.kind {
        EventType::RAW => Attr {
            kind: EventType(pmu_type),
            ..attr.clone()
        },
        _ => Attr {
            config: attr.config | u64::from(pmu_type) << PMU_TYPE_SHIFT,
            ..attr.clone()
        },
    }
}

/// Rewrites `cycles:u` and `cycles/period=5/u` as the name of an event of a PMU.
fn name_on(name: &str, pmu: &str) -> String {
    // `terms` includes the closing slash and the modifiers: `period=5/u`.
    if let Some((name, terms)) = name.split_once('/') {
        return format!("{pmu}/{name},{terms}");
    }
    let (name, modifiers) = name.split_once(':').unwrap_or((name, ""));
    format!("{pmu}/{name}/{modifiers}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GroupPosition, parse};

    fn hybrid() -> Catalogue<'static> {
        let pmus = [("cpu_atom", 10), ("software", 1), ("cpu_core", 4)];
        Catalogue {
            pmus: pmus
                .map(|(name, pmu_type)| (name.to_owned(), pmu_type))
                .into(),
            ..Catalogue::default()
        }
    }

    fn parsed(text: &str) -> Vec<(String, u32, u64)> {
        let events = parse(text, &hybrid()).unwrap_or_else(|error| panic!("{error}"));
        let parsed = events
            .into_iter()
            .map(|event| (event.name, event.attr.kind.0, event.attr.config));
        parsed.collect()
    }

    /// Generic and raw events become one event per kind; software events and events of a particular PMU do not.
    #[test]
    fn generic_events_are_of_each_kind_of_cores() {
        let on = |name: &str, event_type, config| (name.to_owned(), event_type, config);
        assert_eq!(
            parsed("instructions:u"),
            [
                on("cpu_atom/instructions/u", 0, 0xa_0000_0001),
                on("cpu_core/instructions/u", 0, 0x4_0000_0001)
            ]
        );
        assert_eq!(
            parsed("L1-dcache-load-misses"),
            [
                on("cpu_atom/L1-dcache-load-misses/", 3, 0xa_0001_0000),
                on("cpu_core/L1-dcache-load-misses/", 3, 0x4_0001_0000)
            ]
        );
        assert_eq!(
            parsed("r1c0"),
            [
                on("cpu_atom/r1c0/", 10, 0x1c0),
                on("cpu_core/r1c0/", 4, 0x1c0)
            ]
        );
        assert_eq!(
            parsed("cycles/period=5/k")[1].0,
            "cpu_core/cycles,period=5/k"
        );
        assert_eq!(parsed("page-faults"), [on("page-faults", 1, 2)]);
        assert_eq!(
            parsed("cpu_core/cycles/"),
            [on("cpu_core/cycles/", 0, 0x4_0000_0000)]
        );
        assert_eq!(
            parsed("cpu_atom/LLC-loads/u"),
            [on("cpu_atom/LLC-loads/u", 3, 0xa_0000_0002)]
        );
    }

    /// Events of different PMUs cannot be in one group; software events named without a PMU, as `faults`, can be in any.
    #[test]
    fn groups_are_of_one_kind_each() {
        let events = parse("{cycles,instructions,faults}:S,{faults,cs}", &hybrid()).unwrap();
        let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        let expected = [
            "cpu_atom/cycles/",
            "cpu_atom/instructions/",
            "faults",
            "cpu_core/cycles/",
            "cpu_core/instructions/",
            "faults",
            "faults",
            "cs",
        ];
        assert_eq!(names, expected);
        let leads = events
            .iter()
            .map(|event| matches!(event.group, GroupPosition::Leader { .. }));
        let leads: Vec<bool> = leads.collect();
        assert_eq!(leads, [true, false, false, true, false, false, true, false]);
        assert!(events[..6].iter().all(|event| event.sample_read));
    }

    #[test]
    fn a_missing_pmu_cpu_is_explained_by_those_of_the_cores() {
        let error = parse("cpu/event=1/", &hybrid()).unwrap_err();
        let reasons: Vec<String> = error.faults.into_iter().map(|fault| fault.reason).collect();
        let cores = "`cpu_atom', `cpu_core'";
        let expected =
            format!("cannot find PMU `cpu': this machine's cores are counted by {cores}");
        assert_eq!(reasons, [expected]);
    }

    /// A group becomes one group per kind of cores. An event that names another PMU, even `software`, is in none of them, whereas
    /// a software event named without a PMU, as `faults`, is in each.
    #[test]
    fn events_of_other_pmus_get_a_group_of_their_own() {
        let events = parse("{cycles,software/config=2/,faults}", &hybrid()).unwrap();
        let rows = events.iter().map(|event| {
            let is_leader = matches!(event.group, GroupPosition::Leader { .. });
            (event.name.as_str(), is_leader)
        });
        let expected = [
            ("cpu_atom/cycles/", true),
            ("faults", false),
            ("cpu_core/cycles/", true),
            ("faults", false),
            ("software/config=2/", true),
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }
}
