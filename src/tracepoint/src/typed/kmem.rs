//! Memory of the kernel. Source: the kernel's `include/trace/events/kmem.h`.

use super::event::typed_event;
use super::{NamedNumber, Text};

typed_event! {
    /// Memory is allocated by size; `kmalloc_node` up to Linux 6.0.
    Kmalloc(KmallocLayout) = "kmem:kmalloc" | "kmem:kmalloc_node" {
        /// Address in the code that asked for it.
        call_site: u64,
        /// Address of the memory; 0 if there was none.
        ptr: u64,
        /// Bytes that were asked for.
        bytes_req: u64,
        /// Bytes that it takes.
        bytes_alloc: u64,
        /// How it was asked for.
        gfp_flags: NamedNumber,
        /// The node that was asked for, -1 for any.
        node: Option<i32>,
    }
}

typed_event! {
    /// Such memory is freed.
    Kfree(KfreeLayout) = "kmem:kfree" {
        /// Address in the code that freed it.
        call_site: u64,
        /// Address of the memory.
        ptr: u64,
    }
}

typed_event! {
    /// An object of a cache is allocated; `kmem_cache_alloc_node` up to Linux 6.0.
    KmemCacheAlloc(KmemCacheAllocLayout) =
        "kmem:kmem_cache_alloc" | "kmem:kmem_cache_alloc_node"
    {
        /// Address in the code that asked for it.
        call_site: u64,
        /// Address of the object; 0 if there was none.
        ptr: u64,
        /// Name of the cache; only some kernels have it.
        name: Option<Text>,
        /// Bytes of an object.
        bytes_req: u64,
        /// Bytes that it takes.
        bytes_alloc: u64,
        /// How it was asked for.
        gfp_flags: NamedNumber,
        /// The node that was asked for, -1 for any.
        node: Option<i32>,
    }
}

typed_event! {
    /// An object of a cache is freed.
    KmemCacheFree(KmemCacheFreeLayout) = "kmem:kmem_cache_free" {
        /// Address in the code that freed it.
        call_site: u64,
        /// Address of the object.
        ptr: u64,
        /// Name of the cache; only some kernels have it.
        name: Option<Text>,
    }
}

typed_event! {
    /// Pages are allocated.
    MmPageAlloc(MmPageAllocLayout) = "kmem:mm_page_alloc" {
        /// Number of the first page, all bits set if there was none; from Linux 4.1 on.
        pfn: Option<u64>,
        /// Address of what the kernel knows of the first page, 0 if there was none; before.
        page: Option<u64>,
        /// 2 to the power of this is the number of pages.
        order: u32,
        /// How they were asked for.
        gfp_flags: NamedNumber,
        /// Number of the type of memory by mobility.
        migratetype: i32,
    }
}

typed_event! {
    /// Pages are freed; `mm_page_free_direct` up to Linux 3.2.
    MmPageFree(MmPageFreeLayout) = "kmem:mm_page_free" | "kmem:mm_page_free_direct" {
        /// Number of the first page; from Linux 4.1 on.
        pfn: Option<u64>,
        /// Address of what the kernel knows of the first page; before.
        page: Option<u64>,
        /// 2 to the power of this is the number of pages.
        order: u32,
    }
}
