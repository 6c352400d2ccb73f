//! Unique resolved stacks, from which the rows and call graphs of a report are counted.

use std::hash::{Hash, Hasher as _};
use std::num::NonZeroUsize;
use std::ops::Range;

use rperf_replay::{Order, Sample};
use rperf_resolve::Level;
use rustc_hash::{FxHashMap, FxHasher};

use crate::histogram::ColumnSum;
use crate::keys::{CodeSite, SampleContext, Thread};
use crate::parallel;
use crate::slices::SliceMap;

/// Sums over the samples of one stack. It is small, since a recording may have millions of different stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StackWeight {
    /// Sum of periods.
    pub(crate) period: u64,
    /// Number of samples.
    pub(crate) samples: u64,
    /// Position of the earliest sample in the order of records.
    pub(crate) first: Order,
    /// The thread of the earliest sample.
    pub(crate) thread: Thread,
    /// Sums that most reports do not use.
    pub(crate) extras: Option<Box<OptionalSums>>,
}

/// Sums that are only computed if used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OptionalSums {
    /// Periods, each divided by the number of threads running concurrently.
    pub(crate) latency: u64,
    /// Sums of sample weights, as in [`Weights::costs`](crate::histogram::Weights::costs).
    pub(crate) costs: [u64; 3],
}

impl StackWeight {
    /// The weight of one sample, without optional sums.
    pub(crate) fn of(sample: &Sample<'_>) -> Self {
        Self {
            period: sample.period,
            samples: 1,
            first: sample.order,
            thread: Thread {
                pid: sample.pid,
                tid: sample.tid,
            },
            extras: None,
        }
    }

    /// Adds a sample without optional sums.
    #[inline]
    pub(crate) fn add_sample(&mut self, sample: &Sample<'_>) {
        self.period = self.period.saturating_add(sample.period);
        self.samples += 1;
        // This runs for every sample: ranks have the same order as the `Order`s, and are compared without branches.
        if sample.order.rank() < self.first.rank() {
            self.set_first(sample);
        }
    }

    /// Makes `sample` the earliest.
    #[cold]
    fn set_first(&mut self, sample: &Sample<'_>) {
        self.first = sample.order;
        self.thread = Self::of(sample).thread;
    }

    /// Period, samples and latency.
    pub(crate) fn sum(&self) -> ColumnSum {
        ColumnSum {
            period: self.period,
            samples: self.samples,
            latency: self.latency(),
        }
    }

    /// Periods, each divided by the number of threads running concurrently; 0 if not used.
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

impl OptionalSums {
    fn add(&mut self, other: &Self) {
        self.latency = self.latency.saturating_add(other.latency);
        add_each(&mut self.costs, &other.costs);
    }
}

/// Adds `more` to `sums` element by element.
pub(crate) fn add_each<const N: usize>(sums: &mut [u64; N], more: &[u64; N]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

/// Distinct items in order of first appearance. Output must not be ordered by their indices: threads may share an interner, so
/// that the indices differ between runs.
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
    /// The index of `item`, which is added if it is new.
    pub(crate) fn intern(&mut self, item: T) -> u32 {
        *self.numbers.entry(item).or_insert_with(|| {
            let number = self.items.len() as u32;
            self.items.push(item);
            number
        })
    }

    /// Removes all items.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.numbers.clear();
    }

    /// All items by index.
    pub(crate) fn into_items(self) -> Vec<T> {
        self.items
    }

    /// The item with an index.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.items.get(number as usize)
    }
}

/// A stack of resolved frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackKey<'a> {
    /// Index of the [`SampleContext`].
    pub(crate) context: u32,
    /// Index of the [`CodeSite`] to which the sample belongs: the sampled one, or the root of `--ignore-callees`.
    pub(crate) leaf: u32,
    /// Level of the sample's mode, or of the root of `--ignore-callees`.
    pub(crate) level: Level,
    /// Indices of the callchain's [`CodeSite`]s in call graph order (callers or callees first, as requested). Empty if the event
    /// has no callchains or if they are not used.
    pub(crate) frames: &'a [u32],
}

/// The unique stacks of one event in one part of the recording, which one thread of rperf processed.
#[derive(Debug, Default)]
pub(crate) struct UniqueStacks {
    pub(crate) contexts: Interner<SampleContext>,
    pub(crate) sites: Interner<CodeSite>,
    /// Filtered samples: without a row, but counted for the total.
    pub(crate) filtered: ColumnSum,
    /// Keys are context, leaf and level, followed by the frames ([`StackKey`]). Values have the level, too, since keys only have
    /// its number.
    weights: SliceMap<u32, (Level, StackWeight)>,
    scratch: Vec<u32>,
}

