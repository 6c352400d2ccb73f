//! Which numbers are shown before instructions, and the instructions sorted by percentage, hottest first.

use rperf_disasm::{FunctionCode, HitCount};
use rperf_view::annotate::{AnnotateColumn, percent};

/// Which numbers are shown before instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ColumnOptions {
    pub(super) column: AnnotateColumn,
    /// Whether percentages are relative to the event's total instead of the function's.
    pub(super) global: bool,
    /// Whether percentages are those of sample counts instead of periods.
    pub(super) by_samples: bool,
}

impl ColumnOptions {
    /// Returns the percentages of an instruction or line, by event.
    pub(super) fn shares(
        &self,
        hits: &[HitCount],
        code: &FunctionCode,
        totals: &[HitCount],
    ) -> Vec<f64> {
        let totals = if self.global { totals } else { &code.sums };
        let pairs = hits.iter().zip(totals);
        pairs
            .map(|(hit, total)| percent(*hit, *total, self.by_samples))
            .collect()
    }

    /// Returns the base and the unit of percentages, as titles show them: `local period`.
    pub(super) fn percent_base(&self) -> String {
        let scope = if self.global { "global" } else { "local" };
        let unit = if self.by_samples { "hits" } else { "period" };
        format!("{scope} {unit}")
    }

    /// Selects the next kind of number.
    pub(super) fn next_column(&mut self) {
        self.column = match self.column {
            AnnotateColumn::Percent => AnnotateColumn::Period,
            AnnotateColumn::Period => AnnotateColumn::Samples,
            AnnotateColumn::Samples => AnnotateColumn::Percent,
        };
    }

    /// Returns the indices of the instructions with a percentage above 0 for any event, hottest first. The heat of an
    /// instruction is its largest percentage for any event.
    pub(super) fn hottest(&self, code: &FunctionCode, totals: &[HitCount]) -> Vec<usize> {
        let heat = |hits: &[HitCount]| largest(&self.shares(hits, code, totals));
        let instructions = code.instructions.iter().enumerate();
        let heats = instructions.map(|(number, instruction)| (heat(&instruction.hits), number));
        let mut heats: Vec<(f64, usize)> = heats.filter(|(heat, _)| *heat > 0.0).collect();
        heats.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        heats.into_iter().map(|(_, number)| number).collect()
    }
}

/// Returns the largest percentage; 0 if there is none.
pub(super) fn largest(shares: &[f64]) -> f64 {
    shares.iter().copied().fold(0.0, f64::max)
}
