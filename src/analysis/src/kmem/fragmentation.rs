//! Fragmentation: pages by order and migrate type, their distribution over pageblocks, and unused bytes of objects.

use std::collections::BTreeMap;

use rperf_tracepoint::typed::{MmPageAllocExtfrag, TypedEvent};
use rustc_hash::{FxHashMap, FxHashSet};

use super::events::{KmemDetail, allocated_page};
use super::live_pages::{LivePages, PageClass, pages};
use super::pages::MigrateTypes;
use super::slab_waste::{CacheRow, SlabObject, SlabWaste};
use crate::sched::LostStretches;
use crate::{EventContext, Loss, Observer};

/// The allocations of one order and migrate type, and their pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageClassCounts {
    /// Allocations, including failed ones.
    pub requests: u64,
    /// Failed allocations.
    pub failed: u64,
    /// Pages allocated.
    pub allocated: u64,
    /// Pages of these allocations that were freed.
    pub freed: u64,
    /// Pages of these allocations that were allocated again although no free was recorded.
    pub reused: u64,
}

impl PageClassCounts {
    /// Returns the number of pages that were not freed.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.allocated
            .saturating_sub(self.freed)
            .saturating_sub(self.reused)
    }
}

/// An event of external fragmentation: pages of another migrate type were used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fallback {
    /// Binary logarithm of the number of pages requested.
    pub order: i32,
    /// Binary logarithm of the number of pages of the block that was used.
    pub from_order: i32,
    /// Number of the requested migrate type.
    pub migrate_type: i32,
    /// Number of the migrate type of the block.
    pub from_migrate_type: i32,
    /// Whether the pageblock got the requested migrate type; `None` if not recorded.
    pub changes_ownership: Option<bool>,
}

/// The events of external fragmentation of one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FallbackCaller {
    /// The address after the call, 0 if unknown.
    pub caller: u64,
    /// Events.
    pub events: u64,
    /// Events that leave a pageblock with pages of different migrate types. 0 if the order of pageblocks is unknown.
    pub fragmenting: u64,
}

/// A number of outstanding pages, and of the pageblocks that contain them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageblockCounts {
    /// Pageblocks with at least one of the pages.
    pub pageblocks: u64,
    /// Pages.
    pub pages: u64,
}

/// A caller's pages that cannot be moved and were not freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinningCaller {
    /// The address after the call, 0 if unknown.
    pub caller: u64,
    /// These pages, and the pageblocks with at least one of them.
    pub counts: PageblockCounts,
}

/// Outstanding pages by pageblock: the unit in which the kernel groups pages of one migrate type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pageblocks {
    /// Binary logarithm of the number of pages of a pageblock.
    pub order: u32,
    /// Pageblocks with outstanding pages, and these pages.
    pub all: PageblockCounts,
    /// Pageblocks with both outstanding pages that can be moved and ones that cannot.
    pub mixed: u64,
    /// By number of the migrate type.
    pub by_type: BTreeMap<i32, PageblockCounts>,
    /// Callers of pages that cannot be moved: most pageblocks first.
    pub pinning: Vec<PinningCaller>,
}

/// The fragmentation of the memory in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentationReport {
    /// By order and migrate type.
    pub classes: BTreeMap<PageClass, PageClassCounts>,
    /// Pages freed whose allocation is not in the recording, by the order (as in [`PageClass`]) of the block that was freed.
    pub unmatched_freed_pages: BTreeMap<u32, u64>,
    /// `None` if the order of pageblocks, or the frame number of an outstanding page, is unknown.
    pub pageblocks: Option<Pageblocks>,
    /// Number of events of external fragmentation.
    pub fallbacks: BTreeMap<Fallback, u64>,
    /// Most events first.
    pub fallback_callers: Vec<FallbackCaller>,
    /// Most wasted bytes first.
    pub caches: Vec<CacheRow>,
}

/// Follows pages and objects until they are freed. Its own memory grows with the number of live pages and objects, and of
/// callers.
#[derive(Debug, Default)]
pub struct Fragmentation {
    /// Binary logarithm of the number of pages of a pageblock, if known.
    pageblock_order: Option<u32>,
    classes: FxHashMap<PageClass, PageClassCounts>,
    unmatched_freed_pages: BTreeMap<u32, u64>,
    live: LivePages,
    fallbacks: FxHashMap<Fallback, u64>,
    /// Number of fallbacks by caller and [`Fallback::from_order`].
    fallback_callers: FxHashMap<(u64, i32), u64>,
    slab: SlabWaste,
    /// Where records were lost.
    pub losses: LostStretches,
}

