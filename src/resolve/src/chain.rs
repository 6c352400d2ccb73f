//! Parsing of callchains: frames and their modes.

use rperf_wire::{
    CpuMode, PERF_CONTEXT_HV, PERF_CONTEXT_KERNEL, PERF_CONTEXT_MAX, PERF_CONTEXT_USER, U64s,
};

/// Meaning of a callchain entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChainEntry {
    Address,
    Mode(CpuMode),
    /// A marker that doesn't occur in callchains of the host: the chain is corrupted.
    Invalid,
}

impl ChainEntry {
    #[inline]
    fn of(value: u64) -> Self {
        if value < PERF_CONTEXT_MAX {
            return Self::Address;
        }
        match value {
            PERF_CONTEXT_HV => Self::Mode(CpuMode::Hypervisor),
            PERF_CONTEXT_KERNEL => Self::Mode(CpuMode::Kernel),
            PERF_CONTEXT_USER => Self::Mode(CpuMode::User),
            _ => Self::Invalid,
        }
    }
}

/// Calls `frame(mode, address)` for each frame, innermost first, and stops after `max_stack` of them.
///
/// As in perf 6.1, addresses before the first marker are user addresses in every sample mode,
/// and an invalid marker invalidates the whole chain: then the result is `false`, and the frames so
/// far must be dropped. Markers after the last frame within the limit are not examined.
pub fn walk(chain: U64s<'_>, max_stack: usize, frame: impl FnMut(CpuMode, u64)) -> bool {
    walk_part(CpuMode::User, chain, max_stack, frame)
}

/// Returns the mode and the address of each frame of `chain`, innermost first, at most `max_stack`; none of a corrupted chain.
#[must_use]
pub fn chain_addresses(chain: U64s<'_>, max_stack: usize) -> Vec<(CpuMode, u64)> {
    let mut frames = Vec::with_capacity(chain.len().min(max_stack));
    match walk(chain, max_stack, |mode, ip| frames.push((mode, ip))) {
        true => frames,
        false => Vec::new(),
    }
}

/// Like [`walk`], for a part of a chain: the `entries` before their first marker are in `mode`.
pub fn walk_part(
    mut mode: CpuMode,
    entries: U64s<'_>,
    max_stack: usize,
    mut frame: impl FnMut(CpuMode, u64),
) -> bool {
    let mut frames = 0;
    for value in entries.iter() {
        if frames >= max_stack {
            break;
        }
        match ChainEntry::of(value) {
            ChainEntry::Address => {
                frames += 1;
                frame(mode, value);
            }
            ChainEntry::Mode(switched) => mode = switched,
            ChainEntry::Invalid => return false,
        }
    }
    true
}

/// Returns the size in bytes of the first `max_stack` frames of `chain` with their markers; `None` if an invalid marker is
/// among them.
#[must_use]
pub fn bytes_within(chain: U64s<'_>, max_stack: usize) -> Option<usize> {
    let mut frames = 0;
    for (index, value) in chain.iter().enumerate() {
        if frames >= max_stack {
            return Some(index * ENTRY_SIZE);
        }
        match ChainEntry::of(value) {
            ChainEntry::Address => frames += 1,
            ChainEntry::Mode(_) => {}
            ChainEntry::Invalid => return None,
        }
    }
    Some(chain.as_bytes().len())
}

/// Appends the bytes of the outermost `max_stack` frames of `chain` and of all markers; nothing for a corrupted chain.
pub(crate) fn write_outermost(chain: U64s<'_>, max_stack: usize, out: &mut Vec<u8>) {
    let entries = || chain.iter().map(ChainEntry::of);
    if entries().any(|entry| entry == ChainEntry::Invalid) {
        return;
    }
    let frames = entries()
        .filter(|entry| *entry == ChainEntry::Address)
        .count();
    let mut to_drop = frames.saturating_sub(max_stack);
    for (entry, bytes) in entries().zip(chain.as_bytes().chunks_exact(ENTRY_SIZE)) {
        match entry {
            ChainEntry::Address if to_drop > 0 => to_drop -= 1,
            _ => out.extend_from_slice(bytes),
        }
    }
}

/// Size of an entry in bytes.
pub(crate) const ENTRY_SIZE: usize = 8;
/// Number of entries in a part; see [`parts`].
const PART: usize = 8;

