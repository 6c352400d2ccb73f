//! From stacks to entries: every stack counts for what it fell on, and with children for each of its callers.

use rperf_replay::Order;
use rperf_resolve::Level;
use rustc_hash::FxHashMap;

use crate::histogram::Weights;
use crate::keys::{Subject, Thread};
use crate::ranks::Labels;
use crate::stacks::{Layout, Stack, Weight};
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
    layout: &'a Layout,
    children: bool,
    labels: Labels,
    numbers: FxHashMap<u64, u32>,
    list: Vec<Entry>,
}

impl<'a> Entries<'a> {
    /// The entries that `labels` tell apart, with `children` callers too.
    pub(crate) fn count(layout: &'a Layout, labels: Labels, children: bool) -> Self {
        let mut entries = Self {
            layout,
            children,
            labels,
            numbers: FxHashMap::default(),
            list: Vec::new(),
        };
        let mut seen = Vec::new();
        for stack in &layout.stacks {
            entries.visit(stack, &mut seen);
        }
        entries
    }

    /// The entries, in no order.
    pub(crate) fn list(&self) -> &[Entry] {
        &self.list
    }

    /// For each entry heavier than `least` the chains of its call graph, the others without.
    pub(crate) fn chains(&self, least: u64) -> Vec<Vec<Chain>> {
        let mut chains = vec![Vec::new(); self.list.len()];
        let mut seen = Vec::new();
        for (number, stack) in (0u32..).zip(&self.layout.stacks) {
            self.walk(stack, &mut seen, |entry, from| {
                let chain = Chain {
                    stack: number,
                    from: from.unwrap_or_default(),
                };
                if self.list[entry as usize].weights.total >= least {
                    chains[entry as usize].push(chain);
                }
            });
        }
        chains
    }

    /// Counts one stack.
    fn visit(&mut self, stack: &Stack, seen: &mut Vec<u32>) {
        let layout = self.layout;
        let frames = layout.frames(stack);
        let depth = frames.len() as u32;
        let weight = &stack.weight;
        let leaf = self.entry(stack, stack.leaf, stack.level);
        let entry = &mut self.list[leaf as usize];
        entry.hit(weight, stack.level);
        entry.add(weight, depth);
        if !self.children {
            return;
        }
        seen.clear();
        seen.push(leaf);
        let mut level = stack.level;
        for (from, site) in (0..).zip(frames) {
            // Where nothing is mapped, perf shows the level of the frame it looked at before.
            level = layout.sites[*site as usize].level.unwrap_or(level);
            let entry = self.entry(stack, *site, level);
            if !seen.contains(&entry) {
                seen.push(entry);
                self.list[entry as usize].add(weight, depth - from);
            }
        }
    }

    /// Calls `each(entry, from)` for the entries of one stack that was counted: `from` is the frame that an entry's
    /// chain begins with, `None` for what the sample fell on, which has the whole chain.
    fn walk(&self, stack: &Stack, seen: &mut Vec<u32>, mut each: impl FnMut(u32, Option<u32>)) {
        let number = |site| self.numbers.get(&self.label(stack, site)).copied();
        let Some(leaf) = number(stack.leaf) else {
            return;
        };
        each(leaf, None);
        if !self.children {
            return;
        }
        seen.clear();
        seen.push(leaf);
        for (from, site) in (0..).zip(self.layout.frames(stack)) {
            if let Some(entry) = number(*site)
                && !seen.contains(&entry)
            {
                seen.push(entry);
                each(entry, Some(from));
            }
        }
    }

    fn label(&self, stack: &Stack, site: u32) -> u64 {
        let context = self.labels.contexts[stack.context as usize];
        u64::from(context) << 32 | u64::from(self.labels.sites[site as usize])
    }

    /// The number of the entry of `site` in `stack`, new if there is none yet.
    fn entry(&mut self, stack: &Stack, site: u32, level: Level) -> u32 {
        let first = First {
            order: stack.weight.first,
            thread: stack.weight.thread,
            context: stack.context,
            site,
            level,
        };
        let label = self.label(stack, site);
        let number = *self.numbers.entry(label).or_insert_with(|| {
            let number = self.list.len() as u32;
            self.list.push(Entry::new(first));
            number
        });
        let known = &mut self.list[number as usize].first;
        if first.order < known.order {
            *known = first;
        }
        number
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
        }
    }
}
