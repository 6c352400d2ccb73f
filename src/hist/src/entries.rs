//! Entries from stacks: each stack is counted for its leaf, and, if callers have rows (`children`), for each of its callers.
//!
//! A stack has a context (the properties common to its frames, such as the thread) and sites (the code of each frame). The label
//! of a frame is a number that is equal for frames that the keys do not distinguish, so there is one entry per label. Labels are
//! distributed over shards, one per worker thread.

use std::num::NonZeroUsize;

use rperf_replay::Order;
use rperf_resolve::Level;
use rustc_hash::FxHashMap;

use crate::histogram::Weights;
use crate::keys::{KeyInput, Thread};
use crate::parallel;
use crate::ranks::EntryLabels;
use crate::stacks::{MergedStack, MergedStacks, StackWeight, add_each};
use crate::tree::ChainTail;

/// The samples of one event that share a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) weights: Weights,
    /// Number of its samples that have a chain in its call graph.
    pub(crate) chains: u64,
    /// Maximum length of a chain in its call graph.
    pub(crate) depth: u32,
    /// Its first appearance. (In a stack's weight, `first` is only the [`Order`] of the earliest sample.)
    pub(crate) first: FirstAppearance,
}

/// The first appearance of an entry, which decides ties of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FirstAppearance {
    pub(crate) order: Order,
    pub(crate) thread: Thread,
    /// Index in [`MergedStacks::contexts`].
    pub(crate) context: u32,
    /// Index in [`MergedStacks::sites`].
    pub(crate) site: u32,
    pub(crate) level: Level,
}

/// Entries and their labels.
pub(crate) struct Entries<'a> {
    stack_labels: StackLabels<'a>,
    /// Entry numbers by label; each label belongs to one shard.
    shards: Vec<FxHashMap<u64, u32>>,
    list: Vec<Entry>,
}

impl<'a> Entries<'a> {
    /// Counts the entries distinguished by `labels`; callers have entries, too, if `children` is set. Each worker
    /// thread counts the labels of its shard.
    pub(crate) fn count(
        merged: &'a MergedStacks,
        labels: EntryLabels,
        children: bool,
        threads: NonZeroUsize,
    ) -> Self {
        let stack_labels = StackLabels {
            merged,
            children,
            labels,
            shards: threads.get() as u64,
        };
        let counted = parallel::map((0..stack_labels.shards).collect(), threads, |shard| {
            let mut counts = ShardCounts::default();
            let mut seen = Vec::new();
            for stack in &merged.stacks {
                counts.visit(&stack_labels, shard, stack, &mut seen);
            }
            counts
        });
        let mut entries = Self {
            stack_labels,
            shards: Vec::new(),
            list: Vec::new(),
        };
        for ShardCounts { mut numbers, list } in counted {
            let before = entries.list.len() as u32;
            numbers.values_mut().for_each(|number| *number += before);
            entries.shards.push(numbers);
            entries.list.extend(list);
        }
        entries
    }

    /// The entries, unordered.
    pub(crate) fn list(&self) -> &[Entry] {
        &self.list
    }

    /// The chains of the call graph of each entry whose total period is at least `min_period`; empty for other entries.
    pub(crate) fn chains(&self, min_period: u64, threads: NonZeroUsize) -> Vec<Vec<ChainTail>> {
        let shards = self.shards.iter().zip(0..).collect();
        let chains = parallel::map(shards, threads, |(numbers, shard)| {
            self.chains_of(numbers, shard, min_period)
        });
        chains.into_iter().flatten().collect()
    }

    /// The chains of the entries of one shard, in entry order.
    fn chains_of(
        &self,
        numbers: &FxHashMap<u64, u32>,
        shard: u64,
        min_period: u64,
    ) -> Vec<Vec<ChainTail>> {
        // The numbers of the entries of a shard are consecutive.
        let first_entry = numbers.values().min().copied().unwrap_or_default();
        let mut chains = vec![Vec::new(); numbers.len()];
        let mut seen = Vec::new();
        for (stack_index, stack) in (0u32..).zip(&self.stack_labels.merged.stacks) {
            self.stack_labels
                .walk(shard, stack, &mut seen, |label, from| {
                    let Some(entry) = numbers.get(&label) else {
                        return;
                    };
                    if self.list[*entry as usize].weights.total >= min_period {
                        chains[(entry - first_entry) as usize].push(ChainTail {
                            stack: stack_index,
                            from: from.unwrap_or_default(),
                        });
                    }
                });
        }
        chains
    }
}

/// Labels of stacks, and their shards.
struct StackLabels<'a> {
    merged: &'a MergedStacks,
    children: bool,
    labels: EntryLabels,
    shards: u64,
}