/// Splits `callers`, the entries after the first frame of a chain, into parts of eight entries, and calls `part(mode, entries)`
/// for each, innermost first. Entries after the first `max_stack` frames of `callers` are dropped. The others are split from the
/// outermost on, so only the innermost part may be shorter, and stacks that differ only in inner callers have equal outer parts.
///
/// `mode` is the mode of the chain's first frame. The mode passed to `part` is the one in effect before the part's first entry.
///
/// Returns `false`, without calling `part`, if an invalid marker is among the first `max_stack` frames of `callers`.
#[inline]
pub fn parts<'a>(
    mut mode: CpuMode,
    callers: U64s<'a>,
    max_stack: usize,
    mut part: impl FnMut(CpuMode, U64s<'a>),
) -> bool {
    let mut frames = 0;
    let mut entry_count = 0;
    for value in callers.iter() {
        if frames >= max_stack {
            break;
        }
        match ChainEntry::of(value) {
            ChainEntry::Address => frames += 1,
            ChainEntry::Mode(_) => {}
            ChainEntry::Invalid => return false,
        }
        entry_count += 1;
    }
    let bytes = callers
        .as_bytes()
        .get(..entry_count * ENTRY_SIZE)
        .unwrap_or_default();
    let (inner, outer) = bytes.split_at(entry_count % PART * ENTRY_SIZE);
    let inner = Some(inner).filter(|inner| !inner.is_empty());
    for bytes in inner.into_iter().chain(outer.chunks(PART * ENTRY_SIZE)) {
        let entries = U64s::new(bytes, callers.endian());
        part(mode, entries);
        for value in entries.iter() {
            if let ChainEntry::Mode(switched) = ChainEntry::of(value) {
                mode = switched;
            }
        }
    }
    true
}

/// A callchain split by [`split_first`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitChain<'a> {
    /// The mode of the first frame, and of the callers before their first marker.
    pub mode: CpuMode,
    /// The address of the first frame.
    pub ip: u64,
    /// All entries after the first frame, undecoded.
    pub callers: &'a [u8],
}