impl UniqueStacks {
    /// The level of a site's code; `None` without a site or a mapping.
    pub(crate) fn level_of(&self, site: Option<u32>) -> Option<Level> {
        self.sites.get(site?)?.level
    }

    /// Adds samples of one stack.
    pub(crate) fn add(&mut self, key: &StackKey<'_>, weight: &StackWeight) {
        let words = &mut self.scratch;
        words.clear();
        words.extend([key.context, key.leaf, key.level as u32]);
        words.extend_from_slice(key.frames);
        let mut hasher = FxHasher::default();
        words.hash(&mut hasher);
        let value = (key.level, weight.clone());
        let add = |sum: &mut (Level, StackWeight), more: &(Level, StackWeight)| sum.1.add(&more.1);
        self.weights.upsert(hasher.finish(), words, value, add);
    }
}

/// Adds the items of `from` to `into`, and returns their new indices.
fn renumber<T: Copy + Eq + Hash>(into: &mut Interner<T>, from: &Interner<T>) -> Vec<u32> {
    from.items.iter().map(|item| into.intern(*item)).collect()
}

/// The merged stacks of one event. Unordered; a stack from several parts of the recording occurs
/// several times.
#[derive(Debug, Default)]
pub(crate) struct MergedStacks {
    pub(crate) contexts: Vec<SampleContext>,
    pub(crate) sites: Vec<CodeSite>,
    pub(crate) stacks: Vec<MergedStack>,
    /// Filtered samples: without a row, but counted for the total.
    pub(crate) filtered: ColumnSum,
    /// The frames of all stacks, one stack after the other, as indices in `sites`.
    frames: Vec<u32>,
}

/// One stack of a [`MergedStacks`].
#[derive(Debug, Clone)]
pub(crate) struct MergedStack {
    pub(crate) context: u32,
    pub(crate) leaf: u32,
    pub(crate) level: Level,
    /// Range in the frames of the [`MergedStacks`].
    frames: Range<usize>,
    pub(crate) weight: StackWeight,
}

impl MergedStacks {
    /// Merges the stacks from all parts of a recording; `threads` threads do the work.
    pub(crate) fn new(parts: Vec<UniqueStacks>, threads: NonZeroUsize) -> Self {
        let mut contexts = Interner::default();
        let mut sites = Interner::default();
        let mut filtered = ColumnSum::default();
        let with_indices = parts.into_iter().map(|part| {
            filtered.add(part.filtered);
            let new_contexts = renumber(&mut contexts, &part.contexts);
            let new_sites = renumber(&mut sites, &part.sites);
            (part, new_contexts, new_sites)
        });
        let with_indices = with_indices.collect();
        let renumbered = parallel::map(with_indices, threads, |(part, contexts, sites)| {
            Self::renumbered(&part, &contexts, &sites)
        });
        let mut renumbered = renumbered.into_iter();
        let mut merged = renumbered.next().unwrap_or_default();
        renumbered.for_each(|part| merged.append(part));
        Self {
            contexts: contexts.items,
            sites: sites.items,
            filtered,
            ..merged
        }
    }

    /// The stacks of one part; `contexts` and `sites` map its indices to those of the merged stacks.
    fn renumbered(part: &UniqueStacks, contexts: &[u32], sites: &[u32]) -> Self {
        let weights = part.weights.iter();
        let mut merged = Self::default();
        merged.stacks.reserve(weights.len());
        for (words, (level, weight)) in weights {
            let [context, leaf, _, frames @ ..] = words else {
                continue;
            };
            let start = merged.frames.len();
            let numbers = frames.iter().map(|frame| sites[*frame as usize]);
            merged.frames.extend(numbers);
            merged.stacks.push(MergedStack {
                context: contexts[*context as usize],
                leaf: sites[*leaf as usize],
                level: *level,
                frames: start..merged.frames.len(),
                weight: weight.clone(),
            });
        }
        merged
    }

    /// Appends stacks whose indices refer to the same contexts and sites.
    fn append(&mut self, part: Self) {
        let start = self.frames.len();
        self.frames.extend_from_slice(&part.frames);
        let moved = part.stacks.into_iter().map(|stack| MergedStack {
            frames: stack.frames.start + start..stack.frames.end + start,
            ..stack
        });
        self.stacks.extend(moved);
    }

    /// The callchain of a stack in call graph order.
    pub(crate) fn frames(&self, stack: &MergedStack) -> &[u32] {
        &self.frames[stack.frames.clone()]
    }
}
