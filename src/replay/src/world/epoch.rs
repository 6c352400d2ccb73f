//! Epochs: periods without changes to mappings.

use rperf_wire::CpuMode;

use super::thread_cache::OrderRange;
use super::{SpaceId, World};
use crate::{Machine, Order};

/// The state of the mappings of one process and of its kernel at one moment, as two numbers. Samples with equal
/// epochs see the same mappings: [`World::lookup`] returns the same for them, and equal stacks have equal frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// Id of the process's address space (upper half) and number of the space's changes so far (lower half);
    /// [`Epoch::UNKNOWN`] if the process is unknown.
    pub user: u64,
    /// The same for the kernel of the machine.
    pub kernel: u64,
}

impl Epoch {
    /// The number for all unknown processes and kernels. They have no mappings.
    pub const UNKNOWN: u64 = u64::MAX;

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

    /// Like [`World::epoch`], with the range of orders in which the result is the same.
    pub(super) fn epoch_span(
        &self,
        machine: Machine,
        pid: u32,
        order: Order,
    ) -> (Epoch, OrderRange) {
        let lifetimes = self.processes.get(&(machine, pid));
        let lifetimes = lifetimes.map_or(&[][..], |lifetimes| lifetimes);
        let begun = lifetimes.partition_point(|life| life.since < order);
        let current = begun.checked_sub(1).and_then(|last| lifetimes.get(last));
        let (user, user_span) = self.own_state(current.map(|life| life.space), order);
        let (kernel, kernel_span) = self.own_state(self.kernels.get(&machine).copied(), order);
        let span = OrderRange::at(lifetimes, begun, |life| life.since);
        let epoch = Epoch { user, kernel };
        (epoch, span.and(user_span).and(kernel_span))
    }

    /// Returns the state of an address space as a number, and the range of orders in which it is the same;
    /// [`Epoch::UNKNOWN`] without a space. Inherited mappings are fixed at the start of a space, so the number of its own
    /// changes, JIT-compiled functions included, determines the state.
    fn own_state(&self, space: Option<SpaceId>, order: Order) -> (u64, OrderRange) {
        let known = space.and_then(|id| Some((id, self.spaces.get(id.0 as usize)?)));
        known.map_or((Epoch::UNKNOWN, OrderRange::ALL), |(id, space)| {
            let (mut changes, mut span) = space.count_span(order);
            if let Some(functions) = self.code.get(&id) {
                let (function_count, function_span) = functions.count_span(order);
                (changes, span) = (changes + function_count, span.and(function_span));
            }
            (u64::from(id.0) << 32 | changes as u64, span)
        })
    }
}
