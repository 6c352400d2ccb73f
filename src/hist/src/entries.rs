//! From stacks to entries: every stack counts for what it fell on, and with children for each of its callers.

use std::num::NonZeroUsize;

use rperf_replay::Order;
use rperf_resolve::Level;
use rustc_hash::FxHashMap;

use crate::histogram::Weights;
use crate::keys::{Subject, Thread};
use crate::parallel;
use crate::ranks::Labels;
use crate::stacks::{Layout, Stack, Weight, add_each};
use crate::tree::Chain;

/// One row before it has text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) weights: Weights,
    /// Samples whose callchains are in its call graph.
    pub(crate) chains: u64,
    /// Length of the longest chain in its call graph.
    pub(crate) depth: u32,
    /// Where it was seen first.
    pub(crate) first: First,
}

/// The earliest appearance of an entry: it decides what the keys leave open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct First {
    pub(crate) order: Order,
    pub(crate) thread: Thread,
    pub(crate) context: u32,
    pub(crate) site: u32,
    pub(crate) level: Level,
}

/// How stacks become entries.
pub(crate) struct Entries<'a> {
    ways: Ways<'a>,
    /// The numbers of entries by their labels; each label falls to one of these.
    shards: Vec<FxHashMap<u64, u32>>,
    list: Vec<Entry>,
}

impl<'a> Entries<'a> {
    /// The entries that `labels` tell apart, with `children` callers too. Each thread counts those that fall to it.
    pub(crate) fn count(
        layout: &'a Layout,
        labels: Labels,
        children: bool,
        threads: NonZeroUsize,
    ) -> Self {
        let ways = Ways {
            layout,
            children,
            labels,
            shards: threads.get() as u64,
        };
        let counted = parallel::map((0..ways.shards).collect(), threads, |shard| {
            let mut counts = Counts::default();
            let mut seen = Vec::new();
            for stack in &layout.stacks {
                counts.visit(&ways, shard, stack, &mut seen);
            }
            counts
        });
        let mut entries = Self {
            ways,
            shards: Vec::new(),
            list: Vec::new(),
        };
        for Counts { mut numbers, list } in counted {
            let before = entries.list.len() as u32;
            numbers.values_mut().for_each(|number| *number += before);
            entries.shards.push(numbers);
            entries.list.extend(list);
        }
        entries
    }

    /// The entries, in no order.
    pub(crate) fn list(&self) -> &[Entry] {
        &self.list
    }

    /// For each entry heavier than `least` the chains of its call graph, the others without.
    pub(crate) fn chains(&self, least: u64, threads: NonZeroUsize) -> Vec<Vec<Chain>> {
        let shards = self.shards.iter().zip(0..).collect();
        let chains = parallel::map(shards, threads, |(numbers, shard)| {
            self.chains_of(numbers, shard, least)
        });
        chains.into_iter().flatten().collect()
    }

    /// The chains of the entries of one shard, which follow each other.
    fn chains_of(&self, numbers: &FxHashMap<u64, u32>, shard: u64, least: u64) -> Vec<Vec<Chain>> {
        let first = numbers.values().min().copied().unwrap_or_default();
        let mut chains = vec![Vec::new(); numbers.len()];
        let mut seen = Vec::new();
        for (stack, at) in (0u32..).zip(&self.ways.layout.stacks) {
            self.ways.walk(shard, at, &mut seen, |label, from| {
                let Some(entry) = numbers.get(&label) else {
                    return;
                };
                if self.list[*entry as usize].weights.total >= least {
                    chains[(entry - first) as usize].push(Chain {
                        stack,
                        from: from.unwrap_or_default(),
                    });
                }
            });
        }
        chains
    }
}

/// Which labels the stacks have, and to which shard a label falls.
struct Ways<'a> {
    layout: &'a Layout,
    children: bool,
    labels: Labels,
    shards: u64,
}

