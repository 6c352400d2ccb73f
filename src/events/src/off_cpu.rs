//! The event of `--off-cpu`: the time that tasks are off-CPU.

use rperf_wire::{Attr, AttrFlags, EventType, SampleType};

use crate::spec::BPF_OUTPUT;
use crate::{CallGraph, EventSettings, EventSpec};

/// `PERF_COUNT_SW_CONTEXT_SWITCHES`.
const CONTEXT_SWITCHES: u64 = 3;
/// Name of the off-CPU event, as in Linux perf.
pub const OFF_CPU: &str = "offcpu-time";

/// Returns the off-CPU event: one sample each time a task leaves its CPU, always with a callchain. If `call_graph`, the mode of
/// the recording, is `None`, the kernel follows frame pointers.
#[must_use]
pub fn off_cpu_event(call_graph: CallGraph) -> EventSpec {
    let attr = Attr {
        kind: EventType::SOFTWARE,
        config: CONTEXT_SWITCHES,
        sample_period: 1,
        ..Attr::default()
    };
    let settings = EventSettings {
        call_graph: (call_graph == CallGraph::None).then_some(CallGraph::FramePointers),
        ..EventSettings::default()
    };
    EventSpec {
        settings,
        ..EventSpec::new(OFF_CPU.to_owned(), attr)
    }
}

/// Returns the off-CPU event to which BPF programs write the long waits of tasks; they sum up the short ones.
#[must_use]
pub fn off_cpu_bpf_output() -> EventSpec {
    let settings = EventSettings {
        // The kernel records no callchain: the raw data that the programs write contain ids of stacks in BPF maps.
        call_graph: Some(CallGraph::None),
        ..EventSettings::default()
    };
    EventSpec {
        name: OFF_CPU.to_owned(),
        settings,
        ..EventSpec::bpf_output()
    }
}

/// Changes the attr of [`off_cpu_event`] to the one stored in files: `bpf-output`, as if perf's BPF program had written the
/// samples.
pub fn describe_off_cpu(attr: &mut Attr) {
    attr.config = BPF_OUTPUT;
}

impl EventSpec {
    /// Whether this is the off-CPU event.
    #[must_use]
    pub fn is_off_cpu(&self) -> bool {
        let has_config = [CONTEXT_SWITCHES, BPF_OUTPUT].contains(&self.attr.config);
        self.attr.kind == EventType::SOFTWARE && has_config && self.name == OFF_CPU
    }
}

/// Sets the rate to one sample per event (a switch, or a write of the BPF program), with a period field, regardless of the
/// recording's rate.
pub(crate) fn set_rate(attr: &mut Attr) {
    attr.sample_period = 1;
    attr.flags = attr.flags.with(AttrFlags::FREQ, false);
    attr.sample_type |= SampleType::PERIOD;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RecordOptions, Sampling, SamplingTarget, default_event, record_events};

    #[test]
    fn every_switch_is_a_sample_with_a_period_and_a_callchain() {
        let options = RecordOptions {
            target: SamplingTarget::Workload,
            sampling: Sampling::Frequency(99),
            call_graph: CallGraph::None,
            raw_samples: false,
            details: crate::RecordDetails::default(),
        };
        let (may_profile_kernel, cpuid) = (true, "");
        let specs = [
            default_event(may_profile_kernel, cpuid),
            off_cpu_event(CallGraph::None),
        ];
        let events = record_events(&specs, &options);
        let attr = &events[1].attr;
        assert_eq!((attr.config, attr.sample_period), (CONTEXT_SWITCHES, 1));
        assert!(!attr.flags.contains(AttrFlags::FREQ));
        let fields = SampleType::PERIOD | SampleType::CALLCHAIN | SampleType::IDENTIFIER;
        assert!(attr.sample_type.contains(fields));
        assert!(!events[0].attr.sample_type.contains(SampleType::CALLCHAIN));
    }
}
