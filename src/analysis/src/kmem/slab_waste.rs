//! Internal fragmentation of the slab allocator, by cache: bytes that were allocated but not requested.

use rustc_hash::FxHashMap;

use super::RequestCount;
use super::caches::{CacheNumbers, SlabCache};

/// The allocations and live objects of one cache, or of one size class of kmalloc().
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheRow {
    /// The cache.
    pub cache: SlabCache,
    /// Allocations, with the bytes of their objects.
    pub allocated: RequestCount,
    /// Bytes requested by these allocations.
    pub requested: u64,
    /// Live objects: those not freed by the end of the recording.
    pub live: RequestCount,
    /// Bytes requested for live objects.
    pub live_requested: u64,
    /// Allocations that failed; they are not in `allocated`.
    pub failed: u64,
}

impl CacheRow {
    /// Returns the bytes that were allocated but not requested.
    #[must_use]
    pub fn wasted(&self) -> u64 {
        self.allocated.bytes.saturating_sub(self.requested)
    }

    /// Returns the bytes of live objects that were allocated but not requested.
    #[must_use]
    pub fn live_wasted(&self) -> u64 {
        self.live.bytes.saturating_sub(self.live_requested)
    }
}

/// An object as in the event of its allocation; sizes in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlabObject {
    /// 0 if the allocation failed.
    pub(super) pointer: u64,
    pub(super) requested: u64,
    pub(super) allocated: u64,
}

/// A live object: the number of its cache, which is the index of its row, and its sizes in bytes.
#[derive(Debug, Clone, Copy)]
struct LiveObject {
    cache: u32,
    requested: u64,
    allocated: u64,
}

/// Sums allocations and live objects by cache.
#[derive(Debug, Default)]
pub(super) struct SlabWaste {
    caches: CacheNumbers,
    rows: Vec<CacheRow>,
    /// By pointer.
    live: FxHashMap<u64, LiveObject>,
}

impl SlabWaste {
    /// Adds an object of kmalloc().
    pub(super) fn kmalloc(&mut self, object: SlabObject) {
        let cache = self.caches.of_kmalloc(object.allocated);
        self.allocate(cache, object);
    }

    /// Adds an object of the cache `name`; `None` if the event has no name.
    pub(super) fn cache_alloc(&mut self, name: Option<&[u8]>, object: SlabObject) {
        let cache = self.caches.of_cache(name, object.allocated);
        self.allocate(cache, object);
    }

    fn allocate(&mut self, number: u32, object: SlabObject) {
        let SlabObject {
            pointer,
            requested,
            allocated,
        } = object;
        // A row's index is the number of its cache. A new cache has the next number, so its row is appended.
        if self.rows.len() <= number as usize
            && let Some(cache) = self.caches.get(number).cloned()
        {
            self.rows.push(CacheRow {
                cache,
                allocated: RequestCount::default(),
                requested: 0,
                live: RequestCount::default(),
                live_requested: 0,
                failed: 0,
            });
        }
        let Some(row) = self.rows.get_mut(number as usize) else {
            return;
        };
        if pointer == 0 {
            row.failed += 1;
            return;
        }
        row.allocated.add(allocated);
        row.requested = row.requested.saturating_add(requested);
        let live = LiveObject {
            cache: number,
            requested,
            allocated,
        };
        // If an older object at this address is live, the event that freed it was lost.
        if let Some(older) = self.live.insert(pointer, live) {
            self.subtract_live(older);
        }
        self.add_live(live);
    }

    /// Removes a live object. Ignores an object of an unknown allocation, for instance from before the recording.
    pub(super) fn free(&mut self, pointer: u64) {
        if let Some(object) = self.live.remove(&pointer) {
            self.subtract_live(object);
        }
    }

    fn add_live(&mut self, object: LiveObject) {
        if let Some(row) = self.rows.get_mut(object.cache as usize) {
            row.live.add(object.allocated);
            row.live_requested = row.live_requested.saturating_add(object.requested);
        }
    }

    fn subtract_live(&mut self, object: LiveObject) {
        if let Some(row) = self.rows.get_mut(object.cache as usize) {
            row.live = row.live.without(RequestCount {
                requests: 1,
                bytes: object.allocated,
            });
            row.live_requested = row.live_requested.saturating_sub(object.requested);
        }
    }

    /// Returns a row per cache, most wasted bytes first.
    pub(super) fn rows(&self) -> Vec<CacheRow> {
        let mut rows = self.rows.clone();
        rows.sort_unstable_by(|left, right| {
            let wasted = right.wasted().cmp(&left.wasted());
            let bytes = wasted.then_with(|| right.allocated.bytes.cmp(&left.allocated.bytes));
            bytes.then_with(|| left.cache.cmp(&right.cache))
        });
        rows
    }
}
