//! Numbers before instructions: which they are, and which are the largest.

use rperf_disasm::{Code, Hit};
use rperf_view::annotate::{Column, percent};

/// What stands before instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Values {
    pub(super) column: Column,
    /// Whether shares are of the event's samples rather than of the function's.
    pub(super) global: bool,
    /// Whether they are of numbers of samples rather than of periods.
    pub(super) by_samples: bool,
}

impl Values {
    /// The shares of what fell on one place, by event, in percent.
    pub(super) fn shares(&self, hits: &[Hit], code: &Code, totals: &[Hit]) -> Vec<f64> {
        let wholes = if self.global { totals } else { &code.sums };
        let pairs = hits.iter().zip(wholes);
        pairs
            .map(|(hit, whole)| percent(*hit, *whole, self.by_samples))
            .collect()
    }

    /// In the words of titles.
    pub(super) fn text(&self) -> String {
        let scope = if self.global { "global" } else { "local" };
        let what = if self.by_samples { "hits" } else { "period" };
        format!("{scope} {what}")
    }

    /// The next column.
    pub(super) fn turn(&mut self) {
        self.column = match self.column {
            Column::Percent => Column::Period,
            Column::Period => Column::Samples,
            Column::Samples => Column::Percent,
        };
    }

    /// The instructions that anything fell on, the hottest first.
    pub(super) fn hottest(&self, code: &Code, totals: &[Hit]) -> Vec<usize> {
        let heat = |hits: &[Hit]| largest(&self.shares(hits, code, totals));
        let instructions = code.instructions.iter().enumerate();
        let heats = instructions.map(|(number, found)| (heat(&found.hits), number));
        let mut heats: Vec<(f64, usize)> = heats.filter(|(heat, _)| *heat > 0.0).collect();
        heats.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        heats.into_iter().map(|(_, number)| number).collect()
    }
}

/// The largest share.
pub(super) fn largest(shares: &[f64]) -> f64 {
    shares.iter().copied().fold(0.0, f64::max)
}
