//! The attrs that `record` opens: what every event of a recording gets beside its own words.

use rperf_wire::{Attr, AttrFlags, EventType, ReadFormat, SampleType, event_name};

use crate::details::{CallGraph, Details, Side};
use crate::{EventSpec, Group, off_cpu};

/// Samples per second where nobody says otherwise.
pub const DEFAULT_FREQUENCY: u64 = 4000;

/// Whom a recording follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A command that is started for it, with its children.
    Workload,
    /// Processes (`-p`), with the threads they will start.
    Processes,
    /// Threads (`-t`), alone.
    Threads,
    /// Every task on all CPUs (`-a`) or on some (`-C`).
    Cpus,
}

/// When the kernel takes a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// What the event itself prefers, and otherwise this frequency: usually
    /// [`DEFAULT_FREQUENCY`], less where the kernel allows less.
    Default(u64),
    /// Samples per second of an event's counting (`-F`).
    Frequency(u64),
    /// One sample for this many events (`-c`).
    Period(u64),
}

/// Settings of a recording that its attrs depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordOptions {
    /// Whom it follows.
    pub target: Target,
    /// When samples are taken.
    pub sampling: Sampling,
    /// How callchains are recorded.
    pub call_graph: CallGraph,
    /// Whether samples of every event carry raw data (`-R`); those of tracepoints do anyway.
    pub raw_samples: bool,
    /// What else all events get.
    pub details: Details,
}

/// An event ready to be opened.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordEvent {
    /// The event.
    pub spec: EventSpec,
    /// Its complete attr. Where `spec.precise_max` is set and the kernel refuses, lower `precise_ip`.
    pub attr: Attr,
    /// It carries the MMAP, COMM, FORK and EXIT records of the recording.
    pub tracking: bool,
    /// Index of the leader of its group; `None` for leaders and where there is no group.
    pub leader: Option<usize>,
}

