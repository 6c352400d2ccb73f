//! Callchains whose user part comes from the processor's branch records in call-stack mode (`record
//! --call-graph lbr`): the last calls that have not returned.

use rperf_replay::Sample;
use rperf_wire::{Endian, PERF_CONTEXT_USER};

use crate::chain::ENTRY_SIZE;

/// Writes the sample's callchain to `chain`, with the calls in its branch records instead of the user frames, as in
/// perf. `None` if the sample has no callchain or branch records, or no user part within `limit` entries.
pub(crate) fn write(
    sample: &Sample<'_>,
    limit: usize,
    endian: Endian,
    chain: &mut Vec<u8>,
) -> Option<()> {
    let recorded = sample.wire.callchain?;
    let calls = sample.wire.branch_stack.filter(|calls| !calls.is_empty())?;
    let mut entries = recorded.iter().take(limit);
    let marker = entries.position(|word| word == PERF_CONTEXT_USER)?;
    let kernel_and_marker = recorded.as_bytes().get(..(marker + 1) * ENTRY_SIZE)?;
    // The newest call is first. Its target is in the innermost function; the source of each call is in the calling function.
    let innermost = calls.iter().next().map(|call| call.to);
    let callers = calls.iter().map(|call| call.from);
    chain.clear();
    chain.extend_from_slice(kernel_and_marker);
    for address in innermost.into_iter().chain(callers) {
        chain.extend_from_slice(&match endian {
            Endian::Little => address.to_le_bytes(),
            Endian::Big => address.to_be_bytes(),
        });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{Attr, BranchSampleType, SampleLayout, SampleType, U64s};

    /// Returns the chain that is written for this callchain and calls with these sources and targets.
    fn chain_of(callchain: &[u64], calls: &[(u64, u64)]) -> Option<Vec<u64>> {
        let attr = Attr {
            sample_type: SampleType::CALLCHAIN | SampleType::BRANCH_STACK,
            branch_sample_type: BranchSampleType::CALL_STACK,
            ..Attr::default()
        };
        // A branch record has three words: source, target, flags.
        let calls = calls.iter().flat_map(|(from, to)| [*from, *to, 0]);
        let with_count = |words: Vec<u64>, count: usize| [vec![count as u64], words].concat();
        let calls: Vec<u64> = calls.collect();
        let count = calls.len() / 3;
        let words = [
            with_count(callchain.to_vec(), callchain.len()),
            with_count(calls, count),
        ];
        let body: Vec<u8> = words
            .concat()
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let layout = SampleLayout::new(&attr);
        let sample = Sample {
            wire: layout.decode(&body, Endian::Little).unwrap(),
            ..Sample::default()
        };
        let mut chain = Vec::new();
        let limit = 127;
        write(&sample, limit, Endian::Little, &mut chain)?;
        Some(U64s::new(&chain, Endian::Little).iter().collect())
    }

    #[test]
    fn calls_replace_user_frames() {
        // The kernel's marker is `PERF_CONTEXT_KERNEL`, -128.
        let (kernel, user) = (u64::MAX - 127, PERF_CONTEXT_USER);
        let recorded = [kernel, 1, user, 2, 3];
        let calls = [(0x30, 0x20), (0x50, 0x40)];
        let expected = vec![kernel, 1, user, 0x20, 0x30, 0x50];
        assert_eq!(chain_of(&recorded, &calls), Some(expected));
        assert_eq!(chain_of(&recorded, &[]), None);
        assert_eq!(chain_of(&recorded[..2], &calls), None);
    }
}
