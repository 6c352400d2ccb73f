//! Distributions of the sizes and lifetimes of allocations, and the number of allocations and frees over time.

use rperf_tracepoint::typed::TypedEvent;
use rustc_hash::FxHashMap;

use super::RequestCount;
use super::events::allocated_page;
use super::intervals::{IntervalSums, Intervals};
use super::leaks::{Allocator, ZERO_SIZE_PTR};
use super::pages::PageSize;
use crate::LogHistogram;

/// The allocations and frees in an interval of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationRate {
    /// The start, in nanoseconds of the recording's clock.
    pub from: u64,
    /// The end, exclusive, in nanoseconds of the same clock. The last interval contains [`KmemDistributions::end`].
    pub to: u64,
    /// Allocations, without failed ones, with the bytes allocated for them.
    pub allocated: RequestCount,
    /// Frees. Those without a recorded allocation add no bytes.
    pub freed: RequestCount,
}

/// The distributions of one allocator.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AllocationDistributions {
    /// Bytes requested: of objects, or of blocks of pages.
    pub sizes: LogHistogram,
    /// The exact 50th, 90th and 99th percentile of the sizes; `None` without allocations.
    pub size_percentiles: Option<[u64; 3]>,
    /// Nanoseconds from allocation to free.
    pub lifetimes: LogHistogram,
    /// Allocations that were not freed.
    pub live: u64,
    /// The allocations and frees in at most 32 intervals of equal width, in order of time.
    pub rates: Vec<AllocationRate>,
}

#[derive(Debug, Clone, Copy)]
struct LiveAllocation {
    time: u64,
    bytes: u64,
}

#[derive(Debug, Default)]
struct AllocatorState {
    sizes: LogHistogram,
    /// The number of allocations of each requested size, for exact percentiles.
    by_size: FxHashMap<u64, u64>,
    lifetimes: LogHistogram,
    /// By address of the object; for pages, by the result of [`allocated_page`].
    live: FxHashMap<u64, LiveAllocation>,
    /// In each interval: the number of allocations, the bytes allocated, the number of frees, and the bytes freed.
    sums: [IntervalSums; 4],
}

impl AllocatorState {
    fn size_percentiles(&self) -> Option<[u64; 3]> {
        let counts = self.by_size.iter().map(|(size, count)| (*size, *count));
        let mut size_counts: Vec<(u64, u64)> = counts.collect();
        size_counts.sort_unstable();
        let (largest, _) = *size_counts.last()?;
        let percentiles = [50, 90, 99].map(|percent| {
            let rank = (u128::from(self.sizes.count()) * percent).div_ceil(100);
            let mut cumulative = 0;
            let reached = size_counts.iter().find(|(_, count)| {
                cumulative += u128::from(*count);
                cumulative >= rank
            });
            reached.map_or(largest, |(size, _)| *size)
        });
        Some(percentiles)
    }
}

/// Counts sizes, lifetimes, and allocations and frees over time. Its own memory grows with the number of live allocations and of
/// different sizes.
#[derive(Debug, Default)]
pub struct KmemDistributions {
    page_size: PageSize,
    slab: AllocatorState,
    pages: AllocatorState,
    intervals: Intervals,
}

impl KmemDistributions {
    /// Sets the page size of the recording kernel in bytes, if it is known.
    pub fn set_page_size(&mut self, size: Option<u32>) {
        self.page_size = PageSize::recorded_or_default(size);
    }

    pub(super) fn event(&mut self, time: u64, event: &TypedEvent<'_>) {
        let slab = Allocator::Slab;
        match event {
            TypedEvent::Kmalloc(event) if event.ptr() != 0 => {
                let sizes = [event.bytes_req(), event.bytes_alloc()];
                self.allocate(time, slab, event.ptr(), sizes);
            }
            TypedEvent::KmemCacheAlloc(event) if event.ptr() != 0 => {
                let sizes = [event.bytes_req(), event.bytes_alloc()];
                self.allocate(time, slab, event.ptr(), sizes);
            }
            TypedEvent::Kfree(event) if event.ptr() > ZERO_SIZE_PTR => {
                self.free(time, slab, event.ptr());
            }
            TypedEvent::KmemCacheFree(event) => self.free(time, slab, event.ptr()),
            TypedEvent::MmPageAlloc(event) => {
                if let Some(page) = allocated_page(event.pfn(), event.page()) {
                    let bytes = self.page_size.bytes_of_order(event.order());
                    self.allocate(time, Allocator::Page, page, [bytes, bytes]);
                }
            }
            TypedEvent::MmPageFree(event) => {
                let page = event.pfn().or(event.page()).unwrap_or_default();
                self.free(time, Allocator::Page, page);
            }
            _ => {}
        }
    }

    fn of(&mut self, allocator: Allocator) -> &mut AllocatorState {
        match allocator {
            Allocator::Slab => &mut self.slab,
            Allocator::Page => &mut self.pages,
        }
    }

    /// `sizes` are the bytes requested and allocated.
    fn allocate(&mut self, time: u64, allocator: Allocator, address: u64, sizes: [u64; 2]) {
        let interval = self.interval(time);
        let [requested, bytes] = sizes;
        let state = self.of(allocator);
        state.sizes.add(requested);
        *state.by_size.entry(requested).or_default() += 1;
        // Replaces an older allocation at this address, if any: its free was not recorded, so its lifetime is unknown.
        state.live.insert(address, LiveAllocation { time, bytes });
        let [allocations, allocated, ..] = &mut state.sums;
        allocations.increase(interval, 1);
        allocated.increase(interval, bytes);
    }

    fn free(&mut self, time: u64, allocator: Allocator, address: u64) {
        let interval = self.interval(time);
        let state = self.of(allocator);
        let [.., frees, freed] = &mut state.sums;
        frees.increase(interval, 1);
        if let Some(allocation) = state.live.remove(&address) {
            freed.increase(interval, allocation.bytes);
            let age = time.saturating_sub(allocation.time);
            state.lifetimes.add(age);
        }
    }

    /// Returns the index of the interval at `time`. If intervals are merged to make room for it, the sums of both allocators are
    /// merged, too.
    fn interval(&mut self, time: u64) -> usize {
        let slab = self.slab.sums.iter_mut();
        self.intervals
            .add_time(time, slab.chain(&mut self.pages.sums))
    }

    /// Returns the distributions of an allocator.
    #[must_use]
    pub fn report(&self, allocator: Allocator) -> AllocationDistributions {
        let state = match allocator {
            Allocator::Slab => &self.slab,
            Allocator::Page => &self.pages,
        };
        let mut from = self.intervals.begin();
        let [allocations, allocated, frees, freed] = &state.sums;
        let mut rates = Vec::new();
        for (interval, to) in self.intervals.ends().into_iter().enumerate() {
            let count = |requests: &IntervalSums, bytes: &IntervalSums| RequestCount {
                requests: requests.get(interval),
                bytes: bytes.get(interval),
            };
            rates.push(AllocationRate {
                from,
                to,
                allocated: count(allocations, allocated),
                freed: count(frees, freed),
            });
            from = to;
        }
        AllocationDistributions {
            sizes: state.sizes.clone(),
            size_percentiles: state.size_percentiles(),
            lifetimes: state.lifetimes.clone(),
            live: state.live.len() as u64,
            rates,
        }
    }

    /// Returns the time of the last allocation or free, in nanoseconds of the recording's clock; 0 if there is none.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.intervals.highest()
    }
}
