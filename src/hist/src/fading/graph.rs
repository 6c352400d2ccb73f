//! Call graphs that are added to each other, fade, and are shown without their rare branches.

use std::cmp::Reverse;

use super::fade_sum;
use crate::histogram::Branch;
use crate::options::{GraphForm, GraphOptions};

/// Adds branches to those that begin alike; where chains are listed, to those that are alike.
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

/// Adds a branch to one that has its first frame.
fn join(known: &mut Branch, mut more: Branch, is_list: bool) {
    let both = known.frames.iter().zip(&more.frames);
    let common = both.take_while(|(known, more)| known == more).count();
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

/// Lets branches fade; those that come to nothing go, and forks of one branch are none.
pub(super) fn fade(branches: &mut Vec<Branch>) {
    for branch in branches.iter_mut() {
        fade_sum(&mut branch.all);
        fade_sum(&mut branch.own);
        fade(&mut branch.branches);
        straighten(branch);
    }
    branches.retain(|branch| branch.all.period > 0);
}

fn straighten(branch: &mut Branch) {
    let ends_here = branch.own.period > 0;
    if let ([_], false) = (&branch.branches[..], ends_here)
        && let Some(below) = branch.branches.pop()
    {
        branch.frames.extend(below.frames);
        branch.own = below.own;
        branch.branches = below.branches;
    }
}

/// Which branches are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Least {
    form: GraphForm,
    share: f64,
    /// Events, where thresholds are of all of them.
    events: u64,
}

impl Least {
    /// Where all samples have so many events.
    pub(super) fn new(graph: &GraphOptions, all: u64) -> Self {
        let share = graph.min_percent / 100.0;
        Self {
            form: graph.form,
            share,
            events: (all as f64 * share) as u64,
        }
    }

    /// The branches that are shown, the heaviest first.
    pub(super) fn kept(self, branches: &[Branch]) -> Vec<Branch> {
        let fork: u64 = branches.iter().map(|branch| branch.all.period).sum();
        let least = match self.form {
            GraphForm::Fractal => (fork as f64 * self.share).ceil() as u64,
            _ => self.events,
        };
        let weight = |branch: &Branch| match self.form.is_list() {
            true => branch.own.period,
            false => branch.all.period,
        };
        let kept = branches.iter().filter(|branch| weight(branch) >= least);
        let mut kept: Vec<Branch> = kept
            .map(|branch| Branch {
                frames: branch.frames.clone(),
                all: branch.all,
                own: branch.own,
                branches: self.kept(&branch.branches),
            })
            .collect();
        kept.sort_by(|one, other| {
            let by_weight = Reverse(weight(one)).cmp(&Reverse(weight(other)));
            by_weight.then_with(|| one.frames.cmp(&other.frames))
        });
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::super::faded;
    use super::*;
    use crate::histogram::Sum;

    fn sum(period: u64) -> Sum {
        Sum {
            period,
            samples: period,
            latency: 0,
        }
    }

    /// A chain of frames by their letters.
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
        tells_branches: false,
    };

    #[test]
    fn chains_fork_where_they_differ() {
        let mut tree = Vec::new();
        for (frames, period) in [("abc", 8), ("abd", 16), ("a", 8), ("abc", 8), ("x", 1)] {
            add(&mut tree, vec![chain(frames, period)], false);
        }
        assert_eq!(text(&tree), "a:40/8(b:32/0(c:16/16()d:16/16()))x:1/1()");
        fade(&mut tree);
        assert_eq!(text(&tree), "a:35/7(b:28/0(c:14/14()d:14/14()))");
        let least = Least::new(
            &GraphOptions {
                min_percent: 50.0,
                ..TREE
            },
            40,
        );
        assert_eq!(text(&least.kept(&tree)), "a:35/7(b:28/0())");
    }

    #[test]
    fn a_fork_of_one_branch_is_none() {
        let mut tree = Vec::new();
        add(&mut tree, vec![chain("abc", 80), chain("abd", 1)], false);
        fade(&mut tree);
        assert_eq!(text(&tree), "abc:70/70()");
    }

    #[test]
    fn listed_chains_stay_whole() {
        let mut list = Vec::new();
        add(&mut list, vec![chain("abc", 2), chain("ab", 5)], true);
        add(&mut list, vec![chain("abc", 1)], true);
        let least = Least::new(
            &GraphOptions {
                form: GraphForm::Folded,
                ..TREE
            },
            8,
        );
        assert_eq!(text(&least.kept(&list)), "ab:5/5()abc:3/3()");
    }

    #[test]
    fn what_is_nothing_fades_to_nothing() {
        let mut none = 0;
        faded(&mut none);
        assert_eq!(none, 0);
        let mut most = u64::MAX;
        faded(&mut most);
        assert_eq!(most, u64::MAX / 8 * 7 + 6);
    }
}
