//! Opening events on all CPUs and tasks, with fallbacks if the kernel refuses them.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rperf_events::{
    EventSpec, GroupPosition, RecordEvent, RecordOptions, fallback_to_cpu_clock,
    fires_only_in_kernel, record_events, user_only,
};
use rperf_sys::{
    Counter, ObservedTask, OpenCgroup, PERF_FLAG_FD_CLOEXEC, PERF_FLAG_PID_CGROUP, Sysctl,
    page_size,
};
use rperf_wire::{Attr, AttrFlags, EventType, ReadFormat};

use crate::refused_part::{refused_part, trial_task};
use crate::rings::default_pages;
use crate::tasks::CpuTasks;
use crate::{Error, NotOpened, RecordRequest, SessionNotice, SessionObserver};

/// An event that is open on all its CPUs and tasks.
#[derive(Debug)]
pub(crate) struct OpenEvent {
    /// The event with the accepted attr.
    pub(crate) event: RecordEvent,
    /// Its counters, by CPU and then by task.
    pub(crate) counters: Vec<OpenCounter>,
}

/// A counter, and the CPU and task that it counts.
#[derive(Debug)]
pub(crate) struct OpenCounter {
    pub(crate) counter: Counter,
    /// Index of its ring: the ring of its CPU or, if it has no CPU, of its task.
    pub(crate) ring: usize,
    /// The CPU, -1 for all.
    pub(crate) cpu: i32,
    /// The thread, -1 for all.
    pub(crate) tid: i32,
    pub(crate) id: u64,
}

impl OpenCounter {
    fn new(counter: Counter, ring: usize, observed: ObservedTask) -> io::Result<Self> {
        Ok(Self {
            id: counter.id()?,
            counter,
            ring,
            cpu: observed.cpu,
            // The `pid` of perf_event_open is the id of a thread.
            tid: observed.pid,
        })
    }
}

/// Attr flags refused by older kernels, newest first, in the order in which they are dropped.
const NEWER_FLAGS: [(AttrFlags, &str); 6] = [
    (AttrFlags::BUILD_ID, "build_id"),
    (AttrFlags::BPF_EVENT, "bpf_event"),
    (AttrFlags::KSYMBOL, "ksymbol"),
    (AttrFlags::MMAP2, "mmap2"),
    (AttrFlags::COMM_EXEC, "comm_exec"),
    (AttrFlags::EXCLUDE_GUEST, "exclude_guest"),
];

/// The flags for deferred callchains, supported since Linux 6.19.
const DEFERRED: AttrFlags = AttrFlags::DEFER_CALLCHAIN.with(AttrFlags::DEFER_OUTPUT, true);

/// The circumstances in which an event is opened.
#[derive(Clone, Copy, Default)]
struct OpenContext<'a> {
    /// The leader of its group.
    leader: Option<&'a OpenEvent>,
    cgroup: Option<&'a OpenCgroup>,
    /// Whether it is the side-band event (for records other than samples) that is added to the requested ones.
    is_side_band: bool,
    /// Whether it is opened for all tasks, even if the recording observes only some.
    all_tasks: bool,
}

/// Opens all events.
pub(crate) struct Opener<'a> {
    pub(crate) cpu_tasks: &'a mut CpuTasks,
    pub(crate) options: RecordOptions,
    pub(crate) max_stack: u16,
    pub(crate) sysctl: &'a Sysctl,
    /// The tasks that have a ring each; empty if rings belong to CPUs.
    pub(crate) ring_tasks: Vec<i32>,
    /// The cgroups of events, in event order.
    pub(crate) cgroups: &'a [Option<OpenCgroup>],
    /// Whether the kernel does not support the `read_format` LOST. This and `unsupported_flags` are determined by the first event
    /// that the kernel refuses because of them.
    lost_is_unsupported: bool,
    /// Attr flags that the kernel does not support.
    unsupported_flags: AttrFlags,
    /// Ring watermark in bytes, if the kernel's default of half the ring is too large.
    watermark: Option<u32>,
}

