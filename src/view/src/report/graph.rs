//! The call graph below a row.

use rperf_hist::{Branch, ColumnSum, GraphForm, HistogramRow};

use super::table::ReportLayout;
use crate::digits;
use crate::percent::Percent;

/// The kind of the number that a node of a call graph shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GraphValue {
    /// Percentage.
    #[default]
    Percent,
    /// Period.
    Period,
    /// Number of samples.
    Count,
}

impl ReportLayout {
    /// Appends a branch's number; percentages are of `total`.
    fn push_branch_value(&self, text: &mut String, sum: ColumnSum, total: u64) {
        match self.graph_value {
            GraphValue::Percent => {
                let share = Percent::of(sum.period, total);
                let (begin, end) = share.paint(self.colors);
                begin.push_to(text);
                share.push_to(text);
                end.push_to(text);
            }
            GraphValue::Period => digits::push_decimal(text, sum.period),
            GraphValue::Count => digits::push_decimal(text, sum.samples),
        }
    }
}

/// Blanks before each line of a tree.
const MARGIN: &str = "            ";
/// Indentation per depth: with a bar that leads down to a later sibling, and without.
const OPEN: &str = "|          ";
const CLOSED: &str = "           ";

/// Placeholder for the branches that are not shown.
const HIDDEN_BRANCHES: &str = "[...]";

/// Appends the call graph of `row`, if it has one. Percentages are of `total`; those of a fractal graph are of the parent.
pub(super) fn push(text: &mut String, row: &HistogramRow, total: u64, layout: &ReportLayout) {
    let chains = row.graph.iter().take(layout.most_branches());
    match layout.graph_form {
        GraphForm::Graph | GraphForm::Fractal => push_tree(text, row, total, layout),
        // As in perf, the number of a flat chain includes longer chains that begin with it, that of a folded chain does not.
        GraphForm::Flat => {
            for chain in chains {
                text.push_str("           ");
                layout.push_branch_value(text, chain.all, total);
                text.push('\n');
                for frame in &chain.frames {
                    push_line(text, "                ", frame);
                }
                text.push('\n');
            }
        }
        GraphForm::Folded => {
            let separator = layout.separator.as_deref().unwrap_or(";");
            for chain in chains {
                layout.push_branch_value(text, chain.own, total);
                text.push(' ');
                for (index, frame) in chain.frames.iter().enumerate() {
                    text.push_str(if index > 0 { separator } else { "" });
                    text.push_str(frame);
                }
                text.push('\n');
            }
        }
    }
}

/// Appends a line of `lead` and `frame`.
fn push_line(text: &mut String, lead: &str, frame: &str) {
    text.push_str(lead);
    text.push_str(frame);
    text.push('\n');
}

/// Appends a tree, terminated by an empty line; nothing if the tree is empty.
///
/// If one branch holds everything counted in the row, its frames follow `---` without a percentage.
fn push_tree(text: &mut String, row: &HistogramRow, total: u64, layout: &ReportLayout) {
    let fractal = layout.graph_form == GraphForm::Fractal;
    let mut fork = ForkBranches {
        branches: &row.graph,
        total: if fractal { row.weights.total } else { total },
        samples: row.chains,
    };
    let mut lines = GraphLines {
        margin: MARGIN.to_owned(),
        open: vec![true],
        layout,
    };
    let mut has_stem = false;
    if let [only] = fork.branches
        && only.all.period == row.weights.total
    {
        // The first frame may be the row's own symbol.
        let skipped = usize::from(layout.skips_first_frame);
        let stem = only.frames.get(skipped..).unwrap_or_default();
        has_stem = !stem.is_empty();
        lines.push_stem(text, stem);
        // Below the stem, the percentages of a fractal graph are still of the row's total.
        fork.branches = &only.branches;
        fork.samples = only.all.without(only.own).samples;
    }
    lines.push_fork(text, fork);
    if has_stem || !fork.branches.is_empty() {
        text.push('\n');
    }
}

