//! Counts of branches by type, direction and page crossing, as perf shows them for branch stacks.

use rperf_wire::BranchEntry;

/// Number of branches by type (conditional ones also by direction), and number of branches to another page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BranchCounts {
    /// By kind: `type` in the flags of a branch (`PERF_BR_*`).
    kinds: [u64; 16],
    /// By `PERF_BR_NEW_*`, for branches of type `PERF_BR_EXTEND_ABI`. Only those in [`NEW_TYPES`] have a name; [`Self::total`]
    /// contains all.
    new_types: [u64; 16],
    forward: u64,
    backward: u64,
    /// Branches to another 4 KiB page of the same 2 MiB.
    across_pages: u64,
    /// Branches to another 2 MiB.
    across_large_pages: u64,
}

const UNKNOWN: usize = 0;
const CONDITIONAL: usize = 1;
const EXTENDED: usize = 15;

/// Positions of `type` and `new_type` in the flags of a branch, and the mask of either.
const KIND_SHIFT: u32 = 20;
const NEW_TYPE_SHIFT: u32 = 26;
const TYPE_MASK: u64 = 0xf;

const PAGE: u64 = 4 << 10;
const LARGE_PAGE: u64 = 2 << 20;

/// perf's names of the types by `PERF_BR_*`, except `PERF_BR_EXTEND_ABI`, whose branches have one of [`NEW_TYPES`].
const KINDS: [&str; 15] = [
    "N/A",
    "COND",
    "UNCOND",
    "IND",
    "CALL",
    "IND_CALL",
    "RET",
    "SYSCALL",
    "SYSRET",
    "COND_CALL",
    "COND_RET",
    "ERET",
    "IRQ",
    "SERROR",
    "NO_TX",
];

/// perf's names of the types by `PERF_BR_NEW_*`.
const NEW_TYPES: [&str; 8] = [
    "FAULT_ALGN",
    "FAULT_DATA",
    "FAULT_INST",
    "ARCH_1",
    "ARCH_2",
    "ARCH_3",
    "ARCH_4",
    "ARCH_5",
];

impl BranchCounts {
    /// Counts a branch that was taken `times` times, unless its type or its source address is unknown.
    pub(crate) fn add(&mut self, branch: &BranchEntry, times: u64) {
        let field = |shift: u32| (branch.flags >> shift & TYPE_MASK) as usize;
        let kind = field(KIND_SHIFT);
        if kind == UNKNOWN || branch.from == 0 {
            return;
        }
        match kind {
            EXTENDED => self.new_types[field(NEW_TYPE_SHIFT)] += times,
            kind => self.kinds[kind] += times,
        }
        if kind == CONDITIONAL {
            match branch.to > branch.from {
                true => self.forward += times,
                false => self.backward += times,
            }
        }
        let crosses = |size: u64| branch.from / size != branch.to / size;
        if crosses(LARGE_PAGE) {
            self.across_large_pages += times;
        } else if crosses(PAGE) {
            self.across_pages += times;
        }
    }

    /// Adds the counts of another part of the recording.
    pub(crate) fn merge(&mut self, other: &Self) {
        let add = |own: &mut [u64], more: &[u64]| {
            own.iter_mut()
                .zip(more)
                .for_each(|(own, more)| *own += more);
        };
        add(&mut self.kinds, &other.kinds);
        add(&mut self.new_types, &other.new_types);
        self.forward += other.forward;
        self.backward += other.backward;
        self.across_pages += other.across_pages;
        self.across_large_pages += other.across_large_pages;
    }

    /// Number of branches of known type and source address.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.kinds.iter().chain(&self.new_types).sum()
    }

    /// Names of the types and page crossings that occur, in the order of perf's call graphs; conditional branches only by
    /// direction, without `COND`.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let directions = [("COND_FWD", self.forward), ("COND_BWD", self.backward)];
        let kinds = KINDS.into_iter().zip(self.kinds).enumerate();
        let kinds = kinds.filter(|(kind, _)| *kind != CONDITIONAL);
        let new_types = NEW_TYPES.into_iter().zip(self.new_types);
        let pages = [
            ("CROSS_4K", self.across_pages),
            ("CROSS_2M", self.across_large_pages),
        ];
        let all = directions.into_iter().chain(kinds.map(|(_, kind)| kind));
        let all = all.chain(new_types).chain(pages);
        all.filter(|(_, count)| *count > 0).map(|(name, _)| name)
    }

    /// Non-zero counts, with the names and in the order of perf's summary of all branches: directions and page crossings come
    /// before the types. Conditional branches are counted by direction and again as `COND`.
    pub fn list(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let directions_and_pages = [
            ("COND_FWD", self.forward),
            ("COND_BWD", self.backward),
            ("CROSS_4K", self.across_pages),
            ("CROSS_2M", self.across_large_pages),
        ];
        let kinds = KINDS.into_iter().zip(self.kinds);
        let new_types = NEW_TYPES.into_iter().zip(self.new_types);
        let all = directions_and_pages.into_iter().chain(kinds);
        let all = all.chain(new_types);
        all.filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also covers page crossings, branches that are not counted, and [`BranchCounts::merge`].
    #[test]
    fn conditional_branches_are_also_counted_by_direction() {
        let branch = |from, to, kind: u64| BranchEntry {
            from,
            to,
            flags: kind << KIND_SHIFT,
        };
        let mut counts = BranchCounts::default();
        for branch in [
            branch(0x1000, 0x1010, 1),
            branch(0x1010, 0x1000, 1),
            branch(0x1010, 0x2000, 4),
            branch(0x1010, 0x40_0000, 6),
            branch(0, 0x1000, 6),
            branch(0x1000, 0x1000, 0),
        ] {
            counts.add(&branch, 1);
        }
        let mut both = counts.clone();
        both.merge(&counts);
        assert_eq!(both.total(), 8);
        let expected = [
            ("COND_FWD", 1),
            ("COND_BWD", 1),
            ("CROSS_4K", 1),
            ("CROSS_2M", 1),
            ("COND", 2),
            ("CALL", 1),
            ("RET", 1),
        ];
        assert_eq!(counts.list().collect::<Vec<_>>(), expected);
    }
}
