//! The call graph below a row.

use std::io::{self, Write};

use rperf_hist::{Branch, Row};

use super::percent::Percent;
use super::table::Layout;

/// Blanks before every line of a graph.
const MARGIN: &str = "            ";
/// One level of depth: with the line that leads to a later sibling, and without.
const OPEN: &str = "|          ";
const CLOSED: &str = "           ";

/// Writes the graph of `row` and an empty line, or nothing where there is no graph. Percentages are of `whole`.
///
/// Where one branch holds everything the row counts, its frames stand alone behind `---`, without a percentage.
pub(super) fn write(out: &mut dyn Write, row: &Row, whole: u64, layout: &Layout) -> io::Result<()> {
    let mut forks = &row.graph[..];
    let mut lines = Lines {
        margin: MARGIN.to_owned(),
        open: vec![true],
        whole,
        limit: layout.graph_limit.unwrap_or(usize::MAX),
    };
    let mut empty = true;
    if let [only] = forks
        && only.period == row.total
    {
        let skipped = usize::from(layout.skip_symbol);
        let stem = only.frames.get(skipped..).unwrap_or_default();
        empty = stem.is_empty();
        lines.write_stem(out, stem)?;
        forks = &only.branches;
    }
    lines.write_forks(out, forks)?;
    if empty && forks.is_empty() {
        return Ok(());
    }
    out.write_all(b"\n")
}

struct Lines {
    margin: String,
    /// For each depth whether a line leads down to a later sibling.
    open: Vec<bool>,
    whole: u64,
    /// Most branches of one fork.
    limit: usize,
}

impl Lines {
    fn write_stem(&mut self, out: &mut dyn Write, frames: &[impl AsRef<str>]) -> io::Result<()> {
        let Some((first, rest)) = frames.split_first() else {
            return Ok(());
        };
        writeln!(out, "{}|", self.margin)?;
        writeln!(out, "{}---{}", self.margin, first.as_ref())?;
        self.margin.push_str("   ");
        for frame in rest.iter().take(self.limit - 1) {
            writeln!(out, "{}{}", self.margin, frame.as_ref())?;
        }
        Ok(())
    }

    fn write_forks(&mut self, out: &mut dyn Write, forks: &[Branch]) -> io::Result<()> {
        for (index, branch) in forks.iter().enumerate().take(self.limit) {
            self.write_lead(out, self.open.len())?;
            out.write_all(b"\n")?;
            if index + 1 == forks.len()
                && let Some(open) = self.open.last_mut()
            {
                *open = false;
            }
            self.write_frames(out, branch)?;
            self.open.push(true);
            self.write_forks(out, &branch.branches)?;
            self.open.pop();
        }
        Ok(())
    }

    fn write_frames(&self, out: &mut dyn Write, branch: &Branch) -> io::Result<()> {
        let depth = self.open.len();
        for (index, frame) in branch.frames.iter().enumerate() {
            if index == 0 {
                self.write_lead(out, depth - 1)?;
                let open = self.open.last().copied().unwrap_or_default();
                let line = if open { '|' } else { ' ' };
                let share = Percent::of(branch.period, self.whole);
                writeln!(out, "{line}--{share}--{frame}")?;
            } else {
                self.write_lead(out, depth)?;
                writeln!(out, "{frame}")?;
            }
        }
        Ok(())
    }

    fn write_lead(&self, out: &mut dyn Write, depth: usize) -> io::Result<()> {
        out.write_all(self.margin.as_bytes())?;
        for open in self.open.iter().take(depth) {
            out.write_all(if *open { OPEN } else { CLOSED }.as_bytes())?;
        }
        Ok(())
    }
}
