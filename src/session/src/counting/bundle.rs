//! Bundles: groups of tracepoints opened per CPU (not per task) that are enabled, disabled and read together for efficiency.
//!
//! For each ioctl the kernel iterates over all events of the CPU, so hundreds of ioctls take longer than the counting
//! itself. A group needs only one. Tracepoints can always be scheduled, so they are never multiplexed: their counts
//! and times are the same as if opened separately.

use rperf_events::GroupPosition;
use rperf_wire::EventType;

use super::CountEvent;

/// Bundles are used if at least this many of the requested events are tracepoints that fit into one. With fewer, the ioctls
/// are few anyway.
const MIN_TRACEPOINTS: usize = 16;
/// Maximum number of events of a bundle. The kernel would accept more (as long as read(2) returns at most 16 KiB), but opening
/// a member takes time proportional to the group size.
const MAX_EVENTS: usize = 256;

/// The current bundle while events are opened.
#[derive(Debug)]
pub(super) struct TracepointBundle {
    /// Whether events are bundled.
    is_enabled: bool,
    /// Index of the leader among all events; `None` before the first bundle.
    leader: Option<usize>,
    /// Number of events, including the leader.
    members: usize,
}

impl TracepointBundle {
    /// Starts without a bundle. Bundling is disabled unless `is_allowed` and at least [`MIN_TRACEPOINTS`] events fit.
    pub(super) fn new(events: &[CountEvent], is_allowed: bool) -> Self {
        Self {
            is_enabled: is_allowed
                && events.iter().filter(|event| is_fit(event)).count() >= MIN_TRACEPOINTS,
            leader: None,
            members: 0,
        }
    }

    /// The index of the leader of the bundle that the event belongs to; `Some(None)` if the event begins a bundle as
    /// its leader, `None` if it is opened separately.
    pub(super) fn leader_for(&self, event: &CountEvent) -> Option<Option<usize>> {
        let has_room = self.members < MAX_EVENTS;
        (self.is_enabled && is_fit(event)).then(|| self.leader.filter(|_| has_room))
    }

    /// Records that an event was opened in the bundle of `leader`, which is the event itself if it begins a bundle;
    /// `None` if the event was opened separately.
    pub(super) fn note_opened(&mut self, leader: Option<usize>) {
        match leader {
            None => {}
            same if same == self.leader => self.members += 1,
            new => (self.leader, self.members) = (new, 1),
        }
    }

    /// Disables bundling after an event could not be opened in a bundle.
    pub(super) fn give_up(&mut self) {
        self.is_enabled = false;
    }
}

/// Whether an event behaves the same in a bundle as alone.
fn is_fit(event: &CountEvent) -> bool {
    let spec = &event.spec;
    spec.attr.kind == EventType::TRACEPOINT
        && spec.group == GroupPosition::None
        && event.cgroup.is_none()
        && event.cpus.is_none()
}
