//! Branches as frames: callchains that start with the branches before their sample.

use rperf_wire::{BranchEntry, BranchStack, Endian, U64s};

use crate::marks::BranchMark;
use crate::options::Direction;

/// Maximum length of a branch stack: as in perf, longer ones are regarded as corrupted and not used.
const MAX_BRANCHES: usize = 127;

/// Maximum size of a call instruction in bytes: distance of a return address from the call.
const MAX_CALL_SIZE: u64 = 8;

/// Values from here on are not addresses but markers (`PERF_CONTEXT_MAX`).
const MARKERS: u64 = (-4095_i64).cast_unsigned();

/// A branch before a sample: a step of the callchain, shown as two frames (target and source).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainBranch {
    branch: BranchEntry,
    /// Number of loop iterations removed directly before this step: 0 or 1, see [`remove_loops`].
    passes: u32,
    /// Cycles of the removed iteration.
    loop_cycles: u64,
}

/// Words of an encoded branch: `from`, `to` and `flags`.
const BRANCH_WORDS: usize = 3;
/// Size of an encoded branch in bytes.
const BRANCH_SIZE: usize = BRANCH_WORDS * size_of::<u64>();

/// Encodes the number of branches, the branches and the callchain, for [`decode`].
pub(crate) fn encode(branches: Option<BranchStack<'_>>, chain: &[u8], out: &mut Vec<u8>) {
    let count = branches.map_or(0, |branches| branches.len() as u64);
    out.extend_from_slice(&count.to_le_bytes());
    for branch in branches.iter().flat_map(BranchStack::iter) {
        for word in [branch.from, branch.to, branch.flags] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    out.extend_from_slice(chain);
}

/// Decodes the output of [`encode`]: the branches, newest first, and the callchain.
pub(crate) fn decode(bytes: &[u8]) -> (Vec<BranchEntry>, &[u8]) {
    let Some((count, rest)) = bytes.split_at_checked(size_of::<u64>()) else {
        return (Vec::new(), bytes);
    };
    let count = U64s::new(count, Endian::Little).get(0).unwrap_or_default();
    let size = usize::try_from(count)
        .ok()
        .and_then(|count| count.checked_mul(BRANCH_SIZE));
    let Some((branches, chain)) = size.and_then(|size| rest.split_at_checked(size)) else {
        return (Vec::new(), rest);
    };
    let words = U64s::new(branches, Endian::Little);
    let word = |at| words.get(at).unwrap_or_default();
    let branch = |at: usize| BranchEntry {
        from: word(at * BRANCH_WORDS),
        to: word(at * BRANCH_WORDS + 1),
        flags: word(at * BRANCH_WORDS + 2),
    };
    let branches = (0..words.len() / BRANCH_WORDS).map(branch).collect();
    (branches, chain)
}

/// Converts at most `max` of `branches` to steps in call graph order: as in perf, the newest branches if callees come first, the
/// oldest ones if callers do. Then removes loops. There are no steps if there are more than [`MAX_BRANCHES`] branches.
pub(crate) fn steps(branches: &[BranchEntry], order: Direction, max: usize) -> Vec<ChainBranch> {
    if branches.len() > MAX_BRANCHES {
        return Vec::new();
    }
    let step = |branch: &BranchEntry| ChainBranch {
        branch: *branch,
        passes: 0,
        loop_cycles: 0,
    };
    let mut steps: Vec<ChainBranch> = match order {
        Direction::Callee => branches.iter().take(max).map(step).collect(),
        Direction::Caller => branches.iter().rev().take(max).map(step).collect(),
    };
    remove_loops(&mut steps);
    steps
}

impl ChainBranch {
    /// The frames of the branch: the target, then the source; as in perf, in both call graph orders.
    pub(crate) fn frames(&self) -> [(u64, BranchMark); 2] {
        let BranchEntry { from, to, flags } = self.branch;
        let origin = BranchMark::From {
            cycles: self.branch.cycles(),
            passes: self.passes,
            loop_cycles: self.loop_cycles,
        };
        [(to, BranchMark::To { from, to, flags }), (from, origin)]
    }
}

/// Number of addresses at the start of `chain` that are return addresses of calls among the `max` newest of `branches`: the
/// frames of the branches show these callers already. 0 if there are more than [`MAX_BRANCHES`] branches, which are not shown.
pub(crate) fn overlap(branches: &[BranchEntry], max: usize, chain: U64s<'_>) -> usize {
    if branches.len() > MAX_BRANCHES {
        return 0;
    }
    let mut covered = 0;
    // As in perf, each branch accounts for at most one entry, be it a marker or a return address.
    for branch in branches.iter().take(max) {
        let Some(entry) = chain.get(covered) else {
            break;
        };
        let is_return = branch.from < entry && branch.from >= entry.saturating_sub(MAX_CALL_SIZE);
        if entry >= MARKERS || is_return {
            covered += 1;
        }
    }
    // Markers are not counted.
    let entries = (0..covered).filter_map(|at| chain.get(at));
    entries.filter(|entry| *entry < MARKERS).count()
}

/// Size of the hash table of branch sources. As in perf, it has one branch per slot: loops whose
/// first branch collides are not found.
const SLOTS: usize = 127;

fn slot(from: u64) -> usize {
    // 2^64 divided by the square of the golden ratio, the kernel's hash multiplier; the 7 highest
    // bits are used.
    (from.wrapping_mul(0x61c8_8646_80b5_83eb) >> 57) as usize % SLOTS
}

/// Removes repetitions of the preceding steps. As in perf, the step after a removed repetition counts it, but is not examined as
/// the start of another repetition, so some repetitions remain.
fn remove_loops(steps: &mut Vec<ChainBranch>) {
    // The index of the first step in each slot.
    let mut first = [None; SLOTS];
    let mut at = 0;
    while let Some(step) = steps.get(at) {
        let from = step.branch.from;
        let known = &mut first[slot(from)];
        let start = *known.get_or_insert(at);
        if start < at && steps[start].branch.from == from {
            // At the end of the steps, part of an iteration is enough.
            let pairs = steps[start..at].iter().zip(&steps[at..]);
            let is_loop = pairs
                .into_iter()
                .all(|(one, other)| one.branch.from == other.branch.from);
            if is_loop {
                let end = (at + at - start).min(steps.len());
                let body = steps.drain(at..end);
                let cycles = body.map(|step| step.branch.cycles()).sum();
                if let Some(next) = steps.get_mut(at) {
                    next.passes += 1;
                    next.loop_cycles = cycles;
                }
            }
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A branch that took 3 cycles, which the flags contain from bit 4 on.
    fn branch(from: u64) -> BranchEntry {
        BranchEntry {
            from,
            to: from + 1,
            flags: 3 << 4,
        }
    }

    #[test]
    fn the_second_iteration_of_a_loop_is_removed() {
        let branches = [9, 1, 2, 1, 2, 1, 2, 7].map(branch);
        let steps_of = |order, max| {
            let steps = steps(&branches, order, max);
            let step = |step: &ChainBranch| (step.branch.from, step.passes, step.loop_cycles);
            steps.iter().map(step).collect::<Vec<_>>()
        };
        // The second iteration of 1 and 2, of 6 cycles, is removed; the third is then not examined.
        assert_eq!(
            steps_of(Direction::Callee, 100),
            [
                (9, 0, 0),
                (1, 0, 0),
                (2, 0, 0),
                (1, 1, 6),
                (2, 0, 0),
                (7, 0, 0)
            ]
        );
        assert_eq!(steps_of(Direction::Caller, 2), [(7, 0, 0), (2, 0, 0)]);
    }

    #[test]
    fn bytes_are_decoded() {
        let mut bytes = Vec::new();
        encode(None, &[1, 2], &mut bytes);
        assert_eq!(decode(&bytes), (Vec::new(), &[1, 2][..]));
        let mut bytes = 1u64.to_le_bytes().to_vec();
        for word in [10u64, 11, 0x30] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.push(7);
        assert_eq!(decode(&bytes), (vec![branch(10)], &[7][..]));
        // Truncated bytes cause no panic.
        for end in 0..bytes.len() {
            let _ = decode(&bytes[..end]);
        }
    }

    #[test]
    fn callers_known_from_branches_are_omitted() {
        let words = [MARKERS, 0x1005, 0x2005, 0x3005];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let chain = U64s::new(&bytes, Endian::Little);
        let branches = [0x500, 0x1000, 0x2000, 0x600].map(branch);
        assert_eq!(overlap(&branches, 100, chain), 2);
        assert_eq!(overlap(&branches, 2, chain), 1);
        assert_eq!(overlap(&[], 100, chain), 0);
        let corrupted = [branches[1]; MAX_BRANCHES + 1];
        assert_eq!(overlap(&corrupted, 100, chain), 0);
    }
}
