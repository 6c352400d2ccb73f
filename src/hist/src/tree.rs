//! Call graphs: the chains of one entry (a row of the report) as a pruned prefix tree.
//!
//! perf inserts every chain into a tree and prunes it when printing. Here the chains of an entry
//! are split frame by frame into groups that continue at the same site (the code of a frame: a function, or an address), and
//! groups below the threshold are dropped before their branches are built.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::histogram::ColumnSum;
use crate::marks::BranchMarks;
use crate::stacks::MergedStacks;

/// A branch: consecutive frames without a fork, then sub-branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeNode {
    /// Indices of the frames' sites.
    pub(crate) frames: Vec<u32>,
    /// The sum over the chains through this branch.
    pub(crate) all: ColumnSum,
    /// The sum over the chains that end in this branch.
    pub(crate) own: ColumnSum,
    /// The marks at each frame; empty if the ends of taken branches (of branch stacks, not of the tree) are not annotated.
    pub(crate) marks: Vec<BranchMarks>,
    /// Sub-branches.
    pub(crate) nodes: Vec<TreeNode>,
}

/// The part of a stack's callchain from one frame to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainTail {
    /// Index of the stack.
    pub(crate) stack: u32,
    /// Index of the tail's first frame in the callchain, in call graph order.
    pub(crate) from: u32,
}

/// Minimum weight of a branch. Its weight is its period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum MinBranchWeight {
    /// This period.
    Period(u64),
    /// A fraction, at most 1, of the period of all siblings.
    OfFork(f64),
}

impl MinBranchWeight {
    /// The minimum at a fork whose branches have the period `fork` together.
    fn period(self, fork: u64) -> u64 {
        match self {
            Self::Period(period) => period,
            Self::OfFork(share) => (fork as f64 * share).ceil() as u64,
        }
    }
}

/// Order of siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SiblingOrder {
    /// By weight (period), descending, then by rank.
    ByWeight,
    /// By rank only.
    ByRank,
}

/// Builds trees of chains.
pub(crate) struct TreeBuilder<'a, F> {
    pub(crate) merged: &'a MergedStacks,
    /// For each site, the first of the sites that are not distinguished from it.
    pub(crate) representatives: &'a [u32],
    pub(crate) min_weight: MinBranchWeight,
    pub(crate) siblings: SiblingOrder,
    /// Whether the ends of taken branches (of branch stacks, not of the tree) are annotated.
    pub(crate) annotates_branches: bool,
    /// Rank of sites among siblings.
    pub(crate) rank: F,
}

impl<K: Ord, F: Fn(u32) -> K> TreeBuilder<'_, F> {
    /// Groups `chains` by their next sites. Returns a branch for each group of at least the minimum weight, and the sum of the
    /// chains without a next frame.
    pub(crate) fn split(&self, chains: &[ChainTail]) -> (Vec<TreeNode>, ColumnSum) {
        // The frames of different stacks are far apart in memory, so each is read only once.
        let sites: Vec<Option<u32>> = chains.iter().map(|chain| self.site(*chain)).collect();
        let mut sums: FxHashMap<u32, ColumnSum> = FxHashMap::default();
        let (mut fork, mut ended) = (ColumnSum::default(), ColumnSum::default());
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
        let least = self.min_weight.period(fork.period);
        sums.retain(|_, sum| sum.period >= least);
        let mut heavy: Vec<(u32, ColumnSum)> = sums.into_iter().collect();
        heavy.sort_by_cached_key(|(site, sum)| {
            let weight = match self.siblings {
                SiblingOrder::ByWeight => sum.period,
                SiblingOrder::ByRank => 0,
            };
            (Reverse(weight), (self.rank)(*site))
        });
        // The chains of `heavy[index]` become the group `index`.
        let indexed = heavy
            .iter()
            .zip(0..)
            .map(|((site, _), index)| (*site, index));
        let index_of_site: FxHashMap<u32, usize> = indexed.collect();
        let group_index = |site: &Option<u32>| index_of_site.get(site.as_ref()?).copied();
        let groups = grouped(chains, sites.iter().map(group_index), heavy.len());
        let nodes = groups.into_iter().zip(heavy);
        let nodes = nodes.map(|(mut group, (site, sum))| self.descend(&mut group, site, sum));
        (nodes.collect(), ended)
    }

    /// The branch of `group`, whose chains all continue with `site`.
    fn descend(&self, group: &mut [ChainTail], site: u32, all: ColumnSum) -> TreeNode {
        let mut frames = vec![site];
        let mut marks = Vec::new();
        loop {
            if self.annotates_branches {
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
        TreeNode {
            frames,
            all,
            own,
            marks,
            nodes,
        }
    }

    /// The common next site of all chains; `None` if a chain ends or the sites differ.
    fn common(&self, group: &[ChainTail]) -> Option<u32> {
        let (first, rest) = group.split_first()?;
        let site = self.site(*first)?;
        rest.iter()
            .all(|chain| self.site(*chain) == Some(site))
            .then_some(site)
    }

    /// The next site of a chain, represented by the first site that is not distinguished from it.
    fn site(&self, chain: ChainTail) -> Option<u32> {
        Some(self.representatives[self.actual_site(chain)? as usize])
    }

    /// The next site of a chain, even if [`Self::site`] represents it by another one.
    fn actual_site(&self, chain: ChainTail) -> Option<u32> {
        let stack = &self.merged.stacks[chain.stack as usize];
        let frames = self.merged.frames(stack);
        frames.get(chain.from as usize).copied()
    }

    /// The marks at the next frames of the chains.
    fn marks(&self, group: &[ChainTail]) -> BranchMarks {
        let mut marks = BranchMarks::default();
        for chain in group {
            let site = self.actual_site(*chain);
            let mark = site.and_then(|site| self.merged.sites[site as usize].mark);
            if let Some(mark) = mark {
                marks.add(mark, self.sum(*chain).samples);
            }
        }
        marks
    }

    fn sum(&self, chain: ChainTail) -> ColumnSum {
        self.merged.stacks[chain.stack as usize].weight.sum()
    }
}

/// Groups items into `count` groups, by the index of each item's group; items without a group are dropped.
fn grouped<T: Copy>(
    items: &[T],
    group_indices: impl Iterator<Item = Option<usize>>,
    count: usize,
) -> Vec<Vec<T>> {
    let mut lists = vec![Vec::new(); count];
    for (item, index) in items.iter().zip(group_indices) {
        if let Some(list) = index.and_then(|index| lists.get_mut(index)) {
            list.push(*item);
        }
    }
    lists
}
