//! The stacks of a recording, each evaluated once.

use std::array;
use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::rows::LockDetail;

/// The number of maps, each with its own mutex, so that threads seldom wait for each other.
const SHARDS: usize = 16;

/// A cache of the details computed from recorded callchains, such as the caller of the lock functions. Waits have few
/// different stacks, and a look-up by the recorded bytes is cheaper than evaluating a stack. Memory grows with the number of
/// different stacks.
#[derive(Debug)]
pub struct KnownStacks([Mutex<Details>; SHARDS]);

/// By recorded callchain.
type Details = FxHashMap<Box<[u8]>, Arc<LockDetail>>;

impl Default for KnownStacks {
    fn default() -> Self {
        Self(array::from_fn(|_| Mutex::default()))
    }
}

impl KnownStacks {
    /// Returns the detail of a callchain in its recorded bytes; `evaluate` computes the detail the first time. If details depend
    /// on more than the callchain, for example on the cgroup, the caller appends that to `chain`.
    pub fn get(&self, chain: &[u8], evaluate: impl FnOnce() -> LockDetail) -> Arc<LockDetail> {
        let [hash_byte, ..] = FxBuildHasher.hash_one(chain).to_be_bytes();
        // The index is always below the length.
        let Some(shard) = self.0.get(usize::from(hash_byte) % SHARDS) else {
            return Arc::new(evaluate());
        };
        let mut stacks = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = stacks.get(chain) {
            return Arc::clone(known);
        }
        let new = Arc::new(evaluate());
        stacks.insert(chain.into(), Arc::clone(&new));
        new
    }
}
