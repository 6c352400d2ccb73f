//! The attrs of `record`: the attr of each event with the settings of the recording.

use rperf_wire::{Attr, AttrFlags, EventType, ReadFormat, SampleType, event_name};

use crate::details::{CallGraph, PrivilegeLevel, RecordDetails};
use crate::{EventSpec, GroupPosition, off_cpu};

/// Default sampling frequency in Hz.
pub const DEFAULT_FREQUENCY: u64 = 4000;

/// The tasks or CPUs that a recording observes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingTarget {
    /// A command started for the recording, and its children.
    Workload,
    /// Processes (`-p`), including threads started later.
    Processes,
    /// Threads (`-t`) only.
    Threads,
    /// All tasks on all CPUs (`-a`) or some (`-C`).
    Cpus,
}

/// Sampling rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// The event's own default, otherwise this frequency: usually [`DEFAULT_FREQUENCY`], lower if
    /// limited by the kernel.
    Default(u64),
    /// Samples per second (`-F`).
    Frequency(u64),
    /// One sample per this number of events (`-c`).
    Period(u64),
}

/// Settings of a recording that affect its attrs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordOptions {
    /// The observed tasks or CPUs.
    pub target: SamplingTarget,
    /// Sampling rate.
    pub sampling: Sampling,
    /// How callchains are recorded.
    pub call_graph: CallGraph,
    /// Whether all samples have raw data (`-R`); those of tracepoints and `bpf-output` always do.
    pub raw_samples: bool,
    /// Further options for all events.
    pub details: RecordDetails,
}

/// An event ready to be opened.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordEvent {
    /// The event.
    pub spec: EventSpec,
    /// The complete attr. If `spec.precise_max` is set and the kernel refuses the attr, retry with
    /// lower `precise_ip`.
    pub attr: Attr,
    /// Whether the event generates the side-band records of the recording: MMAP, COMM, FORK, EXIT and others.
    pub tracking: bool,
    /// Index of the group leader; `None` for leaders and without a group.
    pub leader: Option<usize>,
}

/// Returns the events to open, in the order of `specs`. The first event generates the side-band records. If they must not depend
/// on it (on CPUs, with a delayed start, with `--overwrite` and for hardware traces), and it isn't a `dummy`, a `dummy` that
/// generates them is added at the end.
///
/// For settings that perf 6.1 has, the attrs are those that its `record` opens.
#[must_use]
pub fn record_events(specs: &[EventSpec], options: &RecordOptions) -> Vec<RecordEvent> {
    let on_cpus = options.target == SamplingTarget::Cpus;
    let mut specs = specs.to_vec();
    let mut tracking_index = 0;
    let details = &options.details;
    let traced = specs.iter().any(|spec| spec.trace_pmu().is_some());
    // `--overwrite` keeps only the last samples, but they may need any mapping, so side-band records are not overwritten.
    let needs_dummy = on_cpus || details.scope.delayed || details.overwrite || traced;
    if needs_dummy && !specs.first().is_some_and(EventSpec::is_dummy) {
        tracking_index = specs.len();
        specs.push(match traced {
            true => side_band_of_trace(),
            false => side_band_dummy(options.details.scope.level),
        });
    }
    let mut events: Vec<RecordEvent> = Vec::with_capacity(specs.len());
    let mut leader = 0;
    for (index, spec) in specs.into_iter().enumerate() {
        let tracking = index == tracking_index;
        let is_member = spec.group == GroupPosition::Member;
        if !is_member {
            leader = index;
        }
        events.push(RecordEvent {
            attr: record_attr(&spec, tracking, options),
            spec,
            tracking,
            leader: is_member.then_some(leader),
        });
    }
    // Each chunk is a leader with its members, or an event without a group.
    for group in events.chunk_by_mut(|_, next| next.leader.is_some()) {
        set_up_group(group);
    }
    let always_identifier = options.details.samples.identifier || traced;
    identify(&mut events, always_identifier);
    events
}

/// Returns the events of `--switch-output-event`: each sample wakes up the reader, and none is recorded.
#[must_use]
pub fn trigger_events(specs: &[EventSpec], target: SamplingTarget) -> Vec<RecordEvent> {
    let trigger = |spec: &EventSpec| {
        let mut attr = spec.attr.clone();
        attr.sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
        attr.sample_period = attr.sample_period.max(1);
        spec.settings.apply(&mut attr);
        attr.wakeup = 1;
        for (flag, on) in [
            (AttrFlags::DISABLED, true),
            (AttrFlags::INHERIT, target != SamplingTarget::Threads),
            (
                AttrFlags::ENABLE_ON_EXEC,
                target == SamplingTarget::Workload,
            ),
        ] {
            attr.flags = attr.flags.with(flag, on);
        }
        RecordEvent {
            spec: spec.clone(),
            attr,
            tracking: false,
            leader: None,
        }
    };
    specs.iter().map(trigger).collect()
}

