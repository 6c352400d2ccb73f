//! The parts of a memory access that filters compare: bit-fields of `union perf_mem_data_src` (linux/perf_event.h), with perf's
//! names for their values.

/// A part of the data source.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MemoryPart {
    /// The name of the part in filters, such as `mem_op`.
    pub(super) name: &'static str,
    /// First bit and number of bits.
    bits: (u32, u32),
    /// The upper bits of the value, if the data source has them in another place: first bit and number of bits.
    upper_bits: Option<(u32, u32)>,
    /// The names of values, with the values.
    values: &'static [(&'static str, u64)],
}

/// All parts.
pub(super) const PARTS: [MemoryPart; 8] = [
    MemoryPart {
        name: "mem_op",
        bits: (0, 5),
        upper_bits: None,
        values: &[
            ("na", 1),
            ("load", 2),
            ("store", 4),
            ("pfetch", 8),
            ("exec", 16),
        ],
    },
    MemoryPart {
        name: "mem_lvl",
        // The level as a number (`mem_lvl_num`), not the older bits of `mem_lvl`.
        bits: (33, 4),
        upper_bits: None,
        values: &[
            ("l1", 1),
            ("l2", 2),
            ("l3", 3),
            ("l4", 4),
            ("cxl", 9),
            ("io", 10),
            ("any_cache", 11),
            ("lfb", 12),
            ("ram", 13),
            ("pmem", 14),
            ("na", 15),
        ],
    },
    MemoryPart {
        name: "mem_snoop",
        bits: (19, 5),
        upper_bits: Some((38, 2)),
        values: &[
            ("na", 1),
            ("none", 2),
            ("hit", 4),
            ("miss", 8),
            ("hitm", 16),
            ("fwd", 32),
            ("peer", 64),
        ],
    },
    MemoryPart {
        name: "mem_remote",
        bits: (37, 1),
        upper_bits: None,
        values: &[("remote", 1)],
    },
    MemoryPart {
        name: "mem_lock",
        bits: (24, 2),
        upper_bits: None,
        values: &[("na", 1), ("locked", 2)],
    },
    MemoryPart {
        name: "mem_dtlb",
        bits: (26, 7),
        upper_bits: None,
        values: &[
            ("na", 1),
            ("any_hit", 2),
            ("any_miss", 4),
            ("l1_hit", 8 | 2),
            ("l1_miss", 8 | 4),
            ("l2_hit", 16 | 2),
            ("l2_miss", 16 | 4),
            ("walk", 32),
            ("fault", 64),
        ],
    },
    MemoryPart {
        name: "mem_blk",
        bits: (40, 3),
        upper_bits: None,
        values: &[("na", 1), ("by_data", 2), ("by_addr", 4)],
    },
    MemoryPart {
        name: "mem_hops",
        bits: (43, 3),
        upper_bits: None,
        values: &[("hops0", 1), ("hops1", 2), ("hops2", 3), ("hops3", 4)],
    },
];

impl MemoryPart {
    /// Returns the value of this part of the data source `source`.
    pub(super) fn of(&self, source: u64) -> u64 {
        let (first, count) = self.bits;
        let lower = field(source, first, count);
        let upper = self.upper_bits;
        let upper = upper.map_or(0, |(first, count)| field(source, first, count));
        lower | upper << count
    }

    /// Returns the value with this name.
    pub(super) fn named_value(&self, name: &str) -> Option<u64> {
        let value = self.values.iter().find(|(known, _)| *known == name);
        value.map(|(_, value)| *value)
    }

    /// Returns the names of the values.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.values.iter().map(|(name, _)| *name).collect()
    }
}

/// Returns the `count` bits of the data source from the bit `first` on.
fn field(source: u64, first: u32, count: u32) -> u64 {
    source >> first & ((1 << count) - 1)
}
