//! The memory that units may take, shared by the objects of one analysis.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use super::unit::ReadUnit;

/// A limit for what all objects together keep: sections that had to be unpacked, which stay, and units. Of these, what was
/// not used for longest is forgotten first, and read again when it is wanted again; but a quarter of the limit is theirs,
/// whatever the sections take.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
    /// The part of it that can't be given back: unpacked sections.
    fixed: AtomicUsize,
    clock: AtomicU64,
    holders: Mutex<Vec<Weak<Slots>>>,
}

impl Budget {
    /// As much as a report of programs with some hundred megabytes of debug information needs at once.
    pub const DEFAULT_BYTES: usize = 512 << 20;

    /// At most `limit` bytes, and what is being looked at right now.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
            fixed: AtomicUsize::new(0),
            clock: AtomicU64::new(0),
            holders: Mutex::default(),
        })
    }

    /// How many bytes are taken.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn charge(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    fn refund(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Beyond the limit, forgets units until a quarter of what they may take is free again.
    fn enforce(&self) {
        let fixed = self.fixed.load(Ordering::Relaxed);
        let room = self.limit.saturating_sub(fixed).max(self.limit / 4);
        let taken = || self.used().saturating_sub(fixed);
        if taken() <= room {
            return;
        }
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        holders.retain(|holder| holder.strong_count() > 0);
        let alive: Vec<_> = holders.iter().filter_map(Weak::upgrade).collect();
        let mut slots: Vec<_> = alive.iter().flat_map(|slots| &slots.slots).collect();
        slots.retain(|slot| slot.bytes.load(Ordering::Relaxed) > 0);
        slots.sort_by_key(|slot| slot.last_use.load(Ordering::Relaxed));
        for slot in slots {
            if taken() <= room - room / 4 {
                break;
            }
            self.refund(slot.forget());
        }
    }
}

/// Places for the units of one object.
#[derive(Debug)]
pub(super) struct Slots {
    budget: Arc<Budget>,
    /// What the object takes besides.
    fixed: usize,
    slots: Box<[Slot]>,
}

#[derive(Debug, Default)]
struct Slot {
    unit: RwLock<Option<Arc<ReadUnit>>>,
    last_use: AtomicU64,
    /// What the unit takes; 0 where there is none.
    bytes: AtomicUsize,
}

impl Slots {
    /// Places for `count` units of an object that takes `fixed` bytes besides.
    pub(super) fn new(budget: &Arc<Budget>, count: usize, fixed: usize) -> Arc<Self> {
        budget.charge(fixed);
        budget.fixed.fetch_add(fixed, Ordering::Relaxed);
        let slots = Arc::new(Self {
            budget: budget.clone(),
            fixed,
            slots: (0..count).map(|_| Slot::default()).collect(),
        });
        let mut holders = budget
            .holders
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        holders.push(Arc::downgrade(&slots));
        slots
    }

    /// The unit in slot `number`, read by `read` where it isn't there. Other units can be read at the same time.
    pub(super) fn get(
        &self,
        number: u32,
        read: impl FnOnce() -> ReadUnit,
    ) -> Option<Arc<ReadUnit>> {
        let slot = self.slots.get(number as usize)?;
        slot.last_use.store(self.budget.now(), Ordering::Relaxed);
        let kept = slot
            .unit
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if kept.is_some() {
            return kept;
        }
        let mut place = slot.unit.write().unwrap_or_else(PoisonError::into_inner);
        if place.is_some() {
            return place.clone();
        }
        let unit = Arc::new(read());
        *place = Some(unit.clone());
        let size = unit.size();
        self.budget.charge(size);
        slot.bytes.store(size, Ordering::Relaxed);
        drop(place);
        self.budget.enforce();
        Some(unit)
    }
}

impl Slot {
    /// Forgets the unit and tells what it took.
    fn forget(&self) -> usize {
        let mut place = self.unit.write().unwrap_or_else(PoisonError::into_inner);
        *place = None;
        self.bytes.swap(0, Ordering::Relaxed)
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let bytes = self
            .slots
            .iter()
            .map(|slot| slot.bytes.load(Ordering::Relaxed));
        self.budget.refund(bytes.sum::<usize>() + self.fixed);
        self.budget.fixed.fetch_sub(self.fixed, Ordering::Relaxed);
    }
}
