//! Opening and reading counters.

mod open_error;

use std::collections::BTreeMap;
use std::io;

use rperf_count::{CounterCounts, CounterReading};
use rperf_events::{
    CountOptions, EventSpec, GroupPosition, count_attr, fires_only_in_kernel, user_only,
};
use rperf_sys::{Counter, CounterValue, CpuList, ObservedTask, OpenCgroup, Sysctl};
use rperf_wire::{Attr, AttrFlags};

use self::open_error::{breaks_group, is_unsupported};
use super::bundle::TracepointBundle;
use super::counter_affinity::CounterAffinity;
use super::kernel::{CounterKernel, CounterTarget, RunningKernel};
use super::{CountEvent, EventReadings};
use crate::control::ControlledCounters;
use crate::open::{break_group, is_denied};
use crate::refused_part::{refused_part, trial_task};
use crate::tasks::CpuTasks;
use crate::{Error, NotOpened, SessionNotice, SessionObserver};

/// An event with the counters for all its CPUs or tasks.
#[derive(Debug)]
pub(super) struct OpenEvent<C> {
    pub(super) spec: EventSpec,
    pub(super) attr: Attr,
    /// Index of the leader of its group or bundle (tracepoints opened as one group), with which it is read; else `None`.
    pub(super) leader: Option<usize>,
    pub(super) supported: bool,
    /// For an event that BPF programs sum up: the index of the event whose counters they read, which may be its own.
    pub(super) summed_from: Option<usize>,
    pub(super) counters: Vec<CounterSlot<C>>,
}

/// The CPU, the thread, or both, that one counter counts. `counter` is `None` before it is opened, if the event isn't
/// supported or is a tool event, and if the thread has exited.
#[derive(Debug)]
pub(super) struct CounterSlot<C> {
    pub(super) cpu: Option<u32>,
    thread: Option<u32>,
    pub(super) counter: Option<C>,
}

/// The open events.
#[derive(Debug)]
pub(super) struct OpenCounters<K: CounterKernel> {
    kernel: K,
    pub(super) events: Vec<OpenEvent<K::Counter>>,
}

/// Options for opening events.
pub(super) struct OpenParameters<'a> {
    pub(super) cpu_tasks: &'a CpuTasks,
    /// Open cgroups by name.
    pub(super) cgroups: &'a BTreeMap<String, OpenCgroup>,
    pub(super) sysctl: &'a Sysctl,
    pub(super) inherit: bool,
    /// Whether counters are enabled by the workload's exec.
    pub(super) on_exec: bool,
    /// Whether CPUs are observed instead of tasks.
    pub(super) on_cpus: bool,
    /// Whether events are counted only while BPF programs run.
    pub(super) counts_programs: bool,
    /// The CPUs on which BPF programs count for tasks.
    pub(super) all_cpus: &'a CpuList,
    /// Whether tracepoints may be opened in bundles: not with control commands, which can name single events, and not
    /// if counts are recorded.
    pub(super) bundles: bool,
}

impl<K: CounterKernel> OpenCounters<K> {
    /// Opens all events on all CPUs and tasks. Unsupported events are marked. Other failures, such as missing permission, are
    /// errors, unless the user may count user space only. Each iteration opens the event whose index is `opened.events.len()`.
    pub(super) fn open(
        kernel: K,
        requested: &[CountEvent],
        opening: &OpenParameters<'_>,
        observer: &mut dyn SessionObserver,
    ) -> Result<Self, Error> {
        let mut specs: Vec<EventSpec> = requested.iter().map(|event| event.spec.clone()).collect();
        let mut opened = Self {
            kernel,
            events: Vec::with_capacity(specs.len()),
        };
        let mut bundle = TracepointBundle::new(requested, opening.on_cpus && opening.bundles);
        while let Some(request) = requested.get(opened.events.len()) {
            let index = opened.events.len();
            let Some(spec) = specs.get(index).cloned() else {
                break;
            };
            // `None` without a bundle; `Some(None)` for the event that begins a bundle and becomes its leader.
            let bundled = bundle.leader_for(request);
            let (leader, in_group) = match bundled {
                Some(leader) => (leader, true),
                None => opened.group_of(&specs, index),
            };
            let mut event = match opening.is_summed(request) {
                true => opened.summed(request, spec, requested, opening),
                false => opening.unopened(request, spec, leader, in_group),
            };
            if event.spec.tool.is_some() {
                opened.events.push(event);
                continue;
            }
            match opened.open_event(&mut event, request, opening, observer) {
                Ok(()) => {
                    opened.events.push(event);
                    bundle.note_opened(bundled.map(|leader| leader.unwrap_or(index)));
                }
                // The next iterations open this and all later events without a bundle.
                Err(_) if bundled.is_some() => bundle.give_up(),
                Err(cause) if event.spec.weak && in_group && breaks_group(&cause) => {
                    let first = start_of_group(&specs, index);
                    opened.events.truncate(first);
                    break_group(specs.get_mut(first..).unwrap_or_default(), observer);
                }
                Err(cause) => match opening.user_only_event(&event.spec, &cause, observer) {
                    // The next iteration opens the new event.
                    Some(instead) => specs.splice(index..=index, [instead]).for_each(drop),
                    None => {
                        let kernel = &opened.kernel;
                        let missing = event.unsupported(cause, kernel, opening, observer)?;
                        opened.events.push(missing);
                    }
                },
            }
        }
        Ok(opened)
    }

