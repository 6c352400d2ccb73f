//! When two moments look the same: stretches of time in which nothing was mapped.

use rperf_wire::CpuMode;

use super::recent::Span;
use super::{SpaceId, World};
use crate::{Machine, Order};

/// What decides all answers of [`World::lookup`] for one process at one moment. Samples of equal epochs see the same
/// mappings, so equal stacks of theirs are the same stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// The process's address space and how much of it was there; `u64::MAX` where none is known.
    pub user: u64,
    /// The same of the kernel.
    pub kernel: u64,
}

impl Epoch {
    /// The part that decides what addresses are in `mode`: that of one side of the border.
    #[inline]
    #[must_use]
    pub fn side(&self, mode: CpuMode) -> u64 {
        match mode {
            CpuMode::Kernel | CpuMode::GuestKernel => self.kernel,
            _ => self.user,
        }
    }
}

impl World {
    /// The epoch of a process just before `order`.
    #[must_use]
    pub fn epoch(&self, machine: Machine, pid: u32, order: Order) -> Epoch {
        self.epoch_span(machine, pid, order).0
    }

    /// [`World::epoch`], and where in the order it is the same.
    pub(super) fn epoch_span(&self, machine: Machine, pid: u32, order: Order) -> (Epoch, Span) {
        let lives = self.processes.get(&(machine, pid));
        let lives = lives.map_or(&[][..], |lives| lives);
        let begun = lives.partition_point(|life| life.since < order);
        let alive = begun.checked_sub(1).and_then(|alive| lives.get(alive));
        let (user, user_span) = self.stage(alive.map(|life| life.space), order);
        let (kernel, kernel_span) = self.stage(self.kernels.get(&machine).copied(), order);
        let span = Span::at(lives, begun, |life| life.since);
        let epoch = Epoch { user, kernel };
        (epoch, span.and(user_span).and(kernel_span))
    }

    /// What a space inherits was fixed when it began, so its own mappings tell its stages apart.
    fn stage(&self, space: Option<SpaceId>, order: Order) -> (u64, Span) {
        let found = space.and_then(|id| Some((id, self.spaces.get(id.0 as usize)?)));
        found.map_or((u64::MAX, Span::ALL), |(id, space)| {
            let (mut counted, mut span) = space.counted_span(order);
            if let Some(functions) = self.code.get(&id) {
                let (more, within) = functions.counted_span(order);
                (counted, span) = (counted + more, span.and(within));
            }
            (u64::from(id.0) << 32 | counted as u64, span)
        })
    }
}
