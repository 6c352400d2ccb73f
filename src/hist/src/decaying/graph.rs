//! Merging, decay and pruning of call graphs.

use std::cmp::Reverse;

use super::decay_sum;
use crate::histogram::Branch;
use crate::options::{GraphForm, GraphOptions};

/// Adds the branches `more`. Branches with the same first frame are merged; in list forms (flat and folded), only branches whose
/// frames are all equal.
pub(super) fn add(branches: &mut Vec<Branch>, more: Vec<Branch>, is_list: bool) {
    for branch in more {
        let is_same = |known: &&mut Branch| match is_list {
            true => known.frames == branch.frames,
            false => known.frames.first() == branch.frames.first(),
        };
        match branches.iter_mut().find(is_same) {
            Some(known) => join(known, branch, is_list),
            None => branches.push(branch),
        }
    }
}

/// Merges a branch into one with the same first frame.
fn join(known: &mut Branch, mut more: Branch, is_list: bool) {
    let pairs = known.frames.iter().zip(&more.frames);
    let common = pairs.take_while(|(known, more)| known == more).count();
    if common < known.frames.len() {
        let below = Branch {
            frames: known.frames.split_off(common),
            all: known.all,
            own: std::mem::take(&mut known.own),
            branches: std::mem::take(&mut known.branches),
        };
        known.branches.push(below);
    }
    known.all.add(more.all);
    if common == more.frames.len() {
        known.own.add(more.own);
        add(&mut known.branches, more.branches, is_list);
    } else {
        more.frames.drain(..common);
        add(&mut known.branches, vec![more], is_list);
    }
}

/// Decays branches. Branches that reach 0 are removed. A single remaining sub-branch is joined to its parent if no chain ends
/// in the parent.
pub(super) fn decay(branches: &mut Vec<Branch>) {
    for branch in branches.iter_mut() {
        decay_sum(&mut branch.all);
        decay_sum(&mut branch.own);
        decay(&mut branch.branches);
        join_single_branch(branch);
    }
    branches.retain(|branch| branch.all.period > 0);
}

/// Joins the sub-branch of `branch` to it, if there is exactly one and no chain ends in `branch` itself.
fn join_single_branch(branch: &mut Branch) {
    let ends_here = branch.own.period > 0;
    if !ends_here
        && branch.branches.len() == 1
        && let Some(below) = branch.branches.pop()
    {
        branch.frames.extend(below.frames);
        branch.own = below.own;
        branch.branches = below.branches;
    }
}

/// Threshold for displayed branches.
#[derive(Debug, Clone, Copy)]
pub(super) struct BranchThreshold {
    form: GraphForm,
    /// The minimum share for a branch to be displayed, from 0 to 1. In fractal form, the whole is the period of the branch and
    /// its siblings; otherwise, it is the total period.
    share: f64,
    /// Minimum period, for all forms but fractal.
    min_period: u64,
}

impl BranchThreshold {
    /// The threshold for a total period of `all`.
    pub(super) fn new(graph: &GraphOptions, all: u64) -> Self {
        let share = graph.min_percent / 100.0;
        Self {
            form: graph.form,
            share,
            min_period: (all as f64 * share) as u64,
        }
    }

    /// The displayed branches, heaviest first.
    pub(super) fn displayed(self, branches: &[Branch]) -> Vec<Branch> {
        let periods = branches.iter().map(|branch| branch.all.period);
        let fork_period = periods.fold(0, u64::saturating_add);
        let min_period = match self.form {
            // Rounded up as in perf, which rounds the threshold of other forms down.
            GraphForm::Fractal => (fork_period as f64 * self.share).ceil() as u64,
            _ => self.min_period,
        };
        // In list forms, `all` of a chain also counts the longer chains that begin with it.
        let weight = |branch: &Branch| match self.form.is_list() {
            true => branch.own.period,
            false => branch.all.period,
        };
        let displayed = branches
            .iter()
            .filter(|branch| weight(branch) >= min_period);
        let mut displayed: Vec<Branch> = displayed
            .map(|branch| Branch {
                frames: branch.frames.clone(),
                all: branch.all,
                own: branch.own,
                branches: self.displayed(&branch.branches),
            })
            .collect();
        displayed.sort_by(|one, other| {
            let by_weight = Reverse(weight(one)).cmp(&Reverse(weight(other)));
            by_weight.then_with(|| one.frames.cmp(&other.frames))
        });
        displayed
    }
}

