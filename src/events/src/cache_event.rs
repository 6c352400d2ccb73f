//! Generalised cache events, such as `L1-dcache-load-misses`, in all their spellings.

use rperf_wire::{Attr, CACHE_NAMES, EventType};

/// Alternative names of the caches, indexed by their number in `config` (`enum perf_hw_cache_id`).
const CACHES: [&[&str]; 7] = [
    &["l1-d", "l1d", "L1-data"],
    &["l1-i", "l1i", "L1-instruction"],
    &["L2"],
    &["d-tlb", "Data-TLB"],
    &["i-tlb", "Instruction-TLB"],
    &["branches", "bpu", "btb", "bpc"],
    &[],
];
/// Names of the operations. The default names of events contain an operation's first name (`L1-dcache-loads`) or, before
/// `-misses`, its second (`L1-dcache-load-misses`).
const OPERATIONS: [&[&str]; 3] = [
    &["loads", "load", "read"],
    &["stores", "store", "write"],
    &[
        "prefetches",
        "prefetch",
        "speculative-read",
        "speculative-load",
    ],
];
/// Names of the results.
const RESULTS: [&[&str]; 2] = [&["refs", "Reference", "ops", "access"], &["misses", "miss"]];
/// The operations that each cache supports, as in perf: bit N is that of `OPERATIONS[N]`.
const POSSIBLE: [u8; 7] = [0b111, 0b101, 0b111, 0b111, 0b001, 0b001, 0b111];

/// Result of parsing a cache event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheEvent {
    /// The `config` of a supported event.
    Known(u64),
    /// A cache event whose operation is not supported by its cache, which has this number.
    Impossible(usize),
}

impl CacheEvent {
    /// Parses a name; `None` if it is not a cache event.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (cache, mut rest) = cache(name)?;
        let (mut operation, mut result) = (None, None);
        while !rest.is_empty() {
            rest = rest.strip_prefix('-')?;
            if let (None, Some((found, after))) = (operation, word(&OPERATIONS, rest)) {
                (operation, rest) = (Some(found), after);
            } else if let (None, Some((found, after))) = (result, word(&RESULTS, rest)) {
                (result, rest) = (Some(found), after);
            } else {
                return None;
            }
        }
        // The default operation is `loads`, the default result `refs`: both are number 0.
        let operation = operation.unwrap_or_default();
        let possible = POSSIBLE.get(cache).copied().unwrap_or_default();
        if possible & (1 << operation) == 0 {
            return Some(Self::Impossible(cache));
        }
        let number = cache | operation << 8 | result.unwrap_or_default() << 16;
        Some(Self::Known(u64::try_from(number).ok()?))
    }
}

/// The attr of a cache event.
pub(crate) fn attr(config: u64) -> Attr {
    Attr {
        kind: EventType::HW_CACHE,
        config,
        ..Attr::default()
    }
}

/// The default names of the events of the cache with this number: loads, load misses, and so on.
pub(crate) fn names_of(cache: usize) -> Vec<String> {
    let name = CACHE_NAMES.get(cache).copied().unwrap_or_default();
    let possible = POSSIBLE.get(cache).copied().unwrap_or_default();
    let operations = OPERATIONS.iter().enumerate();
    let supported = operations.filter(|(number, _)| possible & (1 << number) != 0);
    let spellings = supported.filter_map(|(_, names)| Some((names.first()?, names.get(1)?)));
    spellings
        .flat_map(|(plural, singular)| {
            [
                format!("{name}-{plural}"),
                format!("{name}-{singular}-misses"),
            ]
        })
        .collect()
}

/// The default names of all cache events.
pub(crate) fn all_names() -> Vec<String> {
    (0..CACHE_NAMES.len()).flat_map(names_of).collect()
}

/// The `config` of a supported event; `None` for other names.
pub(crate) fn config_of(name: &str) -> Option<u64> {
    match CacheEvent::parse(name)? {
        CacheEvent::Known(config) => Some(config),
        CacheEvent::Impossible(_) => None,
    }
}

/// The number of the cache at the start of a name, and the rest of the name. The longest spelling that fits is used.
fn cache(name: &str) -> Option<(usize, &str)> {
    let spellings = CACHE_NAMES.iter().zip(CACHES).enumerate();
    let begins = spellings.flat_map(|(number, (default_name, alternatives))| {
        let all = std::iter::once(default_name).chain(alternatives);
        all.filter_map(move |spelling| Some((number, rest_after(spelling, name)?)))
    });
    begins.min_by_key(|(_, rest)| rest.len())
}

/// The index of the first list with a word that `text` starts with, and the text after the longest such word of that list.
fn word<'a>(lists: &[&[&str]], text: &'a str) -> Option<(usize, &'a str)> {
    let lists = lists.iter().enumerate();
    lists
        .filter_map(|(number, spellings)| {
            let rests = spellings
                .iter()
                .filter_map(|spelling| rest_after(spelling, text));
            Some((number, rests.min_by_key(|rest| rest.len())?))
        })
        .next()
}

/// The text after `word`, if `text` starts with it and a hyphen or the end follows.
fn rest_after<'a>(word: &str, text: &'a str) -> Option<&'a str> {
    let rest = text.strip_prefix(word)?;
    (rest.is_empty() || rest.starts_with('-')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_map_to_the_kernels_config() {
        for (name, config) in [
            ("L1-dcache-loads", 0),
            ("L1-dcache", 0),
            ("L1-dcache-load-misses", 0x1_0000),
            ("L1-dcache-miss", 0x1_0000),
            ("l1d-read", 0),
            ("LLC-prefetches", 0x202),
            ("LLC-load-access", 2),
            ("LLC-speculative-load-misses", 0x1_0202),
            ("dTLB-prefetch-misses", 0x1_0203),
            ("branch-load-misses", 0x1_0005),
            ("node-store-refs", 0x106),
        ] {
            assert_eq!(
                CacheEvent::parse(name),
                Some(CacheEvent::Known(config)),
                "{name}"
            );
        }
    }

    #[test]
    fn unsupported_operations_differ_from_unknown_names() {
        assert_eq!(
            CacheEvent::parse("iTLB-stores"),
            Some(CacheEvent::Impossible(4))
        );
        assert_eq!(
            CacheEvent::parse("L1-icache-stores"),
            Some(CacheEvent::Impossible(1))
        );
        assert_eq!(names_of(4), ["iTLB-loads", "iTLB-load-misses"]);
        for other in [
            "dcache-loads",
            // Spellings are case-sensitive: only `l1-d` is valid.
            "L1-d-load-miss",
            "L1-dcache-x",
            "node-",
            "LLCx",
            "LLC-loads-loads",
        ] {
            assert_eq!(CacheEvent::parse(other), None, "{other}");
        }
    }
}