/// The side-band event `dummy:HG`, which excludes neither guests nor the host; restricted to `level` if given.
fn side_band_dummy(level: Option<PrivilegeLevel>) -> EventSpec {
    let mut attr = Attr {
        kind: EventType::SOFTWARE,
        config: Attr::DUMMY,
        sample_period: 1,
        ..Attr::default()
    };
    if let Some(level) = level {
        level.restrict(&mut attr);
    }
    EventSpec::new(event_name(&attr), attr)
}

/// The side-band event of a recording with a hardware trace, `dummy:u`. The event that writes the trace cannot replace it: the
/// kernel disables that event while its AUX buffer is full, and mappings would be lost.
fn side_band_of_trace() -> EventSpec {
    let mut spec = side_band_dummy(Some(PrivilegeLevel::User));
    spec.attr.flags |= AttrFlags::EXCLUDE_HV | AttrFlags::EXCLUDE_GUEST;
    spec.name = "dummy:u".to_owned();
    spec
}

fn record_attr(spec: &EventSpec, tracking: bool, options: &RecordOptions) -> Attr {
    let mut attr = spec.attr.clone();
    attr.sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
    attr.read_format = ReadFormat::ID | ReadFormat::LOST;
    if spec.is_bpf_output() || spec.tracepoint.is_some() {
        attr.sample_type |= SampleType::RAW | SampleType::CPU | SampleType::PERIOD;
        attr.sample_period = 1;
    }
    if spec.trace_pmu().is_some() {
        // Every branch is recorded, not a sample of them.
        attr.sample_period = 1;
    }
    if spec.sample_read {
        attr.sample_type |= SampleType::READ | SampleType::ID;
    }
    if options.target == SamplingTarget::Cpus {
        attr.sample_type |= SampleType::CPU;
    }
    if options.raw_samples {
        attr.sample_type |= SampleType::RAW | SampleType::CPU;
    }
    set_rate(&mut attr, options.sampling);
    set_flags(&mut attr, tracking, options);
    let call_graph = spec.settings.effective_call_graph(options.call_graph);
    options.details.apply(call_graph, tracking, &mut attr);
    spec.settings.apply(&mut attr);
    if spec.is_off_cpu() {
        off_cpu::set_rate(&mut attr);
    }
    if spec.all_tasks {
        // The event has no task whose exec(2) could enable it, or whose children could inherit it.
        let of_tasks = AttrFlags::DISABLED | AttrFlags::INHERIT | AttrFlags::ENABLE_ON_EXEC;
        attr.flags = attr.flags.with(of_tasks, false);
    }
    if options.details.overwrite && !tracking {
        attr.flags |= AttrFlags::WRITE_BACKWARD;
    }
    // A dummy event never samples: it gets no registers, and no branch stacks, with which the kernel would refuse it.
    match spec.is_dummy() {
        true => attr.sample_type = attr.sample_type.with(SampleType::BRANCH_STACK, false),
        false => options.details.add_registers(call_graph, &mut attr),
    }
    attr
}

/// Sets the sampling rate; a rate given to the command (`-F`, `-c`) overrides an event's own default. With a frequency, the
/// kernel adapts the period, so each sample must contain its period.
fn set_rate(attr: &mut Attr, sampling: Sampling) {
    let frequency = match sampling {
        Sampling::Default(_) if attr.sample_period != 0 => return,
        Sampling::Default(frequency) | Sampling::Frequency(frequency) => frequency,
        Sampling::Period(period) => {
            attr.sample_period = period;
            return;
        }
    };
    attr.sample_period = frequency;
    attr.sample_type |= SampleType::PERIOD;
    attr.flags |= AttrFlags::FREQ;
}

