//! A row's call graph as foldable lines.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use rperf_hist::{Branch, ColumnSum, GraphForm, HistogramRow};
use rustc_hash::FxHashSet;

/// Identifies a row, or a line of a call graph that can be folded. Stays the same in later reports of the same recording or of
/// `top`.
pub(super) type LineKey = u64;

/// A call graph line below a row.
#[derive(Debug, Clone)]
pub(super) struct ChainLine {
    /// Indentation level.
    pub(super) depth: usize,
    /// Whether the line is unfolded; `None` if it cannot be folded.
    pub(super) is_open: Option<bool>,
    /// Its weight and the total that the percentage is relative to, if shown.
    pub(super) share: Option<(ColumnSum, u64)>,
    /// The function or the address; in a folded list, a whole callchain.
    pub(super) frame: Arc<str>,
    /// Has no meaning if the line cannot be folded.
    pub(super) key: LineKey,
}

/// How call graph lines are built.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainOptions {
    pub(super) graph: GraphForm,
    /// The total that percentages are relative to, unless relative to the parent.
    pub(super) total: u64,
}

/// Returns the visible lines of a row's call graph. `open` are the keys of the unfolded lines.
pub(super) fn lines(
    row: &HistogramRow,
    options: ChainOptions,
    open: &FxHashSet<LineKey>,
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
        _ => builder.push_branches(&row.graph, 0, 0, row.weights.total),
    }
    builder.lines
}

/// Returns the keys that unfold every line of a row's call graph.
pub(super) fn keys(row: &HistogramRow) -> FxHashSet<LineKey> {
    let mut keys = FxHashSet::default();
    let mut pending: Vec<(&Branch, LineKey)> = row.graph.iter().map(|branch| (branch, 0)).collect();
    while let Some((branch, parent)) = pending.pop() {
        let (first, last) = ends(branch, parent);
        keys.extend([first, last]);
        pending.extend(branch.branches.iter().map(|branch| (branch, last)));
    }
    keys
}

/// Returns the keys of a branch's first and last line.
fn ends(branch: &Branch, parent: LineKey) -> (LineKey, LineKey) {
    let first = key(parent, branch.frames.first());
    let last = match branch.frames.len() {
        0 | 1 => first,
        _ => key(first, branch.frames.last()),
    };
    (first, last)
}

fn key(parent: LineKey, frame: Option<&Arc<str>>) -> LineKey {
    let mut hasher = DefaultHasher::new();
    (parent, frame).hash(&mut hasher);
    hasher.finish()
}

/// Builds the lines of a call graph.
struct ChainLines<'o> {
    options: ChainOptions,
    open: &'o FxHashSet<LineKey>,
    lines: Vec<ChainLine>,
}

impl ChainLines<'_> {
    /// Adds the lines of sibling branches. `parent` is the key of the line above them, and `total` its period without the samples
    /// that end there.
    fn push_branches(&mut self, branches: &[Branch], depth: usize, parent: LineKey, total: u64) {
        let is_list = self.options.graph.is_list();
        for branch in branches {
            let (first, last) = ends(branch, parent);
            // A percentage is redundant if everything continues in one branch.
            let has_share = is_list || branches.len() > 1 || branch.all.period != total;
            let share_total = match self.options.graph {
                GraphForm::Fractal => total,
                _ => self.options.total,
            };
            let has_branches = !branch.branches.is_empty();
            // Without a percentage, all frames of a branch have the same indentation.
            let inner = depth + usize::from(has_share);
            let end = branch.frames.len().saturating_sub(1);
            for (number, frame) in branch.frames.iter().enumerate() {
                let key = if number == 0 { first } else { last };
                let folds = match number {
                    0 => end > 0 || has_branches,
                    number => number == end && has_branches,
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
            if has_branches && is_open {
                let below = if end > 0 { inner + 1 } else { depth + 1 };
                let rest = branch.all.without(branch.own);
                self.push_branches(&branch.branches, below, last, rest.period);
            }
        }
    }
}
