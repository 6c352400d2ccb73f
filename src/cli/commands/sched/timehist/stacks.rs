//! The stacks of tasks that are switched out, as text.

use rperf_analysis::PrepareSamples;
use rperf_replay::{Sample, World};
use rperf_resolve::{AddressContext, Resolver};
use rperf_tracepoint::typed::TypedEvent;

/// Functions of the scheduler that are not shown.
const HIDDEN: [&str; 3] = ["schedule", "__schedule", "preempt_schedule"];

/// The number of frames that are walked beyond the limit, since some are hidden.
const HIDDEN_FRAMES: usize = 2;

/// Resolves stacks.
pub(super) struct SwitchStacks<'r> {
    resolver: &'r Resolver<'r>,
    is_wanted: bool,
    max_stack: usize,
}

impl<'r> SwitchStacks<'r> {
    pub(super) fn new(resolver: &'r Resolver<'r>, is_wanted: bool, max_stack: usize) -> Self {
        Self {
            resolver,
            is_wanted,
            max_stack,
        }
    }

    fn text(&self, sample: &Sample<'_>) -> Option<String> {
        let mut frames = Vec::new();
        let at = AddressContext::of(sample);
        let limit = self.max_stack.saturating_add(HIDDEN_FRAMES);
        self.resolver
            .callchain(at, sample.wire.callchain?, limit, &mut frames);
        let mut text = String::new();
        for frame in frames {
            let name = frame.symbol.map(|symbol| self.resolver.symbol_name(symbol));
            if name.is_some_and(|name| HIDDEN.contains(&name)) {
                continue;
            }
            if !text.is_empty() {
                text.push_str(" <-");
            }
            text.push(' ');
            text.push_str(name.unwrap_or("[unknown]"));
        }
        Some(text)
    }
}

impl PrepareSamples for SwitchStacks<'_> {
    type Detail = String;

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<String> {
        let is_switch =
            matches!(event, Some(TypedEvent::SchedSwitch(event)) if event.prev_pid() != 0);
        let text = (is_switch && self.is_wanted).then(|| self.text(sample));
        Some(text.flatten().unwrap_or_default())
    }
}
