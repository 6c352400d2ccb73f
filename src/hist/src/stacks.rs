//! Samples folded into unique stacks, after the addresses got names: what entries and call graphs are counted from.

use std::hash::{Hash, Hasher as _};
use std::ops::Range;

use rperf_replay::Order;
use rperf_resolve::Level;
use rustc_hash::{FxHashMap, FxHasher};

use crate::histogram::Sum;
use crate::keys::{Context, Site, Thread};
use crate::slices::SliceMap;

/// What the samples of one stack add up to. There are millions of them in a recording of distinct stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Events.
    pub(crate) period: u64,
    /// Samples.
    pub(crate) samples: u64,
    /// The earliest of them.
    pub(crate) first: Order,
    /// Its thread.
    pub(crate) thread: Thread,
    /// What few reports ask for.
    pub(crate) extras: Option<Box<Extras>>,
}

/// Sums that are kept where somebody asks for one of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Extras {
    /// Events, each shared by the threads that ran side by side.
    pub(crate) latency: u64,
    /// As in [`Weights::costs`](crate::histogram::Weights::costs).
    pub(crate) costs: [u64; 3],
}

impl Weight {
    /// Events and samples.
    pub(crate) fn sum(&self) -> Sum {
        Sum {
            period: self.period,
            samples: self.samples,
            latency: self.latency(),
        }
    }

    /// Events, each shared by the threads that ran side by side; 0 where nobody asks.
    pub(crate) fn latency(&self) -> u64 {
        self.extras.as_ref().map_or(0, |extras| extras.latency)
    }

    /// Adds more samples.
    pub(crate) fn add(&mut self, other: &Self) {
        self.period = self.period.saturating_add(other.period);
        self.samples += other.samples;
        if let Some(more) = &other.extras {
            self.extras.get_or_insert_default().add(more);
        }
        if other.first < self.first {
            self.first = other.first;
            self.thread = other.thread;
        }
    }
}

impl Extras {
    fn add(&mut self, other: &Self) {
        self.latency = self.latency.saturating_add(other.latency);
        add_each(&mut self.costs, &other.costs);
    }
}

/// Adds `more` to `sums`, each to its own.
pub(crate) fn add_each<const N: usize>(sums: &mut [u64; N], more: &[u64; N]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
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

    /// Forgets all numbers.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.numbers.clear();
    }

    /// All items, by number.
    pub(crate) fn into_items(self) -> Vec<T> {
        self.items
    }

    /// The item of a number.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.items.get(number as usize)
    }
}

/// One stack, whose frames are names and no longer addresses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackKey<'a> {
    /// Number of the [`Context`].
    pub(crate) context: u32,
    /// Number of the [`Site`] that the sample itself fell on.
    pub(crate) leaf: u32,
    /// The mode the sample was taken in.
    pub(crate) level: Level,
    /// Numbers of the callchain's [`Site`]s in the order of the call graph. Empty where the event has no callchains.
    pub(crate) frames: &'a [u32],
}

/// The unique stacks of one event, out of one part of the recording.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    pub(crate) contexts: Interner<Context>,
    pub(crate) sites: Interner<Site>,
    /// Samples that belong to no row but to what shares are of.
    pub(crate) filtered: Sum,
    /// By context, leaf and level, then the frames.
    weights: SliceMap<u32, (Level, Weight)>,
    scratch: Vec<u32>,
}

impl Stacks {
    /// Adds samples of one stack.
    pub(crate) fn add(&mut self, key: &StackKey<'_>, weight: &Weight) {
        let words = &mut self.scratch;
        words.clear();
        words.extend([key.context, key.leaf, key.level as u32]);
        words.extend_from_slice(key.frames);
        let mut hasher = FxHasher::default();
        words.hash(&mut hasher);
        let value = (key.level, weight.clone());
        let add = |sum: &mut (Level, Weight), more: &(Level, Weight)| sum.1.add(&more.1);
        self.weights.upsert(hasher.finish(), words, value, add);
    }
}

fn renumber<T: Copy + Eq + Hash>(into: &mut Interner<T>, from: &Interner<T>) -> Vec<u32> {
    from.items.iter().map(|item| into.number(*item)).collect()
}

/// The stacks of one event in one piece, for the passes over them. Unordered; a stack of several parts of the recording
/// is there once for each.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) contexts: Vec<Context>,
    pub(crate) sites: Vec<Site>,
    pub(crate) stacks: Vec<Stack>,
    /// Samples that belong to no row but to what shares are of.
    pub(crate) filtered: Sum,
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
    /// Puts the parts of a recording together.
    pub(crate) fn new(parts: Vec<Stacks>) -> Self {
        let mut contexts = Interner::default();
        let mut sites = Interner::default();
        let mut layout = Self::default();
        for part in parts {
            let contexts = renumber(&mut contexts, &part.contexts);
            let sites = renumber(&mut sites, &part.sites);
            layout.add(&part, &contexts, &sites);
            layout.filtered.add(part.filtered);
        }
        Self {
            contexts: contexts.items,
            sites: sites.items,
            ..layout
        }
    }

    /// Adds the stacks of one part, whose numbers stand for those given.
    fn add(&mut self, part: &Stacks, contexts: &[u32], sites: &[u32]) {
        let weights = part.weights.iter();
        self.stacks.reserve(weights.len());
        for (words, (level, weight)) in weights {
            let [context, leaf, _, frames @ ..] = words else {
                continue;
            };
            let start = self.frames.len();
            let numbers = frames.iter().map(|frame| sites[*frame as usize]);
            self.frames.extend(numbers);
            self.stacks.push(Stack {
                context: contexts[*context as usize],
                leaf: sites[*leaf as usize],
                level: *level,
                frames: start..self.frames.len(),
                weight: weight.clone(),
            });
        }
    }

    /// The callchain of a stack, in the order of the call graph.
    pub(crate) fn frames(&self, stack: &Stack) -> &[u32] {
        &self.frames[stack.frames.clone()]
    }
}