/// The events that a recording opens, in order: those of the list, and for CPU targets a `dummy:HG`
/// that carries the side-band records even while the others are stopped.
///
/// Bit for bit what perf 6.1 opens for `record` with the same settings.
#[must_use]
pub fn record_events(specs: &[EventSpec], options: &RecordOptions) -> Vec<RecordEvent> {
    let on_cpus = options.target == Target::Cpus;
    let mut specs = specs.to_vec();
    let mut tracker = 0;
    let details = &options.details;
    // What is mapped must be known of the first samples as of the last: it is in no ring that is written over.
    let traced = specs.iter().any(|spec| spec.tracer().is_some());
    let apart = on_cpus || details.delayed || details.overwrite || traced;
    if apart && !specs.first().is_some_and(EventSpec::is_dummy) {
        tracker = specs.len();
        specs.push(match traced {
            true => side_band_of_trace(),
            false => side_band_dummy(options.details.side),
        });
    }
    let mut events: Vec<RecordEvent> = Vec::with_capacity(specs.len());
    let mut leader = 0;
    for (index, spec) in specs.into_iter().enumerate() {
        let tracking = index == tracker;
        let is_member = spec.group == Group::Member;
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
    for group in events.chunk_by_mut(|_, next| next.leader.is_some()) {
        join(group);
    }
    identify(&mut events, options.details.identifier || traced);
    events
}

/// Events that only tell that they happen (`--switch-output-event`): each wakes its reader, and none has a part in the
/// recording.
#[must_use]
pub fn trigger_events(specs: &[EventSpec], target: Target) -> Vec<RecordEvent> {
    let trigger = |spec: &EventSpec| {
        let mut attr = spec.attr.clone();
        attr.sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
        attr.sample_period = attr.sample_period.max(1);
        spec.own.apply(&mut attr);
        attr.wakeup = 1;
        for (flag, on) in [
            (AttrFlags::DISABLED, true),
            (AttrFlags::INHERIT, target != Target::Threads),
            (AttrFlags::ENABLE_ON_EXEC, target == Target::Workload),
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

/// Neither guests nor hosts are left out, and one sample would come per count.
fn side_band_dummy(side: Option<Side>) -> EventSpec {
    let mut attr = Attr {
        kind: EventType::SOFTWARE,
        config: Attr::DUMMY,
        sample_period: 1,
        ..Attr::default()
    };
    if let Some(side) = side {
        side.narrow(&mut attr);
    }
    EventSpec::new(event_name(&attr), attr)
}

/// A trace tells of addresses alone, and its own event of nothing that is mapped there: another one does, as `dummy:u`.
fn side_band_of_trace() -> EventSpec {
    let mut spec = side_band_dummy(Some(Side::User));
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
    if spec.tracer().is_some() {
        // Each branch is told, not one in many.
        attr.sample_period = 1;
    }
    if spec.sample_read {
        attr.sample_type |= SampleType::READ | SampleType::ID;
    }
    if options.target == Target::Cpus {
        attr.sample_type |= SampleType::CPU;
    }
    if options.raw_samples {
        attr.sample_type |= SampleType::RAW | SampleType::CPU;
    }
    set_rate(&mut attr, options.sampling);
    set_flags(&mut attr, tracking, options);
    let call_graph = spec.own.call_graph(options.call_graph);
    options.details.apply(call_graph, tracking, &mut attr);
    spec.own.apply(&mut attr);
    if spec.is_off_cpu() {
        off_cpu::settle(&mut attr);
    }
    if options.details.overwrite && !tracking {
        attr.flags |= AttrFlags::WRITE_BACKWARD;
    }
    match spec.is_dummy() {
        // It counts nothing at which there could be branches, and would be refused.
        true => attr.sample_type = attr.sample_type.with(SampleType::BRANCH_STACK, false),
        false => options.details.registers(call_graph, &mut attr),
    }
    attr
}

/// An event's own period gives way to what the user says. With a frequency the kernel changes the
/// period all the time, so each sample must tell its own.
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
    // The side-band of all CPUs runs from its opening on, or mappings made meanwhile are lost. That of
    // a recording with a delay starts with the program.
    let immediate = tracking && target == Target::Cpus;
    let on_exec = match options.details.delayed {
        true => tracking && !immediate,
        false => target == Target::Workload,
    };
    for (flag, on) in [
        (AttrFlags::DISABLED, !immediate),
        (AttrFlags::INHERIT, target != Target::Threads),
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

/// What a leader and its members get beside what they have alone: members run when their leader runs.
/// With `:S` the leader's samples alone are taken and hold the values of all, so that members have no
/// rate and their samples, made from the leader's by readers, its layout; no child can inherit that.
fn join(group: &mut [RecordEvent]) {
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

/// Several events need an id in every record: a plain field where all samples have one layout, else
/// the identifier, which stands at a place that does not depend on the layout.
fn identify(events: &mut [RecordEvent], always: bool) {
    let Some(first) = events.first().map(|event| event.attr.sample_type) else {
        return;
    };
    if events.len() < 2 && !always {
        return;
    }
    let mixed = always || events.iter().any(|event| event.attr.sample_type != first);
    for event in events {
        let sample_type = &mut event.attr.sample_type;
        *sample_type = sample_type
            .with(SampleType::ID, !mixed)
            .with(SampleType::IDENTIFIER, mixed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lowered_default_leaves_an_events_own_period_alone() {
        let mut own = Attr {
            sample_period: 1,
            ..Attr::default()
        };
        set_rate(&mut own, Sampling::Default(1750));
        assert_eq!(own.sample_period, 1);
        assert!(!own.flags.contains(AttrFlags::FREQ));

        let mut clock = Attr::default();
        set_rate(&mut clock, Sampling::Default(1750));
        assert_eq!(clock.sample_period, 1750);
        assert!(clock.flags.contains(AttrFlags::FREQ));
    }

    #[test]
    fn user_callchains_that_are_put_off_come_with_the_side_band() {
        let clock = || EventSpec::new("cpu-clock".to_owned(), Attr::default());
        let options = |target, call_graph| RecordOptions {
            target,
            sampling: Sampling::Default(4000),
            call_graph,
            raw_samples: false,
            details: Details::default(),
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
            flags(Target::Workload, deferred),
            [[true, true], [true, false]]
        );
        assert_eq!(flags(Target::Cpus, deferred).len(), 3);
        assert_eq!(flags(Target::Cpus, deferred)[0], [true, false]);
        assert!(flags(Target::Cpus, deferred)[2][1]);
        assert_eq!(flags(Target::Workload, plain), [[false; 2]; 2]);
    }
}