    /// Returns the leader of event `index`, `None` if the event is a leader or in no group; and whether it is in a group. If a
    /// group's leader isn't supported or is a tool event, the first supported event of the group that is no tool
    /// event replaces it. Bundles are not groups here.
    fn group_of(&self, specs: &[EventSpec], index: usize) -> (Option<usize>, bool) {
        let is_member = |index: usize| {
            specs
                .get(index)
                .is_some_and(|spec| spec.group == GroupPosition::Member)
        };
        if !is_member(index) {
            return (None, is_member(index + 1));
        }
        let before = start_of_group(specs, index)..index;
        let mut supported = before.filter(|index| {
            let event = self.events.get(*index);
            event.is_some_and(|event| event.supported && event.spec.tool.is_none())
        });
        (supported.next(), true)
    }

    /// Opens one event, with less precision or fewer flags if the kernel requires that.
    fn open_event(
        &self,
        event: &mut OpenEvent<K::Counter>,
        request: &CountEvent,
        opening: &OpenParameters<'_>,
        observer: &mut dyn SessionObserver,
    ) -> io::Result<()> {
        let cgroup = request.cgroup.as_ref();
        // BPF programs separate the counts of cgroups themselves: their counters count all tasks of a CPU.
        let cgroup = cgroup.filter(|_| event.summed_from.is_none());
        let cgroup = cgroup.and_then(|name| opening.cgroups.get(name));
        let excludes_guest = event.attr.flags.contains(AttrFlags::EXCLUDE_GUEST);
        let without_flag = || SessionNotice::LeftOut {
            field: "exclude_guest",
        };
        loop {
            let attr = &event.attr;
            observer.on_event(SessionNotice::Opening { attr });
            let Err(cause) = self.open_everywhere(event, cgroup, observer) else {
                let is_flag_dropped =
                    excludes_guest && !event.attr.flags.contains(AttrFlags::EXCLUDE_GUEST);
                if is_flag_dropped && event.leader.is_some() {
                    observer.on_event(without_flag());
                }
                return Ok(());
            };
            let attr = &mut event.attr;
            let level = attr.precise_ip();
            if event.spec.precise_max && level > 0 && !is_denied(&cause) {
                attr.set_precise_ip(level - 1);
                observer.on_event(SessionNotice::LessPrecise { level: level - 1 });
            } else if cause.raw_os_error() == Some(libc::EINVAL)
                && attr.flags.contains(AttrFlags::EXCLUDE_GUEST)
            {
                // Linux before 3.2 refuses the flag, and so do PMUs that can't distinguish guests. A member of a group may also
                // be refused because there are too few counters, so the loss of its flag is reported only once the member opens.
                attr.flags = attr.flags.with(AttrFlags::EXCLUDE_GUEST, false);
                if event.leader.is_none() {
                    observer.on_event(without_flag());
                }
            } else {
                if event.leader.is_some() {
                    attr.flags = attr.flags.with(AttrFlags::EXCLUDE_GUEST, excludes_guest);
                }
                return Err(cause);
            }
        }
    }

