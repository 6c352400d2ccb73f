//! Callchains of tasks that are switched out.

use rperf_replay::{Machine, Sample, World};
use rperf_resolve::AddressContext;
use rperf_tracepoint::typed::TypedEvent;
use rperf_wire::{Endian, U64s};
use rustc_hash::FxHashMap;

use crate::PrepareSamples;

/// A callchain, and the context for resolving it.
#[derive(Debug, Clone)]
pub struct StackChain {
    /// Machine, process and time.
    pub at: AddressContext,
    /// The callchain as recorded, innermost first.
    bytes: Box<[u8]>,
    endian: Endian,
}

impl StackChain {
    /// Returns the callchain, innermost first.
    #[must_use]
    pub fn chain(&self) -> U64s<'_> {
        U64s::new(&self.bytes, self.endian)
    }
}

/// The index of a stack in [`Timechart::stacks`](super::Timechart::stacks).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(u32);

impl StackId {
    /// Returns the index.
    #[must_use]
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

/// Selects all samples. If callchains are wanted, samples of `sched_switch` keep theirs, unless the switch is from an idle task.
#[derive(Debug, Clone, Copy)]
pub struct SwitchCallchains {
    /// Whether callchains are wanted.
    pub is_wanted: bool,
}

impl PrepareSamples for SwitchCallchains {
    type Detail = Option<StackChain>;

    #[inline]
    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<Self::Detail> {
        let needs_chain = self.is_wanted
            && matches!(event, Some(TypedEvent::SchedSwitch(event)) if event.prev_pid() != 0);
        let chain = sample.wire.callchain.filter(|_| needs_chain);
        // The outer `Some` selects the sample; the inner option is its callchain.
        Some(chain.map(|chain| StackChain {
            at: AddressContext::of(sample),
            bytes: chain.as_bytes().into(),
            endian: chain.endian(),
        }))
    }
}

/// The different stacks of each process of each machine, with their ids.
#[derive(Debug, Default)]
pub(super) struct StackTable {
    ids: FxHashMap<(Machine, u32, Box<[u8]>), StackId>,
    stacks: Vec<StackChain>,
}

impl StackTable {
    /// Maximum number of stacks stored; further ones are dropped: the states of tasks switched out with them have no stack.
    const MOST: usize = 50_000;

    /// Returns the id of a stack, which is added if it is new; `None` if there is no room for it.
    pub(super) fn id(&mut self, chain: StackChain) -> Option<StackId> {
        let key = (chain.at.machine, chain.at.pid, chain.bytes.clone());
        if let Some(id) = self.ids.get(&key) {
            return Some(*id);
        }
        if self.stacks.len() == Self::MOST {
            return None;
        }
        let id = StackId(u32::try_from(self.stacks.len()).ok()?);
        self.stacks.push(chain);
        self.ids.insert(key, id);
        Some(id)
    }

    pub(super) fn into_stacks(self) -> Vec<StackChain> {
        self.stacks
    }
}