impl StackLabels<'_> {
    fn label(&self, stack: &MergedStack, site: u32) -> u64 {
        let context = self.labels.contexts[stack.context as usize];
        u64::from(context) << 32 | u64::from(self.labels.sites[site as usize])
    }

    #[inline]
    fn shard_has(&self, shard: u64, label: u64) -> bool {
        self.shards == 1 || (label.wrapping_mul(HASH_MULTIPLIER) >> 32) % self.shards == shard
    }

    /// Calls `each(label, from)` once for each of the stack's labels that belong to `shard`. `from` is the index of the frame at
    /// which the chain of the label's entry starts. It is `None` for the leaf: its entry has the whole chain, even if callers are
    /// first in it. The leaf is usually one of the frames, too, but is not visited again. `seen` is a buffer.
    #[inline]
    fn walk(
        &self,
        shard: u64,
        stack: &MergedStack,
        seen: &mut Vec<u64>,
        mut each: impl FnMut(u64, Option<u32>),
    ) {
        let leaf = self.label(stack, stack.leaf);
        seen.clear();
        if self.shard_has(shard, leaf) {
            seen.push(leaf);
            each(leaf, None);
        }
        if !self.children {
            return;
        }
        for (from, site) in (0..).zip(self.merged.frames(stack)) {
            let label = self.label(stack, *site);
            if self.shard_has(shard, label) && !seen.contains(&label) {
                seen.push(label);
                each(label, Some(from));
            }
        }
    }
}

/// An odd multiplier that distributes labels over shards (2^64 divided by the golden ratio).
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Counts of the entries of one shard.
#[derive(Default)]
struct ShardCounts {
    numbers: FxHashMap<u64, u32>,
    list: Vec<Entry>,
}

impl ShardCounts {
    /// Counts one stack for the entries of `shard`; `seen` is a buffer.
    fn visit(
        &mut self,
        stack_labels: &StackLabels<'_>,
        shard: u64,
        stack: &MergedStack,
        seen: &mut Vec<u64>,
    ) {
        let merged = stack_labels.merged;
        let depth = merged.frames(stack).len() as u32;
        stack_labels.walk(shard, stack, seen, |label, from| {
            let first = || FirstAppearance::of(merged, stack, from);
            let next = self.list.len() as u32;
            let number = *self.numbers.entry(label).or_insert(next);
            if number == next {
                self.list.push(Entry::new(first()));
            }
            let entry = &mut self.list[number as usize];
            if stack.weight.first < entry.first.order {
                entry.first = first();
            }
            if from.is_none() {
                entry.hit(&stack.weight, stack.level);
            }
            entry.add(&stack.weight, depth - from.unwrap_or_default());
        });
    }
}

impl FirstAppearance {
    /// The first appearance for the frame `from` of a stack, or for its leaf if `from` is `None`.
    fn of(merged: &MergedStacks, stack: &MergedStack, from: Option<u32>) -> Self {
        let frames = merged.frames(stack);
        // The chain up to and including the frame `from`; empty for the leaf, whose level is that of the stack.
        let frames = from.map_or(&[][..], |from| &frames[..=from as usize]);
        // For unmapped addresses perf shows the level of the previous frame.
        let level_of = |site: &u32| merged.sites[*site as usize].level;
        let level = frames.iter().rev().find_map(level_of);
        Self {
            order: stack.weight.first,
            thread: stack.weight.thread,
            context: stack.context,
            site: frames.last().copied().unwrap_or(stack.leaf),
            level: level.unwrap_or(stack.level),
        }
    }
}

impl Entry {
    fn new(first: FirstAppearance) -> Self {
        Self {
            weights: Weights::default(),
            chains: 0,
            depth: 0,
            first,
        }
    }

    /// Counts samples whose leaf is this entry.
    fn hit(&mut self, weight: &StackWeight, level: Level) {
        let weights = &mut self.weights;
        weights.own = weights.own.saturating_add(weight.period);
        weights.samples += weight.samples;
        if let Some(extras) = &weight.extras {
            weights.latency = weights.latency.saturating_add(extras.latency);
            add_each(&mut weights.costs, &extras.costs);
        }
        // The index in `modes`, which has no sum for hypervisors.
        let mode = match level {
            Level::Kernel => 0,
            Level::User => 1,
            Level::GuestKernel => 2,
            Level::GuestUser => 3,
            Level::Hypervisor => return,
        };
        weights.modes[mode] = weights.modes[mode].saturating_add(weight.period);
    }

    /// Counts samples with this entry in their stack; `depth` is the number of frames of its chain.
    fn add(&mut self, weight: &StackWeight, depth: u32) {
        let total = &mut self.weights.total;
        *total = total.saturating_add(weight.period);
        let latency = &mut self.weights.total_latency;
        *latency = latency.saturating_add(weight.latency());
        if depth > 0 {
            self.chains += weight.samples;
        }
        self.depth = self.depth.max(depth);
    }

    /// The input of keys. For a tracepoint field, the caller sets `field_number`.
    pub(crate) fn key_input<'s>(&self, merged: &'s MergedStacks) -> KeyInput<'s> {
        KeyInput {
            context: &merged.contexts[self.first.context as usize],
            site: &merged.sites[self.first.site as usize],
            level: self.first.level,
            samples: self.weights.samples,
            field_number: 0,
        }
    }
}
