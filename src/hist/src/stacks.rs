//! Samples folded into unique stacks, after the addresses got names: what entries and call graphs are counted from.

use std::hash::Hash;
use std::ops::Range;

use rperf_replay::Order;
use rperf_resolve::Level;
use rustc_hash::FxHashMap;

use crate::histogram::Sum;
use crate::keys::{Context, Site, Thread};

/// What the samples of one stack add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Events.
    pub(crate) period: u64,
    /// Samples.
    pub(crate) samples: u64,
    /// The earliest of them.
    pub(crate) first: Order,
    /// Its thread.
    pub(crate) thread: Thread,
}

impl Weight {
    /// Events and samples.
    pub(crate) fn sum(&self) -> Sum {
        Sum {
            period: self.period,
            samples: self.samples,
        }
    }

    /// Adds more samples.
    pub(crate) fn add(&mut self, other: &Self) {
        self.period = self.period.saturating_add(other.period);
        self.samples += other.samples;
        if other.first < self.first {
            self.first = other.first;
            self.thread = other.thread;
        }
    }
}

/// Things in the order they were first seen, each once. Numbers are positions; they differ from run to run, so nothing
/// that is shown may be ordered by them.
#[derive(Debug, Clone)]
pub(crate) struct Interner<T> {
    items: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            numbers: FxHashMap::default(),
        }
    }
}

impl<T: Copy + Eq + Hash> Interner<T> {
    /// The number of `item`.
    pub(crate) fn number(&mut self, item: T) -> u32 {
        *self.numbers.entry(item).or_insert_with(|| {
            let number = self.items.len() as u32;
            self.items.push(item);
            number
        })
    }
}

/// One stack, whose frames are names and no longer addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct StackKey {
    /// Number of the [`Context`].
    pub(crate) context: u32,
    /// Number of the [`Site`] that the sample itself fell on.
    pub(crate) leaf: u32,
    /// The mode the sample was taken in.
    pub(crate) level: Level,
    /// Numbers of the callchain's [`Site`]s in the order of the call graph. Empty where the event has no callchains.
    pub(crate) frames: Box<[u32]>,
}

/// The unique stacks of one event.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    pub(crate) contexts: Interner<Context>,
    pub(crate) sites: Interner<Site>,
    /// Samples that belong to no row but to what shares are of.
    pub(crate) filtered: Sum,
    weights: FxHashMap<StackKey, Weight>,
}

impl Stacks {
    /// Adds samples of one stack.
    pub(crate) fn add(&mut self, key: StackKey, weight: &Weight) {
        self.weights
            .entry(key)
            .and_modify(|sum| sum.add(weight))
            .or_insert(*weight);
    }

    /// Adds the stacks of another part of the recording.
    pub(crate) fn merge(&mut self, other: Self) {
        self.filtered.add(other.filtered);
        let contexts: Vec<u32> = renumber(&mut self.contexts, &other.contexts);
        let sites: Vec<u32> = renumber(&mut self.sites, &other.sites);
        for (mut key, weight) in other.weights {
            key.context = contexts[key.context as usize];
            key.leaf = sites[key.leaf as usize];
            for frame in &mut key.frames {
                *frame = sites[*frame as usize];
            }
            self.add(key, &weight);
        }
    }

    /// The stacks in one piece, for the passes over them.
    pub(crate) fn lay_out(self) -> Layout {
        let mut layout = Layout {
            contexts: self.contexts.items,
            sites: self.sites.items,
            stacks: Vec::with_capacity(self.weights.len()),
            frames: Vec::new(),
        };
        for (key, weight) in self.weights {
            let start = layout.frames.len();
            layout.frames.extend_from_slice(&key.frames);
            layout.stacks.push(Stack {
                context: key.context,
                leaf: key.leaf,
                level: key.level,
                frames: start..layout.frames.len(),
                weight,
            });
        }
        layout
    }
}

fn renumber<T: Copy + Eq + Hash>(into: &mut Interner<T>, from: &Interner<T>) -> Vec<u32> {
    from.items.iter().map(|item| into.number(*item)).collect()
}

/// The unique stacks of one event, unordered.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) contexts: Vec<Context>,
    pub(crate) sites: Vec<Site>,
    pub(crate) stacks: Vec<Stack>,
    frames: Vec<u32>,
}

/// One stack of a [`Layout`].
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    pub(crate) context: u32,
    pub(crate) leaf: u32,
    pub(crate) level: Level,
    frames: Range<usize>,
    pub(crate) weight: Weight,
}

impl Layout {
    /// The callchain of a stack, in the order of the call graph.
    pub(crate) fn frames(&self, stack: &Stack) -> &[u32] {
        &self.frames[stack.frames.clone()]
    }
}
