//! Branch stacks: the last branches that the hardware recorded.

use crate::{BranchSampleType, Cursor, DecodeError, Encoder, Endian, U64s};

/// The branch stack of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchStack<'a> {
    /// Hardware index of the newest entry, if requested.
    pub hw_index: Option<u64>,
    /// Three words per entry: source, target and flags.
    entries: U64s<'a>,
    /// One word of counters per entry, if requested.
    pub counters: Option<U64s<'a>>,
}

/// `struct perf_branch_entry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchEntry {
    /// Address of the branch.
    pub from: u64,
    /// Its target.
    pub to: u64,
    /// The bit-fields that follow the addresses, in little-endian layout. From the low end:
    /// mispredicted, predicted, in a transaction, abort (1 bit each), cycles (16), type (4),
    /// speculation (2), extended type (4), privilege (3).
    pub flags: u64,
}

impl BranchEntry {
    /// Cycles since the previous branch; 0 if the processor doesn't count them.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.flags >> 4 & 0xffff
    }
}

/// Widths of the bit-fields in bits, in order; the last one is reserved.
const FIELD_WIDTHS: [u32; 10] = [1, 1, 1, 1, 16, 4, 2, 4, 3, 31];

impl<'a> BranchStack<'a> {
    /// Number of branches.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len() / 3
    }

    /// Whether there are no branches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The branches, newest first.
    pub fn iter(&self) -> impl Iterator<Item = BranchEntry> + '_ {
        let endian = self.entries.endian();
        (0..self.len()).filter_map(move |index| {
            let at = index * 3;
            Some(BranchEntry {
                from: self.entries.get(at)?,
                to: self.entries.get(at + 1)?,
                flags: little_endian_flags(self.entries.get(at + 2)?, endian),
            })
        })
    }

    /// The entries as recorded: three words each, source, target and flags.
    #[must_use]
    pub fn words(&self) -> U64s<'a> {
        self.entries
    }

    /// Returns this stack with its [`BranchStack::words`] replaced by `entries`, which must have the same length because
    /// `counters`, one word per entry, is kept.
    #[must_use]
    pub fn with_words(self, entries: U64s<'a>) -> Self {
        Self { entries, ..self }
    }

    pub(crate) fn decode(
        at: &mut Cursor<'a>,
        sample_type: BranchSampleType,
    ) -> Result<Self, DecodeError> {
        let count = at.u64("branch stack nr")?;
        let hw_index = if sample_type.contains(BranchSampleType::HW_INDEX) {
            Some(at.u64("branch hw_idx")?)
        } else {
            None
        };
        let entries = at.u64s(count.saturating_mul(3), "branch stack")?;
        let counters = if sample_type.contains(BranchSampleType::COUNTERS) {
            Some(at.u64s(count, "branch counters")?)
        } else {
            None
        };
        Ok(Self {
            hw_index,
            entries,
            counters,
        })
    }
}

/// Appends a branch stack with the parts selected by `sample_type`, which is the attr's `branch_sample_type`; an empty one for
/// `None`.
pub(crate) fn encode_branches(
    stack: Option<BranchStack<'_>>,
    sample_type: BranchSampleType,
    to: &mut Encoder<'_>,
) {
    to.u64(stack.map_or(0, |stack| stack.len() as u64));
    if sample_type.contains(BranchSampleType::HW_INDEX) {
        to.u64(stack.and_then(|stack| stack.hw_index).unwrap_or_default());
    }
    let Some(stack) = stack else { return };
    stack.entries.iter().for_each(|word| to.u64(word));
    if sample_type.contains(BranchSampleType::COUNTERS) {
        let counters = stack.counters.iter().flat_map(U64s::iter);
        counters.for_each(|word| to.u64(word));
    }
}

/// Converts the flags of a recorded entry to the layout of [`BranchEntry::flags`]. Big-endian machines store the first bit-field
/// at the high end of the word.
fn little_endian_flags(word: u64, endian: Endian) -> u64 {
    if endian == Endian::Little {
        return word;
    }
    let (mut rest, mut used, mut flags) = (word, 0, 0);
    for width in FIELD_WIDTHS {
        flags |= rest >> (u64::BITS - width) << used;
        rest <<= width;
        used += width;
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_fields_of_big_endian_machines() {
        // Predicted, 5 cycles, type 2, privilege 1.
        let little = 1 << 1 | 5 << 4 | 2 << 20 | 1 << 30;
        let big = 1 << 62 | 5 << 44 | 2 << 40 | 1 << 31;
        assert_eq!(little_endian_flags(big, Endian::Big), little);
        assert_eq!(little_endian_flags(little, Endian::Little), little);
    }
}
