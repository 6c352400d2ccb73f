//! A row's call graph as lines that fold.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use rperf_hist::{Branch, GraphForm, Row, Sum};
use rustc_hash::FxHashSet;

/// What names a line of a call graph, the same in every state of a recording that is still being read.
pub(super) type Key = u64;

/// A line below a row.
#[derive(Debug, Clone)]
pub(super) struct ChainLine {
    /// Steps to the right.
    pub(super) depth: usize,
    /// Whether lines below it are seen; None where there are none.
    pub(super) is_open: Option<bool>,
    /// What it weighs and what that is a share of, where that is shown.
    pub(super) share: Option<(Sum, u64)>,
    /// The function, or a whole chain.
    pub(super) frame: Arc<str>,
    pub(super) key: Key,
}

/// How the lines of call graphs are made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) graph: GraphForm,
    /// What shares are of, unless they are of the parent.
    pub(super) whole: u64,
}

/// The lines of a row's call graph that are seen while `open` are unfolded.
pub(super) fn lines(row: &Row, form: Form, open: &FxHashSet<Key>) -> Vec<ChainLine> {
    let mut lines = Lines {
        form,
        open,
        found: Vec::new(),
    };
    match form.graph {
        GraphForm::Folded => lines.found.extend(row.graph.iter().map(|chain| ChainLine {
            depth: 0,
            is_open: None,
            share: Some((chain.own, form.whole)),
            frame: chain.frames.join(";").into(),
            key: 0,
        })),
        _ => lines.fork(&row.graph, 0, 0, row.weights.total),
    }
    lines.found
}

/// All lines that fold.
pub(super) fn keys(row: &Row) -> FxHashSet<Key> {
    let mut keys = FxHashSet::default();
    let mut pending: Vec<(&Branch, Key)> = row.graph.iter().map(|branch| (branch, 0)).collect();
    while let Some((branch, parent)) = pending.pop() {
        let (first, last) = ends(branch, parent);
        keys.extend([first, last]);
        pending.extend(branch.branches.iter().map(|branch| (branch, last)));
    }
    keys
}

/// The keys of a branch's first and last line.
fn ends(branch: &Branch, parent: Key) -> (Key, Key) {
    let first = key(parent, branch.frames.first());
    let last = match branch.frames.len() {
        0 | 1 => first,
        _ => key(first, branch.frames.last()),
    };
    (first, last)
}

fn key(parent: Key, frame: Option<&Arc<str>>) -> Key {
    let mut hasher = DefaultHasher::new();
    (parent, frame).hash(&mut hasher);
    hasher.finish()
}

struct Lines<'o> {
    form: Form,
    open: &'o FxHashSet<Key>,
    found: Vec<ChainLine>,
}

impl Lines<'_> {
    /// Branches beside each other below a line that weighs `whole` without what ends there.
    fn fork(&mut self, branches: &[Branch], depth: usize, parent: Key, whole: u64) {
        let is_list = self.form.graph.is_list();
        for branch in branches {
            let (first, last) = ends(branch, parent);
            // Where all goes on, a share says nothing.
            let tells = is_list || branches.len() > 1 || branch.all.period != whole;
            let of = match self.form.graph {
                GraphForm::Fractal => whole,
                _ => self.form.whole,
            };
            let forks = !branch.branches.is_empty();
            let inner = depth + usize::from(tells);
            let end = branch.frames.len().saturating_sub(1);
            for (number, frame) in branch.frames.iter().enumerate() {
                let key = if number == 0 { first } else { last };
                let folds = match number {
                    0 => end > 0 || forks,
                    number => number == end && forks,
                };
                let is_open = folds.then(|| self.open.contains(&key));
                self.found.push(ChainLine {
                    depth: if number == 0 { depth } else { inner },
                    is_open,
                    share: (tells && number == 0).then_some((branch.all, of)),
                    frame: Arc::clone(frame),
                    key,
                });
                // A stem without a sign of its own ends where its first line folds.
                if is_open == Some(false) {
                    break;
                }
            }
            let is_open = self.open.contains(&first) && self.open.contains(&last);
            if forks && is_open {
                let below = if end > 0 { inner + 1 } else { depth + 1 };
                let rest = branch.all.without(branch.own);
                self.fork(&branch.branches, below, last, rest.period);
            }
        }
    }
}
