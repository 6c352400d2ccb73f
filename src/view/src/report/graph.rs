//! The call graph below a row.

use std::io::{self, Write};

use rperf_hist::{Branch, ColumnSum, GraphForm, HistogramRow};

use super::table::ReportLayout;
use crate::percent::Percent;

/// The numbers shown on a branch of a call graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BranchValue {
    /// Percentage.
    #[default]
    Percent,
    /// Period.
    Period,
    /// Number of samples.
    Count,
}

impl ReportLayout {
    /// Formats a branch's number; percentages are of `total`.
    fn branch_value(&self, sum: ColumnSum, total: u64) -> String {
        match self.graph_value {
            BranchValue::Percent => {
                let share = Percent::of(sum.period, total);
                let (begin, end) = share.paint(self.colors);
                format!("{begin}{share}{end}")
            }
            BranchValue::Period => sum.period.to_string(),
            BranchValue::Count => sum.samples.to_string(),
        }
    }
}

/// Blanks before each line of a graph.
const MARGIN: &str = "            ";
/// Indentation per level: with a line to a later sibling, and without.
const OPEN: &str = "|          ";
const CLOSED: &str = "           ";

/// Placeholder for the branches that are not shown.
const HIDDEN_BRANCHES: &str = "[...]";

/// Writes the call graph of `row`, if it has one. Percentages are of `total`.
pub(super) fn write(
    out: &mut dyn Write,
    row: &HistogramRow,
    total: u64,
    layout: &ReportLayout,
) -> io::Result<()> {
    let chains = row.graph.iter().take(layout.most_branches());
    match layout.graph_form {
        GraphForm::Graph | GraphForm::Fractal => return write_tree(out, row, total, layout),
        GraphForm::Flat => {
            for chain in chains {
                let value = layout.branch_value(chain.all, total);
                writeln!(out, "           {value}")?;
                for frame in &chain.frames {
                    writeln!(out, "                {frame}")?;
                }
                out.write_all(b"\n")?;
            }
        }
        GraphForm::Folded => {
            let separator = layout.separator.as_deref().unwrap_or(";");
            for chain in chains {
                let value = layout.branch_value(chain.own, total);
                writeln!(out, "{value} {}", chain.frames.join(separator))?;
            }
        }
    }
    Ok(())
}

/// Writes a tree, terminated by an empty line.
///
/// If one branch holds everything counted in the row, its frames follow `---` without a percentage.
fn write_tree(
    out: &mut dyn Write,
    row: &HistogramRow,
    total: u64,
    layout: &ReportLayout,
) -> io::Result<()> {
    let fractal = layout.graph_form == GraphForm::Fractal;
    let mut fork = ForkBranches {
        branches: &row.graph,
        total: if fractal { row.weights.total } else { total },
        chains: row.chains,
    };
    let mut lines = GraphLines {
        margin: MARGIN.to_owned(),
        open: vec![true],
        layout,
    };
    let mut empty = true;
    if let [only] = fork.branches
        && only.all.period == row.weights.total
    {
        let skipped = usize::from(layout.skip_symbol);
        let stem = only.frames.get(skipped..).unwrap_or_default();
        empty = stem.is_empty();
        lines.write_stem(out, stem)?;
        fork.branches = &only.branches;
        fork.chains = only.all.without(only.own).samples;
    }
    lines.write_fork(out, fork)?;
    if empty && fork.branches.is_empty() {
        return Ok(());
    }
    out.write_all(b"\n")
}

/// Sibling branches.
#[derive(Clone, Copy)]
struct ForkBranches<'a> {
    branches: &'a [Branch],
    /// The total for percentages.
    total: u64,
    /// Samples of all chains that continue here, shown or not.
    chains: u64,
}

struct GraphLines<'a> {
    margin: String,
    /// For each depth, whether a line leads down to a later sibling.
    open: Vec<bool>,
    layout: &'a ReportLayout,
}

impl GraphLines<'_> {
    fn write_stem(&mut self, out: &mut dyn Write, frames: &[impl AsRef<str>]) -> io::Result<()> {
        let Some((first, rest)) = frames.split_first() else {
            return Ok(());
        };
        writeln!(out, "{}|", self.margin)?;
        writeln!(out, "{}---{}", self.margin, first.as_ref())?;
        self.margin.push_str("   ");
        for frame in rest.iter().take(self.layout.most_branches() - 1) {
            writeln!(out, "{}{}", self.margin, frame.as_ref())?;
        }
        Ok(())
    }

    fn write_fork(&mut self, out: &mut dyn Write, fork: ForkBranches<'_>) -> io::Result<()> {
        let fractal = self.layout.graph_form == GraphForm::Fractal;
        let mut rest = ColumnSum {
            period: fork.total,
            samples: fork.chains,
            latency: 0,
        };
        let last = fork.branches.len().saturating_sub(1);
        let shown = fork.branches.iter().take(self.layout.most_branches());
        for (index, branch) in shown.enumerate() {
            rest = rest.without(branch.all);
            self.write_lead(out, self.open.len())?;
            out.write_all(b"\n")?;
            if index == last && (!fractal || rest.period == 0) {
                self.close();
            }
            self.write_frames(out, branch, fork.total)?;
            let deeper = branch.all.without(branch.own);
            self.open.push(true);
            self.write_fork(
                out,
                ForkBranches {
                    branches: &branch.branches,
                    total: if fractal { deeper.period } else { fork.total },
                    chains: deeper.samples,
                },
            )?;
            self.open.pop();
        }
        if fractal && rest.period > 0 && rest.period != fork.total {
            self.write_rest(out, rest, fork.total)?;
        }
        Ok(())
    }

    /// The remainder of the branches, so that percentages add up to the parent's.
    fn write_rest(&mut self, out: &mut dyn Write, rest: ColumnSum, total: u64) -> io::Result<()> {
        if self.layout.graph_value == BranchValue::Count && rest.samples == 0 {
            return Ok(());
        }
        self.close();
        self.write_marked(out, &self.layout.branch_value(rest, total), HIDDEN_BRANCHES)
    }

    fn close(&mut self) {
        if let Some(open) = self.open.last_mut() {
            *open = false;
        }
    }

    fn write_frames(&self, out: &mut dyn Write, branch: &Branch, total: u64) -> io::Result<()> {
        let Some((first, rest)) = branch.frames.split_first() else {
            return Ok(());
        };
        self.write_marked(out, &self.layout.branch_value(branch.all, total), first)?;
        for frame in rest {
            self.write_lead(out, self.open.len())?;
            writeln!(out, "{frame}")?;
        }
        Ok(())
    }

    /// The first line of a branch.
    fn write_marked(&self, out: &mut dyn Write, value: &str, frame: &str) -> io::Result<()> {
        self.write_lead(out, self.open.len() - 1)?;
        let open = self.open.last().copied().unwrap_or_default();
        let line = if open { '|' } else { ' ' };
        writeln!(out, "{line}--{value}--{frame}")
    }

    fn write_lead(&self, out: &mut dyn Write, depth: usize) -> io::Result<()> {
        out.write_all(self.margin.as_bytes())?;
        for open in self.open.iter().take(depth) {
            out.write_all(if *open { OPEN } else { CLOSED }.as_bytes())?;
        }
        Ok(())
    }
}
