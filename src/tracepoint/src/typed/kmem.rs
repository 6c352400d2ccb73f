//! Kernel memory. Source: the kernel's `include/trace/events/kmem.h`.

use super::event::typed_event;
use super::{NamedNumber, TextField};

typed_event! {
    /// An allocation by size. `kmalloc_node` is a tracepoint of its own up to Linux 6.0.
    Kmalloc(KmallocLayout) = "kmem:kmalloc" | "kmem:kmalloc_node" {
        /// Address of the caller.
        call_site: u64,
        /// Address of the memory; 0 if the allocation failed.
        ptr: u64,
        /// Bytes requested.
        bytes_req: u64,
        /// Bytes allocated.
        bytes_alloc: u64,
        /// Allocation flags, named `GFP_KERNEL`, ….
        gfp_flags: NamedNumber,
        /// NUMA node requested, -1 for any. `None` in `kmalloc` up to Linux 6.0.
        node: Option<i32>,
    }
}

typed_event! {
    /// Memory is freed by kfree().
    Kfree(KfreeLayout) = "kmem:kfree" {
        /// Address of the caller.
        call_site: u64,
        /// Address of the memory, usually from [`Kmalloc`]; 0 for `kfree(NULL)`.
        ptr: u64,
    }
}

typed_event! {
    /// An allocation from a slab cache. `kmem_cache_alloc_node` is a tracepoint of its own up to Linux 6.0.
    KmemCacheAlloc(KmemCacheAllocLayout) =
        "kmem:kmem_cache_alloc" | "kmem:kmem_cache_alloc_node"
    {
        /// Address of the caller.
        call_site: u64,
        /// Address of the object; 0 if the allocation failed.
        ptr: u64,
        /// Name of the cache. Only in recent kernels; Linux 6.18 has it.
        name: Option<TextField>,
        /// Bytes requested.
        bytes_req: u64,
        /// Bytes allocated.
        bytes_alloc: u64,
        /// Allocation flags.
        gfp_flags: NamedNumber,
        /// NUMA node requested, -1 for any. `None` in `kmem_cache_alloc` up to Linux 6.0.
        node: Option<i32>,
    }
}

typed_event! {
    /// An object of a slab cache is freed.
    KmemCacheFree(KmemCacheFreeLayout) = "kmem:kmem_cache_free" {
        /// Address of the caller.
        call_site: u64,
        /// Address of the object.
        ptr: u64,
        /// Name of the cache. Since Linux 5.12.
        name: Option<TextField>,
    }
}

typed_event! {
    /// Pages are allocated.
    MmPageAlloc(MmPageAllocLayout) = "kmem:mm_page_alloc" {
        /// Frame number of the first page; all bits set if the allocation failed. Since Linux 4.1.
        pfn: Option<u64>,
        /// Address of the `struct page` of the first page; 0 if the allocation failed. Before Linux 4.1.
        page: Option<u64>,
        /// Binary logarithm of the number of pages.
        order: u32,
        /// Allocation flags.
        gfp_flags: NamedNumber,
        /// Number of the migrate type.
        migratetype: i32,
    }
}

typed_event! {
    /// Pages are freed. `mm_page_free_direct` is the name up to Linux 3.2.
    MmPageFree(MmPageFreeLayout) = "kmem:mm_page_free" | "kmem:mm_page_free_direct" {
        /// Frame number of the first page. Since Linux 4.1.
        pfn: Option<u64>,
        /// Address of the `struct page` of the first page. Before Linux 4.1.
        page: Option<u64>,
        /// Binary logarithm of the number of pages.
        order: u32,
    }
}

typed_event! {
    /// The page allocator takes pages of another migrate type than requested, because no free block of the requested type is
    /// large enough.
    MmPageAllocExtfrag(MmPageAllocExtfragLayout) = "kmem:mm_page_alloc_extfrag" {
        /// Frame number of the first page. Since Linux 4.1.
        pfn: Option<u64>,
        /// Address of the `struct page` of the first page. Before Linux 4.1.
        page: Option<u64>,
        /// Binary logarithm of the number of pages requested.
        alloc_order: i32,
        /// Binary logarithm of the number of pages of the free block that is divided.
        fallback_order: i32,
        /// Number of the requested migrate type.
        alloc_migratetype: i32,
        /// Number of the migrate type of the block.
        fallback_migratetype: i32,
        /// Whether the pageblock gets the requested migrate type: 0 or 1. `None` in old kernels.
        change_ownership: Option<i32>,
    }
}
