//! When two moments look the same: stretches of time in which nothing was mapped.

use super::{Lifetime, SpaceId, World};
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

impl World {
    /// The epoch of a process just before `order`.
    #[must_use]
    pub fn epoch(&self, machine: Machine, pid: u32, order: Order) -> Epoch {
        let lives = self.processes.get(&(machine, pid));
        let user = lives.and_then(|lives| lives.get(alive(lives, order)?));
        let kernel = self.kernels.get(&machine);
        let of = |space: Option<SpaceId>| space.and_then(|space| self.stage(space, order));
        Epoch {
            user: of(user.map(|life| life.space)).unwrap_or(u64::MAX),
            kernel: of(kernel.copied()).unwrap_or(u64::MAX),
        }
    }

    /// What a space inherits was fixed when it began, so its own mappings tell its stages apart.
    fn stage(&self, space: SpaceId, order: Order) -> Option<u64> {
        let counted = self.spaces.get(space.0 as usize)?.counted(order);
        Some(u64::from(space.0) << 32 | counted as u64)
    }
}

fn alive(lives: &[Lifetime], order: Order) -> Option<usize> {
    lives
        .partition_point(|life| life.since < order)
        .checked_sub(1)
}