fn set_flags(attr: &mut Attr, tracking: bool, options: &RecordOptions) {
    let target = options.target;
    // System-wide side-band events are enabled when opened; otherwise mappings made before the start would
    // be lost. With a delay (`-D`), the program's exec(2) enables only side-band events.
    let immediate = tracking && target == SamplingTarget::Cpus;
    let on_exec = match options.details.scope.delayed {
        true => tracking && !immediate,
        false => target == SamplingTarget::Workload,
    };
    for (flag, on) in [
        (AttrFlags::DISABLED, !immediate),
        (AttrFlags::INHERIT, target != SamplingTarget::Threads),
        (AttrFlags::ENABLE_ON_EXEC, on_exec),
        (AttrFlags::SAMPLE_ID_ALL, true),
        (AttrFlags::MMAP, tracking),
        (AttrFlags::MMAP2, tracking),
        (AttrFlags::COMM, tracking),
        (AttrFlags::COMM_EXEC, tracking),
        (AttrFlags::TASK, tracking),
        (AttrFlags::KSYMBOL, tracking),
        (AttrFlags::BPF_EVENT, tracking),
        (
            AttrFlags::DEFER_OUTPUT,
            tracking && options.call_graph == CallGraph::Deferred,
        ),
    ] {
        attr.flags = attr.flags.with(flag, on);
    }
}

/// Sets up a group: members are not started on their own, since they count only while their leader does.
///
/// If the leader has `:S`, only the leader samples, with the counts of all members. Members then have no sampling rate, and
/// they have the leader's sample layout, since readers derive their samples from the leader's. Events with `:S` are not
/// inherited: older kernels refuse inherited events whose samples contain counts.
fn set_up_group(group: &mut [RecordEvent]) {
    let Some((leader, members)) = group.split_first_mut() else {
        return;
    };
    if members.is_empty() {
        return;
    }
    for event in std::iter::once(&mut *leader).chain(members.iter_mut()) {
        if event.spec.sample_read {
            event.attr.read_format |= ReadFormat::GROUP;
            event.attr.flags = event.attr.flags.with(AttrFlags::INHERIT, false);
        }
    }
    for RecordEvent { attr, .. } in members {
        let starts = AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC;
        attr.flags = attr.flags.with(starts, false);
        if leader.spec.sample_read {
            attr.sample_type = leader.attr.sample_type;
            attr.sample_period = 0;
            attr.flags = attr.flags.with(AttrFlags::FREQ, false);
        }
    }
}

/// Adds an id to the records if there are several events: the ID field if all samples have one layout, otherwise
/// IDENTIFIER, whose position doesn't depend on the layout. With `always`, IDENTIFIER is added in any case.
fn identify(events: &mut [RecordEvent], always: bool) {
    let Some(first) = events.first().map(|event| event.attr.sample_type) else {
        return;
    };
    if events.len() < 2 && !always {
        return;
    }
    let has_identifier = always || events.iter().any(|event| event.attr.sample_type != first);
    for event in events {
        let sample_type = &mut event.attr.sample_type;
        *sample_type = sample_type
            .with(SampleType::ID, !has_identifier)
            .with(SampleType::IDENTIFIER, has_identifier);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lowered_default_rate_keeps_the_periods_of_events() {
        let mut with_period = Attr {
            sample_period: 1,
            ..Attr::default()
        };
        set_rate(&mut with_period, Sampling::Default(1750));
        assert_eq!(with_period.sample_period, 1);
        assert!(!with_period.flags.contains(AttrFlags::FREQ));

        let mut clock = Attr::default();
        set_rate(&mut clock, Sampling::Default(1750));
        assert_eq!(clock.sample_period, 1750);
        assert!(clock.flags.contains(AttrFlags::FREQ));
    }

    #[test]
    fn defer_output_is_set_on_the_side_band_event() {
        let clock = || EventSpec::new("cpu-clock".to_owned(), Attr::default());
        let options = |target, call_graph| RecordOptions {
            target,
            sampling: Sampling::Default(4000),
            call_graph,
            raw_samples: false,
            details: RecordDetails::default(),
        };
        let flags = |target, call_graph| {
            let events = record_events(&[clock(), clock()], &options(target, call_graph));
            let has = |event: &RecordEvent, flag| event.attr.flags.contains(flag);
            let both = [AttrFlags::DEFER_CALLCHAIN, AttrFlags::DEFER_OUTPUT];
            events
                .iter()
                .map(|event| both.map(|flag| has(event, flag)))
                .collect::<Vec<_>>()
        };
        let (deferred, plain) = (CallGraph::Deferred, CallGraph::FramePointers);
        assert_eq!(
            flags(SamplingTarget::Workload, deferred),
            [[true, true], [true, false]]
        );
        // The third event is the added dummy.
        assert_eq!(flags(SamplingTarget::Cpus, deferred).len(), 3);
        assert_eq!(flags(SamplingTarget::Cpus, deferred)[0], [true, false]);
        assert!(flags(SamplingTarget::Cpus, deferred)[2][1]);
        assert_eq!(flags(SamplingTarget::Workload, plain), [[false; 2]; 2]);
    }
}
