//! Memory of both allocators (slab and page allocator) by any key: stacks, callers, caches, cgroups, processes.

use rperf_tracepoint::typed::TypedEvent;
use rustc_hash::FxHashMap;

use super::RequestCount;
use super::caches::{CacheNumbers, SlabCache};
use super::events::allocated_page;
use super::leaks::ZERO_SIZE_PTR;
use super::pages::PageSize;
use crate::sched::LostStretches;
use crate::{EventContext, LogHistogram, Loss, Observer};

/// What was allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryKind {
    /// Objects of the slab allocator.
    Objects,
    /// Pages, except those of the slab allocator.
    Pages,
    /// Pages that the slab allocator allocates for its objects.
    SlabPages,
}

/// Data computed from an event for [`MemoryUsage`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageDetail {
    /// The parts of the key of an allocation. Empty for frees.
    pub key: Vec<u64>,
    /// Whether pages are allocated by the slab allocator.
    pub is_slab_page: bool,
}

/// The cache of an object, or the order of an allocation of pages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheOrOrder {
    /// A cache of the slab allocator.
    Slab(SlabCache),
    /// Binary logarithm of the number of pages.
    Order(u32),
}

/// The allocations with one key.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageRow {
    /// What was allocated.
    pub kind: MemoryKind,
    /// The parts of the key, as in [`UsageDetail::key`].
    pub key: Vec<u64>,
    /// The cache or order, if it is part of the key.
    pub cache_or_order: Option<CacheOrOrder>,
    /// All allocations.
    pub allocated: RequestCount,
    /// Bytes requested by them.
    pub requested: u64,
    /// The allocations that were freed within the recording. If an address was allocated again without a free event in between,
    /// the older allocation is neither here nor in `live`.
    pub freed: RequestCount,
    /// The allocations that were not freed.
    pub live: RequestCount,
    /// The highest number of live bytes at any time.
    pub peak: u64,
    /// Nanoseconds from allocation to free.
    pub lifetimes: LogHistogram,
}

/// The allocations of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageReport {
    /// The time of the first event, in nanoseconds of the recording's clock; 0 without events.
    pub begin: u64,
    /// The time of the last event, in nanoseconds of the same clock; 0 without events.
    pub end: u64,
    /// By kind, cache and key, ascending.
    pub rows: Vec<UsageRow>,
    /// Number of frees of addresses without a live allocation: frees of objects, then frees of pages.
    pub unmatched_frees: [u64; 2],
}

impl UsageReport {
    /// Returns the time between the first and the last event in seconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a duration")]
    pub fn seconds(&self) -> f64 {
        self.end.saturating_sub(self.begin) as f64 / 1e9
    }
}

/// An allocation as its event describes it.
#[derive(Debug, Clone, Copy)]
struct NewMemory {
    kind: MemoryKind,
    address: u64,
    requested: u64,
    allocated: u64,
    /// The number of an object's cache; for pages, their order with the bit [`ORDER`].
    cache: u64,
}

/// The bit that distinguishes orders from numbers of caches.
const ORDER: u64 = 1 << 32;

#[derive(Debug, Clone, Copy)]
struct LiveAllocation {
    row: u32,
    time: u64,
    bytes: u64,
}

/// The key of a row: kind, [`NewMemory::cache`] (0 without `by_cache`), and the parts of [`UsageDetail::key`].
type RowKey = (MemoryKind, u64, Vec<u64>);

/// Sums allocations by key. Its own memory grows with the number of live allocations and of keys: by some 80 bytes for each live
/// allocation, and 250 for each key that has a single part.
#[derive(Debug, Default)]
pub struct MemoryUsage {
    page_size: PageSize,
    by_cache: bool,
    caches: CacheNumbers,
    by_key: FxHashMap<RowKey, u32>,
    rows: Vec<UsageRow>,
    objects: FxHashMap<u64, LiveAllocation>,
    pages: FxHashMap<u64, LiveAllocation>,
    /// As [`UsageReport::unmatched_frees`].
    unmatched_frees: [u64; 2],
    /// The times of the first and the last event.
    times: Option<(u64, u64)>,
    /// Where records were lost.
    pub losses: LostStretches,
}

impl MemoryUsage {
    /// Sets whether the cache of objects and the order of pages are part of the key. By default, they are not.
    #[must_use]
    pub fn by_cache(self, by_cache: bool) -> Self {
        Self { by_cache, ..self }
    }

    /// Sets the page size of the recording kernel in bytes, if it is known.
    pub fn set_page_size(&mut self, size: Option<u32>) {
        self.page_size = PageSize::recorded_or_default(size);
    }

    fn allocate(&mut self, time: u64, memory: NewMemory, key: Vec<u64>) {
        let NewMemory {
            kind,
            address,
            requested,
            allocated,
            cache,
        } = memory;
        let row = self.row(kind, cache, key);
        let live = LiveAllocation {
            row,
            time,
            bytes: allocated,
        };
        // An older allocation at this address was freed at an unknown time: its lifetime does not count.
        if let Some(older) = self.live(kind).insert(address, live) {
            self.forget(older);
        }
        if let Some(row) = self.rows.get_mut(row as usize) {
            row.allocated.add(allocated);
            row.requested = row.requested.saturating_add(requested);
            row.live.add(allocated);
            row.peak = row.peak.max(row.live.bytes);
        }
    }

