//! Passes the events of the slab and page allocators to their statistics.

use rperf_tracepoint::typed::TypedEvent;

use super::distributions::KmemDistributions;
use super::pages::{PageAllocation, PageStatistics};
use super::slab::{SlabAllocation, SlabStatistics};
use crate::sched::LostStretches;
use crate::{EventContext, Loss, Observer};

/// Data computed from an event for the observers of allocators: [`KmemEvents`] and `Fragmentation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KmemDetail {
    /// The innermost address of the callchain outside the functions of the page allocator, or the innermost if none is outside; 0
    /// without a callchain, and for events other than `mm_page_alloc` and `mm_page_alloc_extfrag`.
    pub page_caller: u64,
}

/// Counts the events of the allocators.
#[derive(Debug, Default)]
pub struct KmemEvents {
    /// The slab allocator.
    pub slab: SlabStatistics,
    /// The page allocator.
    pub pages: PageStatistics,
    /// Sizes, lifetimes and rates, if requested.
    pub distributions: Option<KmemDistributions>,
    /// Where records were lost.
    pub losses: LostStretches,
}

impl Observer<KmemDetail> for KmemEvents {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, detail: KmemDetail) {
        // An event with an impossible CPU number counts as a lost record.
        if !self.losses.usable_event(at) {
            return;
        }
        if let Some(distributions) = &mut self.distributions {
            distributions.event(at.time(), &event);
        }
        // If the CPU is unknown, a number that no CPU has.
        let cpu = at.cpu.unwrap_or(u32::MAX);
        match event {
            TypedEvent::Kmalloc(event) => {
                let allocation = SlabAllocation {
                    pointer: event.ptr(),
                    call_site: event.call_site(),
                    requested: event.bytes_req(),
                    allocated: event.bytes_alloc(),
                    node: event.node(),
                };
                self.slab.allocate(cpu, allocation);
            }
            TypedEvent::KmemCacheAlloc(event) => {
                let allocation = SlabAllocation {
                    pointer: event.ptr(),
                    call_site: event.call_site(),
                    requested: event.bytes_req(),
                    allocated: event.bytes_alloc(),
                    node: event.node(),
                };
                self.slab.allocate(cpu, allocation);
            }
            TypedEvent::Kfree(event) => self.slab.free(cpu, event.ptr()),
            TypedEvent::KmemCacheFree(event) => self.slab.free(cpu, event.ptr()),
            TypedEvent::MmPageAlloc(event) => {
                let flags = event.gfp_flags();
                let allocation = PageAllocation {
                    page: allocated_page(event.pfn(), event.page()),
                    order: event.order(),
                    migrate_type: event.migratetype(),
                    gfp: flags.value,
                    call_site: detail.page_caller,
                };
                self.pages.allocate(&allocation, flags);
            }
            TypedEvent::MmPageFree(event) => {
                let page = event.pfn().or(event.page()).unwrap_or_default();
                self.pages.free(page, event.order());
            }
            _ => {}
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
    }
}

/// Returns the page's frame number, or the address of its `struct page` if the event has no frame number; `None` if the
/// allocation failed.
pub(super) fn allocated_page(frame: Option<u64>, page: Option<u64>) -> Option<u64> {
    match frame {
        Some(frame) => Some(frame).filter(|frame| *frame != u64::MAX),
        None => page.filter(|page| *page != 0),
    }
}
