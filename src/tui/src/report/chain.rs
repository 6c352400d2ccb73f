//! A row's call graph as foldable lines.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use rperf_hist::{Branch, ColumnSum, GraphForm, HistogramRow};
use rustc_hash::FxHashSet;

/// Identifies a row, or a line of a row's call graph that can be folded. The key of a call graph line is unique only within its
/// row. Keys stay the same when the report of a recording is rebuilt, and when `top` updates its report.
pub(super) type LineKey = u64;

/// The parent of the first lines of a call graph.
const NO_PARENT: LineKey = 0;

/// A call graph line below a row.
#[derive(Debug, Clone)]
pub(super) struct ChainLine {
    /// Indentation level.
    pub(super) depth: usize,
    /// Whether the line is unfolded; `None` if it cannot be folded.
    pub(super) is_open: Option<bool>,
    /// The line's weight, and the total that its percentage is relative to; `None` if the line shows no number.
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

/// Returns the visible lines of a row's call graph. `open` are the keys of the row's unfolded lines.
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
        _ => {
            let first_depth = 0;
            builder.push_branches(&row.graph, first_depth, NO_PARENT, row.weights.total);
        }
    }
    builder.lines
}

/// Returns the keys that unfold every line of a row's call graph.
pub(super) fn keys(row: &HistogramRow) -> FxHashSet<LineKey> {
    let mut keys = FxHashSet::default();
    let first_branches = row.graph.iter().map(|branch| (branch, NO_PARENT));
    let mut pending: Vec<(&Branch, LineKey)> = first_branches.collect();
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
    /// Adds the lines of sibling branches. `parent` is the key of the line above the branches, and `total` that line's period
    /// without the samples that end there; for a row's first branches, [`NO_PARENT`] and the row's total period.
    fn push_branches(&mut self, branches: &[Branch], depth: usize, parent: LineKey, total: u64) {
        // True only for `Flat`: the other list form, `Folded`, does not get here (see `lines`).
        let is_list = self.options.graph.is_list();
        for branch in branches {
            let (first_key, last_key) = ends(branch, parent);
            // The percentage of an only branch with the whole `total` would be redundant.
            let has_share = is_list || branches.len() > 1 || branch.all.period != total;
            let share_total = match self.options.graph {
                GraphForm::Fractal => total,
                _ => self.options.total,
            };
            let has_branches = !branch.branches.is_empty();
            // Without a percentage, all frames of a branch have the same indentation.
            let inner_depth = depth + usize::from(has_share);
            let last_number = branch.frames.len().saturating_sub(1);
            for (number, frame) in branch.frames.iter().enumerate() {
                // Frames between the first and the last cannot be folded: their key has no meaning.
                let key = if number == 0 { first_key } else { last_key };
                let folds = match number {
                    0 => last_number > 0 || has_branches,
                    number => number == last_number && has_branches,
                };
                let is_open = folds.then(|| self.open.contains(&key));
                self.lines.push(ChainLine {
                    depth: if number == 0 { depth } else { inner_depth },
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
            // Unlike the line's `is_open` above, this is for the branch: sub-branches are visible if neither its first nor its
            // last line is folded.
            let is_open = self.open.contains(&first_key) && self.open.contains(&last_key);
            if has_branches && is_open {
                let last_depth = if last_number > 0 { inner_depth } else { depth };
                let rest = branch.all.without(branch.own);
                self.push_branches(&branch.branches, last_depth + 1, last_key, rest.period);
            }
        }
    }
}