/// Identifies a page.
#[derive(Debug, Clone, Copy)]
enum PageId {
    /// The frame number.
    Frame(u64),
    /// The address of its `struct page`.
    Address(u64),
}

impl PageId {
    /// `page` is a frame number if the event has one (`frame`), otherwise the address of a `struct page`.
    fn new(page: u64, frame: Option<u64>) -> Self {
        match frame {
            Some(_) => Self::Frame(page),
            None => Self::Address(page),
        }
    }
}

impl Fragmentation {
    /// Sets the binary logarithm of the number of pages of a pageblock, if it is known.
    #[must_use]
    pub fn with_pageblock_order(self, order: Option<u32>) -> Self {
        Self {
            pageblock_order: order,
            ..self
        }
    }

    fn allocate_pages(&mut self, page: Option<PageId>, class: PageClass, caller: u64) {
        let Self { classes, live, .. } = self;
        let counts = classes.entry(class).or_default();
        counts.requests += 1;
        let Some(page) = page else {
            counts.failed += 1;
            return;
        };
        counts.allocated = counts.allocated.saturating_add(class.pages());
        // If pages of the new allocation are still live, their frees were lost.
        let mut reuse = |class, pages| {
            let counts = classes.entry(class).or_default();
            counts.reused = counts.reused.saturating_add(pages);
        };
        match page {
            PageId::Frame(frame) => {
                live.remove(frame, class.order, reuse);
                live.insert(frame, class, caller);
            }
            PageId::Address(address) => {
                if let Some(older) = live.insert_address(address, class) {
                    reuse(older, older.pages());
                }
            }
        }
    }

    fn free_pages(&mut self, page: PageId, order: u32) {
        let Self { classes, live, .. } = self;
        let mut free = |class, pages| {
            let counts = classes.entry(class).or_default();
            counts.freed = counts.freed.saturating_add(pages);
        };
        // The number of freed pages whose allocation is unknown.
        let unmatched = match page {
            PageId::Frame(frame) => live.remove(frame, order, free),
            PageId::Address(address) => match live.remove_address(address) {
                Some(class) => {
                    free(class, class.pages());
                    0
                }
                None => pages(order),
            },
        };
        if unmatched > 0 {
            let sum = self.unmatched_freed_pages.entry(order).or_default();
            *sum = sum.saturating_add(unmatched);
        }
    }

    fn fallback(&mut self, event: &MmPageAllocExtfrag<'_>, caller: u64) {
        let fallback = Fallback {
            order: event.alloc_order(),
            from_order: event.fallback_order(),
            migrate_type: event.alloc_migratetype(),
            from_migrate_type: event.fallback_migratetype(),
            changes_ownership: event.change_ownership().map(|changes| changes != 0),
        };
        *self.fallbacks.entry(fallback).or_default() += 1;
        let key = (caller, fallback.from_order);
        *self.fallback_callers.entry(key).or_default() += 1;
    }

    /// Returns the fragmentation; `types` is the numbering of migrate types of the recording kernel.
    #[must_use]
    pub fn report(&self, types: MigrateTypes) -> FragmentationReport {
        FragmentationReport {
            classes: self
                .classes
                .iter()
                .map(|(class, counts)| (*class, *counts))
                .collect(),
            unmatched_freed_pages: self.unmatched_freed_pages.clone(),
            pageblocks: match self.pageblock_order {
                Some(order) if self.live.has_only_frames() => Some(self.pageblocks(order, types)),
                _ => None,
            },
            fallbacks: self
                .fallbacks
                .iter()
                .map(|(fallback, count)| (*fallback, *count))
                .collect(),
            fallback_callers: self.fallback_callers(),
            caches: self.slab.rows(),
        }
    }

    fn fallback_callers(&self) -> Vec<FallbackCaller> {
        let mut callers: BTreeMap<u64, FallbackCaller> = BTreeMap::new();
        for ((caller, from_order), count) in &self.fallback_callers {
            let row = callers.entry(*caller).or_insert(FallbackCaller {
                caller: *caller,
                events: 0,
                fragmenting: 0,
            });
            row.events += count;
            if is_fragmenting(*from_order, self.pageblock_order) {
                row.fragmenting += count;
            }
        }
        let mut callers: Vec<FallbackCaller> = callers.into_values().collect();
        callers.sort_by_key(|row| (std::cmp::Reverse(row.events), row.caller));
        callers
    }

