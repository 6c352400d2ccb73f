//! Call graphs: the chains of one entry as a prefix tree, without its rare branches.
//!
//! perf inserts every chain into a tree and prunes it when it prints. Here the chains of an entry are split frame by
//! frame, and a group lighter than the threshold is dropped before it is looked into: most of a tree is never built.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::stacks::Layout;

/// A branch: frames below each other without a fork, then the forks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// Numbers of sites.
    pub(crate) frames: Vec<u32>,
    /// Events of the chains that come along here.
    pub(crate) period: u64,
    /// Heaviest first.
    pub(crate) nodes: Vec<Node>,
}

/// A part of a stack's callchain: from this frame to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) stack: u32,
    pub(crate) from: u32,
}

/// The tree of `chains`. `order` ranks sites for siblings of equal weight.
pub(crate) fn build<K: Ord>(
    layout: &Layout,
    chains: &mut [Chain],
    least: u64,
    order: &impl Fn(u32) -> K,
) -> Vec<Node> {
    Builder {
        layout,
        least,
        order,
    }
    .split(chains)
}

struct Builder<'a, F> {
    layout: &'a Layout,
    least: u64,
    order: &'a F,
}

impl<K: Ord, F: Fn(u32) -> K> Builder<'_, F> {
    /// The branches at the fork where all of `chains` are; those that end there belong to none.
    fn split(&self, chains: &mut [Chain]) -> Vec<Node> {
        let mut weights: FxHashMap<u32, u64> = FxHashMap::default();
        for chain in &*chains {
            if let Some(site) = self.site(*chain) {
                let sum = weights.entry(site).or_default();
                *sum = sum.saturating_add(self.period(*chain));
            }
        }
        weights.retain(|_, period| *period >= self.least);
        let mut heavy: Vec<(u32, u64)> = weights.into_iter().collect();
        heavy.sort_by_cached_key(|(site, period)| (Reverse(*period), (self.order)(*site)));
        let mut rest = chains;
        let mut nodes = Vec::with_capacity(heavy.len());
        for (site, period) in heavy {
            let taken = partition(rest, |chain| self.site(*chain) == Some(site));
            let (group, others) = rest.split_at_mut(taken);
            nodes.push(self.descend(group, site, period));
            rest = others;
        }
        nodes
    }

    /// The branch of `group`, whose chains all go on with `site`.
    fn descend(&self, group: &mut [Chain], site: u32, period: u64) -> Node {
        let mut frames = vec![site];
        loop {
            for chain in &mut *group {
                chain.from += 1;
            }
            match self.common(group) {
                Some(site) => frames.push(site),
                None => break,
            }
        }
        Node {
            frames,
            period,
            nodes: self.split(group),
        }
    }

    /// The site that all chains go on with, if none ends and none differs.
    fn common(&self, group: &[Chain]) -> Option<u32> {
        let (first, rest) = group.split_first()?;
        let site = self.site(*first)?;
        rest.iter()
            .all(|chain| self.site(*chain) == Some(site))
            .then_some(site)
    }

    fn site(&self, chain: Chain) -> Option<u32> {
        let stack = &self.layout.stacks[chain.stack as usize];
        let frames = self.layout.frames(stack);
        frames.get(chain.from as usize).copied()
    }

    fn period(&self, chain: Chain) -> u64 {
        self.layout.stacks[chain.stack as usize].weight.period
    }
}

/// Moves what `belongs` to the front, and says how many it is.
fn partition<T>(items: &mut [T], belongs: impl Fn(&T) -> bool) -> usize {
    let mut front = 0;
    for index in 0..items.len() {
        if belongs(&items[index]) {
            items.swap(front, index);
            front += 1;
        }
    }
    front
}