#[cfg(test)]
mod tests {
    use super::super::decay_count;
    use super::*;
    use crate::histogram::ColumnSum;

    fn sum(period: u64) -> ColumnSum {
        ColumnSum {
            period,
            samples: period,
            latency: 0,
        }
    }

    /// A chain of frames named by letters.
    fn chain(frames: &str, period: u64) -> Branch {
        Branch {
            frames: frames
                .chars()
                .map(|frame| frame.to_string().into())
                .collect(),
            all: sum(period),
            own: sum(period),
            branches: Vec::new(),
        }
    }

    /// `FRAMES:ALL/OWN(SUB-BRANCHES)` of each branch, with the periods of [`Branch::all`] and [`Branch::own`].
    fn text(branches: &[Branch]) -> String {
        let one = |branch: &Branch| {
            let below = text(&branch.branches);
            let (all, own) = (branch.all.period, branch.own.period);
            format!("{}:{all}/{own}({below})", branch.frames.concat())
        };
        branches.iter().map(one).collect()
    }

    const TREE: GraphOptions = GraphOptions {
        form: GraphForm::Graph,
        min_percent: 0.0,
        by_address: false,
        by_line: false,
        annotates_branches: false,
    };

    /// Also decays the tree, to 7/8, and applies a threshold to it.
    #[test]
    fn chains_fork_where_they_differ() {
        let is_list = false;
        let mut tree = Vec::new();
        for (frames, period) in [("abc", 8), ("abd", 16), ("a", 8), ("abc", 8), ("x", 1)] {
            add(&mut tree, vec![chain(frames, period)], is_list);
        }
        assert_eq!(text(&tree), "a:40/8(b:32/0(c:16/16()d:16/16()))x:1/1()");
        decay(&mut tree);
        assert_eq!(text(&tree), "a:35/7(b:28/0(c:14/14()d:14/14()))");
        // 50 % of a total of 40: branches with at least 20 are displayed.
        let threshold = BranchThreshold::new(
            &GraphOptions {
                min_percent: 50.0,
                ..TREE
            },
            40,
        );
        assert_eq!(text(&threshold.displayed(&tree)), "a:35/7(b:28/0())");
    }

    #[test]
    fn a_single_remaining_branch_is_joined_to_its_parent() {
        let is_list = false;
        let mut tree = Vec::new();
        // The 1 of `abd` decays to 0, and the 81 of `ab` to 70.
        add(&mut tree, vec![chain("abc", 80), chain("abd", 1)], is_list);
        decay(&mut tree);
        assert_eq!(text(&tree), "abc:70/70()");
    }

    #[test]
    fn listed_chains_stay_complete() {
        let is_list = true;
        let mut list = Vec::new();
        add(&mut list, vec![chain("abc", 2), chain("ab", 5)], is_list);
        add(&mut list, vec![chain("abc", 1)], is_list);
        let threshold = BranchThreshold::new(
            &GraphOptions {
                form: GraphForm::Folded,
                ..TREE
            },
            8,
        );
        assert_eq!(text(&threshold.displayed(&list)), "ab:5/5()abc:3/3()");
    }

    /// Also: the largest count does not overflow.
    #[test]
    fn zero_decays_to_zero() {
        let mut none = 0;
        decay_count(&mut none);
        assert_eq!(none, 0);
        let mut most = u64::MAX;
        decay_count(&mut most);
        // 7/8 of the count, rounded down: 6 are from its remainder of 7.
        assert_eq!(most, u64::MAX / 8 * 7 + 6);
    }
}
