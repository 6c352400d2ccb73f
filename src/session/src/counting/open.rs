//! Opening counters, and reading them.

use std::collections::BTreeMap;
use std::io;

use rperf_count::{Cell, Counts};
use rperf_events::{CountOptions, EventSpec, Group, count_attr, user_only};
use rperf_sys::{Cgroup, Counter, Observed, Reading, Sysctl};
use rperf_wire::{Attr, AttrFlags};

use super::bundle::Bundle;
use super::kernel::{Kernel, Running, Where};
use super::near::Near;
use super::{CountEvent, Readings};
use crate::blame::{a_place, refused_part};
use crate::control::Steered;
use crate::open::{break_group, is_denied};
use crate::tasks::Places;
use crate::{Error, Happened, NotOpened, Watch};

/// An event at all its places.
#[derive(Debug)]
pub(super) struct OpenEvent<C> {
    pub(super) spec: EventSpec,
    pub(super) attr: Attr,
    /// The event that it is read with, by index.
    pub(super) leader: Option<usize>,
    pub(super) supported: bool,
    pub(super) counters: Vec<Placed<C>>,
}

/// A counter and where it counts. There is none where the event isn't supported, or the thread has ended.
#[derive(Debug)]
pub(super) struct Placed<C> {
    pub(super) cpu: Option<u32>,
    thread: Option<u32>,
    pub(super) counter: Option<C>,
}

/// Events that are open.
#[derive(Debug)]
pub(super) struct Opened<K: Kernel> {
    kernel: K,
    pub(super) events: Vec<OpenEvent<K::Counter>>,
}

/// What decides how events are opened.
pub(super) struct Opening<'a> {
    pub(super) places: &'a Places,
    /// Open cgroups by name.
    pub(super) cgroups: &'a BTreeMap<String, Cgroup>,
    pub(super) sysctl: &'a Sysctl,
    pub(super) inherit: bool,
    /// Whether counters start with the workload's program.
    pub(super) on_exec: bool,
    /// Whether whole CPUs are observed.
    pub(super) on_cpus: bool,
    /// Whether events may be started, stopped and read together: nobody orders one of them, or keeps how they were opened.
    pub(super) bundles: bool,
}