/// The first frame of `chain`, and the rest; `None` if the chain has no frame, or an invalid marker before its first frame.
#[inline]
#[must_use]
pub fn split_first(chain: U64s<'_>) -> Option<SplitChain<'_>> {
    let mut mode = CpuMode::User;
    for (index, value) in chain.iter().enumerate() {
        match ChainEntry::of(value) {
            ChainEntry::Address => {
                return Some(SplitChain {
                    mode,
                    ip: value,
                    callers: chain.as_bytes().get((index + 1) * ENTRY_SIZE..)?,
                });
            }
            ChainEntry::Mode(switched) => mode = switched,
            ChainEntry::Invalid => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use rperf_wire::{Endian, PERF_CONTEXT_GUEST, PERF_CONTEXT_GUEST_USER};

    use super::*;

    fn frames(chain: &[u64], max_stack: usize) -> Option<Vec<(CpuMode, u64)>> {
        let bytes: Vec<u8> = chain.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut frames = Vec::new();
        walk(U64s::new(&bytes, Endian::Little), max_stack, |mode, ip| {
            frames.push((mode, ip));
        })
        .then_some(frames)
    }

    #[test]
    fn markers_switch_the_mode_and_are_no_frames() {
        let chain = [
            PERF_CONTEXT_KERNEL,
            0xffff_ffff_8100_0000,
            PERF_CONTEXT_USER,
            0x4000,
            PERF_CONTEXT_HV,
            7,
        ];
        let expected = vec![
            (CpuMode::Kernel, 0xffff_ffff_8100_0000),
            (CpuMode::User, 0x4000),
            (CpuMode::Hypervisor, 7),
        ];
        assert_eq!(frames(&chain, 127), Some(expected));
    }

    #[test]
    fn before_the_first_marker_everything_is_user_space() {
        let kernel_address = 0xffff_ffff_8100_0000;
        assert_eq!(
            frames(&[kernel_address, PERF_CONTEXT_KERNEL, kernel_address], 127),
            Some(vec![
                (CpuMode::User, kernel_address),
                (CpuMode::Kernel, kernel_address)
            ])
        );
    }

    #[test]
    fn the_outermost_frames_keep_their_markers() {
        let outermost = |chain: &[u64], max_stack| {
            let bytes: Vec<u8> = chain.iter().flat_map(|v| v.to_le_bytes()).collect();
            let mut out = Vec::new();
            write_outermost(U64s::new(&bytes, Endian::Little), max_stack, &mut out);
            U64s::new(&out, Endian::Little).iter().collect::<Vec<_>>()
        };
        let chain = [PERF_CONTEXT_KERNEL, 1, 2, 3, PERF_CONTEXT_USER, 4];
        assert_eq!(outermost(&chain, 4), chain);
        let two = [PERF_CONTEXT_KERNEL, 3, PERF_CONTEXT_USER, 4];
        assert_eq!(outermost(&chain, 2), two);
        assert_eq!(outermost(&[PERF_CONTEXT_GUEST, 1], 2), []);
    }

    #[test]
    fn an_invalid_marker_invalidates_the_chain() {
        for marker in [
            PERF_CONTEXT_GUEST,
            PERF_CONTEXT_GUEST_USER,
            PERF_CONTEXT_MAX,
            u64::MAX,
        ] {
            assert_eq!(frames(&[PERF_CONTEXT_USER, 1, marker, 2], 127), None);
        }
        assert_eq!(
            frames(&[PERF_CONTEXT_USER, 1, PERF_CONTEXT_GUEST], 1),
            Some(vec![(CpuMode::User, 1)]),
            "not reached"
        );
    }

    #[test]
    fn the_first_frame_and_its_callers_are_the_complete_chain() {
        let chains: [&[u64]; 5] = [
            &[PERF_CONTEXT_KERNEL, 1, 2, PERF_CONTEXT_USER, 3],
            &[1, PERF_CONTEXT_KERNEL, 2],
            &[PERF_CONTEXT_USER, PERF_CONTEXT_KERNEL, 1],
            &[1, PERF_CONTEXT_GUEST],
            &[1],
        ];
        let max_stack = 127;
        for chain in chains {
            let bytes: Vec<u8> = chain.iter().flat_map(|v| v.to_le_bytes()).collect();
            let split = split_first(U64s::new(&bytes, Endian::Little)).unwrap();
            let mut together = vec![(split.mode, split.ip)];
            let callers = U64s::new(split.callers, Endian::Little);
            let is_valid = walk_part(split.mode, callers, max_stack - 1, |mode, ip| {
                together.push((mode, ip));
            });
            assert_eq!(
                is_valid.then_some(together),
                frames(chain, max_stack),
                "{chain:x?}"
            );
        }
        for chain in [&[][..], &[PERF_CONTEXT_KERNEL], &[PERF_CONTEXT_GUEST, 1]] {
            let bytes: Vec<u8> = chain.iter().flat_map(|v: &u64| v.to_le_bytes()).collect();
            assert_eq!(split_first(U64s::new(&bytes, Endian::Little)), None);
        }
    }

    #[test]
    fn bytes_within_has_the_first_frames_and_their_markers() {
        let chain = [PERF_CONTEXT_KERNEL, 1, PERF_CONTEXT_USER, 2, 3];
        let bytes: Vec<u8> = chain.iter().flat_map(|v| v.to_le_bytes()).collect();
        for (max_stack, entries) in [(0, 0), (1, 2), (2, 4), (3, 5), (4, 5)] {
            let size = bytes_within(U64s::new(&bytes, Endian::Little), max_stack);
            assert_eq!(size, Some(entries * ENTRY_SIZE), "{max_stack}");
            assert_eq!(frames(&chain[..entries], 127), frames(&chain, max_stack));
        }
        let corrupted = [1, PERF_CONTEXT_GUEST, 2];
        let bytes: Vec<u8> = corrupted.iter().flat_map(|v| v.to_le_bytes()).collect();
        let chain = U64s::new(&bytes, Endian::Little);
        assert_eq!(bytes_within(chain, 2), None);
        assert_eq!(bytes_within(chain, 1), Some(8));
    }

    #[test]
    fn the_limit_does_not_count_context_markers() {
        let chain = [PERF_CONTEXT_KERNEL, 1, PERF_CONTEXT_USER, 2, 3];
        assert_eq!(frames(&chain, 2).map(|frames| frames.len()), Some(2));
        assert_eq!(frames(&chain, 0), Some(Vec::new()));
    }
}
