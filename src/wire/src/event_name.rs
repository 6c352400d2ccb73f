//! Default names of events, derived from their attr.

use crate::{Attr, AttrFlags, EventType};

/// Generalised hardware events by `config` (`enum perf_hw_id`), under the names that perf prints.
pub const HARDWARE_NAMES: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// Software events by `config` (`enum perf_sw_ids`), under the names that perf prints; [`event_name`] does not use those
/// after `dummy`.
pub const SOFTWARE_NAMES: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// Caches of `PERF_TYPE_HW_CACHE` by the low byte of `config`.
pub const CACHE_NAMES: [&str; 7] = [
    "L1-dcache",
    "L1-icache",
    "LLC",
    "dTLB",
    "iTLB",
    "branch",
    "node",
];

/// Returns the name that perf derives from an attr, with modifiers: `cpu-clock:uH`, `raw 0x1a8`.
#[must_use]
pub fn event_name(attr: &Attr) -> String {
    let modifiers = modifiers(attr);
    let named = |names: &[&str], unknown: &str| {
        let index = usize::try_from(attr.config).unwrap_or(usize::MAX);
        let name = names.get(index).copied().unwrap_or(unknown);
        format!("{name}{modifiers}")
    };
    match attr.kind {
        EventType::HARDWARE => named(&HARDWARE_NAMES, "unknown-hardware"),
        // perf 6.1 has no names for the software events after `dummy`.
        EventType::SOFTWARE => named(&SOFTWARE_NAMES[..10], "unknown-software"),
        EventType::TRACEPOINT => "unknown tracepoint".to_owned(),
        EventType::HW_CACHE => format!("{}{modifiers}", cache_name(attr.config)),
        EventType::RAW => format!("raw {:#x}{modifiers}", attr.config),
        EventType::BREAKPOINT => format!(
            "mem:{:#x}:{}{modifiers}",
            attr.config1,
            access(attr.bp_type)
        ),
        EventType(other) => format!("unknown attr type: {other}"),
    }
}

/// Returns the modifiers of an attr, after a colon; empty if there are none. As in perf, `H` (the host is counted) and `G`
/// (guests are counted) are printed only if `exclude_host` is set or `exclude_guest` differs from its default: set for events
/// without modifiers of mode (`k`, `u`, `h`) or precision (`p`), otherwise not set.
fn modifiers(attr: &Attr) -> String {
    let has = |flag| attr.flags.contains(flag);
    let mut letters = String::new();
    let mut excludes_guest_by_default = true;
    let modes = [
        (AttrFlags::EXCLUDE_KERNEL, 'k'),
        (AttrFlags::EXCLUDE_USER, 'u'),
        (AttrFlags::EXCLUDE_HV, 'h'),
    ];
    if modes.iter().any(|(flag, _)| has(*flag)) {
        letters.extend(
            modes
                .iter()
                .filter(|(flag, _)| !has(*flag))
                .map(|(_, letter)| *letter),
        );
        excludes_guest_by_default = false;
    }
    if attr.precise_ip() > 0 {
        letters.extend((0..attr.precise_ip()).map(|_| 'p'));
        excludes_guest_by_default = false;
    }
    if has(AttrFlags::EXCLUDE_HOST) || has(AttrFlags::EXCLUDE_GUEST) != excludes_guest_by_default {
        let machines = [
            (AttrFlags::EXCLUDE_HOST, 'H'),
            (AttrFlags::EXCLUDE_GUEST, 'G'),
        ];
        letters.extend(
            machines
                .iter()
                .filter(|(flag, _)| !has(*flag))
                .map(|(_, letter)| *letter),
        );
    }
    if letters.is_empty() {
        letters
    } else {
        format!(":{letters}")
    }
}

fn cache_name(config: u64) -> String {
    const OPERATIONS: [(&str, &str); 3] = [
        ("load", "loads"),
        ("store", "stores"),
        ("prefetch", "prefetches"),
    ];
    let byte = |shift: u32| usize::try_from(config >> shift & 0xff).unwrap_or(usize::MAX);
    let Some(cache) = CACHE_NAMES.get(byte(0)) else {
        return "unknown-ext-hardware-cache-type".to_owned();
    };
    let Some((one, many)) = OPERATIONS.get(byte(8)) else {
        return "unknown-ext-hardware-cache-op".to_owned();
    };
    match byte(16) {
        0 => format!("{cache}-{many}"),
        1 => format!("{cache}-{one}-misses"),
        _ => "unknown-ext-hardware-cache-result".to_owned(),
    }
}

/// Letters for the accesses of a breakpoint (`HW_BREAKPOINT_R`, `_W` and `_X` of the kernel's `hw_breakpoint.h`).
fn access(bp_type: u32) -> String {
    [(1, 'r'), (2, 'w'), (4, 'x')]
        .iter()
        .filter(|(bit, _)| bp_type & bit != 0)
        .map(|(_, letter)| *letter)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(flags: &[AttrFlags], precise: u8) -> String {
        let mut attr = Attr {
            kind: EventType::SOFTWARE,
            ..Attr::default()
        };
        for flag in flags {
            attr.flags |= *flag;
        }
        attr.set_precise_ip(precise);
        event_name(&attr)
    }

    #[test]
    fn modifiers_show_the_counted_modes() {
        let (no_user, no_kernel, no_hv) = (
            AttrFlags::EXCLUDE_USER,
            AttrFlags::EXCLUDE_KERNEL,
            AttrFlags::EXCLUDE_HV,
        );
        let (no_host, no_guest) = (AttrFlags::EXCLUDE_HOST, AttrFlags::EXCLUDE_GUEST);
        assert_eq!(clock(&[no_guest], 0), "cpu-clock");
        assert_eq!(clock(&[], 0), "cpu-clock:HG");
        assert_eq!(clock(&[no_host], 0), "cpu-clock:G");
        assert_eq!(clock(&[no_kernel, no_hv, no_guest], 0), "cpu-clock:uH");
        assert_eq!(clock(&[no_user, no_hv], 0), "cpu-clock:k");
        assert_eq!(clock(&[no_hv, no_guest], 0), "cpu-clock:kuH");
        assert_eq!(clock(&[], 3), "cpu-clock:ppp");
        assert_eq!(clock(&[no_guest], 1), "cpu-clock:pH");
        assert_eq!(clock(&[no_kernel], 3), "cpu-clock:uhppp");
    }

    #[test]
    fn names_follow_from_type_and_config() {
        let name = |kind, config| {
            event_name(&Attr {
                kind,
                config,
                flags: AttrFlags::EXCLUDE_GUEST,
                ..Attr::default()
            })
        };
        assert_eq!(name(EventType::HARDWARE, 3), "cache-misses");
        assert_eq!(name(EventType::HARDWARE, 99), "unknown-hardware");
        assert_eq!(name(EventType::SOFTWARE, 10), "unknown-software");
        assert_eq!(name(EventType::RAW, 0x1a8), "raw 0x1a8");
        assert_eq!(name(EventType::HW_CACHE, 0x1_0003), "dTLB-load-misses");
        assert_eq!(name(EventType::HW_CACHE, 0x0102), "LLC-stores");
        assert_eq!(
            name(EventType::HW_CACHE, 9),
            "unknown-ext-hardware-cache-type"
        );
        assert_eq!(name(EventType(8), 0), "unknown attr type: 8");
    }
}
