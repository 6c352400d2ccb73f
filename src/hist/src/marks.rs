//! The text that call graphs show after frames at which a branch starts or ends.

use std::fmt::Write as _;

use rperf_wire::BranchEntry;

use crate::branch_counts::BranchCounts;

/// The branch that starts or ends at a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BranchMark {
    /// The frame is the target of the branch. The fields are those of [`BranchEntry`].
    To { from: u64, to: u64, flags: u64 },
    /// The frame is the source of the branch.
    From {
        /// Cycles since the previous branch.
        cycles: u64,
        /// Number of loop iterations removed directly before this branch in call graph order: 0 or 1.
        passes: u32,
        /// Cycles of the removed iteration.
        loop_cycles: u64,
    },
}

/// The marks of all samples at a call graph frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct BranchMarks {
    /// Number of samples with a mark.
    count: u64,
    /// Whether the mark added last is a target: as in perf, it decides which text is shown.
    is_target: bool,
    /// Number of samples with a predicted branch; only for targets, like the next two fields.
    predicted: u64,
    aborted: u64,
    kinds: BranchCounts,
    /// Sum of cycles; only for sources, like the next two fields.
    cycles: u64,
    passes: u64,
    loop_cycles: u64,
}

/// Bits of a branch's flags.
const PREDICTED: u64 = 1 << 1;
const ABORTED: u64 = 1 << 3;

impl BranchMarks {
    /// Adds a mark that `samples` samples have.
    pub(crate) fn add(&mut self, mark: BranchMark, samples: u64) {
        self.count += samples;
        match mark {
            BranchMark::To { from, to, flags } => {
                self.is_target = true;
                let samples_with = |bit| if flags & bit == 0 { 0 } else { samples };
                self.predicted += samples_with(PREDICTED);
                self.aborted += samples_with(ABORTED);
                self.kinds.add(&BranchEntry { from, to, flags }, samples);
            }
            BranchMark::From {
                cycles,
                passes,
                loop_cycles,
            } => {
                self.is_target = false;
                self.cycles += cycles * samples;
                self.passes += u64::from(passes) * samples;
                self.loop_cycles += loop_cycles * samples;
            }
        }
    }

    /// The average cycles since the previous branch over all samples with a mark; 0 if no branch starts at this frame.
    pub(crate) fn average_cycles(&self) -> u64 {
        self.cycles.checked_div(self.count).unwrap_or_default()
    }

    /// The text after the frame, with a leading blank; may be empty. A frame without marks is from the callchain, not from the
    /// branch stack: `(calltrace)`, as in perf.
    pub(crate) fn text(&self) -> String {
        if self.count == 0 {
            return " (calltrace)".to_owned();
        }
        let words = match self.is_target {
            true => self.of_target(),
            false => self.of_source(),
        };
        match words.as_str() {
            "" => words,
            words => format!(" ({})", words.trim_start()),
        }
    }

    fn of_target(&self) -> String {
        let share = |count: u64| count as f64 * 100.0 / self.count as f64;
        let mut words = String::new();
        for word in self.kinds.names() {
            let _ = write!(words, " {word}");
        }
        if self.predicted < self.count {
            let _ = write!(words, " predicted:{:.1}%", share(self.predicted));
        }
        // perf omits shares of aborts below 0.1%.
        if share(self.aborted) >= 0.1 {
            let _ = write!(words, " abort:{:.1}%", share(self.aborted));
        }
        words
    }

    fn of_source(&self) -> String {
        let mut words = String::new();
        let cycles = self.average_cycles();
        if cycles > 0 {
            let _ = write!(words, " cycles:{cycles}");
        }
        // The average per sample; `self.passes` is the sum over all samples.
        let passes = self.passes / self.count;
        if passes > 0 {
            // The average per removed iteration: both are sums over all samples.
            let average = self.loop_cycles / self.passes;
            let _ = write!(words, " iter:{passes} avg_cycles:{average}");
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(marks: &[(BranchMark, u64)]) -> String {
        let mut sum = BranchMarks::default();
        marks
            .iter()
            .for_each(|(mark, samples)| sum.add(*mark, *samples));
        sum.text()
    }

    fn to(flags: u64) -> BranchMark {
        BranchMark::To {
            from: 0x1000,
            to: 0x1010,
            flags,
        }
    }

    #[test]
    fn targets_show_types_mispredictions_and_aborts() {
        // Branch types in the flags: `PERF_BR_COND` and `PERF_BR_CALL`.
        let (conditional, call) = (1 << 20, 4 << 20);
        assert_eq!(text(&[]), " (calltrace)");
        assert_eq!(text(&[(to(PREDICTED), 3)]), "");
        assert_eq!(
            text(&[(to(PREDICTED | conditional), 3), (to(call), 1)]),
            " (COND_FWD CALL predicted:75.0%)"
        );
        assert_eq!(
            text(&[(to(PREDICTED | ABORTED), 1), (to(PREDICTED), 1)]),
            " (abort:50.0%)"
        );
    }

    #[test]
    fn sources_have_cycles_and_loops() {
        let from = |cycles, passes| BranchMark::From {
            cycles,
            passes,
            loop_cycles: u64::from(passes) * 7,
        };
        assert_eq!(text(&[(from(0, 0), 5)]), "");
        assert_eq!(text(&[(from(3, 0), 1), (from(6, 0), 1)]), " (cycles:4)");
        // Two removed iterations per mark; real marks have at most one.
        assert_eq!(text(&[(from(9, 2), 3)]), " (cycles:9 iter:2 avg_cycles:7)");
    }
}
