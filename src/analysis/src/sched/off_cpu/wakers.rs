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

/// The number of a chain; 0 for the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct WakerChain(u32);

/// Unique chains, nearest waker first.
#[derive(Debug)]
pub(super) struct WakerChains {
    numbers: FxHashMap<Box<[WakerKey]>, WakerChain>,
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
    /// Returns a chain of at most `limit` wakers: `first`, then those of `rest`.
    pub(super) fn prepend(
        &mut self,
        first: WakerKey,
        rest: WakerChain,
        limit: usize,
    ) -> WakerChain {
        let rest = self.wakers(rest).copied();
        let keys = std::iter::once(first).chain(rest).take(limit).collect();
        self.add(keys)
    }

    pub(super) fn wakers(&self, chain: WakerChain) -> impl Iterator<Item = &WakerKey> {
        let keys = self.chains.get(chain.0 as usize);
        keys.into_iter().flatten()
    }

    fn add(&mut self, keys: Box<[WakerKey]>) -> WakerChain {
        if let Some(number) = self.numbers.get(&keys) {
            return *number;
        }
        let number = WakerChain(u32::try_from(self.chains.len()).unwrap_or(u32::MAX));
        self.chains.push(keys.clone());
        self.numbers.insert(keys, number);
        number
    }
}
