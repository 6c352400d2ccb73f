//! Stacks with which tasks were switched out, as text.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rperf_analysis::timechart::{PieceContent, StackId, TaskLane, Timechart};
use rperf_resolve::Resolver;

/// Functions of the scheduler that are not shown.
const HIDDEN: [&str; 3] = ["schedule", "__schedule", "preempt_schedule"];
/// The maximum number of frames shown of a stack.
const FRAMES: usize = 16;
/// The maximum number of stacks shown for a task: those in which it slept, or waited for a CPU, longest.
const STACKS: usize = 24;

/// Resolves the stacks of a chart.
pub(super) struct SleepStacks<'c> {
    chart: &'c Timechart,
    resolver: &'c Resolver<'c>,
}

impl<'c> SleepStacks<'c> {
    pub(super) fn new(chart: &'c Timechart, resolver: &'c Resolver<'c>) -> Self {
        Self { chart, resolver }
    }

    /// Returns the stacks in which a task slept, or waited for a CPU, longest; at most [`STACKS`].
    pub(super) fn longest_slept(&self, lane: &TaskLane) -> BTreeSet<StackId> {
        let mut times: BTreeMap<StackId, u64> = BTreeMap::default();
        for piece in lane.states.pieces() {
            // Neither pieces in which the task ran nor merged pieces have a stack.
            if let PieceContent::One {
                data: Some(stack), ..
            } = &piece.content
            {
                let sum = times.entry(*stack).or_default();
                *sum = sum.saturating_add(piece.to - piece.from);
            }
        }
        let mut times: Vec<(StackId, u64)> = times.into_iter().collect();
        times.sort_unstable_by_key(|(stack, nanos)| (Reverse(*nanos), *stack));
        times
            .into_iter()
            .take(STACKS)
            .map(|(stack, _)| stack)
            .collect()
    }

    /// Returns the functions of a stack as text, innermost first; `None` if it has no functions other than [`HIDDEN`] ones.
    pub(super) fn name(&self, stack: StackId) -> Option<String> {
        let stack = self.chart.stacks.get(stack.get())?;
        let mut frames = Vec::new();
        // Enough to show `FRAMES` frames of a stack that has each hidden function at most once. A stack that has more hidden
        // frames may show fewer.
        let limit = FRAMES + HIDDEN.len();
        self.resolver
            .callchain(stack.at, stack.chain(), limit, &mut frames);
        let names = frames.iter().map(|frame| {
            let name = frame.symbol.map(|symbol| self.resolver.symbol_name(symbol));
            name.unwrap_or("[unknown]")
        });
        let names: Vec<&str> = names
            .filter(|name| !HIDDEN.contains(name))
            .take(FRAMES)
            .collect();
        (!names.is_empty()).then(|| names.join(" <- "))
    }
}