    /// Opens an event on all its CPUs or tasks.
    fn open_everywhere(
        &self,
        event: &mut OpenEvent<K::Counter>,
        cgroup: Option<&OpenCgroup>,
        observer: &mut dyn SessionObserver,
    ) -> io::Result<()> {
        let leader = event.leader.and_then(|leader| self.events.get(leader));
        let is_single = event.counters.len() == 1;
        // An event without slots, for example one that uses the counters of another event, has nothing to open.
        let mut any_open = event.counters.is_empty();
        for (index, slot) in event.counters.iter_mut().enumerate() {
            let observed = slot.observed();
            let target = CounterTarget { observed, cgroup };
            let group = leader.map(|leader| leader.counters.get(index)?.counter.as_ref());
            // The thread had exited when the leader was opened.
            if let Some(None) = group {
                continue;
            }
            let group = group.flatten();
            let opened = self.kernel.open(&event.attr, target, group);
            let (observed, flags) = target.arguments();
            let number = |counter: &K::Counter| self.kernel.number(counter);
            observer.on_event(SessionNotice::Opened {
                observed,
                flags,
                group: group.map(number),
                outcome: opened.as_ref().map(number),
            });
            match opened {
                Ok(counter) => {
                    any_open = true;
                    slot.counter = Some(counter);
                }
                // One of several threads exited since it was listed.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) && !is_single => {}
                Err(error) => return Err(error),
            }
        }
        let no_task = || io::Error::from_raw_os_error(libc::ESRCH);
        any_open.then_some(()).ok_or_else(no_task)
    }

    /// Reads all events but those that BPF programs sum up: these get the reading of an event that has never run, as does one
    /// that can't be read, such as a pinned event that has no hardware counter. `cells` has the readings by event, then by slot.
    pub(super) fn read(&self) -> EventReadings {
        let mut readings = EventReadings {
            events: self.events.iter().map(|event| event.spec.clone()).collect(),
            supported: self.events.iter().map(|event| event.supported).collect(),
            cells: Vec::with_capacity(self.events.len()),
        };
        for event in &self.events {
            let cells = event.counters.iter().map(CounterSlot::empty);
            readings.cells.push(cells.collect());
        }
        // Counters are read CPU by CPU, so that counts used in the same metric are read shortly after each other.
        let groups: Vec<Vec<usize>> = self.leading().map(|leader| self.members(leader)).collect();
        let mut affinity = CounterAffinity::new(groups.len());
        for index in 0..self.max_counters() {
            affinity.move_to(self.cpu_at(index));
            for members in &groups {
                self.read_group(members, index, &mut readings.cells);
            }
        }
        readings
    }

    /// Reads the counters at `index` of all events of a group (`members`, the leader first): one read returns the open ones only.
    fn read_group(&self, members: &[usize], index: usize, cells: &mut [Vec<CounterReading>]) {
        let counter_of = |member: &usize| {
            self.events
                .get(*member)?
                .counters
                .get(index)?
                .counter
                .as_ref()
        };
        let leader = members.first();
        let event = leader.and_then(|leader| self.events.get(*leader));
        let (Some(event), Some(counter)) = (event, leader.and_then(counter_of)) else {
            return;
        };
        let values = self.kernel.read(counter, event.attr.read_format);
        let open = members.iter().filter(|member| counter_of(member).is_some());
        for (value, member) in values.unwrap_or_default().iter().zip(open) {
            let cells = cells.get_mut(*member);
            if let Some(cell) = cells.and_then(|cells| cells.get_mut(index)) {
                cell.counts = counts(value);
            }
        }
    }

    /// Returns the indexes of the supported events that are group leaders or in no group, without those that BPF programs sum up.
    fn leading(&self) -> impl Iterator<Item = usize> {
        let events = self.events.iter().enumerate();
        let leading = events.filter(|(_, event)| {
            event.leader.is_none() && event.supported && event.summed_from.is_none()
        });
        leading.map(|(index, _)| index)
    }

