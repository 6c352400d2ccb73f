//! Analyses of allocations of kernel memory, for `kmem`: objects of the slab allocator, and pages.

mod caches;
mod distributions;
mod events;
mod fragmentation;
mod intervals;
mod leaks;
mod live_pages;
mod pages;
mod slab;
mod slab_waste;
mod usage;

pub use caches::SlabCache;
pub use distributions::{AllocationDistributions, AllocationRate, KmemDistributions};
pub use events::{KmemDetail, KmemEvents};
pub use fragmentation::{
    Fallback, FallbackCaller, Fragmentation, FragmentationReport, PageClassCounts, PageblockCounts,
    Pageblocks, PinningCaller, is_fragmenting,
};
pub use leaks::{Allocator, LeakDetail, LeakReport, LiveMemory, StackMemory};
pub use live_pages::PageClass;
pub use pages::{MigrateTypes, PageRow, PageSortKey, PageStatistics, PageTotals, RequestCount};
pub use slab::{SlabRow, SlabSortKey, SlabStatistics, SlabTotals};
pub use slab_waste::CacheRow;
pub use usage::{CacheOrOrder, MemoryKind, MemoryUsage, UsageDetail, UsageReport, UsageRow};

/// The tracepoints of allocations and frees of slab objects, `system:name`.
pub const SLAB_EVENTS: [&str; 6] = [
    "kmem:kmalloc",
    "kmem:kmalloc_node",
    "kmem:kfree",
    "kmem:kmem_cache_alloc",
    "kmem:kmem_cache_alloc_node",
    "kmem:kmem_cache_free",
];

/// The tracepoints of allocations and frees of pages, `system:name`.
pub const PAGE_EVENTS: [&str; 2] = ["kmem:mm_page_alloc", "kmem:mm_page_free"];

/// The tracepoint of external fragmentation: the page allocator takes pages of another migrate type.
pub const FALLBACK_EVENT: &str = "kmem:mm_page_alloc_extfrag";
