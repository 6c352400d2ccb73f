//! Cache of the state of each thread in the World, which has the processes, mappings and names of a recording at each time.
//!
//! Consecutive samples often belong to the same thread, and its name and mappings change much less
//! often than it is sampled.

use super::{Epoch, World};
use crate::{CommId, Machine, Order};

/// A range of orders (positions of records by time) in which a result is the same: after `after`, up to and including `until`.
/// Called `span` in the names of functions and fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderRange {
    pub(crate) after: Order,
    pub(crate) until: Order,
}

impl OrderRange {
    /// All orders, except that of time 0 and position 0, which no record of a file has.
    pub(crate) const ALL: Self = Self {
        after: Order {
            time: 0,
            position: 0,
        },
        until: Order::MAX,
    };

    /// The range between two neighbours of an ascending list: the elements before and at `index`.
    pub(crate) fn at<T>(list: &[T], index: usize, order: impl Fn(&T) -> Order) -> Self {
        let before = index.checked_sub(1).and_then(|before| list.get(before));
        Self {
            after: before.map_or(Self::ALL.after, &order),
            until: list.get(index).map_or(Self::ALL.until, &order),
        }
    }

    /// The intersection of two ranges.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            after: self.after.max(other.after),
            until: self.until.min(other.until),
        }
    }

    /// Whether `order` is in the range.
    #[inline(always)]
    #[must_use]
    pub fn contains(&self, order: Order) -> bool {
        // Ranks sort as their orders do, and are compared faster.
        let rank = order.rank();
        self.after.rank() < rank && rank <= self.until.rank()
    }
}

/// Machine, process and thread of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadKey {
    /// The host, or a guest.
    pub machine: Machine,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
}

/// State of a thread just before an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadState {
    /// [`World::epoch`]: the state of the mappings of its process and of the kernel.
    pub epoch: Epoch,
    /// [`World::comm_at`]: its name, `:TID` before it has one.
    pub comm_at: CommId,
    /// [`World::comm_at_or_later`]: its name, or its first later one if it has none yet.
    pub comm_at_or_later: CommId,
}

/// States by thread. Each worker has a separate cache, for one World, and empties it when the World changes.
#[derive(Debug)]
pub struct ThreadCache {
    slots: Box<[Option<CachedThread>; CACHED_THREADS]>,
    /// The [`World::version`] of the cached states.
    version: u64,
}

#[derive(Debug, Clone, Copy)]
struct CachedThread {
    who: ThreadKey,
    /// The orders at which `state` is valid.
    span: OrderRange,
    state: ThreadState,
}

/// Number of cached threads; the low bits of the thread id are the index.
const CACHED_THREADS: usize = 256;

impl Default for ThreadCache {
    fn default() -> Self {
        Self {
            slots: Box::new([None; CACHED_THREADS]),
            version: 0,
        }
    }
}

impl ThreadCache {
    /// The state of a thread just before `order`.
    #[inline]
    pub fn state_at(&mut self, world: &World, who: ThreadKey, order: Order) -> ThreadState {
        self.state_span(world, who, order).0
    }

    /// Like [`ThreadCache::state_at`], with the range of orders in which the state is the same.
    #[inline]
    pub fn state_span(
        &mut self,
        world: &World,
        who: ThreadKey,
        order: Order,
    ) -> (ThreadState, OrderRange) {
        if self.version != world.version {
            *self = Self {
                version: world.version,
                ..Self::default()
            };
        }
        let slot = &mut self.slots[who.tid as usize % CACHED_THREADS];
        match slot {
            Some(known) if known.who == who && known.span.contains(order) => {
                (known.state, known.span)
            }
            _ => {
                let known = slot.insert(CachedThread::new(world, who, order));
                (known.state, known.span)
            }
        }
    }
}

impl CachedThread {
    #[cold]
    fn new(world: &World, who: ThreadKey, order: Order) -> Self {
        let (epoch, epoch_span) = world.epoch_span(who.machine, who.pid, order);
        // The thread id is enough for the names: samples of a guest have the ids of the virtual machine's process and thread on
        // the host.
        let comm_span = world.threads.span(who.tid, order);
        let state = ThreadState {
            epoch,
            comm_at: world.comm_at(who.tid, order),
            comm_at_or_later: world.comm_at_or_later(who.tid, order),
        };
        Self {
            who,
            span: epoch_span.and(comm_span),
            state,
        }
    }
}
