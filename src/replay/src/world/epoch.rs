//! Epochs: periods without changes to mappings.

use rperf_wire::CpuMode;

use super::thread_cache::OrderRange;
use super::{SpaceId, World};
use crate::{Machine, Order};

/// Determines all results of [`World::lookup`] for one process at one moment. Samples of equal
/// epochs see the same mappings, so equal stacks have equal frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// The process's address space and number of mappings; `u64::MAX` if unknown.
    pub user: u64,
    /// The same for the kernel.
    pub kernel: u64,
}

impl Epoch {
    /// The part that applies to addresses in `mode`.
    #[inline]
    #[must_use]
    pub fn of_mode(&self, mode: CpuMode) -> u64 {
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

    /// Like [`World::epoch`], with the range of the order in which it is the same.
    pub(super) fn epoch_span(
        &self,
        machine: Machine,
        pid: u32,
        order: Order,
    ) -> (Epoch, OrderRange) {
        let lives = self.processes.get(&(machine, pid));
        let lives = lives.map_or(&[][..], |lives| lives);
        let begun = lives.partition_point(|life| life.since < order);
        let alive = begun.checked_sub(1).and_then(|alive| lives.get(alive));
        let (user, user_span) = self.own_state(alive.map(|life| life.space), order);
        let (kernel, kernel_span) = self.own_state(self.kernels.get(&machine).copied(), order);
        let span = OrderRange::at(lives, begun, |life| life.since);
        let epoch = Epoch { user, kernel };
        (epoch, span.and(user_span).and(kernel_span))
    }

    /// Inherited mappings are fixed at the start of a space, so its own mappings determine its
    /// state.
    fn own_state(&self, space: Option<SpaceId>, order: Order) -> (u64, OrderRange) {
        let found = space.and_then(|id| Some((id, self.spaces.get(id.0 as usize)?)));
        found.map_or((u64::MAX, OrderRange::ALL), |(id, space)| {
            let (mut counted, mut span) = space.counted_span(order);
            if let Some(functions) = self.code.get(&id) {
                let (more, within) = functions.counted_span(order);
                (counted, span) = (counted + more, span.and(within));
            }
            (u64::from(id.0) << 32 | counted as u64, span)
        })
    }
}