    /// Returns the number of the row of a key.
    fn row(&mut self, kind: MemoryKind, cache: u64, key: Vec<u64>) -> u32 {
        let by_cache = self.by_cache;
        let cache = if by_cache { cache } else { 0 };
        let rows = &mut self.rows;
        let caches = &self.caches;
        *self
            .by_key
            .entry((kind, cache, key))
            .or_insert_with_key(|(kind, cache, key)| {
                let cache_or_order = match u32::try_from(*cache) {
                    _ if !by_cache => None,
                    // Numbers of caches have 32 bits; orders have the bit `ORDER` above these.
                    Ok(number) => caches.get(number).cloned().map(CacheOrOrder::Slab),
                    Err(_) => u32::try_from(*cache - ORDER).ok().map(CacheOrOrder::Order),
                };
                rows.push(UsageRow {
                    kind: *kind,
                    key: key.clone(),
                    cache_or_order,
                    allocated: RequestCount::default(),
                    requested: 0,
                    freed: RequestCount::default(),
                    live: RequestCount::default(),
                    peak: 0,
                    lifetimes: LogHistogram::new(),
                });
                u32::try_from(rows.len() - 1).unwrap_or(u32::MAX)
            })
    }

    /// Returns the live allocations of the allocator of this kind.
    fn live(&mut self, kind: MemoryKind) -> &mut FxHashMap<u64, LiveAllocation> {
        match kind {
            MemoryKind::Objects => &mut self.objects,
            MemoryKind::Pages | MemoryKind::SlabPages => &mut self.pages,
        }
    }

    /// Subtracts an allocation from the live ones of its row. Returns the row.
    fn forget(&mut self, allocation: LiveAllocation) -> Option<&mut UsageRow> {
        let row = self.rows.get_mut(allocation.row as usize)?;
        row.live = row.live.without(RequestCount {
            requests: 1,
            bytes: allocation.bytes,
        });
        Some(row)
    }

    fn free(&mut self, time: u64, kind: MemoryKind, address: u64) {
        let Some(allocation) = self.live(kind).remove(&address) else {
            let [objects, pages] = &mut self.unmatched_frees;
            match kind {
                MemoryKind::Objects => *objects += 1,
                MemoryKind::Pages | MemoryKind::SlabPages => *pages += 1,
            }
            return;
        };
        if let Some(row) = self.forget(allocation) {
            row.freed.add(allocation.bytes);
            row.lifetimes.add(time.saturating_sub(allocation.time));
        }
    }

    /// Returns the sorted rows, the times of the first and the last event, and the unmatched frees.
    #[must_use]
    pub fn report(self) -> UsageReport {
        let mut rows = self.rows;
        rows.sort_unstable_by(|left, right| {
            let order = |row: &UsageRow| (row.kind, row.cache_or_order.clone(), row.key.clone());
            order(left).cmp(&order(right))
        });
        let (begin, end) = self.times.unwrap_or_default();
        UsageReport {
            begin,
            end,
            rows,
            unmatched_frees: self.unmatched_frees,
        }
    }
}

impl Observer<UsageDetail> for MemoryUsage {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, detail: UsageDetail) {
        // An event with an impossible CPU number is damaged, and counts as lost.
        if !self.losses.usable_event(at) {
            return;
        }
        let time = at.time();
        let begin = self.times.map_or(time, |(begin, _)| begin);
        self.times = Some((begin, time));
        let object = |address, sizes: [u64; 2], cache: u32| NewMemory {
            kind: MemoryKind::Objects,
            address,
            requested: sizes[0],
            allocated: sizes[1],
            cache: cache.into(),
        };
        match event {
            // Failed allocations have no address.
            TypedEvent::Kmalloc(event) if event.ptr() != 0 => {
                let cache = self.caches.of_kmalloc(event.bytes_alloc());
                let sizes = [event.bytes_req(), event.bytes_alloc()];
                self.allocate(time, object(event.ptr(), sizes, cache), detail.key);
            }
            TypedEvent::KmemCacheAlloc(event) if event.ptr() != 0 => {
                let cache = self.caches.of_cache(event.name(), event.bytes_alloc());
                let sizes = [event.bytes_req(), event.bytes_alloc()];
                self.allocate(time, object(event.ptr(), sizes, cache), detail.key);
            }
            // NULL and objects without bytes have events of kfree, but no allocation.
            TypedEvent::Kfree(event) if event.ptr() > ZERO_SIZE_PTR => {
                self.free(time, MemoryKind::Objects, event.ptr());
            }
            TypedEvent::KmemCacheFree(event) => {
                self.free(time, MemoryKind::Objects, event.ptr());
            }
            TypedEvent::MmPageAlloc(event) => {
                let Some(address) = allocated_page(event.pfn(), event.page()) else {
                    return;
                };
                let bytes = self.page_size.bytes_of_order(event.order());
                let memory = NewMemory {
                    kind: match detail.is_slab_page {
                        true => MemoryKind::SlabPages,
                        false => MemoryKind::Pages,
                    },
                    address,
                    requested: bytes,
                    allocated: bytes,
                    cache: ORDER | u64::from(event.order()),
                };
                self.allocate(time, memory, detail.key);
            }
            TypedEvent::MmPageFree(event) => {
                let page = event.pfn().or(event.page()).unwrap_or_default();
                // The page may also be one of `SlabPages`: both kinds share one table of live allocations.
                self.free(time, MemoryKind::Pages, page);
            }
            _ => {}
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
    }
}
