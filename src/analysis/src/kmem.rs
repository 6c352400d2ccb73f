//! Allocations of kernel memory, for `kmem`: objects of the slab allocator and pages, by caller and by address, and
//! memory that was not freed.

mod events;
mod intervals;
mod leaks;
mod pages;
mod slab;

pub use events::{KmemDetail, KmemEvents};
pub use leaks::{Allocator, LeakDetail, LeakReport, LiveMemory, StackMemory};
pub use pages::{MigrateTypes, PageRow, PageSortKey, PageStatistics, PageTotals, RequestCount};
pub use slab::{SlabRow, SlabSortKey, SlabStatistics, SlabTotals};

/// The tracepoints of the slab allocator, `system:name`.
pub const SLAB_EVENTS: [&str; 6] = [
    "kmem:kmalloc",
    "kmem:kmalloc_node",
    "kmem:kfree",
    "kmem:kmem_cache_alloc",
    "kmem:kmem_cache_alloc_node",
    "kmem:kmem_cache_free",
];

/// The tracepoints of the page allocator, `system:name`.
pub const PAGE_EVENTS: [&str; 2] = ["kmem:mm_page_alloc", "kmem:mm_page_free"];