/// The unread data in all rings together are at most about the maximum size (`--max-size`) divided by this.
const PARTS: u64 = 8;

impl<'a> Opener<'a> {
    /// Creates the opener of a recording.
    pub(crate) fn new(
        request: &RecordRequest,
        cpu_tasks: &'a mut CpuTasks,
        sysctl: &'a Sysctl,
        cgroups: &'a [Option<OpenCgroup>],
    ) -> Self {
        Self {
            watermark: watermark(request, cpu_tasks, sysctl),
            cpu_tasks,
            options: RecordOptions {
                target: request.observe.target.kind(),
                sampling: request.observe.sampling,
                call_graph: request.observe.call_graph,
                raw_samples: request.observe.raw_samples,
                details: request.observe.details,
            },
            max_stack: request.observe.max_stack,
            sysctl,
            ring_tasks: Vec::new(),
            cgroups,
            lost_is_unsupported: false,
            unsupported_flags: AttrFlags::default(),
        }
    }
}

impl Opener<'_> {
    /// Opens events that are in no group, without replacing them by others.
    pub(crate) fn open_as_they_are(
        &mut self,
        events: Vec<RecordEvent>,
        observer: &mut dyn SessionObserver,
    ) -> Result<Vec<OpenEvent>, Error> {
        let mut open = Vec::new();
        for event in events {
            let opened = self.open_everywhere(event, OpenContext::default(), observer);
            open.push(opened.map_err(|refused| self.error(*refused))?);
        }
        Ok(open)
    }

    /// Opens all events of `specs` on all CPUs and tasks, followed by the side-band event if [`record_events`] adds one.
    pub(crate) fn open(
        &mut self,
        mut specs: Vec<EventSpec>,
        observer: &mut dyn SessionObserver,
    ) -> Result<Vec<OpenEvent>, Error> {
        let mut open: Vec<OpenEvent> = Vec::new();
        let mut events = record_events(&specs, &self.options);
        while let Some(event) = events.get(open.len()) {
            let index = open.len();
            // At the start, and when opening starts again because the first group was broken up or the first event replaced.
            if index == 0 {
                self.ring_tasks.clear();
            }
            let is_side_band = index >= specs.len();
            let context = OpenContext {
                leader: event.leader.and_then(|leader| open.get(leader)),
                cgroup: self.cgroups.get(index).and_then(Option::as_ref),
                is_side_band,
                all_tasks: event.spec.all_tasks,
            };
            let event = self.adapted(event.clone());
            match self.open_everywhere(event, context, observer) {
                Ok(opened) => open.push(opened),
                Err(refused) if refused.breaks_group() => {
                    let first = refused.event.leader.unwrap_or(index);
                    open.truncate(first);
                    break_group(specs.get_mut(first..).unwrap_or_default(), observer);
                    events = record_events(&specs, &self.options);
                }
                Err(refused) => {
                    let spec = self
                        .other_event(&refused, is_side_band, observer)
                        .ok_or_else(|| self.error(*refused))?;
                    if let Some(replaced) = specs.get_mut(index) {
                        *replaced = spec;
                        events = record_events(&specs, &self.options);
                    } else if let Some(side_band) = events.get_mut(index) {
                        // The side-band event is not in `specs`, so `record_events` does not update its attr.
                        side_band.attr.flags |= spec.attr.flags;
                        side_band.spec = spec;
                    }
                }
            }
        }
        Ok(open)
    }

    /// Sets the stack limit and the watermark, each only if the event has none of its own, and clears what the kernel does not
    /// support. Overwrite rings are not polled, so their events get no watermark.
    fn adapted(&self, mut event: RecordEvent) -> RecordEvent {
        if event.spec.settings.max_stack.is_none() {
            event.attr.sample_max_stack = self.max_stack;
        }
        let is_overwritten = event.attr.flags.contains(AttrFlags::WRITE_BACKWARD);
        if let Some(bytes) = self
            .watermark
            .filter(|_| event.attr.wakeup == 0 && !is_overwritten)
        {
            event.attr.flags |= AttrFlags::WATERMARK;
            event.attr.wakeup = bytes;
        }
        self.clear_unsupported(&mut event.attr);
        event
    }

    fn clear_unsupported(&self, attr: &mut Attr) {
        if self.lost_is_unsupported {
            attr.read_format = attr.read_format.with(ReadFormat::LOST, false);
        }
        attr.flags = attr.flags.with(self.unsupported_flags, false);
    }

    /// Opens one event. If the kernel refuses it, lowers its precision or clears what an older kernel does not support.
    fn open_everywhere(
        &mut self,
        mut event: RecordEvent,
        context: OpenContext<'_>,
        observer: &mut dyn SessionObserver,
    ) -> Result<OpenEvent, Box<RefusedEvent>> {
        let requested_precision = event.attr.precise_ip();
        loop {
            observer.on_event(SessionNotice::Opening { attr: &event.attr });
            let cause = match self.open_counters(&event.attr, context, observer) {
                Ok(counters) => return Ok(OpenEvent { event, counters }),
                Err(cause) => cause,
            };
            let level = event.attr.precise_ip();
            if event.spec.precise_max && level > 0 && !is_denied(&cause) {
                event.attr.set_precise_ip(level - 1);
                observer.on_event(SessionNotice::LessPrecise { level: level - 1 });
            } else if cause.raw_os_error() == Some(EINVAL)
                && self.give_up_newest(&event.attr, observer)
            {
                // A lower precision, if tried, did not help.
                event.attr.set_precise_ip(requested_precision);
                self.clear_unsupported(&mut event.attr);
            } else {
                return Err(Box::new(RefusedEvent { event, cause }));
            }
        }
    }

    /// Opens a counter for each CPU and task. If one of several tasks has exited, it is removed from the observed tasks.
    fn open_counters(
        &mut self,
        attr: &Attr,
        context: OpenContext<'_>,
        observer: &mut dyn SessionObserver,
    ) -> io::Result<Vec<OpenCounter>> {
        let OpenContext { leader, cgroup, .. } = context;
        let (mut counters, mut exited) = (Vec::new(), Vec::new());
        let other_cpus = match context.is_side_band {
            true => &self.cpu_tasks.side_band_cpus[..], // CPUs that are not sampled.
            false => &[],
        };
        for (cpu_index, cpu) in self.cpu_tasks.cpus.iter().chain(other_cpus).enumerate() {
            for tid in tasks_of(self.cpu_tasks, context) {
                let observed = ObservedTask {
                    pid: *tid,
                    cpu: *cpu,
                };
                let group = leader.and_then(|leader| leader.at(observed, counters.len()));
                let opened = match cgroup {
                    Some(cgroup) => Counter::open_in_cgroup(attr, cgroup.as_fd(), *cpu, group),
                    None => Counter::open(attr, observed, group),
                };
                let flags = cgroup.map_or(0, |_| PERF_FLAG_PID_CGROUP) | PERF_FLAG_FD_CLOEXEC;
                observer.on_event(SessionNotice::Opened {
                    observed: ObservedTask {
                        pid: cgroup.map_or(*tid, |cgroup| cgroup.as_fd().as_raw_fd()),
                        cpu: *cpu,
                    },
                    flags,
                    group: group.map(|leader| leader.as_fd().as_raw_fd()),
                    outcome: opened.as_ref().map(|counter| counter.as_fd().as_raw_fd()),
                });
                match opened {
                    Ok(counter) => {
                        let ring = match *cpu {
                            -1 => ring_of_task(&mut self.ring_tasks, *tid),
                            _ => cpu_index,
                        };
                        counters.push(OpenCounter::new(counter, ring, observed)?);
                    }
                    // One of several threads exited since it was listed.
                    Err(error)
                        if error.raw_os_error() == Some(ESRCH)
                            && self.cpu_tasks.tasks.len() > 1 =>
                    {
                        exited.push(*tid);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        counters.retain(|open_counter| !exited.contains(&open_counter.tid));
        self.cpu_tasks.tasks.retain(|tid| !exited.contains(tid));
        if counters.is_empty() {
            return Err(io::Error::from_raw_os_error(ESRCH));
        }
        Ok(counters)
    }

    /// Marks the newest feature that the attr uses as unsupported: deferred callchains, then the `read_format` LOST, then one of
    /// [`NEWER_FLAGS`]. Returns false if it uses none.
    fn give_up_newest(&mut self, attr: &Attr, observer: &mut dyn SessionObserver) -> bool {
        if attr.flags.with(DEFERRED, false) != attr.flags {
            self.unsupported_flags |= DEFERRED;
            observer.on_event(SessionNotice::NotDeferred);
            return true;
        }
        if attr.read_format.contains(ReadFormat::LOST) {
            self.lost_is_unsupported = true;
            observer.on_event(SessionNotice::LeftOut {
                field: "read_format LOST",
            });
            return true;
        }
        let newest = NEWER_FLAGS
            .iter()
            .find(|(flag, _)| attr.flags.contains(*flag));
        let Some((flag, field)) = newest else {
            return false;
        };
        self.unsupported_flags |= *flag;
        observer.on_event(SessionNotice::LeftOut { field });
        true
    }

    /// Returns the event to try instead of a refused one, and reports it; `None` if there is none.
    fn other_event(
        &self,
        refused: &RefusedEvent,
        is_side_band: bool,
        observer: &mut dyn SessionObserver,
    ) -> Option<EventSpec> {
        let spec = &refused.event.spec;
        if matches!(refused.cause.raw_os_error(), Some(ENOENT | ENXIO | ENODEV)) {
            let instead = fallback_to_cpu_clock(spec)?;
            observer.on_event(SessionNotice::ClockInstead {
                event: &spec.name,
                instead: &instead.name,
            });
            return Some(instead);
        }
        let paranoid = self.sysctl.perf_event_paranoid();
        if is_denied(&refused.cause) && paranoid.is_none_or(|level| level > 1) {
            let on_cpus = self.options.target == rperf_events::SamplingTarget::Cpus;
            // Above 1, unprivileged users may not profile the kernel; already above 0, they may not observe whole CPUs, even
            // in user space only. So excluding the kernel does not help if CPUs are observed.
            let instead = user_only(spec).filter(|_| !on_cpus)?;
            // The restriction of the side-band event to user space does not change its records.
            if !is_side_band {
                observer.on_event(SessionNotice::UserOnly {
                    event: &instead.name,
                    paranoid,
                    // Restricted to user space, such an event has no samples.
                    is_silent: fires_only_in_kernel(&instead.attr),
                });
            }
            return Some(instead);
        }
        None
    }

    fn error(&self, refused: RefusedEvent) -> Error {
        let flags = refused.event.attr.flags;
        let on_cpus = self.options.target == rperf_events::SamplingTarget::Cpus;
        let leader = None;
        // `refused_part` calls this to find the part of the attr without which the kernel accepts the event.
        let opens = |attr: &Attr| Counter::open(attr, trial_task(on_cpus), leader).is_ok();
        Error::from(Box::new(NotOpened {
            refused: refused_part(&refused.event.attr, &refused.cause, &opens),
            user_only: flags.contains(AttrFlags::EXCLUDE_KERNEL),
            tracepoint: refused.event.spec.tracepoint.is_some(),
            branches: !refused.event.attr.branch_sample_type.is_empty(),
            event: refused.event.spec.name,
            cause: refused.cause,
            on_cpus,
            paranoid: self.sysctl.perf_event_paranoid(),
        }))
    }
}

impl OpenEvent {
    /// Whether it only writes side-band records, which all other events need.
    pub(crate) fn is_side_band(&self) -> bool {
        self.event.tracking && self.event.spec.is_dummy()
    }

    /// Whether its samples are in an overwrite ring.
    pub(crate) fn is_in_overwrite_ring(&self) -> bool {
        self.event.attr.flags.contains(AttrFlags::WRITE_BACKWARD)
    }

    /// Returns the counter of a task on a CPU; `guess` is its index if no task has exited.
    fn at(&self, observed: ObservedTask, guess: usize) -> Option<&Counter> {
        let same = |open: &&OpenCounter| open.tid == observed.pid && open.cpu == observed.cpu;
        let guessed = self.counters.get(guess).filter(same);
        let open_counter = guessed.or_else(|| self.counters.iter().find(same));
        open_counter.map(|open_counter| &open_counter.counter)
    }
}

/// Returns the watermark of rings in bytes with which a recording ends close to its maximum size; `None` if the kernel's
/// default of half the ring is small enough, or without a maximum size.
fn watermark(request: &RecordRequest, cpu_tasks: &CpuTasks, sysctl: &Sysctl) -> Option<u32> {
    let part = request.output.max_size? / PARTS / (cpu_tasks.ring_count() as u64).max(1);
    let pages = request.rings.pages.unwrap_or_else(|| default_pages(sysctl));
    let half = (pages * page_size() / 2) as u64;
    if part >= half {
        return None;
    }
    u32::try_from(part.max(1)).ok()
}

/// Returns the tasks for which an event is opened; -1 for all.
fn tasks_of<'t>(cpu_tasks: &'t CpuTasks, context: OpenContext<'_>) -> &'t [i32] {
    match context.all_tasks {
        true => &[-1],
        false => &cpu_tasks.tasks,
    }
}

/// Returns the index of the ring of a task, which is added to `tasks` if it is new.
fn ring_of_task(tasks: &mut Vec<i32>, tid: i32) -> usize {
    let known = tasks.iter().position(|task| *task == tid);
    known.unwrap_or_else(|| {
        tasks.push(tid);
        tasks.len() - 1
    })
}

/// Splits the group at the start of the list into single events, and reports it.
pub(crate) fn break_group(specs: &mut [EventSpec], observer: &mut dyn SessionObserver) {
    if let Some(leader) = specs.first() {
        observer.on_event(SessionNotice::GroupBroken {
            leader: &leader.name,
        });
    }
    for (index, spec) in specs.iter_mut().enumerate() {
        if index > 0 && spec.group != GroupPosition::Member {
            break;
        }
        spec.group = GroupPosition::None;
    }
}

/// An event refused by the kernel.
struct RefusedEvent {
    event: RecordEvent,
    cause: io::Error,
}

impl RefusedEvent {
    /// Whether the event is in a weak group, and the error may mean that the group does not fit on the hardware counters.
    fn breaks_group(&self) -> bool {
        let spec = &self.event.spec;
        let does_not_fit = matches!(self.cause.raw_os_error(), Some(EINVAL | libc::EBADF));
        does_not_fit && spec.weak && spec.group != GroupPosition::None
    }
}

const ENOENT: i32 = libc::ENOENT;
const ENXIO: i32 = libc::ENXIO;
const ENODEV: i32 = libc::ENODEV;
const EINVAL: i32 = libc::EINVAL;
const ESRCH: i32 = libc::ESRCH;

pub(crate) fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// Calls `act`, an ioctl, for every counter of `events`. `what` names it in errors.
pub(crate) fn for_each_counter<'e>(
    events: impl IntoIterator<Item = &'e OpenEvent>,
    what: &'static str,
    act: fn(&Counter) -> io::Result<()>,
) -> Result<(), Error> {
    for event in events {
        for open_counter in &event.counters {
            act(&open_counter.counter).map_err(|cause| Error::Control {
                what,
                event: event.event.spec.name.clone(),
                cause,
            })?;
        }
    }
    Ok(())
}

/// Whether this user may profile the kernel, determined by opening an event for the calling thread.
#[must_use]
pub fn may_profile_kernel() -> bool {
    let attr = Attr {
        kind: EventType::SOFTWARE,
        flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_USER | AttrFlags::EXCLUDE_HV,
        ..Attr::default()
    };
    let (this_thread, leader) = (ObservedTask { pid: 0, cpu: -1 }, None);
    Counter::open(&attr, this_thread, leader).is_ok()
}
