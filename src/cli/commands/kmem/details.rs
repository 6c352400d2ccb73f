//! The parallel part of the analysis: finds the callers and stacks of allocations. Also the names of call sites for the output.

use rperf_analysis::PrepareSamples;
use rperf_analysis::kmem::KmemDetail;
use rperf_replay::{Machine, Order, Sample, World};
use rperf_resolve::{AddressContext, Frame, Resolver, TimeIntervals};
use rperf_tracepoint::typed::TypedEvent;
use rperf_view::kmem::CallSite;
use rperf_wire::CpuMode;

/// Selects events by time, and finds the callers of page allocations.
pub(super) struct KmemDetails<'r> {
    pub(super) resolver: &'r Resolver<'r>,
    /// `--time`.
    pub(super) intervals: Option<TimeIntervals>,
}

/// The maximum number of frames that are searched for a caller.
const MAX_FRAMES: usize = 32;

/// Prefixes of the names of functions through which the kernel allocates pages, without leading `_`. The caller of an
/// allocation is the innermost function with another name.
const PAGE_ALLOCATORS: &[&str] = &[
    "alloc_pages",
    "alloc_page",
    "alloc_frozen_pages",
    "get_free_pages",
    "get_free_page",
    "get_zeroed_page",
    "folio_alloc",
    "vma_alloc_folio",
    "vma_alloc_zeroed_movable_folio",
    "filemap_alloc_folio",
    "alloc_contig",
];

/// Prefixes of the names of functions through which the slab allocator allocates its pages (SLUB, and SLAB up to Linux 6.7), and
/// of the functions that call them, without leading `_`.
const SLAB_ALLOCATORS: &[&str] = &[
    "alloc_slab_page",
    "allocate_slab",
    "new_slab",
    "slab_alloc",
    "get_partial",
    "refill_",
    "alloc_from_pcs",
    "pcs_replace_empty_main",
    "cache_alloc",
    "cache_grow",
    "fallback_alloc",
    "kmem_getpages",
    "kmem_cache_alloc",
    "kmem_alloc_batch",
    "kmalloc",
    "do_kmalloc",
    "do_kmem_cache",
    "krealloc",
    "kmemdup",
    "kzalloc",
];

impl PrepareSamples for KmemDetails<'_> {
    type Detail = KmemDetail;

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<KmemDetail> {
        let intervals = self.intervals.as_ref();
        if intervals.is_some_and(|intervals| !intervals.contain(sample.order.time)) {
            return None;
        }
        let page_caller = match event? {
            TypedEvent::MmPageAlloc(_) | TypedEvent::MmPageAllocExtfrag(_) => {
                self.page_caller(sample)
            }
            // Other events are counted too, but need no caller.
            _ => 0,
        };
        Some(KmemDetail { page_caller })
    }
}

impl KmemDetails<'_> {
    /// Returns the address of the innermost frame outside the page allocator; of the innermost frame if none is outside, and
    /// 0 without a callchain.
    fn page_caller(&self, sample: &Sample<'_>) -> u64 {
        let Some(chain) = sample.wire.callchain else {
            return 0;
        };
        let (at, mut frames) = (AddressContext::of(sample), Vec::new());
        self.resolver.callchain(at, chain, MAX_FRAMES, &mut frames);
        let stacks = KernelStacks(self.resolver);
        let mut callers = frames.iter();
        let caller = callers.find(|frame| !stacks.belongs_to(frame, PAGE_ALLOCATORS));
        caller.or(frames.first()).map_or(0, |frame| frame.ip)
    }
}

/// The kernel's part of callchains.
pub(super) struct KernelStacks<'r>(pub(super) &'r Resolver<'r>);

impl KernelStacks<'_> {
    /// Returns the frames of the kernel, innermost first.
    fn frames(&self, sample: &Sample<'_>) -> Vec<Frame> {
        let (at, mut frames) = (AddressContext::of(sample), Vec::new());
        if let Some(chain) = sample.wire.callchain {
            self.0.callchain(at, chain, usize::MAX, &mut frames);
        }
        frames.retain(|frame| CpuMode::of_address(frame.ip) == CpuMode::Kernel);
        frames
    }

    /// Returns the addresses from `call_site` to the outermost frame; only `call_site` if the callchain does not have it.
    pub(super) fn starting_at_call_site(&self, sample: &Sample<'_>, call_site: u64) -> Vec<u64> {
        let frames = self.frames(sample);
        let place = frames.iter().position(|frame| frame.ip == call_site);
        match place.and_then(|place| frames.get(place..)) {
            Some(frames) => frames.iter().map(|frame| frame.ip).collect(),
            None => vec![call_site],
        }
    }

    /// Returns the addresses from the innermost frame outside the page allocator to the outermost frame.
    pub(super) fn outside_page_allocator(&self, sample: &Sample<'_>) -> Vec<u64> {
        let frames = self.frames(sample);
        let outside = frames.iter();
        let outside = outside.skip_while(|frame| self.belongs_to(frame, PAGE_ALLOCATORS));
        outside.map(|frame| frame.ip).collect()
    }

    /// Returns the addresses from the innermost frame outside both allocators to the outermost frame, and whether the slab
    /// allocator allocates the pages.
    pub(super) fn outside_both_allocators(&self, sample: &Sample<'_>) -> (Vec<u64>, bool) {
        let frames = self.frames(sample);
        let callers = frames.iter();
        let callers = callers.skip_while(|frame| self.belongs_to(frame, PAGE_ALLOCATORS));
        let mut page_callers = callers.peekable();
        let is_slab = page_callers
            .peek()
            .is_some_and(|frame| self.belongs_to(frame, SLAB_ALLOCATORS));
        let outside = page_callers.skip_while(|frame| self.belongs_to(frame, SLAB_ALLOCATORS));
        (outside.map(|frame| frame.ip).collect(), is_slab)
    }

    /// Whether the function of a frame has one of these prefixes.
    fn belongs_to(&self, frame: &Frame, prefixes: &[&str]) -> bool {
        let symbol = frame.symbol;
        symbol.is_some_and(|symbol| has_prefix(self.0.symbol_name(symbol), prefixes))
    }
}

/// Whether the name of a function, without leading `_`, begins with one of these.
fn has_prefix(function: &str, prefixes: &[&str]) -> bool {
    let name = function.trim_start_matches('_');
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the symbol at an address of the kernel, such as the `call_site` of an event; `None` if no symbol is there.
/// The mappings of modules are those at the end of the recording.
pub(super) fn call_site(resolver: &Resolver<'_>, address: u64) -> Option<CallSite> {
    let at = AddressContext {
        machine: Machine::Host,
        pid: 0,
        order: Order::MAX,
    };
    let frame = resolver.locate(at, CpuMode::Kernel, address);
    let symbol = frame.symbol?;
    let start = resolver.symbol(symbol)?.start;
    Some(CallSite {
        symbol: resolver.symbol_name(symbol).to_owned(),
        offset: frame.address.wrapping_sub(start),
    })
}
