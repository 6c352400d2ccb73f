//! Cache of lookup results: a report looks up the same addresses many times.

use std::sync::{PoisonError, RwLock};

use rustc_hash::FxHashMap;

use super::SourceFrame;

/// Number of shards with separate locks, to reduce contention. A power of two.
const SHARDS: usize = 16;
/// Number of results at which a shard is cleared. All shards together take up to a few dozen megabytes.
const MAX_RESULTS: usize = 1 << 14;

/// Factor of Fibonacci hashing: 2^64 divided by the golden ratio. The upper bits of the product are the hash.
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

type Shard = RwLock<FxHashMap<u64, Box<[SourceFrame]>>>;

/// The frames of addresses that were looked up.
#[derive(Debug, Default)]
pub(super) struct FrameCache {
    shards: [Shard; SHARDS],
}

impl FrameCache {
    /// Appends the frames at `address` to `frames`. If they are not cached, `compute` appends them.
    pub(super) fn append_frames_at(
        &self,
        address: u64,
        frames: &mut Vec<SourceFrame>,
        compute: impl FnOnce(&mut Vec<SourceFrame>),
    ) {
        let shard = &self.shards[Self::shard(address)];
        if let Some(known) = shard
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&address)
        {
            frames.extend_from_slice(known);
            return;
        }
        let start = frames.len();
        compute(frames);
        let computed = frames.get(start..).unwrap_or_default();
        let mut results = shard.write().unwrap_or_else(PoisonError::into_inner);
        if results.len() >= MAX_RESULTS {
            results.clear();
        }
        results.insert(address, computed.into());
    }

    /// Returns the index of an address's shard. The hash spreads neighbouring addresses over the shards, because threads tend to
    /// look them up at the same time.
    fn shard(address: u64) -> usize {
        let hash = address.wrapping_mul(HASH_FACTOR) >> (u64::BITS - SHARDS.ilog2());
        // The hash is already below `SHARDS`; the remainder only makes that evident.
        hash as usize % SHARDS
    }
}
