//! Pages that are not freed. An allocation may be freed in parts: the kernel can split it and free its pages one by one.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

/// The highest order that is considered: above the highest of kernels in use (13, of arm64 with pages of 64 KB). Blocks of
/// higher orders, in damaged recordings, count as blocks of this order.
const MAX_ORDER: u32 = 14;

/// The order and the migrate type of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageClass {
    /// Binary logarithm of the number of pages.
    pub order: u32,
    /// Number of the migrate type.
    pub migrate_type: i32,
}

impl PageClass {
    /// Returns the number of pages.
    #[must_use]
    pub fn pages(self) -> u64 {
        pages(self.order)
    }
}

/// Returns the number of pages of a block of this order.
pub(super) fn pages(order: u32) -> u64 {
    1 << order.min(MAX_ORDER)
}

/// Pages that are not freed: an allocation, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LiveBlock {
    /// Number of pages.
    pages: u64,
    /// The class of the allocation.
    pub(super) class: PageClass,
    /// The caller of the allocation function: the address after the call, 0 if unknown.
    pub(super) caller: u64,
}

/// The blocks that are not freed.
#[derive(Debug, Default)]
pub(super) struct LivePages {
    /// By the frame number of the first page; they do not overlap.
    blocks: BTreeMap<u64, LiveBlock>,
    /// By the address of the `struct page` of the first page, in recordings without frame numbers.
    addresses: FxHashMap<u64, PageClass>,
}

impl LivePages {
    /// Adds an allocation. None of its pages may be in another block.
    pub(super) fn insert(&mut self, frame: u64, class: PageClass, caller: u64) {
        let block = LiveBlock {
            pages: class.pages(),
            class,
            caller,
        };
        self.blocks.insert(frame, block);
    }

    /// Removes the pages of a block of `order` that begins at `frame`. Calls `removed` for each live block with some of these
    /// pages, with the class of its allocation and the number of pages removed from it. Returns the number of pages that were in
    /// no live block.
    pub(super) fn remove(
        &mut self,
        frame: u64,
        order: u32,
        mut removed: impl FnMut(PageClass, u64),
    ) -> u64 {
        let end = frame.saturating_add(pages(order));
        let mut unknown = end - frame;
        // The last block that begins before `end`, as long as it reaches beyond `frame`.
        while let Some((start, block)) = self.blocks.range(..end).next_back() {
            let (start, block) = (*start, *block);
            let block_end = start.saturating_add(block.pages);
            if block_end <= frame {
                break;
            }
            self.blocks.remove(&start);
            self.keep(block, start, frame.max(start));
            self.keep(block, end.min(block_end), block_end);
            let within = end.min(block_end) - frame.max(start);
            unknown = unknown.saturating_sub(within);
            removed(block.class, within);
        }
        unknown
    }

    /// Keeps the part of a block from frame `start` to `end`, exclusive.
    fn keep(&mut self, block: LiveBlock, start: u64, end: u64) {
        let pages = end.saturating_sub(start);
        if pages > 0 {
            self.blocks.insert(start, LiveBlock { pages, ..block });
        }
    }

    /// Adds an allocation that is known by the address of its `struct page`. Returns the class of an older allocation at this
    /// address, if any, whose free was not recorded.
    pub(super) fn insert_address(&mut self, page: u64, class: PageClass) -> Option<PageClass> {
        self.addresses.insert(page, class)
    }

    /// Removes the allocation that begins at the address of a `struct page`, always as a whole: its other pages have no known
    /// addresses. Returns its class; `None` if no allocation begins there.
    pub(super) fn remove_address(&mut self, page: u64) -> Option<PageClass> {
        self.addresses.remove(&page)
    }

    /// Whether all pages are known by their frame numbers.
    pub(super) fn has_only_frames(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Returns, for each block and each aligned range of `1 << order` pages that it overlaps, the index of the range, the block,
    /// and how many pages of the block are in the range; in order of frames.
    pub(super) fn by_range(&self, order: u32) -> impl Iterator<Item = (u64, LiveBlock, u64)> + '_ {
        let size = pages(order);
        self.blocks.iter().flat_map(move |(frame, block)| {
            let end = frame.saturating_add(block.pages);
            let ranges = frame / size..end.div_ceil(size);
            ranges.map(move |range| {
                let first = range.saturating_mul(size);
                let within = end.min(first.saturating_add(size)) - first.max(*frame);
                (range, *block, within)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{LivePages, PageClass};

    type Counts<K> = BTreeMap<K, u64>;

    proptest! {
        /// The oracle keeps each page by itself, with the class of its allocation.
        #[test]
        fn blocks_match_single_pages(
            events in prop::collection::vec((any::<bool>(), 0..64_u64, 0..5_u32, 0..3_i32), 1..200),
        ) {
            let (mut live, mut single) = (LivePages::default(), BTreeMap::new());
            for (is_new, frame, order, migrate_type) in events {
                let class = PageClass { order, migrate_type };
                let (mut actual, mut expected) = (Counts::new(), Counts::new());
                let unknown = live.remove(frame, order, |class, pages| {
                    *actual.entry(class).or_default() += pages;
                });
                let mut expected_unknown = 0;
                for page in frame..frame + (1 << order) {
                    match single.remove(&page) {
                        Some(older) => *expected.entry(older).or_default() += 1,
                        None => expected_unknown += 1,
                    }
                }
                prop_assert_eq!((actual, unknown), (expected, expected_unknown));
                if is_new {
                    live.insert(frame, class, 0);
                    single.extend((frame..frame + (1 << order)).map(|page| (page, class)));
                }
                for order in [0, 2, 9] {
                    let (mut actual, mut expected) = (Counts::new(), Counts::new());
                    for (range, block, pages) in live.by_range(order) {
                        *actual.entry((range, block.class)).or_default() += pages;
                    }
                    for (page, class) in &single {
                        *expected.entry((page >> order, *class)).or_default() += 1;
                    }
                    prop_assert_eq!(actual, expected);
                }
            }
        }
    }
}
