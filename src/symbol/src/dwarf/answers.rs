//! Answers that were given already: a report asks for the same few addresses again and again.

use std::sync::{PoisonError, RwLock};

use rustc_hash::FxHashMap;

use super::SourceFrame;

/// A power of two: parts with a lock of their own, so that threads seldom meet.
const SHARDS: usize = 16;
/// How many answers a part keeps before it forgets them all; in sum, a few dozen megabytes.
const MAX_ANSWERS: usize = 1 << 14;

type Shard = RwLock<FxHashMap<u64, Box<[SourceFrame]>>>;

/// The frames at addresses, by address.
#[derive(Debug, Default)]
pub(super) struct Answers {
    shards: [Shard; SHARDS],
}

impl Answers {
    /// Appends what is known of `address` to `frames`; the first time, `look` does it.
    pub(super) fn append(
        &self,
        address: u64,
        frames: &mut Vec<SourceFrame>,
        look: impl FnOnce(&mut Vec<SourceFrame>),
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
        look(frames);
        let found = frames.get(start..).unwrap_or_default();
        let mut known = shard.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_ANSWERS {
            known.clear();
        }
        known.insert(address, found.into());
    }

    /// Neighbouring addresses are asked for by different threads: they go to different parts.
    fn shard(address: u64) -> usize {
        (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % SHARDS
    }
}
