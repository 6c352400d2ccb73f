//! The call graph below a row.

use std::io::{self, Write};

use rperf_hist::{Branch, GraphForm, Row, Sum};

use super::table::Layout;
use crate::percent::Percent;

/// What a branch of a call graph is marked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BranchValue {
    /// Its share.
    #[default]
    Percent,
    /// Its events.
    Period,
    /// Its samples.
    Count,
}

impl Layout {
    /// What a branch is marked with, where `whole` is what shares are of.
    fn branch_value(&self, sum: Sum, whole: u64) -> String {
        match self.graph_value {
            BranchValue::Percent => {
                let share = Percent::of(sum.period, whole);
                let (begin, end) = share.paint(self.colors);
                format!("{begin}{share}{end}")
            }
            BranchValue::Period => sum.period.to_string(),
            BranchValue::Count => sum.samples.to_string(),
        }
    }
}

/// Blanks before every line of a graph.
const MARGIN: &str = "            ";
/// One level of depth: with the line that leads to a later sibling, and without.
const OPEN: &str = "|          ";
const CLOSED: &str = "           ";

/// What stands for the branches of a fork that are not shown.
const REST: &str = "[...]";

/// Writes the graph of `row`, or nothing where there is none. Percentages are of `whole`.
pub(super) fn write(out: &mut dyn Write, row: &Row, whole: u64, layout: &Layout) -> io::Result<()> {
    let chains = row.graph.iter().take(layout.most_branches());
    match layout.graph_form {
        GraphForm::Graph | GraphForm::Fractal => return write_tree(out, row, whole, layout),
        GraphForm::Flat => {
            for chain in chains {
                let value = layout.branch_value(chain.all, whole);
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
                let value = layout.branch_value(chain.own, whole);
                writeln!(out, "{value} {}", chain.frames.join(separator))?;
            }
        }
    }
    Ok(())
}

/// A tree ends with an empty line.
///
/// Where one branch holds everything the row counts, its frames stand alone behind `---`, without a percentage.
fn write_tree(out: &mut dyn Write, row: &Row, whole: u64, layout: &Layout) -> io::Result<()> {
    let fractal = layout.graph_form == GraphForm::Fractal;
    let mut fork = Fork {
        branches: &row.graph,
        whole: if fractal { row.weights.total } else { whole },
        chains: row.chains,
    };
    let mut lines = Lines {
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

/// Branches beside each other.
#[derive(Clone, Copy)]
struct Fork<'a> {
    branches: &'a [Branch],
    /// What percentages are of.
    whole: u64,
    /// Samples of all chains that go on here, shown or not.
    chains: u64,
}

struct Lines<'a> {
    margin: String,
    /// For each depth whether a line leads down to a later sibling.
    open: Vec<bool>,
    layout: &'a Layout,
}

impl Lines<'_> {
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

    fn write_fork(&mut self, out: &mut dyn Write, fork: Fork<'_>) -> io::Result<()> {
        let fractal = self.layout.graph_form == GraphForm::Fractal;
        let mut rest = Sum {
            period: fork.whole,
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
            self.write_frames(out, branch, fork.whole)?;
            let deeper = branch.all.without(branch.own);
            self.open.push(true);
            self.write_fork(
                out,
                Fork {
                    branches: &branch.branches,
                    whole: if fractal { deeper.period } else { fork.whole },
                    chains: deeper.samples,
                },
            )?;
            self.open.pop();
        }
        if fractal && rest.period > 0 && rest.period != fork.whole {
            self.write_rest(out, rest, fork.whole)?;
        }
        Ok(())
    }

    /// What is left of a fork, so that shares of the parent add up.
    fn write_rest(&mut self, out: &mut dyn Write, rest: Sum, whole: u64) -> io::Result<()> {
        if self.layout.graph_value == BranchValue::Count && rest.samples == 0 {
            return Ok(());
        }
        self.close();
        self.write_marked(out, &self.layout.branch_value(rest, whole), REST)
    }

    fn close(&mut self) {
        if let Some(open) = self.open.last_mut() {
            *open = false;
        }
    }

    fn write_frames(&self, out: &mut dyn Write, branch: &Branch, whole: u64) -> io::Result<()> {
        let Some((first, rest)) = branch.frames.split_first() else {
            return Ok(());
        };
        self.write_marked(out, &self.layout.branch_value(branch.all, whole), first)?;
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