impl<K: Kernel> Opened<K> {
    /// Opens every event at every place. What the kernel doesn't have is marked so; what this user may not see ends
    /// it, unless user space alone is allowed.
    pub(super) fn open(
        kernel: K,
        wanted: &[CountEvent],
        opening: &Opening<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Self, Error> {
        let mut specs: Vec<EventSpec> = wanted.iter().map(|event| event.spec.clone()).collect();
        let mut opened = Self {
            kernel,
            events: Vec::with_capacity(specs.len()),
        };
        let mut bundle = Bundle::new(wanted, opening.on_cpus && opening.bundles);
        while let Some(place) = wanted.get(opened.events.len()) {
            let index = opened.events.len();
            let Some(spec) = specs.get(index).cloned() else {
                break;
            };
            let bundled = bundle.place(place);
            let group = match bundled {
                Some(leader) => (leader, true),
                None => opened.group_of(&specs, index),
            };
            let mut event = opening.closed(place, spec, group);
            if event.spec.tool.is_some() {
                opened.events.push(event);
                continue;
            }
            let in_group = group.1;
            match opened.open_event(&mut event, place, opening, watch) {
                Ok(()) => {
                    opened.events.push(event);
                    bundle.grow(bundled.map(|leader| leader.unwrap_or(index)));
                }
                // It is tried again by itself.
                Err(_) if bundled.is_some() => bundle.give_up(),
                Err(cause) if event.spec.weak && in_group && breaks_group(&cause) => {
                    let first = start_of_group(&specs, index);
                    opened.events.truncate(first);
                    break_group(specs.get_mut(first..).unwrap_or_default(), watch);
                }
                Err(cause) => match opening.less(&event.spec, &cause, watch) {
                    Some(instead) => specs.splice(index..=index, [instead]).for_each(drop),
                    None => {
                        let kernel = &opened.kernel;
                        let missing = event.unsupported(cause, (kernel, opening), watch)?;
                        opened.events.push(missing);
                    }
                },
            }
        }
        Ok(opened)
    }

    /// The event that `index` is opened behind, and whether it is in a group at all. Where a group's own leader isn't
    /// supported the first that is takes its part.
    fn group_of(&self, specs: &[EventSpec], index: usize) -> (Option<usize>, bool) {
        let is_member = |index: usize| {
            specs
                .get(index)
                .is_some_and(|spec| spec.group == Group::Member)
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

    /// Opens one event, with less precision or fewer fields where the kernel wants that.
    fn open_event(
        &self,
        event: &mut OpenEvent<K::Counter>,
        wanted: &CountEvent,
        opening: &Opening<'_>,
        watch: &mut dyn Watch,
    ) -> io::Result<()> {
        let cgroup = wanted.cgroup.as_ref();
        let cgroup = cgroup.and_then(|name| opening.cgroups.get(name));
        loop {
            let attr = &event.attr;
            watch.tell(Happened::Opening { attr });
            let Err(cause) = self.open_everywhere(event, cgroup, watch) else {
                return Ok(());
            };
            let attr = &mut event.attr;
            let level = attr.precise_ip();
            if event.spec.precise_max && level > 0 && !is_denied(&cause) {
                attr.set_precise_ip(level - 1);
                watch.tell(Happened::LessPrecise { level: level - 1 });
            } else if cause.raw_os_error() == Some(libc::EINVAL)
                && attr.flags.contains(AttrFlags::EXCLUDE_GUEST)
                && event.leader.is_none()
            {
                // Before Linux 3.2, and PMUs that can't tell guests from hosts.
                attr.flags = attr.flags.with(AttrFlags::EXCLUDE_GUEST, false);
                watch.tell(Happened::LeftOut {
                    field: "exclude_guest",
                });
            } else {
                return Err(cause);
            }
        }
    }

    /// Opens an event at all of its places.
    fn open_everywhere(
        &self,
        event: &mut OpenEvent<K::Counter>,
        cgroup: Option<&Cgroup>,
        watch: &mut dyn Watch,
    ) -> io::Result<()> {
        let leader = event.leader.and_then(|leader| self.events.get(leader));
        let single = event.counters.len() == 1;
        let mut any = event.counters.is_empty();
        for (index, placed) in event.counters.iter_mut().enumerate() {
            let observed = placed.observed();
            let place = Where { observed, cgroup };
            let group = leader.map(|leader| leader.counters.get(index)?.counter.as_ref());
            // The thread had ended when the leader was opened.
            if let Some(None) = group {
                continue;
            }
            let group = group.flatten();
            let opened = self.kernel.open(&event.attr, place, group);
            let (observed, flags) = place.arguments();
            let number = |counter: &K::Counter| self.kernel.number(counter);
            watch.tell(Happened::Opened {
                observed,
                flags,
                group: group.map(number),
                outcome: opened.as_ref().map(number),
            });
            match opened {
                Ok(counter) => {
                    any = true;
                    placed.counter = Some(counter);
                }
                // One of several threads ended since it was listed.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) && !single => {}
                Err(error) => return Err(error),
            }
        }
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        any.then_some(()).ok_or_else(gone)
    }

    /// Reads everything. What can't be read, such as a pinned event that found no counter, has never run.
    pub(super) fn read(&self) -> Readings {
        let mut readings = Readings {
            events: self.events.iter().map(|event| event.spec.clone()).collect(),
            supported: self.events.iter().map(|event| event.supported).collect(),
            cells: Vec::with_capacity(self.events.len()),
        };
        for event in &self.events {
            let cells = event.counters.iter().map(Placed::empty);
            readings.cells.push(cells.collect());
        }
        // CPU by CPU: what is divided by one another is read as nearly as possible at the same moment.
        let leaders: Vec<Vec<usize>> = self.leading().map(|leader| self.members(leader)).collect();
        let mut near = Near::new(leaders.len());
        for place in 0..self.widest() {
            near.go(self.cpu_at(place));
            for members in &leaders {
                self.read_group(members, place, &mut readings.cells);
            }
        }
        readings
    }

    /// Reads what is counted together at a place; the first of it leads.
    fn read_group(&self, members: &[usize], place: usize, cells: &mut [Vec<Cell>]) {
        let at = |index: &usize| {
            self.events
                .get(*index)?
                .counters
                .get(place)?
                .counter
                .as_ref()
        };
        let leader = members.first();
        let event = leader.and_then(|leader| self.events.get(*leader));
        let (Some(event), Some(counter)) = (event, leader.and_then(at)) else {
            return;
        };
        let values = self.kernel.read(counter, event.attr.read_format);
        let there = members.iter().filter(|member| at(member).is_some());
        for (value, member) in values.unwrap_or_default().iter().zip(there) {
            let cells = cells.get_mut(*member);
            if let Some(cell) = cells.and_then(|cells| cells.get_mut(place)) {
                cell.counts = counts(value);
            }
        }
    }

    /// The events that lead others, or are alone.
    fn leading(&self) -> impl Iterator<Item = usize> {
        let events = self.events.iter().enumerate();
        let leading = events.filter(|(_, event)| event.leader.is_none() && event.supported);
        leading.map(|(index, _)| index)
    }

    /// The most places that an event has.
    fn widest(&self) -> usize {
        let places = self.events.iter().map(|event| event.counters.len());
        places.max().unwrap_or_default()
    }

    /// The events that are read with a leader, itself first.
    fn members(&self, leader: usize) -> Vec<usize> {
        let rest = self.events.iter().enumerate().skip(leader + 1);
        let members = rest.filter(|(_, event)| event.leader == Some(leader));
        let members = members.map(|(index, _)| index);
        std::iter::once(leader).chain(members).collect()
    }

    /// The CPU of a place, that of the first event that is there.
    fn cpu_at(&self, place: usize) -> Option<u32> {
        let mut events = self.events.iter();
        events.find_map(|event| event.counters.get(place)?.cpu)
    }

    /// One request to everything that starts and stops by itself, CPU by CPU: leaders, and what is in no group.
    pub(super) fn each(
        &self,
        what: &'static str,
        act: impl Fn(&K::Counter) -> io::Result<()>,
    ) -> Result<(), Error> {
        let mut near = Near::new(self.leading().count());
        for place in 0..self.widest() {
            near.go(self.cpu_at(place));
            for event in self.events.iter().filter(|event| event.leader.is_none()) {
                let placed = event.counters.get(place);
                let counter = placed.and_then(|placed| placed.counter.as_ref());
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

    /// Closes everything, CPU by CPU.
    pub(super) fn close(mut self) {
        let mut near = Near::new(self.events.len());
        for place in 0..self.widest() {
            near.go(self.cpu_at(place));
            for event in &mut self.events {
                if let Some(placed) = event.counters.get_mut(place) {
                    placed.counter = None;
                }
            }
        }
    }
}

impl Opened<Running> {
    /// The events as orders see them.
    pub(super) fn steered(&self) -> Vec<Steered<'_>> {
        fn steered(event: &OpenEvent<Counter>) -> Steered<'_> {
            let counters = event.counters.iter();
            Steered {
                spec: &event.spec,
                attr: &event.attr,
                leads: event.leader.is_none(),
                counters: counters
                    .filter_map(|placed| placed.counter.as_ref())
                    .collect(),
            }
        }
        self.events.iter().map(steered).collect()
    }
}

impl Opening<'_> {
    /// An event that is not open yet: with the event that it is opened behind, and whether it is in a group at all.
    fn closed<C>(
        &self,
        wanted: &CountEvent,
        spec: EventSpec,
        (leader, in_group): (Option<usize>, bool),
    ) -> OpenEvent<C> {
        let options = CountOptions {
            inherit: self.inherit,
            on_exec: self.on_exec,
            in_group,
            member: leader.is_some(),
        };
        let mut counters = self.nowhere(wanted);
        if spec.tool.is_some() {
            counters.truncate(1);
        }
        OpenEvent {
            attr: count_attr(&spec, options),
            spec,
            leader,
            supported: true,
            counters,
        }
    }

    /// The places of an event, without counters.
    fn nowhere<C>(&self, event: &CountEvent) -> Vec<Placed<C>> {
        let mut placed = Vec::new();
        for cpu in &self.places.cpus {
            let cpu = u32::try_from(*cpu).ok();
            let elsewhere = |cpu| event.cpus.as_ref().is_some_and(|cpus| !cpus.contains(cpu));
            if cpu.is_some_and(elsewhere) {
                continue;
            }
            placed.extend(self.places.tasks.iter().map(|task| Placed {
                cpu,
                thread: u32::try_from(*task).ok(),
                counter: None,
            }));
        }
        placed
    }

    /// The event to count instead where this user may not see the kernel.
    fn less(
        &self,
        spec: &EventSpec,
        cause: &io::Error,
        watch: &mut dyn Watch,
    ) -> Option<EventSpec> {
        if !is_denied(cause) || self.on_cpus {
            return None;
        }
        let paranoid = self.sysctl.perf_event_paranoid();
        if paranoid.is_some_and(|level| level <= 1) {
            return None;
        }
        let instead = user_only(spec)?;
        watch.tell(Happened::UserOnly {
            event: &instead.name,
            paranoid,
        });
        Some(instead)
    }
}

impl<C> OpenEvent<C> {
    /// The same without counters, where neither kernel nor machine can count it; any other cause ends everything.
    fn unsupported(
        mut self,
        cause: io::Error,
        (kernel, opening): (&impl Kernel<Counter = C>, &Opening<'_>),
        watch: &mut dyn Watch,
    ) -> Result<Self, Error> {
        let place = Where {
            observed: a_place(opening.on_cpus),
            cgroup: None,
        };
        let opens = |attr: &Attr| kernel.open(attr, place, None).is_ok();
        let refused = refused_part(&self.attr, &cause, &opens);
        if !is_unsupported(&cause) {
            return Err(Error::from(Box::new(NotOpened {
                refused,
                cause,
                on_cpus: opening.on_cpus,
                user_only: self.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL),
                tracepoint: self.spec.tracepoint.is_some(),
                event: self.spec.name,
                branches: false,
                paranoid: opening.sysctl.perf_event_paranoid(),
            })));
        }
        watch.tell(Happened::NotSupported {
            event: &self.spec.name,
            grouped: self.leader.is_some(),
            refused: refused.as_deref(),
        });
        self.supported = false;
        self.leader = None;
        for placed in &mut self.counters {
            placed.counter = None;
        }
        Ok(self)
    }
}

impl<C> Placed<C> {
    fn observed(&self) -> Observed {
        let number = |number: Option<u32>| number.map_or(-1, u32::cast_signed);
        Observed {
            pid: number(self.thread),
            cpu: number(self.cpu),
        }
    }

    fn empty(&self) -> Cell {
        Cell {
            cpu: self.cpu,
            thread: self.thread,
            counts: Counts::default(),
        }
    }
}

fn counts(reading: &Reading) -> Counts {
    Counts {
        value: reading.value,
        enabled: reading.enabled.unwrap_or_default(),
        running: reading.running.unwrap_or_default(),
    }
}

fn start_of_group(specs: &[EventSpec], index: usize) -> usize {
    let before = specs.get(..=index).unwrap_or_default();
    let start = before.iter().rposition(|spec| spec.group != Group::Member);
    start.unwrap_or_default()
}

/// Whether a weak group does not fit on the counters.
fn breaks_group(cause: &io::Error) -> bool {
    matches!(cause.raw_os_error(), Some(libc::EINVAL | libc::EBADF))
}

/// Whether the machine or this kernel has no such counter, so that the others are worth counting.
fn is_unsupported(cause: &io::Error) -> bool {
    matches!(
        cause.raw_os_error(),
        Some(
            libc::EINVAL
                | libc::ENOENT
                | libc::ENOSYS
                | libc::EOPNOTSUPP
                | libc::ENXIO
                | libc::ENODEV
        )
    )
}

#[cfg(test)]
mod tests;
