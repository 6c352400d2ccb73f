//! Memory limit for parsed units and decompressed sections, shared by all objects of an analysis.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use super::unit::ReadUnit;

/// A limit for the memory of all objects: decompressed sections, which are freed only with their object, and units.
/// The least recently used units are freed, and parsed again when needed; a quarter of the limit is
/// reserved for units.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    /// Memory of units and `fixed` together.
    used: AtomicUsize,
    /// Memory that is freed only with its object: decompressed sections.
    fixed: AtomicUsize,
    /// Number of uses of units, as the time of [`UnitSlot::last_use`].
    clock: AtomicU64,
    /// The units of each object.
    objects: Mutex<Vec<Weak<UnitSlots>>>,
}

impl Budget {
    /// The default limit in bytes.
    pub const DEFAULT_BYTES: usize = 512 << 20;

    /// A limit of `limit` bytes. A unit that is removed from its slot while it is still in use is no longer counted.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
            fixed: AtomicUsize::new(0),
            clock: AtomicU64::new(0),
            objects: Mutex::default(),
        })
    }

    /// Number of bytes in use.
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

    /// If units take more than their share of the limit, frees units until a quarter of that share is available.
    fn enforce(&self) {
        let fixed = self.fixed.load(Ordering::Relaxed);
        let share = self.limit.saturating_sub(fixed).max(self.limit / 4);
        let used_by_units = || self.used().saturating_sub(fixed);
        if used_by_units() <= share {
            return;
        }
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.retain(|object| object.strong_count() > 0);
        let alive: Vec<_> = objects.iter().filter_map(Weak::upgrade).collect();
        let mut slots: Vec<_> = alive.iter().flat_map(|slots| &slots.slots).collect();
        slots.retain(|slot| slot.bytes.load(Ordering::Relaxed) > 0);
        slots.sort_by_key(|slot| slot.last_use.load(Ordering::Relaxed));
        for slot in slots {
            if used_by_units() <= share - share / 4 {
                break;
            }
            self.refund(slot.forget());
        }
    }
}

/// The units of one object.
#[derive(Debug)]
pub(super) struct UnitSlots {
    budget: Arc<Budget>,
    /// Memory of the object itself.
    fixed: usize,
    slots: Box<[UnitSlot]>,
}

#[derive(Debug, Default)]
struct UnitSlot {
    unit: RwLock<Option<Arc<ReadUnit>>>,
    last_use: AtomicU64,
    /// Memory of the unit; 0 if it isn't loaded.
    bytes: AtomicUsize,
}

impl UnitSlots {
    /// Creates slots for `count` units of an object that uses `fixed` bytes itself.
    pub(super) fn new(budget: &Arc<Budget>, count: usize, fixed: usize) -> Arc<Self> {
        budget.charge(fixed);
        budget.fixed.fetch_add(fixed, Ordering::Relaxed);
        let slots = Arc::new(Self {
            budget: budget.clone(),
            fixed,
            slots: (0..count).map(|_| UnitSlot::default()).collect(),
        });
        let mut objects = budget
            .objects
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        objects.push(Arc::downgrade(&slots));
        slots
    }

    /// The unit in slot `number`, loaded by `read` if necessary; `None` if there is no such slot. Other units can be loaded
    /// concurrently.
    pub(super) fn get(
        &self,
        number: u32,
        read: impl FnOnce() -> ReadUnit,
    ) -> Option<Arc<ReadUnit>> {
        let slot = self.slots.get(number as usize)?;
        slot.last_use.store(self.budget.now(), Ordering::Relaxed);
        let cached = slot
            .unit
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if cached.is_some() {
            return cached;
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

impl UnitSlot {
    /// Removes the unit and returns its size. Its memory is freed when no caller of [`UnitSlots::get`] holds it.
    fn forget(&self) -> usize {
        let mut place = self.unit.write().unwrap_or_else(PoisonError::into_inner);
        *place = None;
        self.bytes.swap(0, Ordering::Relaxed)
    }
}

impl Drop for UnitSlots {
    fn drop(&mut self) {
        let bytes = self
            .slots
            .iter()
            .map(|slot| slot.bytes.load(Ordering::Relaxed));
        self.budget.refund(bytes.sum::<usize>() + self.fixed);
        self.budget.fixed.fetch_sub(self.fixed, Ordering::Relaxed);
    }
}
