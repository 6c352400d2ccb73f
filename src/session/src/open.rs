//! Opening the events everywhere they are wanted, and giving way where the kernel says no.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rperf_events::{
    EventSpec, Group, RecordEvent, RecordOptions, fallback_to_cpu_clock, record_events, user_only,
};
use rperf_sys::{
    Cgroup, Counter, Observed, PERF_FLAG_FD_CLOEXEC, PERF_FLAG_PID_CGROUP, Sysctl, page_size,
};
use rperf_wire::{Attr, AttrFlags, EventType, ReadFormat};

use crate::blame::{a_place, refused_part};
use crate::rings::default_pages;
use crate::tasks::Places;
use crate::{Error, Happened, NotOpened, Request, Watch};

/// An event that is open at all its places.
#[derive(Debug)]
pub(crate) struct OpenEvent {
    /// The event with the attr that the kernel took.
    pub(crate) event: RecordEvent,
    /// Its counters, CPU by CPU and on each task by task.
    pub(crate) counters: Vec<Placed>,
}

/// A counter and where it counts.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) counter: Counter,
    /// Index of its ring, which is that of its CPU or, without one, of its task.
    pub(crate) ring: usize,
    /// The CPU, -1 for all.
    pub(crate) cpu: i32,
    pub(crate) tid: i32,
    pub(crate) id: u64,
}

impl Placed {
    fn new(counter: Counter, ring: usize, observed: Observed) -> io::Result<Self> {
        Ok(Self {
            id: counter.id()?,
            counter,
            ring,
            cpu: observed.cpu,
            tid: observed.pid,
        })
    }
}

/// Parts of an attr that older kernels refuse, newest first, in the order in which they are given up.
const NEWER_FLAGS: [(AttrFlags, &str); 6] = [
    (AttrFlags::BUILD_ID, "build_id"),
    (AttrFlags::BPF_EVENT, "bpf_event"),
    (AttrFlags::KSYMBOL, "ksymbol"),
    (AttrFlags::MMAP2, "mmap2"),
    (AttrFlags::COMM_EXEC, "comm_exec"),
    (AttrFlags::EXCLUDE_GUEST, "exclude_guest"),
];

/// What puts off the user's part of callchains, which Linux 6.19 can.
const DEFERRED: AttrFlags = AttrFlags::DEFER_CALLCHAIN.with(AttrFlags::DEFER_OUTPUT, true);

/// The group that an event is in, and the cgroup whose tasks alone it sees.
type Within<'a> = (Option<&'a OpenEvent>, Option<&'a Cgroup>);

/// Opens all events.
pub(crate) struct Opener<'a> {
    pub(crate) places: &'a mut Places,
    pub(crate) options: RecordOptions,
    pub(crate) max_stack: u16,
    pub(crate) sysctl: &'a Sysctl,
    /// The tasks that have a ring each, where CPUs have none.
    pub(crate) ring_tasks: Vec<i32>,
    /// The cgroups that events are restricted to, in the order of the events.
    pub(crate) cgroups: &'a [Option<Cgroup>],
    /// What older kernels lack, found out with the first event and kept for the others.
    pub(crate) left_out: (bool, AttrFlags),
    /// Bytes in a ring at which its reader is woken, where the half that the kernel waits for would be too much.
    wakes_at: Option<u32>,
}

/// Parts of the bytes that are enough (`--max-size`), as which all rings together come in.
const PARTS: u64 = 8;

impl<'a> Opener<'a> {
    /// One for a recording.
    pub(crate) fn new(
        request: &Request,
        places: &'a mut Places,
        (sysctl, cgroups): (&'a Sysctl, &'a [Option<Cgroup>]),
    ) -> Self {
        Self {
            wakes_at: wakes_at(request, places, sysctl),
            places,
            options: RecordOptions {
                target: request.target.kind(),
                sampling: request.sampling,
                call_graph: request.call_graph,
                raw_samples: request.raw_samples,
                details: request.details,
            },
            max_stack: request.max_stack,
            sysctl,
            ring_tasks: Vec::new(),
            cgroups,
            left_out: (false, AttrFlags::default()),
        }
    }
}

