//! Chains of wakeups: who woke a task, and who woke the waker.

use rustc_hash::FxHashMap;

use super::stacks::StackNumber;
use crate::sched::NameNumber;

/// A waking task and the stack of the wakeup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct WakerKey {
    /// The name of the waking task; `None` for an interrupt.
    pub(super) name: Option<NameNumber>,
    pub(super) stack: StackNumber,
}

/// The number of a chain in [`WakerChains`]; 0 for the empty chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct ChainNumber(u32);

/// Unique chains of wakers, numbered in order of their first use. Each begins with the waker of the task that slept.
#[derive(Debug)]
pub(super) struct WakerChains {
    numbers: FxHashMap<Box<[WakerKey]>, ChainNumber>,
    chains: Vec<Box<[WakerKey]>>,
}

impl Default for WakerChains {
    fn default() -> Self {
        let mut chains = Self {
            numbers: FxHashMap::default(),
            chains: Vec::new(),
        };
        chains.add(Box::default());
        chains
    }
}

impl WakerChains {
    /// Returns the number of the chain of `first` and then the wakers of `rest`, at most `limit` in all. The chain is added
    /// if it is new.
    pub(super) fn prepend(
        &mut self,
        first: WakerKey,
        rest: ChainNumber,
        limit: usize,
    ) -> ChainNumber {
        let rest = self.wakers(rest).copied();
        let keys = std::iter::once(first).chain(rest).take(limit).collect();
        self.add(keys)
    }

    /// Returns the wakers of a chain.
    pub(super) fn wakers(&self, chain: ChainNumber) -> impl Iterator<Item = &WakerKey> {
        let keys = self.chains.get(chain.0 as usize);
        keys.into_iter().flatten()
    }

    /// Returns the number of a chain, which is added if it is new.
    fn add(&mut self, keys: Box<[WakerKey]>) -> ChainNumber {
        if let Some(number) = self.numbers.get(&keys) {
            return *number;
        }
        // 2^32 distinct chains would not fit into memory.
        let number = ChainNumber(u32::try_from(self.chains.len()).unwrap_or(u32::MAX));
        self.chains.push(keys.clone());
        self.numbers.insert(keys, number);
        number
    }
}
