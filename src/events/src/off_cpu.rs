//! The event of `--off-cpu`: opened as context switches, recorded as the time that tasks were off their CPUs.

use rperf_wire::{Attr, AttrFlags, EventType, SampleType};

use crate::spec::BPF_OUTPUT;
use crate::{CallGraph, EventSpec, Own};

/// `PERF_COUNT_SW_CONTEXT_SWITCHES`.
const CONTEXT_SWITCHES: u64 = 3;
/// Its name, as Linux perf has it.
pub const OFF_CPU: &str = "offcpu-time";

/// One sample for each time that a task leaves its CPU, with a callchain whatever other events have.
#[must_use]
pub fn off_cpu_event(call_graph: CallGraph) -> EventSpec {
    let attr = Attr {
        kind: EventType::SOFTWARE,
        config: CONTEXT_SWITCHES,
        sample_period: 1,
        ..Attr::default()
    };
    let own = Own {
        call_graph: (call_graph == CallGraph::None).then_some(CallGraph::FramePointers),
        ..Own::default()
    };
    EventSpec {
        own,
        ..EventSpec::new(OFF_CPU.to_owned(), attr)
    }
}

/// The attr as files have it, where periods are nanoseconds: that of the event that perf's BPF program writes to.
pub fn describe_off_cpu(attr: &mut Attr) {
    attr.config = BPF_OUTPUT;
}

impl EventSpec {
    /// Whether it is the event of the time off CPUs.
    #[must_use]
    pub fn is_off_cpu(&self) -> bool {
        let is_switches =
            self.attr.kind == EventType::SOFTWARE && self.attr.config == CONTEXT_SWITCHES;
        is_switches && self.name == OFF_CPU
    }
}

/// Every switch is a sample, which has room for its period, whatever rate others have.
pub(crate) fn settle(attr: &mut Attr) {
    attr.sample_period = 1;
    attr.flags = attr.flags.with(AttrFlags::FREQ, false);
    attr.sample_type |= SampleType::PERIOD;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RecordOptions, Sampling, Target, default_event, record_events};

    #[test]
    fn every_switch_is_a_sample_with_a_period_and_a_callchain() {
        let options = RecordOptions {
            target: Target::Workload,
            sampling: Sampling::Frequency(99),
            call_graph: CallGraph::None,
            raw_samples: false,
            details: crate::Details::default(),
        };
        let specs = [default_event(true, ""), off_cpu_event(CallGraph::None)];
        let events = record_events(&specs, &options);
        let attr = &events[1].attr;
        assert_eq!((attr.config, attr.sample_period), (CONTEXT_SWITCHES, 1));
        assert!(!attr.flags.contains(AttrFlags::FREQ));
        let fields = SampleType::PERIOD | SampleType::CALLCHAIN | SampleType::IDENTIFIER;
        assert!(attr.sample_type.contains(fields));
        assert!(!events[0].attr.sample_type.contains(SampleType::CALLCHAIN));
    }
}