    /// Returns an event that BPF programs sum up, and that is not open yet. Equal events of several cgroups share the counters.
    fn summed(
        &self,
        request: &CountEvent,
        spec: EventSpec,
        requested: &[CountEvent],
        opening: &OpenParameters<'_>,
    ) -> OpenEvent<K::Counter> {
        let index = self.events.len();
        // The first of several equal events has the counters.
        let is_same = |(position, other): &(usize, &OpenEvent<K::Counter>)| {
            let cpus = requested.get(*position).map(|event| &event.cpus);
            let has_counters = other.summed_from == Some(*position);
            has_counters && other.spec == spec && cpus == Some(&request.cpus)
        };
        let same = self.events.iter().enumerate().find(is_same);
        let source = same.map_or(index, |(source, _)| source);
        let options = CountOptions {
            inherit: false,
            on_exec: false,
            in_group: false,
            member: false,
        };
        let mut attr = count_attr(&spec, options);
        // Also if a term of the event requests inheritance: the programs follow tasks.
        attr.flags = attr.flags.with(AttrFlags::INHERIT, false);
        let cpus = opening.all_cpus.numbers().iter();
        let slots_for_tasks = cpus.map(|cpu| CounterSlot {
            cpu: Some(*cpu),
            thread: None,
            counter: None,
        });
        OpenEvent {
            attr,
            spec,
            leader: None,
            supported: true,
            counters: if source != index {
                Vec::new()
            } else if opening.on_cpus {
                opening.slots_of(request)
            } else {
                slots_for_tasks.collect()
            },
            summed_from: Some(source),
        }
    }

    /// Returns the maximum number of counters of an event.
    fn max_counters(&self) -> usize {
        let counts = self.events.iter().map(|event| event.counters.len());
        counts.max().unwrap_or_default()
    }

    /// Returns the indexes of the events of a group, beginning with `leader`.
    fn members(&self, leader: usize) -> Vec<usize> {
        let rest = self.events.iter().enumerate().skip(leader + 1);
        let members = rest.filter(|(_, event)| event.leader == Some(leader));
        let members = members.map(|(index, _)| index);
        std::iter::once(leader).chain(members).collect()
    }

    /// Returns the CPU of the counters with this index, from the first event that has one.
    fn cpu_at(&self, index: usize) -> Option<u32> {
        let mut events = self.events.iter();
        events.find_map(|event| event.counters.get(index)?.cpu)
    }

    /// Calls `act`, an ioctl, CPU by CPU for all counters but those of members of groups or bundles. `what` names it in errors.
    pub(super) fn for_each_leader(
        &self,
        what: &'static str,
        act: impl Fn(&K::Counter) -> io::Result<()>,
    ) -> Result<(), Error> {
        let mut affinity = CounterAffinity::new(self.leading().count());
        for index in 0..self.max_counters() {
            affinity.move_to(self.cpu_at(index));
            for event in self.events.iter().filter(|event| event.leader.is_none()) {
                let slot = event.counters.get(index);
                let counter = slot.and_then(|slot| slot.counter.as_ref());
                counter
                    .map_or(Ok(()), &act)
                    .map_err(|cause| Error::Control {
                        what,
                        event: event.spec.name.clone(),
                        cause,
                    })?;
            }
        }
        Ok(())
    }

    /// Closes all counters, CPU by CPU.
    pub(super) fn close(mut self) {
        let mut affinity = CounterAffinity::new(self.events.len());
        for index in 0..self.max_counters() {
            affinity.move_to(self.cpu_at(index));
            for event in &mut self.events {
                if let Some(slot) = event.counters.get_mut(index) {
                    slot.counter = None;
                }
            }
        }
    }
}

impl OpenCounters<RunningKernel> {
    /// Enables the events that BPF programs sum up.
    pub(super) fn enable_summed(&self) -> Result<(), Error> {
        let events = self.events.iter();
        let mut summed = events.filter(|event| event.summed_from.is_some());
        summed.try_for_each(|event| event.controlled_counters().switch(true))
    }

    /// Returns the events for control commands.
    pub(super) fn controlled_counters(&self) -> Vec<ControlledCounters<'_>> {
        let events = self.events.iter();
        events.map(OpenEvent::controlled_counters).collect()
    }
}

impl OpenEvent<Counter> {
    fn controlled_counters(&self) -> ControlledCounters<'_> {
        let counters = self.counters.iter();
        ControlledCounters {
            spec: &self.spec,
            attr: &self.attr,
            is_switched_with_all: self.leader.is_none(),
            counters: counters.filter_map(|slot| slot.counter.as_ref()).collect(),
        }
    }
}

