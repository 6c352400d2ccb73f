//! Call graphs: the chains of one entry as a prefix tree, without its rare branches.
//!
//! perf inserts every chain into a tree and prunes it when it prints. Here the chains of an entry are split frame by
//! frame, and a group lighter than the threshold is dropped before it is looked into: most of a tree is never built.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::histogram::Sum;
use crate::marks::Marks;
use crate::stacks::Layout;

/// A branch: frames below each other without a fork, then the forks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// Numbers of sites.
    pub(crate) frames: Vec<u32>,
    /// The chains that come along here.
    pub(crate) all: Sum,
    /// Those of them that end here.
    pub(crate) own: Sum,
    /// What each frame tells as the end of branches, if that is asked for.
    pub(crate) marks: Vec<Marks>,
    /// Where it forks.
    pub(crate) nodes: Vec<Node>,
}

/// A part of a stack's callchain: from this frame to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) stack: u32,
    pub(crate) from: u32,
}

/// The lightest branch that is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Least {
    /// Events.
    Events(u64),
    /// A share of the chains that go on at the same fork, at most 1.
    OfFork(f64),
}

impl Least {
    fn events(self, fork: u64) -> u64 {
        match self {
            Self::Events(events) => events,
            Self::OfFork(share) => (fork as f64 * share).ceil() as u64,
        }
    }
}

/// How siblings are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Siblings {
    /// The heaviest first, then by rank.
    ByWeight,
    /// By rank alone.
    ByRank,
}

/// Makes trees of chains.
pub(crate) struct Builder<'a, F> {
    pub(crate) layout: &'a Layout,
    /// For each site, the one that stands for it.
    pub(crate) alike: &'a [u32],
    pub(crate) least: Least,
    pub(crate) siblings: Siblings,
    /// Whether frames tell of the branches that they are ends of.
    pub(crate) tells_branches: bool,
    /// Ranks sites among siblings.
    pub(crate) rank: F,
}

impl<K: Ord, F: Fn(u32) -> K> Builder<'_, F> {
    /// The tree of `chains`: the branches at the fork where all of them are, and those that end there.
    pub(crate) fn split(&self, chains: &[Chain]) -> (Vec<Node>, Sum) {
        // Frames of stacks lie far apart: each is looked at once.
        let sites: Vec<Option<u32>> = chains.iter().map(|chain| self.site(*chain)).collect();
        let mut sums: FxHashMap<u32, Sum> = FxHashMap::default();
        let (mut fork, mut ended) = (Sum::default(), Sum::default());
        for (chain, site) in chains.iter().zip(&sites) {
            let sum = self.sum(*chain);
            match site {
                Some(site) => {
                    sums.entry(*site).or_default().add(sum);
                    fork.add(sum);
                }
                None => ended.add(sum),
            }
        }
        let least = self.least.events(fork.period);
        sums.retain(|_, sum| sum.period >= least);
        let mut heavy: Vec<(u32, Sum)> = sums.into_iter().collect();
        heavy.sort_by_cached_key(|(site, sum)| {
            let weight = match self.siblings {
                Siblings::ByWeight => sum.period,
                Siblings::ByRank => 0,
            };
            (Reverse(weight), (self.rank)(*site))
        });
        let groups = heavy
            .iter()
            .zip(0..)
            .map(|((site, _), group)| (*site, group));
        let groups: FxHashMap<u32, usize> = groups.collect();
        let group = |site: &Option<u32>| groups.get(site.as_ref()?).copied();
        let groups = grouped(chains, sites.iter().map(group), heavy.len());
        let nodes = groups.into_iter().zip(heavy);
        let nodes = nodes.map(|(mut group, (site, sum))| self.descend(&mut group, site, sum));
        (nodes.collect(), ended)
    }

    /// The branch of `group`, whose chains all go on with `site`.
    fn descend(&self, group: &mut [Chain], site: u32, all: Sum) -> Node {
        let mut frames = vec![site];
        let mut marks = Vec::new();
        loop {
            if self.tells_branches {
                marks.push(self.marks(group));
            }
            for chain in &mut *group {
                chain.from += 1;
            }
            match self.common(group) {
                Some(site) => frames.push(site),
                None => break,
            }
        }
        let (nodes, own) = self.split(group);
        Node {
            frames,
            all,
            own,
            marks,
            nodes,
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
        Some(self.alike[self.own_site(chain)? as usize])
    }

    fn own_site(&self, chain: Chain) -> Option<u32> {
        let stack = &self.layout.stacks[chain.stack as usize];
        let frames = self.layout.frames(stack);
        frames.get(chain.from as usize).copied()
    }

    /// The ends of branches that the next frames are.
    fn marks(&self, group: &[Chain]) -> Marks {
        let mut marks = Marks::default();
        for chain in group {
            let site = self.own_site(*chain);
            let mark = site.and_then(|site| self.layout.sites[site as usize].mark);
            if let Some(mark) = mark {
                marks.add(mark, self.sum(*chain).samples);
            }
        }
        marks
    }

    fn sum(&self, chain: Chain) -> Sum {
        self.layout.stacks[chain.stack as usize].weight.sum()
    }
}

/// The items by their groups, of which there are `count`; those without a group are left out.
fn grouped<T: Copy>(
    items: &[T],
    groups: impl Iterator<Item = Option<usize>>,
    count: usize,
) -> Vec<Vec<T>> {
    let mut lists = vec![Vec::new(); count];
    for (item, group) in items.iter().zip(groups) {
        if let Some(list) = group.and_then(|group| lists.get_mut(group)) {
            list.push(*item);
        }
    }
    lists
}
