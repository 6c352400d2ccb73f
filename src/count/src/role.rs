//! Roles of events in metrics.

use rperf_wire::{Attr, AttrFlags, EventType};

/// Role of an event in metrics. Numbers of caches are those of `uapi/linux/perf_event.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// A clock of tasks or CPUs, in nanoseconds.
    Clock,
    /// Processor cycles.
    Cycles,
    /// Instructions that were retired.
    Instructions,
    /// Last-level cache accesses.
    CacheReferences,
    /// Last-level cache misses.
    CacheMisses,
    /// Branches that were retired.
    Branches,
    /// Mispredicted branches.
    BranchMisses,
    /// Cycles stalled in the frontend.
    StalledFrontend,
    /// Cycles stalled in the backend.
    StalledBackend,
    /// Loads from the cache or TLB that has this number (`PERF_COUNT_HW_CACHE_L1D` and others).
    Loads(u8),
    /// Load misses of the cache or TLB that has this number.
    LoadMisses(u8),
    /// A time that `stat` itself measures, for which no rate makes sense. Callers set it for tool events (`duration_time`,
    /// `user_time`, `system_time`); [`Role::of`] never returns it.
    Time,
    /// No special role.
    #[default]
    Other,
}

// The numbers of caches: first-level data and instructions, last level, both TLBs.
const L1D: u8 = 0;
const L1I: u8 = 1;
const LL: u8 = 2;
const DTLB: u8 = 3;
const ITLB: u8 = 4;

impl Role {
    /// The role of the event with this attr.
    #[must_use]
    pub fn of(attr: &Attr) -> Self {
        // On hybrid machines the upper 32 bits are the type of the PMU.
        let config = attr.config & 0xffff_ffff;
        match (attr.kind, config) {
            // PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK
            (EventType::SOFTWARE, 0 | 1) => Self::Clock,
            (EventType::HARDWARE, 0) => Self::Cycles,
            (EventType::HARDWARE, 1) => Self::Instructions,
            (EventType::HARDWARE, 2) => Self::CacheReferences,
            (EventType::HARDWARE, 3) => Self::CacheMisses,
            (EventType::HARDWARE, 4) => Self::Branches,
            (EventType::HARDWARE, 5) => Self::BranchMisses,
            (EventType::HARDWARE, 7) => Self::StalledFrontend,
            (EventType::HARDWARE, 8) => Self::StalledBackend,
            (EventType::HW_CACHE, _) => Self::of_cache(config),
            _ => Self::Other,
        }
    }

    /// For a role that counts misses: the role that counts all branches or accesses, and the text of their ratio. `None` for
    /// other roles.
    #[must_use]
    pub fn miss_ratio_base(self) -> Option<(Self, &'static str)> {
        Some(match self {
            Self::BranchMisses => (Self::Branches, "of all branches"),
            Self::CacheMisses => (Self::CacheReferences, "of all cache refs"),
            Self::LoadMisses(cache) => {
                let text = match cache {
                    L1D => "of all L1-dcache accesses",
                    L1I => "of all L1-icache accesses",
                    LL => "of all LL-cache accesses",
                    DTLB => "of all dTLB cache accesses",
                    ITLB => "of all iTLB cache accesses",
                    _ => return None,
                };
                (Self::Loads(cache), text)
            }
            _ => return None,
        })
    }

    /// Decodes a cache event: cache in the first byte, operation (0 is a load) in the second,
    /// result (`outcome`; 0 is an access, 1 a miss) in the third. `rest`, the fourth byte, must be 0. The caller cleared the
    /// upper four.
    fn of_cache(config: u64) -> Self {
        let [cache, operation, outcome, rest, ..] = config.to_le_bytes();
        match (cache, operation, outcome, rest) {
            (L1D..=ITLB, 0, 0, 0) => Self::Loads(cache),
            (L1D..=ITLB, 0, 1, 0) => Self::LoadMisses(cache),
            _ => Self::Other,
        }
    }
}

/// The `exclude_user`, `_kernel`, `_hv`, `_host` and `_idle` bits of an event (as in perf, without `exclude_guest`), and its PMU
/// on hybrid machines. A ratio of two counts makes sense only if their modes are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CountingMode {
    excluded: [bool; 5],
    /// The type of the PMU on hybrid machines, otherwise 0.
    pmu: u64,
}

impl CountingMode {
    /// The mode of the event with this attr.
    #[must_use]
    pub fn of(attr: &Attr) -> Self {
        let flags = [
            AttrFlags::EXCLUDE_USER,
            AttrFlags::EXCLUDE_KERNEL,
            AttrFlags::EXCLUDE_HV,
            AttrFlags::EXCLUDE_HOST,
            AttrFlags::EXCLUDE_IDLE,
        ];
        Self {
            excluded: flags.map(|flag| attr.flags.contains(flag)),
            pmu: match attr.kind {
                EventType::HARDWARE | EventType::HW_CACHE => attr.config >> 32,
                _ => 0,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(kind: EventType, config: u64) -> Role {
        Role::of(&Attr {
            kind,
            config,
            ..Attr::default()
        })
    }

    #[test]
    fn roles_follow_from_attrs() {
        assert_eq!(role(EventType::SOFTWARE, 1), Role::Clock);
        assert_eq!(role(EventType::SOFTWARE, 3), Role::Other);
        assert_eq!(role(EventType::HARDWARE, 8), Role::StalledBackend);
        assert_eq!(
            role(EventType::HARDWARE, 4 << 32),
            Role::Cycles,
            "a hybrid one"
        );
        assert_eq!(role(EventType::HW_CACHE, 0x0_0003), Role::Loads(DTLB));
        assert_eq!(role(EventType::HW_CACHE, 0x1_0002), Role::LoadMisses(LL));
        for other in [0x1_0100, 0x0_0200, 0x1_0005, 0x2_0000] {
            assert_eq!(role(EventType::HW_CACHE, other), Role::Other, "{other:#x}");
        }
        assert_eq!(role(EventType::RAW, 0), Role::Other);
    }
}