impl Ways<'_> {
    fn label(&self, stack: &Stack, site: u32) -> u64 {
        let context = self.labels.contexts[stack.context as usize];
        u64::from(context) << 32 | u64::from(self.labels.sites[site as usize])
    }

    #[inline]
    fn is_of(&self, shard: u64, label: u64) -> bool {
        self.shards == 1 || (label.wrapping_mul(SPREAD) >> 32) % self.shards == shard
    }

    /// Calls `each(label, from)` once for each entry of a stack that falls to `shard`: `from` is the frame that an entry's
    /// chain begins with, `None` for what the sample fell on, which has the whole chain.
    #[inline]
    fn walk(
        &self,
        shard: u64,
        stack: &Stack,
        seen: &mut Vec<u64>,
        mut each: impl FnMut(u64, Option<u32>),
    ) {
        let leaf = self.label(stack, stack.leaf);
        seen.clear();
        if self.is_of(shard, leaf) {
            seen.push(leaf);
            each(leaf, None);
        }
        if !self.children {
            return;
        }
        for (from, site) in (0..).zip(self.layout.frames(stack)) {
            let label = self.label(stack, *site);
            if self.is_of(shard, label) && !seen.contains(&label) {
                seen.push(label);
                each(label, Some(from));
            }
        }
    }
}

/// An odd number that spreads labels over shards (2^64 divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The entries of one shard.
#[derive(Default)]
struct Counts {
    numbers: FxHashMap<u64, u32>,
    list: Vec<Entry>,
}

impl Counts {
    /// Counts one stack.
    fn visit(&mut self, ways: &Ways<'_>, shard: u64, stack: &Stack, seen: &mut Vec<u64>) {
        let layout = ways.layout;
        let depth = layout.frames(stack).len() as u32;
        ways.walk(shard, stack, seen, |label, from| {
            let first = || First::of(layout, stack, from);
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

impl First {
    /// What the frame `from` of a stack is, or what its sample fell on.
    fn of(layout: &Layout, stack: &Stack, from: Option<u32>) -> Self {
        let frames = layout.frames(stack);
        let frames = from.map_or(&[][..], |from| &frames[..=from as usize]);
        // Where nothing is mapped, perf shows the level of the frame it looked at before.
        let level = |site: &u32| layout.sites[*site as usize].level;
        let level = frames.iter().rev().find_map(level);
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
    fn new(first: First) -> Self {
        Self {
            weights: Weights::default(),
            chains: 0,
            depth: 0,
            first,
        }
    }

    /// Counts what fell on it.
    fn hit(&mut self, weight: &Weight, level: Level) {
        let weights = &mut self.weights;
        weights.own = weights.own.saturating_add(weight.period);
        weights.samples += weight.samples;
        if let Some(extras) = &weight.extras {
            weights.latency = weights.latency.saturating_add(extras.latency);
            add_each(&mut weights.costs, &extras.costs);
        }
        let mode = match level {
            Level::Kernel => 0,
            Level::User => 1,
            Level::GuestKernel => 2,
            Level::GuestUser => 3,
            Level::Hypervisor => return,
        };
        weights.modes[mode] = weights.modes[mode].saturating_add(weight.period);
    }

    fn add(&mut self, weight: &Weight, depth: u32) {
        let total = &mut self.weights.total;
        *total = total.saturating_add(weight.period);
        let latency = &mut self.weights.total_latency;
        *latency = latency.saturating_add(weight.latency());
        if depth > 0 {
            self.chains += weight.samples;
        }
        self.depth = self.depth.max(depth);
    }

    /// What keys are applied to.
    pub(crate) fn subject<'s>(&self, layout: &'s Layout) -> Subject<'s> {
        Subject {
            context: &layout.contexts[self.first.context as usize],
            site: &layout.sites[self.first.site as usize],
            level: self.first.level,
            samples: self.weights.samples,
            field: 0,
        }
    }
}
