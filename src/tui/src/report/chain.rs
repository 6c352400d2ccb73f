//! A row's call graph as foldable lines.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use rperf_hist::{Branch, ColumnSum, GraphForm, HistogramRow};
use rustc_hash::FxHashSet;

/// Identifies a row or a foldable line, the same in every update of a recording that is still being read.
pub(super) type ChainKey = u64;

/// A call graph line below a row.
#[derive(Debug, Clone)]
pub(super) struct ChainLine {
    /// Indentation level.
    pub(super) depth: usize,
    /// Whether the lines below it are shown; `None` if there are none.
    pub(super) is_open: Option<bool>,
    /// Its weight and the total that the percentage is relative to, if shown.
    pub(super) share: Option<(ColumnSum, u64)>,
    /// The function, or a whole callchain.
    pub(super) frame: Arc<str>,
    pub(super) key: ChainKey,
}

/// How call graph lines are built.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainOptions {
    pub(super) graph: GraphForm,
    /// The total that percentages are relative to, unless relative to the parent.
    pub(super) total: u64,
}

/// Returns the visible lines of a row's call graph, with `open` unfolded.
pub(super) fn lines(
    row: &HistogramRow,
    options: ChainOptions,
    open: &FxHashSet<ChainKey>,
) -> Vec<ChainLine> {
    let mut builder = ChainLines {
        options,
        open,
        lines: Vec::new(),
    };
    match options.graph {
        GraphForm::Folded => builder
            .lines
            .extend(row.graph.iter().map(|chain| ChainLine {
                depth: 0,
                is_open: None,
                share: Some((chain.own, options.total)),
                frame: chain.frames.join(";").into(),
                key: 0,
            })),
        _ => builder.fork(&row.graph, 0, 0, row.weights.total),
    }
    builder.lines
}

/// Returns the keys that unfold all lines.
pub(super) fn keys(row: &HistogramRow) -> FxHashSet<ChainKey> {
    let mut keys = FxHashSet::default();
    let mut pending: Vec<(&Branch, ChainKey)> =
        row.graph.iter().map(|branch| (branch, 0)).collect();
    while let Some((branch, parent)) = pending.pop() {
        let (first, last) = ends(branch, parent);
        keys.extend([first, last]);
        pending.extend(branch.branches.iter().map(|branch| (branch, last)));
    }
    keys
}

/// Returns the keys of a branch's first and last line.
fn ends(branch: &Branch, parent: ChainKey) -> (ChainKey, ChainKey) {
    let first = key(parent, branch.frames.first());
    let last = match branch.frames.len() {
        0 | 1 => first,
        _ => key(first, branch.frames.last()),
    };
    (first, last)
}

fn key(parent: ChainKey, frame: Option<&Arc<str>>) -> ChainKey {
    let mut hasher = DefaultHasher::new();
    (parent, frame).hash(&mut hasher);
    hasher.finish()
}

struct ChainLines<'o> {
    options: ChainOptions,
    open: &'o FxHashSet<ChainKey>,
    lines: Vec<ChainLine>,
}

impl ChainLines<'_> {
    /// Emits sibling branches. `total` is the period of the line above them, without the samples that end there.
    fn fork(&mut self, branches: &[Branch], depth: usize, parent: ChainKey, total: u64) {
        let is_list = self.options.graph.is_list();
        for branch in branches {
            let (first, last) = ends(branch, parent);
            // A percentage is redundant if everything continues in one branch.
            let has_share = is_list || branches.len() > 1 || branch.all.period != total;
            let share_total = match self.options.graph {
                GraphForm::Fractal => total,
                _ => self.options.total,
            };
            let forks = !branch.branches.is_empty();
            let inner = depth + usize::from(has_share);
            let end = branch.frames.len().saturating_sub(1);
            for (number, frame) in branch.frames.iter().enumerate() {
                let key = if number == 0 { first } else { last };
                let folds = match number {
                    0 => end > 0 || forks,
                    number => number == end && forks,
                };
                let is_open = folds.then(|| self.open.contains(&key));
                self.lines.push(ChainLine {
                    depth: if number == 0 { depth } else { inner },
                    is_open,
                    share: (has_share && number == 0).then_some((branch.all, share_total)),
                    frame: Arc::clone(frame),
                    key,
                });
                // A folded line hides the rest of its branch.
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
