//! Short names of allocation flags.

/// The kernel's names of flags (`include/trace/events/mmflags.h`), each with its short form in perf's tables. As in
/// perf, some flags share a short form (`R`, `NF`).
const SHORT: &[(&str, &str)] = &[
    ("GFP_TRANSHUGE", "THP"),
    ("GFP_TRANSHUGE_LIGHT", "THL"),
    ("GFP_HIGHUSER_MOVABLE", "HUM"),
    ("GFP_HIGHUSER", "HU"),
    ("GFP_USER", "U"),
    ("GFP_KERNEL_ACCOUNT", "KAC"),
    ("GFP_KERNEL", "K"),
    ("GFP_NOFS", "NF"),
    ("GFP_ATOMIC", "A"),
    ("GFP_NOIO", "NI"),
    ("GFP_NOWAIT", "NW"),
    ("GFP_DMA", "D"),
    ("__GFP_HIGHMEM", "HM"),
    ("GFP_DMA32", "D32"),
    ("__GFP_HIGH", "H"),
    ("__GFP_ATOMIC", "_A"),
    ("__GFP_IO", "I"),
    ("__GFP_FS", "F"),
    ("__GFP_NOWARN", "NWR"),
    ("__GFP_RETRY_MAYFAIL", "R"),
    ("__GFP_NOFAIL", "NF"),
    ("__GFP_NORETRY", "NR"),
    ("__GFP_COMP", "C"),
    ("__GFP_ZERO", "Z"),
    ("__GFP_NOMEMALLOC", "NMA"),
    ("__GFP_MEMALLOC", "MA"),
    ("__GFP_HARDWALL", "HW"),
    ("__GFP_THISNODE", "TN"),
    ("__GFP_RECLAIMABLE", "RC"),
    ("__GFP_MOVABLE", "M"),
    ("__GFP_ACCOUNT", "AC"),
    ("__GFP_WRITE", "WR"),
    ("__GFP_RECLAIM", "R"),
    ("__GFP_DIRECT_RECLAIM", "DR"),
    ("__GFP_KSWAPD_RECLAIM", "KR"),
];

/// Returns the short forms of `names`, separated by `|` as the names are. Names without a short form are omitted, as in perf.
pub(super) fn abbreviated(names: &str) -> String {
    let short = names.split('|').filter_map(|name| {
        let known = SHORT.iter().find(|(long, _)| *long == name);
        known.map(|(_, short)| *short)
    });
    short.collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::abbreviated;

    #[test]
    fn unknown_names_are_omitted() {
        let names = "GFP_HIGHUSER_MOVABLE|__GFP_ZERO|__GFP_NEW|0x10000000";
        assert_eq!(abbreviated(names), "HUM|Z");
    }
}