    fn pageblocks(&self, order: u32, types: MigrateTypes) -> Pageblocks {
        let mut by_type: BTreeMap<i32, PageblockCounts> = BTreeMap::new();
        let mut by_caller: FxHashMap<u64, PageblockCounts> = FxHashMap::default();
        // Pairs of a migrate type or a caller with a pageblock, so that each pair counts the pageblock once.
        let mut seen_types: FxHashSet<(i32, u64)> = FxHashSet::default();
        let mut seen_callers: FxHashSet<(u64, u64)> = FxHashSet::default();
        // By pageblock: whether it has pages that can be moved, and ones that cannot.
        let mut pageblocks: FxHashMap<u64, [bool; 2]> = FxHashMap::default();
        let mut all = PageblockCounts::default();
        // `live_block` is an allocation or a part of one, with `pages` pages in the pageblock.
        for (pageblock, live_block, pages) in self.live.by_range(order) {
            let (migrate_type, caller) = (live_block.class.migrate_type, live_block.caller);
            let is_movable = types.is_movable(migrate_type);
            all.pages += pages;
            let [has_movable, has_other] = pageblocks.entry(pageblock).or_default();
            *has_movable |= is_movable;
            *has_other |= !is_movable;
            let counts = by_type.entry(migrate_type).or_default();
            counts.pages += pages;
            counts.pageblocks += u64::from(seen_types.insert((migrate_type, pageblock)));
            if !is_movable {
                let counts = by_caller.entry(caller).or_default();
                counts.pages += pages;
                counts.pageblocks += u64::from(seen_callers.insert((caller, pageblock)));
            }
        }
        all.pageblocks = pageblocks.len() as u64;
        let pinning = by_caller.into_iter();
        let mut pinning: Vec<PinningCaller> = pinning
            .map(|(caller, counts)| PinningCaller { caller, counts })
            .collect();
        pinning.sort_unstable_by_key(|row| {
            let PageblockCounts { pageblocks, pages } = row.counts;
            (std::cmp::Reverse((pageblocks, pages)), row.caller)
        });
        Pageblocks {
            order,
            all,
            mixed: pageblocks.values().filter(|has| **has == [true; 2]).count() as u64,
            by_type,
            pinning,
        }
    }
}

/// Whether an allocation from a block of another migrate type leaves a pageblock with pages of both types: the block is
/// smaller than a pageblock. `false` if the order of pageblocks is unknown.
#[must_use]
pub fn is_fragmenting(from_order: i32, pageblock_order: Option<u32>) -> bool {
    let order = u32::try_from(from_order).ok();
    order
        .zip(pageblock_order)
        .is_some_and(|(order, pageblock)| order < pageblock)
}

impl Observer<KmemDetail> for Fragmentation {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, detail: KmemDetail) {
        if !self.losses.usable_event(at) {
            return;
        }
        match event {
            TypedEvent::Kmalloc(event) => self.slab.kmalloc(SlabObject {
                pointer: event.ptr(),
                requested: event.bytes_req(),
                allocated: event.bytes_alloc(),
            }),
            TypedEvent::KmemCacheAlloc(event) => {
                let object = SlabObject {
                    pointer: event.ptr(),
                    requested: event.bytes_req(),
                    allocated: event.bytes_alloc(),
                };
                self.slab.cache_alloc(event.name(), object);
            }
            TypedEvent::Kfree(event) => self.slab.free(event.ptr()),
            TypedEvent::KmemCacheFree(event) => self.slab.free(event.ptr()),
            TypedEvent::MmPageAlloc(event) => {
                let class = PageClass {
                    order: event.order(),
                    migrate_type: event.migratetype(),
                };
                let page = allocated_page(event.pfn(), event.page());
                let page = page.map(|page| PageId::new(page, event.pfn()));
                self.allocate_pages(page, class, detail.page_caller);
            }
            TypedEvent::MmPageFree(event) => {
                let page = event.pfn().or(event.page()).unwrap_or_default();
                self.free_pages(PageId::new(page, event.pfn()), event.order());
            }
            TypedEvent::MmPageAllocExtfrag(event) => self.fallback(&event, detail.page_caller),
            _ => {}
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
    }
}