impl OpenParameters<'_> {
    /// Returns an event that is not open yet. `leader` and `in_group` are as in [`OpenCounters::group_of`], or those of a bundle.
    fn unopened<C>(
        &self,
        request: &CountEvent,
        spec: EventSpec,
        leader: Option<usize>,
        in_group: bool,
    ) -> OpenEvent<C> {
        let options = CountOptions {
            inherit: self.inherit,
            on_exec: self.on_exec,
            in_group,
            member: leader.is_some(),
        };
        let mut counters = self.slots_of(request);
        if spec.tool.is_some() {
            counters.truncate(1);
        }
        OpenEvent {
            attr: count_attr(&spec, options),
            spec,
            leader,
            supported: true,
            summed_from: None,
            counters,
        }
    }

    /// Whether BPF programs sum up an event. An event that counts all tasks of a CPU needs no program.
    fn is_summed(&self, event: &CountEvent) -> bool {
        let is_limited = !self.on_cpus || self.counts_programs || event.cgroup.is_some();
        event.spec.bpf && event.spec.tool.is_none() && is_limited
    }

    /// Returns a slot without a counter for each CPU and thread of an event.
    fn slots_of<C>(&self, event: &CountEvent) -> Vec<CounterSlot<C>> {
        let mut slots = Vec::new();
        for cpu in &self.cpu_tasks.cpus {
            let cpu = u32::try_from(*cpu).ok();
            let elsewhere = |cpu| event.cpus.as_ref().is_some_and(|cpus| !cpus.contains(cpu));
            if cpu.is_some_and(elsewhere) {
                continue;
            }
            slots.extend(self.cpu_tasks.tasks.iter().map(|task| CounterSlot {
                cpu,
                thread: u32::try_from(*task).ok(),
                counter: None,
            }));
        }
        slots
    }

    /// Returns the event to count instead if this user may not count in the kernel.
    fn user_only_event(
        &self,
        spec: &EventSpec,
        cause: &io::Error,
        observer: &mut dyn SessionObserver,
    ) -> Option<EventSpec> {
        if !is_denied(cause) || self.on_cpus || spec.bpf {
            return None;
        }
        let paranoid = self.sysctl.perf_event_paranoid();
        if paranoid.is_some_and(|level| level <= 1) {
            return None;
        }
        let instead = user_only(spec)?;
        observer.on_event(SessionNotice::UserOnly {
            event: &instead.name,
            paranoid,
            is_silent: fires_only_in_kernel(&instead.attr),
        });
        Some(instead)
    }
}

impl<C> OpenEvent<C> {
    /// Returns the event without counters if `cause` means that it isn't supported; otherwise the error.
    fn unsupported(
        mut self,
        cause: io::Error,
        kernel: &impl CounterKernel<Counter = C>,
        opening: &OpenParameters<'_>,
        observer: &mut dyn SessionObserver,
    ) -> Result<Self, Error> {
        let on_cpus = opening.on_cpus || self.summed_from.is_some();
        let target = CounterTarget {
            observed: trial_task(on_cpus),
            cgroup: None,
        };
        let opens = |attr: &Attr| kernel.open(attr, target, None).is_ok();
        let refused = refused_part(&self.attr, &cause, &opens);
        if !is_unsupported(&cause) {
            return Err(Error::from(Box::new(NotOpened {
                refused,
                cause,
                on_cpus,
                user_only: self.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL),
                tracepoint: self.spec.tracepoint.is_some(),
                event: self.spec.name,
                // Counts have no branch stacks.
                branches: false,
                paranoid: opening.sysctl.perf_event_paranoid(),
            })));
        }
        observer.on_event(SessionNotice::NotSupported {
            event: &self.spec.name,
            grouped: self.leader.is_some(),
            refused: refused.as_deref(),
        });
        self.supported = false;
        self.leader = None;
        for slot in &mut self.counters {
            slot.counter = None;
        }
        Ok(self)
    }
}

impl<C> CounterSlot<C> {
    fn observed(&self) -> ObservedTask {
        let number = |number: Option<u32>| number.map_or(-1, u32::cast_signed);
        ObservedTask {
            pid: number(self.thread),
            cpu: number(self.cpu),
        }
    }

    fn empty(&self) -> CounterReading {
        CounterReading {
            cpu: self.cpu,
            thread: self.thread,
            counts: CounterCounts::default(),
        }
    }
}

fn counts(reading: &CounterValue) -> CounterCounts {
    CounterCounts {
        value: reading.value,
        enabled: reading.enabled.unwrap_or_default(),
        running: reading.running.unwrap_or_default(),
    }
}

fn start_of_group(specs: &[EventSpec], index: usize) -> usize {
    let before = specs.get(..=index).unwrap_or_default();
    let start = before
        .iter()
        .rposition(|spec| spec.group != GroupPosition::Member);
    start.unwrap_or_default()
}

#[cfg(test)]
mod tests;
