//! The stacks of tasks that are switched out, as text.

use rperf_analysis::PrepareSamples;
use rperf_replay::{Sample, World};
use rperf_resolve::Resolver;
use rperf_tracepoint::typed::TypedEvent;
use rperf_wire::SampleType;

use crate::cli::shared::stack_line::StackLineFormatter;

/// Functions of the scheduler that are not shown, as in perf.
const HIDDEN: &[&str] = &["schedule", "__schedule", "preempt_schedule"];

/// The number of frames that are walked beyond the limit, since some are hidden. It is 2 as in perf, which limits the walk, not
/// the frames shown: if fewer are hidden, more frames than the limit are shown.
const HIDDEN_FRAMES: usize = 2;

/// Prepares the text of the stack for each sample; empty if no stack is shown.
pub(super) struct SwitchStacks<'r> {
    formatter: StackLineFormatter<'r>,
    with_stacks: bool,
}

impl<'r> SwitchStacks<'r> {
    pub(super) fn new(resolver: &'r Resolver<'r>, with_stacks: bool, max_stack: usize) -> Self {
        let formatter = StackLineFormatter {
            resolver,
            hidden: HIDDEN,
            max_frames: max_stack.saturating_add(HIDDEN_FRAMES),
        };
        Self {
            formatter,
            with_stacks,
        }
    }
}

impl PrepareSamples for SwitchStacks<'_> {
    type Detail = String;

    fn fields(&self) -> SampleType {
        match self.with_stacks {
            true => SampleType::ALL,
            false => SampleType(0),
        }
    }

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<String> {
        // The stack of the idle task, PID 0, is not shown.
        let is_switch =
            matches!(event, Some(TypedEvent::SchedSwitch(event)) if event.prev_pid() != 0);
        let text = (is_switch && self.with_stacks).then(|| self.formatter.text(sample));
        // `None` would skip the sample, but timehist needs all samples.
        Some(text.flatten().unwrap_or_default())
    }
}
