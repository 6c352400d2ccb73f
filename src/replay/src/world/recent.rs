//! What the World said of a thread the last time, for as long as that holds.
//!
//! Samples come in runs of one thread, and its name and mappings change far less often than it is sampled.

use super::{Epoch, World};
use crate::{CommId, Machine, Order};

/// A stretch of the order in which an answer is the same: behind `after`, up to and with `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) after: Order,
    pub(crate) until: Order,
}

impl Span {
    /// All of the recording.
    pub(crate) const ALL: Self = Self {
        after: Order {
            time: 0,
            position: 0,
        },
        until: Order::MAX,
    };

    /// Between two neighbours of a list that rises: those before and at `index`.
    pub(crate) fn at<T>(list: &[T], index: usize, order: impl Fn(&T) -> Order) -> Self {
        let before = index.checked_sub(1).and_then(|before| list.get(before));
        Self {
            after: before.map_or(Self::ALL.after, &order),
            until: list.get(index).map_or(Self::ALL.until, &order),
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            after: self.after.max(other.after),
            until: self.until.min(other.until),
        }
    }

    #[inline]
    fn contains(&self, order: Order) -> bool {
        self.after < order && order <= self.until
    }
}

/// Whom a sample was taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who {
    /// The host, or a guest.
    pub machine: Machine,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
}

/// What the World knows of a thread at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// [`World::epoch`].
    pub epoch: Epoch,
    /// [`World::comm_at`].
    pub comm_at: CommId,
    /// [`World::comm_final`].
    pub comm_final: CommId,
}

/// Moments by thread. Each worker has its own, for one World.
#[derive(Debug)]
pub struct Recent {
    places: Box<[Option<Known>; PLACES]>,
    /// [`World::version`] that all of this is of.
    version: u64,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    who: Who,
    span: Span,
    moment: Moment,
}

/// Threads that are remembered: one for each value of an id's low bits.
const PLACES: usize = 256;

impl Default for Recent {
    fn default() -> Self {
        Self {
            places: Box::new([None; PLACES]),
            version: 0,
        }
    }
}

impl Recent {
    /// What `world` knows of a thread just before `order`.
    #[inline]
    pub fn moment(&mut self, world: &World, who: Who, order: Order) -> Moment {
        if self.version != world.version {
            *self = Self {
                version: world.version,
                ..Self::default()
            };
        }
        let place = &mut self.places[who.tid as usize % PLACES];
        match place {
            Some(known) if known.who == who && known.span.contains(order) => known.moment,
            _ => place.insert(Known::new(world, who, order)).moment,
        }
    }
}

impl Known {
    #[cold]
    fn new(world: &World, who: Who, order: Order) -> Self {
        let (epoch, mapped) = world.epoch_span(who.machine, who.pid, order);
        let named = world.threads.span(who.tid, order);
        let moment = Moment {
            epoch,
            comm_at: world.comm_at(who.pid, who.tid, order),
            comm_final: world.comm_final(who.pid, who.tid, order),
        };
        Self {
            who,
            span: mapped.and(named),
            moment,
        }
    }
}
