//! Uprobes as events of the `uprobe` PMU (perf_event_open(2), "uprobe"), which do not need tracefs. These
//! events cannot record arguments.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use rperf_wire::{Attr, EventType};

use crate::{EventSettings, EventSpec, SamplingRate};

/// `PERF_PROBE_CONFIG_IS_RETPROBE`: the flag in `config` of a return probe.
const RETURN_FLAG: u64 = 1;
/// `PERF_UPROBE_REF_CTR_OFFSET_SHIFT`: the offset of the reference counter is in the upper half of
/// `config`. The reference counter is called semaphore in SDT markers, and here.
const SEMAPHORE_SHIFT: u32 = 32;

/// The location of a uprobe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uprobe {
    /// Type number of the PMU (`/sys/bus/event_source/devices/uprobe/type`).
    pub pmu: u32,
    /// Path of the program or library.
    pub path: CString,
    /// Offset of the probe in the file.
    pub offset: u64,
    /// Offset in the file of the reference counter that enables an SDT marker; `None` if the probe has none.
    pub semaphore: Option<u32>,
    /// Whether it probes the return of the function.
    pub is_return: bool,
}

impl EventSpec {
    /// Creates the event of a uprobe, which samples every hit.
    ///
    /// Its attr contains the address of the path, which the kernel reads when the event is opened. The spec and its
    /// clones own the path, so at least one of them must live until then.
    #[must_use]
    pub fn of_uprobe(name: String, uprobe: Uprobe) -> Self {
        let path: Arc<CStr> = uprobe.path.into();
        let semaphore = u64::from(uprobe.semaphore.unwrap_or_default()) << SEMAPHORE_SHIFT;
        let attr = Attr {
            kind: EventType(uprobe.pmu),
            config: semaphore | if uprobe.is_return { RETURN_FLAG } else { 0 },
            config1: path.as_ptr().expose_provenance() as u64,
            config2: uprobe.offset,
            ..Attr::default()
        };
        Self {
            settings: EventSettings {
                rate: Some(SamplingRate::Period(1)),
                ..EventSettings::default()
            },
            uprobe_path: Some(path),
            ..Self::new(name, attr)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The three words are `config`, `config1` and `config2`.
    #[test]
    fn locations_are_encoded_in_three_words() {
        let uprobe = Uprobe {
            pmu: 8,
            path: c"/bin/calc".to_owned(),
            offset: 0x1139,
            semaphore: Some(0x3018),
            is_return: true,
        };
        let spec = EventSpec::of_uprobe("probe_calc:leaf".to_owned(), uprobe.clone());
        let attr = &spec.attr;
        assert_eq!(
            (attr.kind, attr.config, attr.config2),
            (EventType(8), 0x3018_0000_0001, 0x1139)
        );
        let path = spec.clone().uprobe_path.expect("a path");
        assert_eq!(&*path, c"/bin/calc");
        assert_eq!(attr.config1, path.as_ptr().expose_provenance() as u64);
        assert_eq!(spec.settings.rate, Some(SamplingRate::Period(1)));
        let entry = Uprobe {
            semaphore: None,
            is_return: false,
            ..uprobe
        };
        assert_eq!(EventSpec::of_uprobe("x".to_owned(), entry).attr.config, 0);
    }
}