/// Sibling branches.
#[derive(Clone, Copy)]
struct ForkBranches<'a> {
    branches: &'a [Branch],
    /// The total for percentages.
    total: u64,
    /// Number of samples whose chains continue here, in shown or hidden branches.
    samples: u64,
}

/// The state while the lines of a graph are appended.
struct GraphLines<'a> {
    /// The text before each line.
    margin: String,
    /// For each depth, whether a bar leads down to a later sibling.
    open: Vec<bool>,
    layout: &'a ReportLayout,
}

impl GraphLines<'_> {
    /// Appends the frames before the first fork. Later lines are indented below them.
    fn push_stem(&mut self, text: &mut String, frames: &[impl AsRef<str>]) {
        let Some((first, rest)) = frames.split_first() else {
            return;
        };
        push_line(text, &self.margin, "|");
        text.push_str(&self.margin);
        push_line(text, "---", first.as_ref());
        self.margin.push_str("   ");
        // As in perf, the limit of branches also limits the lines of a stem; the first frame is already appended.
        for frame in rest.iter().take(self.layout.most_branches() - 1) {
            push_line(text, &self.margin, frame.as_ref());
        }
    }

    /// Appends branches and, recursively, those below them.
    fn push_fork(&mut self, text: &mut String, fork: ForkBranches<'_>) {
        let fractal = self.layout.graph_form == GraphForm::Fractal;
        let mut remainder = ColumnSum {
            period: fork.total,
            samples: fork.samples,
            latency: 0,
        };
        // The last of all branches, shown or hidden: as in perf, the bar is still drawn beside the last shown branch if further
        // ones are hidden.
        let last = fork.branches.len().saturating_sub(1);
        let branches = fork.branches.iter().take(self.layout.most_branches());
        for (index, branch) in branches.enumerate() {
            remainder = remainder.without(branch.all);
            self.push_lead(text, self.open.len());
            text.push('\n');
            if index == last && (!fractal || remainder.period == 0) {
                self.close();
            }
            self.push_frames(text, branch, fork.total);
            let deeper = branch.all.without(branch.own);
            self.open.push(true);
            self.push_fork(
                text,
                ForkBranches {
                    branches: &branch.branches,
                    total: if fractal { deeper.period } else { fork.total },
                    samples: deeper.samples,
                },
            );
            self.open.pop();
        }
        // If `remainder` is still the whole, no branch is shown, and no remainder either.
        if fractal && remainder.period > 0 && remainder.period != fork.total {
            self.push_remainder(text, remainder, fork.total);
        }
    }

    /// Appends the sum of the branches that are not shown, so that siblings add up to `total`.
    fn push_remainder(&mut self, text: &mut String, remainder: ColumnSum, total: u64) {
        if self.layout.graph_value != GraphValue::Count || remainder.samples > 0 {
            self.close();
            self.push_first_line(text, remainder, total, HIDDEN_BRANCHES);
        }
    }

    /// Ends the bar of the innermost depth: no sibling follows the next branch.
    fn close(&mut self) {
        if let Some(open) = self.open.last_mut() {
            *open = false;
        }
    }

    fn push_frames(&self, text: &mut String, branch: &Branch, total: u64) {
        let Some((first, rest)) = branch.frames.split_first() else {
            return;
        };
        self.push_first_line(text, branch.all, total, first);
        for frame in rest {
            self.push_lead(text, self.open.len());
            push_line(text, "", frame);
        }
    }

    /// The first line of a branch, with its number.
    fn push_first_line(&self, text: &mut String, sum: ColumnSum, total: u64, frame: &str) {
        self.push_lead(text, self.open.len() - 1);
        let open = self.open.last().copied().unwrap_or_default();
        text.push_str(if open { "|--" } else { " --" });
        self.layout.push_branch_value(text, sum, total);
        push_line(text, "--", frame);
    }

    /// Appends the margin and, for each of the first `depth` depths, its bar or blanks.
    fn push_lead(&self, text: &mut String, depth: usize) {
        text.push_str(&self.margin);
        for open in self.open.iter().take(depth) {
            text.push_str(if *open { OPEN } else { CLOSED });
        }
    }
}