impl Opener<'_> {
    /// Opens events none of which is tried in another form.
    pub(crate) fn open_as_they_are(
        &mut self,
        events: Vec<RecordEvent>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<OpenEvent>, Error> {
        let mut open = Vec::new();
        for event in events {
            let opened = self.open_everywhere(event, (None, None), watch);
            open.push(opened.map_err(|refused| self.error(*refused))?);
        }
        Ok(open)
    }

    /// Opens every event of `specs` (and the side-band event that the target needs) at every place.
    pub(crate) fn open(
        &mut self,
        mut specs: Vec<EventSpec>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<OpenEvent>, Error> {
        let mut open: Vec<OpenEvent> = Vec::new();
        let mut events = record_events(&specs, &self.options);
        while let Some(event) = events.get(open.len()) {
            let index = open.len();
            if index == 0 {
                self.ring_tasks.clear();
            }
            let leader = event.leader.and_then(|leader| open.get(leader));
            let event = self.adapted(event.clone());
            let cgroup = self.cgroups.get(index).and_then(Option::as_ref);
            match self.open_everywhere(event, (leader, cgroup), watch) {
                Ok(opened) => open.push(opened),
                Err(refused) if refused.breaks_group() => {
                    let first = refused.event.leader.unwrap_or(index);
                    open.truncate(first);
                    break_group(specs.get_mut(first..).unwrap_or_default(), watch);
                    events = record_events(&specs, &self.options);
                }
                Err(refused) => {
                    let spec = self
                        .other_event(&refused, watch)
                        .ok_or_else(|| self.error(*refused))?;
                    // The side-band event is not in the list and has no other form.
                    if let Some(place) = specs.get_mut(index) {
                        *place = spec;
                        events = record_events(&specs, &self.options);
                    }
                }
            }
        }
        // Giving way may have changed the names or layouts of events that were open by then.
        Ok(open)
    }

    fn adapted(&self, mut event: RecordEvent) -> RecordEvent {
        if event.spec.own.max_stack.is_none() {
            event.attr.sample_max_stack = self.max_stack;
        }
        let in_flight = event.attr.flags.contains(AttrFlags::WRITE_BACKWARD);
        if let Some(bytes) = self
            .wakes_at
            .filter(|_| event.attr.wakeup == 0 && !in_flight)
        {
            event.attr.flags |= AttrFlags::WATERMARK;
            event.attr.wakeup = bytes;
        }
        self.leave_out(&mut event.attr);
        event
    }

    fn leave_out(&self, attr: &mut Attr) {
        if self.left_out.0 {
            attr.read_format = attr.read_format.with(ReadFormat::LOST, false);
        }
        attr.flags = attr.flags.with(self.left_out.1, false);
    }

    /// Opens one event, lowering its precision and leaving out what the kernel does not know.
    fn open_everywhere(
        &mut self,
        mut event: RecordEvent,
        within: Within<'_>,
        watch: &mut dyn Watch,
    ) -> Result<OpenEvent, Box<Refused>> {
        let precision = event.attr.precise_ip();
        loop {
            watch.tell(Happened::Opening { attr: &event.attr });
            let cause = match self.open_at_all_places(&event.attr, within, watch) {
                Ok(counters) => return Ok(OpenEvent { event, counters }),
                Err(cause) => cause,
            };
            let level = event.attr.precise_ip();
            if event.spec.precise_max && level > 0 && !is_denied(&cause) {
                event.attr.set_precise_ip(level - 1);
                watch.tell(Happened::LessPrecise { level: level - 1 });
            } else if cause.raw_os_error() == Some(EINVAL)
                && self.give_up_newest(&event.attr, watch)
            {
                event.attr.set_precise_ip(precision);
                self.leave_out(&mut event.attr);
            } else {
                return Err(Box::new(Refused { event, cause }));
            }
        }
    }

    fn open_at_all_places(
        &mut self,
        attr: &Attr,
        (leader, cgroup): Within<'_>,
        watch: &mut dyn Watch,
    ) -> io::Result<Vec<Placed>> {
        let mut counters = Vec::new();
        let mut gone = Vec::new();
        for (cpu_index, cpu) in self.places.cpus.iter().enumerate() {
            for tid in &self.places.tasks {
                let observed = Observed {
                    pid: *tid,
                    cpu: *cpu,
                };
                let group = leader.and_then(|leader| leader.at(observed, counters.len()));
                let opened = match cgroup {
                    Some(cgroup) => Counter::open_in_cgroup(attr, (cgroup.as_fd(), *cpu), group),
                    None => Counter::open(attr, observed, group),
                };
                let flags = cgroup.map_or(0, |_| PERF_FLAG_PID_CGROUP) | PERF_FLAG_FD_CLOEXEC;
                watch.tell(Happened::Opened {
                    observed: Observed {
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
                        counters.push(Placed::new(counter, ring, observed)?);
                    }
                    // One of several threads ended since it was listed.
                    Err(error)
                        if error.raw_os_error() == Some(ESRCH) && self.places.tasks.len() > 1 =>
                    {
                        gone.push(*tid);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        counters.retain(|placed| !gone.contains(&placed.tid));
        self.places.tasks.retain(|tid| !gone.contains(tid));
        if counters.is_empty() {
            return Err(io::Error::from_raw_os_error(ESRCH));
        }
        Ok(counters)
    }

    /// Leaves out the newest part of the attr that is still in; false when nothing is left to give up.
    fn give_up_newest(&mut self, attr: &Attr, watch: &mut dyn Watch) -> bool {
        if attr.flags.with(DEFERRED, false) != attr.flags {
            self.left_out.1 |= DEFERRED;
            watch.tell(Happened::NotDeferred);
            return true;
        }
        if attr.read_format.contains(ReadFormat::LOST) {
            self.left_out.0 = true;
            watch.tell(Happened::LeftOut {
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
        self.left_out.1 |= *flag;
        watch.tell(Happened::LeftOut { field });
        true
    }

    /// The event to try instead of a refused one.
    fn other_event(&self, refused: &Refused, watch: &mut dyn Watch) -> Option<EventSpec> {
        let spec = &refused.event.spec;
        if matches!(refused.cause.raw_os_error(), Some(ENOENT | ENXIO | ENODEV)) {
            let instead = fallback_to_cpu_clock(spec)?;
            watch.tell(Happened::ClockInstead {
                event: &spec.name,
                instead: &instead.name,
            });
            return Some(instead);
        }
        let paranoid = self.sysctl.perf_event_paranoid();
        if is_denied(&refused.cause) && paranoid.is_none_or(|level| level > 1) {
            let on_cpus = self.options.target == rperf_events::Target::Cpus;
            let instead = user_only(spec).filter(|_| !on_cpus)?;
            watch.tell(Happened::UserOnly {
                event: &instead.name,
                paranoid,
            });
            return Some(instead);
        }
        None
    }

    fn error(&self, refused: Refused) -> Error {
        let flags = refused.event.attr.flags;
        let on_cpus = self.options.target == rperf_events::Target::Cpus;
        Error::from(Box::new(NotOpened {
            refused: refused_part(&refused.event.attr, &refused.cause, &|attr| {
                Counter::open(attr, a_place(on_cpus), None).is_ok()
            }),
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
    /// Whether its samples are in a ring that keeps the last ones.
    pub(crate) fn is_in_flight_ring(&self) -> bool {
        self.event.attr.flags.contains(AttrFlags::WRITE_BACKWARD)
    }

    /// The counter at a place; `guess` is where it stands if no task has ended meanwhile.
    fn at(&self, place: Observed, guess: usize) -> Option<&Counter> {
        let same = |placed: &&Placed| placed.tid == place.pid && placed.cpu == place.cpu;
        let guessed = self.counters.get(guess).filter(same);
        let found = guessed.or_else(|| self.counters.iter().find(same));
        found.map(|placed| &placed.counter)
    }
}

/// Bytes at which rings wake their reader so that a recording ends near the size at which it is to end.
fn wakes_at(request: &Request, places: &Places, sysctl: &Sysctl) -> Option<u32> {
    let rings = match places.cpus[..] {
        [-1] => places.tasks.len(),
        _ => places.cpus.len(),
    };
    let part = request.max_size? / PARTS / (rings as u64).max(1);
    let pages = request.ring_pages.unwrap_or_else(|| default_pages(sysctl));
    let half = (pages * page_size() / 2) as u64;
    (part < half).then(|| u32::try_from(part.max(1)).ok())?
}

fn ring_of_task(tasks: &mut Vec<i32>, tid: i32) -> usize {
    let known = tasks.iter().position(|task| *task == tid);
    known.unwrap_or_else(|| {
        tasks.push(tid);
        tasks.len() - 1
    })
}

/// Makes single events of the group that begins the list.
pub(crate) fn break_group(specs: &mut [EventSpec], watch: &mut dyn Watch) {
    if let Some(leader) = specs.first() {
        watch.tell(Happened::GroupBroken {
            leader: &leader.name,
        });
    }
    for (index, spec) in specs.iter_mut().enumerate() {
        if index > 0 && spec.group != Group::Member {
            break;
        }
        spec.group = Group::None;
    }
}

/// An event that the kernel did not take.
struct Refused {
    event: RecordEvent,
    cause: io::Error,
}

impl Refused {
    /// Whether it is of a group that may be broken up.
    fn breaks_group(&self) -> bool {
        let spec = &self.event.spec;
        let fits_not = matches!(self.cause.raw_os_error(), Some(EINVAL | libc::EBADF));
        fits_not && spec.weak && spec.group != Group::None
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

/// One request to every counter.
pub(crate) fn for_each_counter(
    events: &[OpenEvent],
    what: &'static str,
    act: fn(&Counter) -> io::Result<()>,
) -> Result<(), Error> {
    for event in events {
        for placed in &event.counters {
            act(&placed.counter).map_err(|cause| Error::Control {
                what,
                event: event.event.spec.name.clone(),
                cause,
            })?;
        }
    }
    Ok(())
}

/// Whether this user may sample the kernel, found out by trying on this process.
#[must_use]
pub fn may_profile_kernel() -> bool {
    let attr = Attr {
        kind: EventType::SOFTWARE,
        flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_USER | AttrFlags::EXCLUDE_HV,
        ..Attr::default()
    };
    Counter::open(&attr, Observed { pid: 0, cpu: -1 }, None).is_ok()
}
