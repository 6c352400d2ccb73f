//! Tracepoints of whole CPUs that are started, stopped and read together though nobody asked for it.
//!
//! For each request to start or stop an event the kernel looks at all events of the CPU, so that hundreds of requests cost
//! more than all counting. A group takes one. Tracepoints always find their place on a CPU, and so they never wait for one
//! another: their counts and times are those that each would have alone.

use rperf_events::Group;
use rperf_wire::EventType;

use super::CountEvent;

/// How many tracepoints make it worth.
const WORTH: usize = 16;
/// Events of one bundle. The kernel refuses a group of which read(2) would return more than 16 KiB, which are 1022 events;
/// and each that is opened costs a look at those before it.
const MOST: usize = 256;

/// The bundle that grows while events are opened one after the other.
#[derive(Debug)]
pub(super) struct Bundle {
    is_wanted: bool,
    leader: Option<usize>,
    members: usize,
}

impl Bundle {
    /// For so many events as there are; nothing is bundled unless `may`.
    pub(super) fn new(events: &[CountEvent], may: bool) -> Self {
        Self {
            is_wanted: may && events.iter().filter(|event| is_fit(event)).count() >= WORTH,
            leader: None,
            members: 0,
        }
    }

    /// Whether the event belongs to a bundle, and behind which one it then is, by index: none behind itself.
    pub(super) fn place(&self, event: &CountEvent) -> Option<Option<usize>> {
        let is_room = self.members < MOST;
        (self.is_wanted && is_fit(event)).then(|| self.leader.filter(|_| is_room))
    }

    /// An event was opened behind `leader`, or is it; `None` for one outside.
    pub(super) fn grow(&mut self, leader: Option<usize>) {
        match leader {
            None => {}
            same if same == self.leader => self.members += 1,
            new => (self.leader, self.members) = (new, 1),
        }
    }

    /// The rest is opened one by one: the kernel has something against it.
    pub(super) fn give_up(&mut self) {
        self.is_wanted = false;
    }
}

/// Whether an event behaves in a bundle as it does alone.
fn is_fit(event: &CountEvent) -> bool {
    let spec = &event.spec;
    spec.attr.kind == EventType::TRACEPOINT
        && spec.group == Group::None
        && event.cgroup.is_none()
        && event.cpus.is_none()
}
