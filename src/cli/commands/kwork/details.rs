//! The parallel part of the analysis: selects events by time, and resolves functions of work items, and stacks.

use rperf_analysis::PrepareSamples;
use rperf_analysis::kwork::KworkDetail;
use rperf_replay::{Sample, World};
use rperf_resolve::{AddressContext, Resolver, TimeIntervals};
use rperf_tracepoint::typed::TypedEvent;
use rperf_wire::CpuMode;

use crate::cli::shared::stack_line::StackLineFormatter;

/// Selects events by time, and resolves addresses.
pub(super) struct KworkDetails<'r> {
    pub(super) resolver: &'r Resolver<'r>,
    /// The ranges of `--time`; `None` for all times.
    pub(super) intervals: Option<TimeIntervals>,
    /// How stacks of the events that begin work are shown; `None` if they are not shown.
    pub(super) stacks: Option<StackLineFormatter<'r>>,
}

impl<'r> PrepareSamples for KworkDetails<'r> {
    type Detail = KworkDetail<'r>;

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<KworkDetail<'r>> {
        let intervals = self.intervals.as_ref();
        if intervals.is_some_and(|intervals| !intervals.contain(sample.order.time)) {
            return None;
        }
        let address = match event? {
            // The event has the function in new kernels only.
            TypedEvent::WorkqueueActivateWork(event) => event.function(),
            TypedEvent::WorkqueueExecuteStart(event) => Some(event.function()),
            _ => None,
        };
        let function = address.and_then(|address| {
            let at = AddressContext::of(sample);
            let frame = self.resolver.locate(at, CpuMode::Kernel, address);
            frame.symbol
        });
        let stacks = self.stacks.as_ref();
        let stacks = stacks.filter(|_| event.is_some_and(is_entry));
        Some(KworkDetail {
            function: function.map(|symbol| self.resolver.symbol_name(symbol)),
            stack: stacks.and_then(|stacks| stacks.text(sample)),
        })
    }
}

/// Whether an event is the start of an interrupt handler, a softirq or a work item.
fn is_entry(event: &TypedEvent<'_>) -> bool {
    matches!(
        event,
        TypedEvent::IrqHandlerEntry(_)
            | TypedEvent::SoftirqEntry(_)
            | TypedEvent::WorkqueueExecuteStart(_)
    )
}
