//! Places of programs as events of the `uprobe` PMU (perf_event_open(2), "uprobe"): nothing has to be written into tracefs for them,
//! and their samples hold no values.

use rperf_wire::{Attr, EventType};

use crate::{EventSpec, Own, Rate};

/// `PERF_PROBE_CONFIG_IS_RETPROBE`.
const IS_RETURN: u64 = 1;
/// `PERF_UPROBE_REF_CTR_OFFSET_SHIFT`: the counter's place is in the upper half of `config`.
const SEMAPHORE_SHIFT: u32 = 32;

/// A place in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uprobe {
    /// The number of the PMU (`/sys/bus/event_source/devices/uprobe/type`).
    pub pmu: u32,
    /// The address, in this process, of the program's path with a zero behind it. It has to last until the event is open.
    pub path: u64,
    /// Where the place is in the file.
    pub offset: u64,
    /// Where in the file the counter is that switches a marked place on.
    pub semaphore: Option<u32>,
    /// Whether the return of the function there is meant.
    pub is_return: bool,
}

impl EventSpec {
    /// The event of a place, every hit of which is a sample.
    #[must_use]
    pub fn of_uprobe(name: String, place: &Uprobe) -> Self {
        let semaphore = u64::from(place.semaphore.unwrap_or_default()) << SEMAPHORE_SHIFT;
        let attr = Attr {
            kind: EventType(place.pmu),
            config: semaphore | if place.is_return { IS_RETURN } else { 0 },
            config1: place.path,
            config2: place.offset,
            ..Attr::default()
        };
        Self {
            own: Own {
                rate: Some(Rate::Period(1)),
                ..Own::default()
            },
            ..Self::new(name, attr)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_three_words() {
        let place = Uprobe {
            pmu: 8,
            path: 0x7fff_0000,
            offset: 0x1139,
            semaphore: Some(0x3018),
            is_return: true,
        };
        let spec = EventSpec::of_uprobe("probe_calc:leaf".to_owned(), &place);
        let attr = &spec.attr;
        assert_eq!(
            (attr.kind, attr.config, attr.config1, attr.config2),
            (EventType(8), 0x3018_0000_0001, 0x7fff_0000, 0x1139)
        );
        assert_eq!(spec.own.rate, Some(Rate::Period(1)));
        let entry = Uprobe {
            semaphore: None,
            is_return: false,
            ..place
        };
        assert_eq!(EventSpec::of_uprobe("x".to_owned(), &entry).attr.config, 0);
    }
}
